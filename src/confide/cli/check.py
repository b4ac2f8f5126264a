"""What the command `check` does: a policy in plain words, and how it fits its data, for the custodian alone."""

from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from confide.cli.boundary import REFUSED, report
from confide.cli.console import facts, printable, say, show, show_json, waiting
from confide.cli.ledger import differing, no_ledger
from confide.errors import ConfideError, EngineError, LedgerError, SourceError
from confide.policy import Policy
from confide.policy.describe import Description, TableFacts, by_whom, describe
from confide.release.custody import books
from confide.release.custody.examination import FOR_WHOM, Examination, examine
from confide.release.custody.examined_text import HEAD, examined_rows, title_of
from confide.release.custody.inspection import check_source
from confide.release.sql.purchases import Purchases, purchases


def check(policy: str, ledger: str | None, values: bool, as_json: bool) -> None:
    """Data and ledger are both looked at, whatever is wrong with one of them; then the first error is the outcome."""
    rules = Policy.load(policy)
    description = describe(rules)
    with waiting("opening the data"):
        source, source_error = _source_state(rules)
    examination, source_error = _examined(rules, source_error, values)
    books_found, ledger_error = _books(rules, ledger)
    error = source_error or ledger_error
    if as_json:
        found = _as_data(description, source, books_found) | {"buys": _bought(purchases(rules))}
        found |= {} if examination is None else {"examination": examination.to_dict()}
        show_json(found | ({} if error is None else {"error": report(error)}))
        if error is not None:
            raise typer.Exit(REFUSED)
        return
    _show(description)
    _show_purchases(rules)
    ledger_state = "cannot be used" if books_found is None else _ledger_words(books_found, policy, ledger)
    show(facts([("data", f"{description.source}: {source}"), ("ledger", ledger_state)]))
    for caution in description.cautions:
        say(f"worth a second look: {caution}", style="yellow")
    for note in description.notes:
        say(f"chosen on reading: {note}", style="dim")
    if examination is not None:
        _show_examination(examination)
    if error is not None:
        raise error
    _conclude(rules, examination)


def _examined(
    rules: Policy, error: ConfideError | None, values: bool
) -> tuple[Examination | None, ConfideError | None]:
    if rules.source is None or error is not None or not values:
        return None, error
    try:
        with waiting("comparing the data with the policy"):
            return examine(rules), None
    except (SourceError, EngineError) as failed:
        return None, failed


def _show_examination(examination: Examination) -> None:
    say("", "The data beside the policy", style="bold")
    say(FOR_WHOM, style="bold red")
    for table in examination.tables:
        say("", title_of(table), style="bold")
        shown = Table(show_edge=False, pad_edge=False, header_style="dim")
        for place, heading in enumerate(HEAD):
            shown.add_column(heading, justify="left" if place < 2 else "right", overflow="fold")
        for row in examined_rows(table):
            shown.add_row(*(Text(printable(part)) for part in row))
        show(shown)
    say("")
    for remark in examination.remarks:
        say(str(remark), label="WARNING" if remark.loud else "", style="" if remark.loud else "yellow")
    if examination.remarks:
        say(
            "A policy that is changed because of these numbers tells something of the data: change it where it was "
            "wrong about the subject, not to fit",
            style="dim",
        )


def _show_purchases(rules: Policy) -> None:
    found = purchases(rules)
    say(f"What the whole budget of ε = {float(found.epsilon):g} buys, if nothing else is asked", style="bold")
    shown = Table(show_edge=False, pad_edge=False, header_style="dim")
    shown.add_column("calls for")
    for heading in ("within", f"with δ = {float(found.delta):g}", "without δ"):
        shown.add_column(heading, justify="right")
    for own in found.offered:
        calls = ["at no ε" if number is None else f"{number:,}" for number in (own.with_delta, own.without_delta)]
        shown.add_row(Text(printable(own.what)), f"±{own.within}", *calls)
    show(shown)
    said = {
        "pure": "this budget has no δ: ε adds up",
        "concentrated": "this budget has a δ: ρ adds up, and all calls are counted in the column with it",
        "either": "this budget is held in either account: calls that are all pure are counted in the column without δ",
    }
    say(f"{said[rules.budget.rule]}; at confidence 0.95", "", style="dim")


