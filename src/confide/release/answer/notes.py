"""What an answer says beside its numbers: of rows in which a key has no value, and of rows that a bound may cut off."""

from dataclasses import replace
from typing import TypeVar

from confide.query.possible_groups import GroupedRows, lost_nulls, null_groups
from confide.query.question import Shown, ShownKey
from confide.query.tree import UnknownKey
from confide.release.answer.answer import KeyColumn, ValueColumn
from confide.release.answer.plan import PlannedColumn

Column = TypeVar("Column", KeyColumn | ValueColumn, PlannedColumn)


def key_notes(question: Shown, asked: GroupedRows) -> tuple[str, ...]:
    """Which group rows without a value of a key are in, or that they are in none. An undeclared value is none."""
    names = {column.key: column.name for column in question.columns if isinstance(column, ShownKey)}
    notes = []
    for place in null_groups(asked, question.possible):
        enough = ", if enough units have such rows" if isinstance(question.keys[place], UnknownKey) else ""
        notes.append(
            f"rows without a value of {names.get(place, question.keys[place].name)} are the group NULL{enough}"
        )
    lost = [names.get(place, question.keys[place].name) for place in lost_nulls(asked)]
    if lost:
        which = " or ".join([", ".join(lost[:-1]), lost[-1]] if lost[1:] else lost)
        notes.append(f"rows without a value of {which} are in no group; `nulls: true` in the policy makes them one")
    return tuple(notes)


def assuming_bounds(column: Column, counted: str) -> Column:
    """A column whose interval is for the rows that count, where `counted` says that some may not."""
    if not counted or isinstance(column, KeyColumn) or column.assumes != "always":
        return column
    return replace(column, assumes="at_most")
