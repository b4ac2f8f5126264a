"""Workloads as data: which counts are wanted, said by columns and never one by one.

An r-of-k threshold on k columns stands for one count for each choice of a place in every column: the rows that match
the choice in at least r of them. r = k is a marginal, r = 1 a disjunction. A workload of 10⁸ counts is a short list.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, assert_never

from confide.errors import ParameterError
from confide.privacy.amount import whole_number
from confide.workload.domain import Domain
from confide.workload.ordered import Ordered, StretchKind, names_of, widths_of

MOST_SETS: Final = 20_000
MOST_QUERIES: Final = 10**11
MOST_CELLS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Threshold:
    """All counts of rows that match a choice of places in at least `need` of these columns."""

    columns: tuple[str, ...]
    need: int

    def __post_init__(self) -> None:
        if not self.columns:
            raise ParameterError("a threshold names at least one column")
        if len(set(self.columns)) < len(self.columns):
            raise ParameterError(f"a threshold names a column twice: {', '.join(self.columns)}")
        _check_need(self.need, len(self.columns))

    def __str__(self) -> str:
        listed = ", ".join(self.columns)
        return listed if self.need == len(self.columns) else f"{self.need} of {listed}"


@dataclass(frozen=True, slots=True)
class Every:
    """The thresholds on every set of `k` columns: of those named, or of all."""

    k: int
    need: int
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ParameterError(f"k = {self.k!r} is not a number of columns; write a whole number from 1")
        _check_need(self.need, self.k)
        if self.columns is not None and self.k > len(self.columns):
            raise ParameterError(
                f"k = {self.k} columns are to be taken from {len(self.columns)}: {', '.join(self.columns)}; "
                f"name more columns or write k = {len(self.columns)}"
            )


@dataclass(frozen=True, slots=True)
class Counting:
    """One count: the rows in which at least `need` of the columns hold one of the places listed for them."""

    columns: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    need: int

    def __post_init__(self) -> None:
        if len(self.places) != len(self.columns) or not self.columns:
            raise ParameterError("a count lists places for each of its columns, and has at least one column")
        _check_need(self.need, len(self.columns))
        # Lists, and numbers of other libraries, as Python's own: a count is part of what tells requests apart.
        listed = tuple(tuple(map(whole_number, own)) for own in self.places)
        if any(place is None for own in listed for place in own):
            raise ParameterError("the places of a count are whole numbers, in a list for each of its columns")
        object.__setattr__(self, "places", listed)
        object.__setattr__(self, "columns", tuple(self.columns))


@dataclass(frozen=True, slots=True)
class Sql:
    """Counts said in SQL; what they mean is known when a policy is."""

    text: str


Part = Threshold | Every | Counting | Sql | Ordered


@dataclass(frozen=True, slots=True)
class Workload:
    """What is wanted of a table: `marginals`, `ranges`, `prefixes`, `thresholds`, `from_sql`, `draw`; added with +."""

    parts: tuple[Part, ...]

    def __add__(self, other: "Workload") -> "Workload":
        return Workload((*self.parts, *other.parts))

    def bound(self, domain: Domain) -> "BoundWorkload":
        """The workload on a domain: every set of columns listed, every fault named. SQL must have been read before."""
        thresholds: dict[tuple[tuple[int, ...], int], None] = {}
        counts: list[Counting] = []
        for part in self.parts:
            match part:
                case Threshold(columns, need):
                    thresholds[tuple(sorted(map(domain.place_of, columns))), need] = None
                case Every():
                    thresholds |= dict.fromkeys(_every(part, domain))
                case Counting():
                    counts.append(part)
                case Sql(text):
                    raise ParameterError(f"the SQL of a workload is read by a session: {text[:60]}")
                case Ordered():
                    raise ParameterError(
                        f"ranges and prefixes of {', '.join(part.columns)} are answered by session.answer(...); here "
                        "there are marginals, thresholds and counts in SQL"
                    )
                case _:
                    assert_never(part)
        if len(thresholds) > MOST_SETS:
            raise _too_many_sets(len(thresholds))
        bound = BoundWorkload(domain, tuple(Marks(columns, need) for columns, need in thresholds), tuple(counts))
        bound.check()
        return bound


@dataclass(frozen=True, slots=True)
class Marks:
    """A threshold on a domain: the places of its columns, in order, and how many must match."""

    columns: tuple[int, ...]
    need: int


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    """A workload on a domain."""

    domain: Domain
    thresholds: tuple[Marks, ...]
    counts: tuple[Counting, ...] = ()

    @property
    def size(self) -> int:
        """How many counts it stands for."""
        return sum(self.cells(marks.columns) for marks in self.thresholds) + len(self.counts)

    def cells(self, columns: tuple[int, ...]) -> int:
        return math.prod(self.domain.sizes[column] for column in columns)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The distinct sets of columns, in the order they were named."""
        named = [tuple(sorted(map(self.domain.place_of, count.columns))) for count in self.counts]
        return tuple(dict.fromkeys([*(marks.columns for marks in self.thresholds), *named]))

    def closure(self, order: int) -> tuple[tuple[int, ...], ...]:
        """Every set of at most `order` columns that lies in a set of the workload."""
        found = {
            subset
            for columns in self.sets
            for size in range(1, min(order, len(columns)) + 1)
            for subset in combinations(columns, size)
        }
        return tuple(sorted(found, key=lambda subset: (len(subset), subset)))

    def check(self) -> None:
        if not self.thresholds and not self.counts:
            raise ParameterError("the workload asks for nothing; add marginals, thresholds or SQL counts")
        size = self.size
        if size > MOST_QUERIES:
            raise ParameterError(
                f"the workload stands for {size:,} counts, at most {MOST_QUERIES:,} are answered; take a smaller k, "
                "fewer columns, or wider bins"
            )
        for marks in self.thresholds:
            if self.cells(marks.columns) > MOST_CELLS:
                names = ", ".join(self.domain.names[column] for column in marks.columns)
                raise ParameterError(
                    f"{names} together have {self.cells(marks.columns):,} cells, at most {MOST_CELLS:,} are answered; "
                    "take fewer of them, or wider bins"
                )

    def describe(self) -> str:
        """In one line."""
        kinds: dict[tuple[int, int], int] = {}
        for marks in self.thresholds:
            kind = (marks.need, len(marks.columns))
            kinds[kind] = kinds.get(kind, 0) + 1
        words = [
            f"{count:,} {k}-way marginal{'s' * (count > 1)}" if need == k else
            f"{count:,} {need}-of-{k} threshold{'s' * (count > 1)}"
            for (need, k), count in sorted(kinds.items())
        ]  # fmt: skip
        words += [f"{len(self.counts):,} single count{'s' * (len(self.counts) > 1)}"] if self.counts else []
        return f"{' and '.join(words)} of {self.domain.table}: {self.size:,} counts"


