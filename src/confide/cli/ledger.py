"""What the commands `budget` and `ledger` do."""

import sys
from pathlib import Path
from shlex import quote
from typing import Any

from rich.table import Table
from rich.text import Text

from confide.cli.console import facts, printable, say, show_json, waiting
from confide.cli.console import show as display
from confide.cli.options import read_whole
from confide.cli.output import new_file
from confide.errors import LedgerError, LedgerMissing, ParameterError
from confide.policy import Policy
from confide.release import BudgetState
from confide.release.custody import books

_BAR = 40
_LONGEST_PURPOSE = 300


def budget(policy: str, epsilon: str | None, analyst: str, ledger: str | None, as_json: bool) -> None:
    rules = Policy.load(policy)
    found = books.look(rules, ledger, analyst, epsilon)
    if not found.exists:
        raise LedgerMissing(no_ledger(found, policy, ledger))
    state, spenders = found.budget, books.spenders(rules, ledger)
    if as_json:
        numbers: dict[str, Any] = {"total": state.total, "spent": state.spent, "left": state.left, "delta": state.delta}
        numbers |= {"analyst": analyst, "cap": state.cap, "answers_left": found.answers_left}
        numbers |= {"spent_in_all": state.spent_in_all, "analysts": [_spender_data(own) for own in spenders]}
        if state.accounts:
            numbers |= {"accounts": dict(state.accounts), "answers_by_account": dict(found.answers_by_account)}
        show_json({**numbers, "ledger": str(found.path)})
        return
    delta = f" at δ = {state.delta:g}" if state.delta else ""
    capped = state.cap if analyst else None
    if capped is None:
        display(spent_bar(state.spent_in_all, state.total))
    else:
        display(spent_bar(state.spent_in_all, state.total, "budget    "))
        display(spent_bar(state.spent, capped, "cap       "))
    rows = [
        ("budget", f"ε = {state.total:.6g}{delta}, for everybody together"),
        ("spent", f"ε = {state.spent_in_all:.6g}, by everybody together"),
    ]
    if capped is not None:
        rows.append(("cap", f"{state.capped} may spend ε = {capped:.6g}"))
        rows.append(("used", f"ε = {state.spent:.6g} of that cap"))
    who = ", for whoever has no cap of their own" if state.cap is not None and not analyst else ""
    rows.append(("one call", state.one_call + who))
    rows += [("room for", words + who) for words in _fitting(found, epsilon)]
    display(facts(rows))
    if spenders:
        say("")
        display(_spender_table(spenders))
    say(*_sums(state), style="dim")
    if found.differs:
        say(str(differing(found.differs, policy)), style="yellow")


def _fitting(found: books.Books, epsilon: str | None) -> list[str]:
    if found.answers_by_account:
        return [
            f"about {number:,} calls at ε = {epsilon} in the {account} account"
            for account, number in found.answers_by_account.items()
        ]
    return [] if found.answers_left is None else [f"about {found.answers_left:,} calls at ε = {epsilon}"]


