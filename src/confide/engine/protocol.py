"""What an engine is: it turns a bounded summary into exact integers, against a charge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide.engine.result import Columns, Rows
from confide.engine.storage import Storages
from confide.policy import Column
from confide.privacy.charge import Charge
from confide.query.tabulation import Tabulation
from confide.query.tree import Summary
from confide.workload.tables import ExactTables, Integers

KeyValue = str | int | bool | None
Counts = tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact integers of every group: `cells[i][g]` is cell i in group g.

    Groups of declared keys are all there, in the order of the product of their domains, and `keys` is None. Groups of
    undeclared keys are those that exist, and `keys` names them; a declared or binned part of such a key is a place in
    its domain. Integers are Python's where they may pass 64 bits. `tallies[i][g]` are the distinct values of tally i in
    group g, in increasing order, how many rows have each, and their sums if the tally asks for them.
    """

    cells: tuple[NDArray[np.int64] | NDArray[np.object_], ...]
    keys: tuple[tuple[KeyValue, ...], ...] | None
    tallies: tuple[tuple[Counts, ...], ...] = ()
    noised: NDArray[Any] | None = None
    """Of each group the number that it was chosen by."""


Keep = Callable[[tuple[NDArray[Any], ...]], tuple[NDArray[np.intp], NDArray[Any]]]
"""From the cells of some groups, the places of those to keep, and the noised number that each of these is kept for."""

Window = Callable[[int], tuple[int, int]]
"""From the number of rows of a group, ranks r and R: its rows may be anywhere among values y with #{x<=y} <= r, or with
#{x<y} >= R."""
Windows = Mapping[int, Sequence[Window]]
"""For a tally, by its place, all windows that what is made of it looks through; whole if it is not named."""

Facts_co = TypeVar("Facts_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Statements:
    """What an inquiry reads through: statements as DuckDB writes them, and how columns are stored."""

    rows: Callable[[str], Rows]
    columns: Callable[[str], Columns]
    storages: Storages


class Inquiry(Protocol[Facts_co]):
    """A private read that is no summary of groups: what a join or a graph is judged by. Integers come out of it."""

    def read(self, statements: Statements) -> Facts_co: ...


class CountedSets(Protocol):
    """Rows that an engine has read against a charge and keeps: all it tells of them are counts."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each key has."""

    def marginal(self, columns: tuple[int, ...]) -> Integers:
        """How many rows are in each cell of some keys, shaped by them."""


class Engine(Protocol):
    """One data source. `evaluate` reads private rows, and does so only against a charge; public facts are free."""

    @property
    def version(self) -> str:
        """Names the state of the data; it changes when the data do."""
        ...

    @property
    def steady(self) -> bool:
        """Whether several readings of one question see the same rows, or fail. Only then may it be read in passes."""
        ...

    def ready(self) -> None:
        """Refuse, before anything is charged, data that cannot be reached, or are not those that were opened.

        After a fork a child has a connection of its own, or none at all: never its parent's.
        """
        ...

    def evaluate(
        self, summary: Summary, charge: Charge, secret: bytes, keep: Keep | None = None, windows: Windows | None = None
    ) -> Exact:
        """Exact integers of a summary; raises nothing but EngineError once rows are read.

        Of keys of undeclared domain there may be any number: `keep` chooses among some of them at a time. Outside of
        its `windows` a tally may be coarse: rows may have other values, as a window allows.
        """
        ...

    def tabulate(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> ExactTables:
        """Exact tables of counts for a workload, of the same bounded rows; fails as `evaluate` does."""
        ...

    def occupied(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> "CountedSets":
        """Counts of any sets of the keys, of the same bounded rows, for more sets than a database would be asked for;
        fails as `evaluate` does.
        """
        ...

    def inquire(self, inquiry: Inquiry[Facts_co], charge: Charge) -> Facts_co:
        """What an inquiry finds; raises nothing but EngineError once rows are read."""
        ...

    def examine(self, inquiry: Inquiry[Facts_co]) -> Facts_co:
        """What an inquiry finds, without a charge: exact numbers, for the custodian's eyes and for no release."""
        ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a custodian should know of the source."""
        ...

    def columns(self, table: str) -> Mapping[str, Column]:
        """The columns of a public table."""
        ...

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        """The most rows of a public table that agree on these columns, as a join sees them."""
        ...

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> tuple[tuple[KeyValue, ...], ...] | None:
        """The different rows of a public table in these columns, as its policy sees them: ranged ones as indices. None
        if there are more than `most`.
        """
        ...

    def counted(self, table: str, columns: tuple[str, ...], most: int) -> tuple[tuple[KeyValue, ...], ...] | None:
        """The same, and after the values of each row how many rows of the public table have them."""
        ...

    def close(self) -> None: ...