def marginals(k: int = 3, columns: Sequence[str] | None = None) -> Workload:
    """Every k-way marginal of these columns, or of all that have declared values."""
    return thresholds(k, k, columns)


def ranges(*columns: str, by: object = None, bins: object = None) -> Workload:
    """Every stretch of a column's values, of several columns every box; for every choice of places in `by`.

    `bins` is the width of bins in the units of the column, or widths by name; else the policy's bins, or its values.
    """
    return _ordered(columns, "range", by, bins)


def prefixes(*columns: str, by: object = None, bins: object = None) -> Workload:
    """Every stretch from a column's lower end: what a cumulative curve shows. `by` and `bins` as of `ranges`."""
    return _ordered(columns, "prefix", by, bins)


def _ordered(columns: tuple[str, ...], kind: StretchKind, by: object, bins: object) -> Workload:
    return Workload((Ordered(columns, kind, names_of(by), widths_of(columns, bins)),))


def thresholds(r: int, k: int, columns: Sequence[str] | None = None) -> Workload:
    """Every r-of-k threshold of these columns, or of all: 1-of-k is any of k, k-of-k is a marginal."""
    named = None if columns is None else tuple(columns)
    if named is not None and len(set(named)) < len(named):
        raise ParameterError(f"columns names one twice: {', '.join(named)}")
    return Workload((Every(k, r, named),))


def from_sql(texts: Sequence[str] | str) -> Workload:
    """The counts that these COUNT queries ask for: a filter on each column, and every group of their keys."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not listed:
        raise ParameterError("from_sql has no query; give a list of COUNT queries")
    for text in listed:
        if not isinstance(text, str):
            raise ParameterError(f"from_sql takes SQL texts, not {type(text).__name__}")
    return Workload(tuple(Sql(text) for text in listed))


def _every(part: Every, domain: Domain) -> Iterator[tuple[tuple[int, ...], int]]:
    places = range(len(domain)) if part.columns is None else sorted(map(domain.place_of, part.columns))
    if part.k > len(places):
        raise ParameterError(
            f"k = {part.k} columns are to be taken from {len(places)} with declared values: "
            f"{', '.join(domain.names)}; write a smaller k"
        )
    sets = math.comb(len(places), part.k)
    if sets > MOST_SETS:
        # Their counts are told by a recurrence, without listing the sets.
        sums = [1] + [0] * part.k
        for place in places:
            for order in range(part.k, 0, -1):
                sums[order] += sums[order - 1] * domain.sizes[place]
        raise _too_many_sets(sets, f", {sums[part.k]:,} counts,")
    yield from ((columns, part.need) for columns in combinations(places, part.k))


def _too_many_sets(count: int, cells: str = "") -> ParameterError:
    return ParameterError(
        f"the workload has {count:,} sets of columns{cells} and at most {MOST_SETS:,} are taken; "
        "take a smaller k, name fewer columns, or draw some of them with confide.workload.draw"
    )


def _check_need(need: int, k: int) -> None:
    if isinstance(need, bool) or not isinstance(need, int) or need < 1:
        raise ParameterError(f"r = {need!r} is not a number of matches; write a whole number from 1 to k = {k}")
    if need > k:
        raise ParameterError(f"r = {need} of k = {k} columns cannot match; write r from 1 to {k}")