def _bought(found: Purchases) -> list[dict[str, Any]]:
    return [
        {"what": own.what, "within": own.within, "with_delta": own.with_delta, "without_delta": own.without_delta}
        for own in found.offered
    ]


def _conclude(rules: Policy, examination: Examination | None) -> None:
    if examination is None:
        said = "the policy holds" if rules.source is None else "the policy holds, and its data has its columns"
        say(said, style="green")
        return
    loud = len(examination.loud)
    if loud:
        say(f"the policy holds, but its data does not fit it: {loud} warning{'s' * (loud > 1)}", style="bold red")
    else:
        say("the policy holds, and its data fits", style="green")


def _source_state(rules: Policy) -> tuple[str, ConfideError | None]:
    if rules.source is None:
        return "not looked at", None
    try:
        remarks = check_source(rules)
    except SourceError as error:
        return "does not fit", error
    return "; ".join(("opens, and has the columns that the policy names", *remarks)), None


def _books(rules: Policy, ledger: str | None) -> tuple[books.Books | None, ConfideError | None]:
    try:
        found = books.look(rules, ledger)
    except LedgerError as error:
        return None, error
    if found.differs:
        return found, differing(found.differs, str(rules.path))
    return found, None


def _ledger_words(found: books.Books, policy: str, ledger: str | None) -> str:
    if not found.exists:
        return no_ledger(found, policy, ledger)
    return f"{found.path}, {found.entries:,} entries, {found.budget.in_all}"


def _show(description: Description) -> None:
    budget = description.budget
    delta = f", δ = {float(budget.delta):g}" if budget.delta else ""
    rows = [
        ("policy", description.title),
        ("protected", description.protected),
        ("", description.neighbours),
        ("budget", f"ε = {float(budget.epsilon):g}{delta} in all; {budget.held}"),
    ]
    for name, cap in budget.analysts:
        rows.append(("", f"{'everybody else together' if name == '*' else name} may spend ε = {float(cap):g} of it"))
    show(facts(rows))
    for table in description.tables:
        say("")
        say(f"{table.name}: {'private' if table.private else 'public'}, {table.rows}", style="bold")
        if table.private:
            say(_contribution(table))
        if table.columns:
            show(_columns(table))
    say("")


def _contribution(table: TableFacts) -> str:
    rows = "1 row" if table.at_most_rows == 1 else f"{table.at_most_rows:,} rows"
    groups = "1 group" if table.at_most_groups == 1 else f"{table.at_most_groups:,} groups"
    return f"one unit may contribute {rows}, in {groups} of an answer; {by_whom(table)}"


def _columns(table: TableFacts) -> Table:
    shown = Table(show_edge=False, pad_edge=False, header_style="dim")
    for heading in ("column", "kind", "what is public", "may be used for"):
        shown.add_column(heading, overflow="fold")
    for column in table.columns:
        shown.add_row(*(Text(printable(part)) for part in (column.name, column.kind, column.public, column.use)))
    return shown


def _as_data(description: Description, source: str, found: books.Books | None) -> dict[str, Any]:
    budget = description.budget
    return {
        "policy": description.title,
        "protected": description.protected,
        "neighbours": description.neighbours,
        "budget": {
            "epsilon": float(budget.epsilon),
            "delta": float(budget.delta),
            "analysts": {name: float(cap) for name, cap in budget.analysts},
        },
        "tables": [_table_data(table) for table in description.tables],
        "source": {"is": description.source, "state": source},
        "ledger": None
        if found is None
        else {"file": str(found.path), "exists": found.exists, "entries": found.entries, "spent": found.budget.spent},
        "cautions": list(description.cautions),
        "notes": list(description.notes),
    }


def _table_data(table: TableFacts) -> dict[str, Any]:
    return {
        "name": table.name,
        "private": table.private,
        "rows": table.rows,
        "at_most": {"rows": table.at_most_rows, "groups": table.at_most_groups},
        "columns": [{"name": c.name, "kind": c.kind, "public": c.public, "use": c.use} for c in table.columns],
    }