def _spender_table(spenders: tuple[books.Spender, ...]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("analyst")
    for heading in ("spent", "cap", "most of one call", "last call", "calls like it"):
        table.add_column(heading, justify="right")
    for own in spenders:
        name = {"*": "everybody else", "": "(no name)"}.get(own.name, own.name)
        most = " or ".join(f"ε {left:.4g}" for left in own.left.values())
        table.add_row(
            Text(printable(name)),
            f"ε {own.spent:.4g}",
            "" if own.cap is None else f"ε {own.cap:.4g}",
            most,
            "" if own.last is None else f"ε {own.last:.4g}",
            "" if own.more is None else f"{own.more:,}",
        )
    return table


def _spender_data(own: books.Spender) -> dict[str, Any]:
    return {"name": own.name, "spent": own.spent, "cap": own.cap, "left": dict(own.left), "last": own.last,
            "more": own.more}  # fmt: skip


def _sums(state: BudgetState) -> list[str]:
    """What adds up, in each kind of budget."""
    if state.accounts:
        return [
            "either account may hold the next call: pure calls add up ε, until one is not pure or ε is spent; all add "
            "up ρ, to which a pure call at ε adds ε²/2"
        ]
    if state.delta:
        return ["ε does not add up here: ρ does, so many small calls together cost less than the sum of their ε"]
    return ["every ε that is spent is added up"]


def spent_bar(spent: float, total: float, label: str = "") -> Text:
    """How much of a budget is gone, as a bar."""
    share = min(1.0, spent / total) if total else 1.0
    filled = min(_BAR, round(share * _BAR))
    colour = "green" if share < 0.5 else "yellow" if share < 0.9 else "red"
    return Text.assemble((label, "bold"), ("█" * filled, colour), ("░" * (_BAR - filled), "dim"), f" {share:.0%} spent")


def create(policy: str, ledger: str | None, as_json: bool) -> None:
    rules = Policy.load(policy)
    with waiting("making the ledger"):
        place = books.create(rules, ledger)
    if as_json:
        show_json({"ledger": str(place), "budget": str(rules.budget)})
        return
    say(f"made the ledger {place}: a budget of {rules.budget}, and nothing spent")


def show(policy: str, last: str, ledger: str | None, as_json: bool) -> None:
    rules = Policy.load(policy)
    count = read_whole(last, "--last", 20)
    if count is None or count < 1:
        raise ParameterError(f"--last {last} is not a number of entries; write a whole number above 0")
    with waiting("reading the ledger"):
        lines = books.read_lines(rules, ledger, count)
        found = books.look(rules, ledger)
    if as_json:
        entries = [{name: getattr(line, name) for name in line.__dataclass_fields__} for line in lines]
        state = {"total": found.budget.total, "spent": found.budget.spent, "left": found.budget.left}
        show_json({"ledger": str(found.path), "entries": found.entries, "budget": state, "newest": entries})
        return
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("entry", justify="right")
    table.add_column("time (UTC)", no_wrap=True, style="dim")
    table.add_column("who")
    table.add_column("ε", justify="right")
    table.add_column("what", overflow="fold")
    for line in lines:
        what = " ".join(line.what.removeprefix("sql: ").split())
        what = what if len(what) <= _LONGEST_PURPOSE else what[: _LONGEST_PURPOSE - 1] + "…"
        waits = "" if line.kind != "charge" or line.answered else " (not answered yet)"
        waits = " (failed)" if line.failed else waits
        who = line.analyst if line.kind == "charge" else f"({line.kind})"
        cost = "" if line.epsilon is None else f"{line.epsilon:.4g}"
        time = line.time.replace("T", " ").removesuffix("+00:00")
        table.add_row(str(line.sequence), time, Text(printable(who)), cost, Text(printable(what) + waits))
    display(table)
    say(f"{found.entries:,} entries in {found.path} · {found.budget.in_all}", style="dim")


def verify(policy: str, ledger: str | None, as_json: bool) -> None:
    with waiting("walking the chain"):
        rules = Policy.load(policy)
        head = books.verify(rules, ledger)
        found = books.look(rules, ledger)
    if as_json:
        show_json({"ledger": str(found.path), "entries": head.sequence, "head": head.hash, "spent": found.budget.spent})
        return
    say("the ledger is whole: every entry follows from those before it, and the sums are right", style="green")
    rows = [("ledger", str(found.path)), ("entries", f"{head.sequence:,}"), ("head", head.hash)]
    display(facts([*rows, ("spent", found.budget.in_all)]))
    if found.differs:
        say(str(differing(found.differs, policy)), style="yellow")


def export(policy: str, output: str | None, ledger: str | None, as_json: bool) -> None:
    rules = Policy.load(policy)
    if output is None:
        head = books.export(rules, sys.stdout, ledger)
        sys.stdout.flush()
        say(f"{head.sequence:,} entries; the last hash is {head.hash}", style="dim", errors=True)
        return
    path = Path(output)
    with waiting("writing"), new_file(path, "choose another name") as stream:
        head = books.export(rules, stream, ledger)
    if as_json:
        show_json({"file": str(path), "entries": head.sequence, "head": head.hash})
        return
    say(f"{head.sequence:,} entries written to {path}; the last hash is {head.hash}")


def amend(policy: str, ledger: str | None, as_json: bool) -> None:
    changed = books.amend(Policy.load(policy), ledger)
    if as_json:
        show_json({"changed": [{"term": part.term, "was": part.ledger, "is": part.policy} for part in changed]})
        return
    for part in changed:
        say(f"on the record: {part.term} {part.policy} from now on, {part.ledger} before")
    if not changed:
        say("nothing to change: the ledger holds what the policy says")


def no_ledger(found: books.Books, policy: str, ledger: str | None) -> str:
    """That there is no ledger, and how it is made. Questions are refused until it is."""
    named = "" if ledger is None else f" --ledger {quote(ledger)}"
    return (
        f"there is no ledger at {found.path}. If the policy was used before, say where its ledger is, with ledger: in "
        f"the policy or --ledger; if not, confide ledger create {quote(policy)}{named} makes it, with the whole budget "
        "unspent"
    )


def differing(differences: tuple[books.Difference, ...], policy: str) -> LedgerError:
    """A ledger and a policy that do not agree, and what to do about it."""
    what = "; ".join(map(str, differences))
    return LedgerError(
        f"{what}. Change the policy back, or put the change on record: confide ledger amend {quote(policy)}"
    )


def restore_anchor(policy: str, ledger: str | None, as_json: bool) -> None:
    with waiting("walking the chain"):
        path, anchor = books.restore_anchor(Policy.load(policy), ledger)
    if as_json:
        show_json({"ledger": str(path), "anchor": str(anchor)})
        return
    say(f"the chain of {path} is whole, and its anchor is made again")
