"""What the commands `init` and `check` do: the custodian's side."""

import os
from pathlib import Path
from shlex import quote
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from confide.cli.boundary import REFUSED, report
from confide.cli.console import facts, printable, say, show, show_json, waiting
from confide.cli.ledger import differing, no_ledger
from confide.cli.output import new_file
from confide.errors import ConfideError, LedgerError, SourceError
from confide.policy import Policy
from confide.policy.describe import Description, TableFacts, describe
from confide.policy.draft import BLANK, draft
from confide.release.custody import books
from confide.release.custody.inspection import check_source, stored_table

# --- init -------------------------------------------------------------------------------------------------------------


def init(file: str, output: str | None, table: str | None, as_json: bool) -> None:
    data = Path(file)
    found = stored_table(data, table)
    target = Path(output) if output is not None else data.with_name(f"{data.name.split('.', maxsplit=1)[0]}.yaml")
    source = os.path.relpath(data.resolve(), target.resolve().parent)
    text = draft(found.name, found.columns, source)
    with new_file(target, "choose another name with --output") as stream:
        stream.write(text)
    blanks = sum(line.split("#", maxsplit=1)[0].count(BLANK) for line in text.splitlines())
    if as_json:
        columns = [{"name": name, "type": kind or None} for name, kind in found.columns]
        show_json({"policy": str(target), "table": found.name, "columns": columns, "blanks": blanks})
        return
    known = "names and types" if any(kind for _, kind in found.columns) else "names"
    say(f"wrote {target}: a draft from the {known} of {len(found.columns)} columns of {data.name}")
    say(
        f"It has {blanks} blanks ({BLANK}) and is refused until each is filled in. Take bounds and lists of values from"
        " what is known about the subject, never from the data. Then run:"
    )
    say(f"  confide check {quote(str(target))}", style="bold")


# --- check ------------------------------------------------------------------------------------------------------------


def check(policy: str, ledger: str | None, as_json: bool) -> None:
    """Data and ledger are both looked at, whatever is wrong with one of them; then the first error is the outcome."""
    rules = Policy.load(policy)
    description = describe(rules)
    with waiting("opening the data"):
        source, source_error = _source_state(rules)
    books_found, ledger_error = _books(rules, ledger)
    error = source_error or ledger_error
    if as_json:
        show_json(_as_data(description, source, books_found) | ({} if error is None else {"error": report(error)}))
        if error is not None:
            raise typer.Exit(REFUSED)
        return
    _show(description)
    ledger_state = "cannot be used" if books_found is None else _ledger_words(books_found, policy, ledger)
    show(facts([("data", f"{description.source}: {source}"), ("ledger", ledger_state)]))
    for caution in description.cautions:
        say(f"worth a second look: {caution}", style="yellow")
    for note in description.notes:
        say(f"chosen on reading: {note}", style="dim")
    if error is not None:
        raise error
    say("the policy holds" if rules.source is None else "the policy holds, and its data fits", style="green")


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
    return f"{found.path}, {found.entries:,} entries, {found.budget}"


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
    belongs = table.belongs if table.belongs.startswith(("by ", "each ")) else f"by {table.belongs}"
    return f"one unit may contribute {rows}, in {groups} of an answer; rows belong to a unit {belongs}"


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
