"""What the command `init` does: the draft of a policy."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from confide.cli.console import say, show_json, waiting
from confide.cli.output import new_file
from confide.policy.draft import BLANK, StoredTable, draft
from confide.release.custody.inspection import StoredSource, stored_source


def init(places: Sequence[str], output: str | None, table: str | None, as_json: bool) -> None:
    with waiting("looking for tables"):
        found = stored_source(places, table)
    target = Path(output) if output is not None else _beside(places)
    source = _relative(found, target)
    text = draft(source.tables, f"{target.stem}.ledger", source.whole)
    with new_file(target, "choose another name with --output") as stream:
        stream.write(text)
    blanks = sum(line.split("#", maxsplit=1)[0].count(BLANK) for line in text.splitlines())
    if as_json:
        tables = [{"name": own.name, "columns": _columns(own)} for own in found.tables]
        show_json({"policy": str(target), "tables": tables, "blanks": blanks})
        return
    known = "names and types" if any(kind for own in found.tables for _, kind in own.columns) else "names"
    number = sum(len(own.columns) for own in found.tables)
    of = found.tables[0].name if len(found.tables) == 1 else f"{len(found.tables)} tables"
    say(f"wrote {target}: a draft from the {known} of {number} columns of {of}")
    say(
        f"It has {blanks} blanks ({BLANK}) and is refused until each is filled in. Take bounds and lists of values from"
        " what is known about the subject, never from the data. Then run:"
    )
    say(f"  confide check {quote(str(target))}", style="bold")


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
