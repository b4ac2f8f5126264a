"""Tables and the unit of privacy: who is protected, and how much one of them may have in each table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from confide.policy.column import Column

SUMMARY_ROWS = 1_000_000
"""How many distinct values may leave a database for one quantile or sum, where a policy says nothing."""


@dataclass(frozen=True, slots=True)
class RowUnit:
    """One row of any one private table is protected."""

    def __str__(self) -> str:
        return "row"


@dataclass(frozen=True, slots=True)
class KeyUnit:
    """Whoever a key stands for is protected: the rows that hold the key, and all rows that reference them."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


Unit = RowUnit | KeyUnit


@dataclass(frozen=True, slots=True)
class Contribution:
    """The most rows one unit may have in a table, and the most groups of one answer they may fall into."""

    rows: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.groups <= self.rows:
            raise ValueError(f"at most {self.rows} rows in {self.groups} groups: needs 1 ≤ groups ≤ rows")


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One reference on the way to the unit: `column` of `table` holds values of `to_column` of `to_table`."""

    table: str
    column: str
    to_table: str
    to_column: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what is public about it, where its rows point to, and what one unit may have in it.

    `rows="public"`: its number of rows is known, and neighbours replace a row instead of adding or removing one.
    `size` is a public rough number of rows, used only to forecast. A public table's `at_most` has no meaning.
    """

    name: str
    public: bool = False
    columns: Mapping[str, Column] = field(default_factory=dict, hash=False)
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    at_most: Contribution = Contribution()
    rows: Literal["private", "public"] = "private"
    size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "references", MappingProxyType(dict(self.references)))
