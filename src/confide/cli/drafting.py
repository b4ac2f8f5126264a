"""What the command `init` does: the draft of a policy."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from confide.cli.console import say, show_json, waiting
from confide.cli.output import new_file, occupied
from confide.errors import ParameterError
from confide.host.address import leaving_password_out
from confide.policy.draft import BLANK, Decided, StoredTable, draft
from confide.privacy.budget import Budget
from confide.release.custody.inspection import StoredSource, stored_source
from confide.release.proposal import Proposal, propose


@dataclass(frozen=True, slots=True)
class InitCommand:
    """What to draft a policy from, as it was typed; `epsilon` pays for bounds and lists."""

    places: Sequence[str]
    output: str | None
    table: str | None
    epsilon: str | None
    budget: str | None
    delta: str | None
    unit: str | None

    def __post_init__(self) -> None:
        given = {"--budget": self.budget, "--delta": self.delta, "--unit": self.unit}
        if self.epsilon is None and any(given.values()):
            named = next(name for name, value in given.items() if value)
            raise ParameterError(
                f"{named} goes with --epsilon, which pays for bounds and lists; leave it out, or give both"
            )
        missing = [name for name in ("--budget", "--unit") if self.epsilon is not None and not given[name]]
        if missing:
            raise ParameterError(
                f"--epsilon asks the data, so {' and '.join(missing)} must be said first: how much may be spent in "
                "all, and who is protected, as in --budget 3 --delta 1e-9 --unit row"
            )


def init(command: InitCommand, as_json: bool) -> None:
    with waiting("looking for tables"):
        found = stored_source(command.places, command.table)
    target = Path(command.output) if command.output is not None else _beside(command.places)
    if target.exists():  # before anything is paid for
        raise occupied(target, "it is there already", "choose another name with --output")
    source = _relative(found, target)
    proposal = None if command.epsilon is None else _proposed(command, source, target)
    decided = None if proposal is None else _decided(command, proposal)
    whole = None if source.whole is None else leaving_password_out(source.whole)
    text = draft(source.tables, f"{target.stem}.ledger", whole, decided)
    with new_file(target, "choose another name with --output") as stream:
        stream.write(text)
    blanks = sum(line.split("#", maxsplit=1)[0].count(BLANK) for line in text.splitlines())
    if as_json:
        tables = [{"name": own.name, "columns": _columns(own)} for own in found.tables]
        paid = {} if proposal is None else {"proposed": len(proposal.rules), "spent": proposal.spent}
        show_json({"policy": str(target), "tables": tables, "blanks": blanks, **paid})
        return
    _tell(found, target)
    if proposal is not None:
        say(
            f"{len(proposal.rules)} bounds and lists were proposed from the data; the ledger "
            f"{target.with_suffix('.ledger')} holds what that cost: ε = {proposal.spent:.4g} of {command.budget}"
        )
        for name in proposal.skipped:
            say(f"{name}: nothing was proposed, since no column of it leads to {command.unit} by its name")
    _advise(blanks)
    say(f"  confide check {quote(str(target))}", style="bold")


def _tell(found: StoredSource, target: Path) -> None:
    known = "names and types" if any(kind for own in found.tables for _, kind in own.columns) else "names"
    number = sum(len(own.columns) for own in found.tables)
    of = found.tables[0].name if len(found.tables) == 1 else f"{len(found.tables)} tables"
    say(f"wrote {target}: a draft from the {known} of {number} columns of {of}")


def _advise(blanks: int) -> None:
    if not blanks:
        say("It has no blanks left: read it, change what the subject says otherwise, and run:")
        return
    many = f"{blanks} blanks" if blanks > 1 else "one blank"
    say(
        f"It has {many} ({BLANK}) and is refused until each is filled in. Take bounds and lists of values from"
        " what is known about the subject, never from the data. Then run:"
    )


def _proposed(command: InitCommand, source: StoredSource, target: Path) -> Proposal:
    budget = Budget.of(command.budget, 0 if command.delta is None else command.delta)
    with waiting("asking the data, at a cost"):
        return propose(
            source, budget, command.unit or "", command.epsilon, target.with_suffix(".ledger"), target.resolve().parent
        )


def _decided(command: InitCommand, proposal: Proposal) -> Decided:
    delta = "" if command.delta is None else f", delta: {command.delta}"
    return Decided(
        f"{{epsilon: {command.budget}{delta}}}",
        command.unit or "",
        proposal.rules,
        proposal.sizes,
        f"What is proposed from the data was paid for: ε = {proposal.spent:.4g}, in the ledger.",
    )


def _beside(places: Sequence[str]) -> Path:
    """The policy of one file stands beside it and is called like it; of a folder in it, and of all else here."""
    first = Path(places[0])
    if len(places) > 1 or not first.exists():
        return Path("policy.yaml")
    return first / "policy.yaml" if first.is_dir() else first.with_name(f"{first.name.split('.', maxsplit=1)[0]}.yaml")


def _relative(found: StoredSource, target: Path) -> StoredSource:
    """The same, with files named from where the policy is."""
    folder = target.resolve().parent

    def named(place: str | None) -> str | None:
        here = place is not None and Path(place).exists()
        return os.path.relpath(Path(place).resolve(), folder) if here and place is not None else place

    return StoredSource(tuple(replace(own, place=named(own.place)) for own in found.tables), named(found.whole))


def _columns(table: StoredTable) -> list[dict[str, str | None]]:
    return [{"name": name, "type": kind or None} for name, kind in table.columns]
