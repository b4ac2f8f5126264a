"""A workload of marginals, prefixes and ranges on the columns of one table: what `session.answer` is asked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from confide.errors import ParameterError
from confide.policy import Table
from confide.privacy.limits import MOST_GROUPS
from confide.workload.domain import Binned, Domain, domain_of
from confide.workload.ordered import Ordered
from confide.workload.strategy.line import Kind, count_of
from confide.workload.workload import Every, Threshold, Workload

MOST_CELLS: Final = MOST_GROUPS
"""Of the columns of one table together, and of one column."""
MOST_RANGED: Final = 4_096
"""Cells of a column whose every range is asked for."""
MOST_ASKED: Final = 200_000
"""Tables of one workload."""
MOST_ANSWERS: Final = 10**9

_WORDS: Final[dict[Kind, str]] = {"each": "", "prefix": "prefixes of ", "range": "ranges of ", "total": "all of "}


@dataclass(frozen=True, slots=True)
class AskedTable:
    """Counts for every choice of a stretch in each of some columns, by what kinds of stretches they are."""

    columns: tuple[int, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class LinearWorkload:
    """Tables of counts on a domain."""

    domain: Domain
    tables: tuple[AskedTable, ...]

    def size_of(self, table: AskedTable) -> int:
        """How many answers a table has."""
        sizes = self.domain.sizes
        return math.prod(count_of(kind, sizes[column]) for column, kind in zip(table.columns, table.kinds, strict=True))

    @property
    def size(self) -> int:
        return sum(map(self.size_of, self.tables))

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The distinct sets of columns, in the order they were named."""
        return tuple(dict.fromkeys(table.columns for table in self.tables))

    def title(self, table: AskedTable) -> str:
        """What a table counts, in words: `ranges of age × sex`."""
        names = self.domain.names
        parts = [_WORDS[kind] + names[column] for column, kind in zip(table.columns, table.kinds, strict=True)]
        return " × ".join(parts)

    def describe(self) -> str:
        titles = [self.title(table) for table in self.tables[:4]]
        more = f" and {len(self.tables) - 4:,} more" if len(self.tables) > 4 else ""
        return f"{', '.join(titles)}{more} of {self.domain.table}: {self.size:,} counts"


def bound_linear(workload: object, table: Table, bins: Mapping[str, object] | None = None) -> LinearWorkload:
    """The workload on the columns that it speaks of: every fault named. Public facts only."""
    if not isinstance(workload, Workload):
        raise ParameterError(
            f"the workload is a {type(workload).__name__}; give confide.ranges('age'), confide.prefixes('income'), "
            "confide.marginals(k=2), or several of them with +"
        )
    widths = _widths(workload, bins)
    names = list(dict.fromkeys(_named(workload, table)))
    if not names:
        raise ParameterError("the workload asks for nothing; add ranges, prefixes or marginals")
    ordered = [name for name in table.columns if name in names]
    unknown = [name for name in names if name not in table.columns]
    domain = domain_of(table, [*ordered, *unknown], widths, most=MOST_CELLS)
    tables = tuple(dict.fromkeys(_tables(workload, table, domain)))
    found = LinearWorkload(domain, tables)
    _check(found)
    return found


def columns_of(workload: object) -> set[str]:
    """The columns that a workload names; none where it means all of a table."""
    found: set[str] = set()
    for part in workload.parts if isinstance(workload, Workload) else ():
        if isinstance(part, Every) and part.columns is None:
            return set()
        if isinstance(part, Ordered):
            found |= {*part.columns, *part.by}
        elif isinstance(part, Threshold | Every):
            found |= set(part.columns or ())
    return found


