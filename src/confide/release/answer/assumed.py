"""What intervals assume beside the mechanism: that the policy's bounds cut nothing off."""

from dataclasses import replace
from typing import TypeVar

from confide.release.answer.answer import KeyColumn, ValueColumn
from confide.release.answer.plan import PlannedColumn

Column = TypeVar("Column", KeyColumn | ValueColumn, PlannedColumn)


def assuming_bounds(column: Column, counted: str) -> Column:
    """A column whose interval is for the rows that count, where `counted` says that some may not."""
    if not counted or isinstance(column, KeyColumn) or column.assumes != "always":
        return column
    return replace(column, assumes="at_most")