def _widths(workload: Workload, bins: Mapping[str, object] | None) -> dict[str, object]:
    if bins is not None and not isinstance(bins, Mapping):
        raise ParameterError("bins is not by column; write for example bins={'age': 10}")
    widths: dict[str, object] = dict(bins or {})
    for part in workload.parts:
        for name, width in part.bins if isinstance(part, Ordered) else ():
            if widths.setdefault(name, width) != width:
                raise ParameterError(f"{name} is asked for in bins of two widths; a column has one in a release")
    return widths


def _named(workload: Workload, table: Table) -> Iterator[str]:
    for part in workload.parts:
        match part:
            case Ordered():
                yield from (*part.columns, *part.by)
            case Threshold(columns, _):
                yield from columns
            case Every(_, _, columns):
                yield from domain_of(table).names if columns is None else columns
            case _:
                raise ParameterError(
                    "single counts are asked of the answer, which gives any count of its columns for free: "
                    "answers.sql('SELECT COUNT(*) ...'); here there are marginals, ranges and prefixes"
                )


def _tables(workload: Workload, table: Table, domain: Domain) -> Iterator[AskedTable]:
    for part in workload.parts:
        if isinstance(part, Ordered):
            for name in part.columns:
                own = domain.attributes[domain.place_of(name)]
                if not isinstance(own, Binned) and None in own.values:
                    raise ParameterError(
                        f"{name} has NULL among its values, which has no place in an order; ask for its marginal"
                    )
            kinds: dict[int, Kind] = {domain.place_of(name): part.kind for name in part.columns}
            kinds |= {domain.place_of(name): "each" for name in part.by}
            columns = tuple(sorted(kinds))
            yield AskedTable(columns, tuple(kinds[column] for column in columns))
            continue
        assert isinstance(part, Threshold | Every)
        k = len(part.columns) if isinstance(part, Threshold) else part.k
        if part.need != k:
            raise ParameterError(f"a {part.need}-of-{k} threshold is for synthesize; answered are marginals and ranges")
        named = domain_of(table).names if part.columns is None else part.columns
        places = sorted(map(domain.place_of, named))
        if k > len(places):
            raise ParameterError(f"k = {k} columns are to be taken from {len(places)}; write a smaller k")
        if math.comb(len(places), k) > MOST_ASKED:
            raise ParameterError(_too_many(math.comb(len(places), k)))
        every = tuple[Kind, ...](["each"] * k)
        yield from (AskedTable(columns, every) for columns in combinations(places, k))


def _check(found: LinearWorkload) -> None:
    if len(found.tables) > MOST_ASKED:
        raise ParameterError(_too_many(len(found.tables)))
    sizes = found.domain.sizes
    for table in found.tables:
        cells = math.prod(sizes[column] for column in table.columns)
        if cells > MOST_CELLS:
            raise ParameterError(
                f"{found.title(table)}: {cells:,} cells, at most {MOST_CELLS:,} are measured; take wider bins or "
                "fewer columns"
            )
        for column, kind in zip(table.columns, table.kinds, strict=True):
            if kind == "range" and sizes[column] > MOST_RANGED:
                raise ParameterError(
                    f"all ranges of {found.domain.names[column]} with {sizes[column]:,} cells are too many, at most "
                    f"{MOST_RANGED:,} are taken; give wider bins, or ask for prefixes, whose differences are ranges"
                )
    if found.size > MOST_ANSWERS:
        raise ParameterError(
            f"the workload has {found.size:,} answers, at most {MOST_ANSWERS:,} are given; ask for fewer"
        )


def _too_many(tables: int) -> str:
    return f"the workload has {tables:,} tables, at most {MOST_ASKED:,} are taken; take a smaller k or fewer columns"


def kinds_by_column(tables: Sequence[AskedTable]) -> dict[int, tuple[Kind, ...]]:
    """What is asked of each column, over all tables."""
    found: dict[int, dict[Kind, None]] = {}
    for table in tables:
        for column, kind in zip(table.columns, table.kinds, strict=True):
            found.setdefault(column, {})[kind] = None
    return {column: tuple(kinds) for column, kinds in found.items()}
