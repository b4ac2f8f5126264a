"""From a summary to one SQL statement: exact integers per group of bounded rows."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, assert_never

from confide.engine.sql.bounding import BoundedRows, bounded_once, bounded_rows
from confide.engine.sql.expression_sql import RowWriter
from confide.engine.sql.grid_tally import gridded_rows, sum_columns
from confide.engine.sql.group_codes import number_sql, place_sql, placed
from confide.engine.sql.stretches import ByGroup, Wanted, inside, own_values
from confide.engine.sql.syntax import NARROW, among, case, cast, clamped, integer, name, select
from confide.engine.storage import Storages
from confide.policy import Column, Identifier, Text, Unbounded
from confide.query.grouping import key_size
from confide.query.number import unbounded_reading
from confide.query.tree import (
    Always,
    BinnedKey,
    Bound,
    Cell,
    DeclaredKey,
    Field,
    Join,
    Key,
    PerUnit,
    Relation,
    Scan,
    Span,
    Summary,
    Tallied,
    UnknownKey,
)

_FEW_CELLS: Final = 1 << 16
"""Beyond this, groups of rows might be nearly as many as rows."""
_FUNCTIONS = {"known": "COUNT", "total": "SUM", "smallest": "MIN", "largest": "MAX"}


class SummaryWriter:
    """Writes the statement of one summary. `secret` keys the order in which a unit's rows are taken.

    `once` is for engines where two readings of a relation in one statement may see different rows.
    """

    def __init__(self, summary: Summary, storages: Storages, secret: bytes, once: bool = False) -> None:
        self._once = once
        self._summary = summary
        self._rows = RowWriter(storages, summary.relation)
        self._secret = secret

    def statement(self, bounding: bool = True) -> str:
        """SELECT key places or values, then one integer per cell, one row per group that has rows.

        `bounding=False` is for relations in which no unit has more rows than its bound anyway.
        """
        inputs, used = self._inputs(self._summary.cells)
        rows = self._kept(inputs, bounding)
        totals = [_aggregate(cell, column) for cell, column in zip(self._summary.cells, used, strict=True)]
        cells = [f"{total} AS v{place}" for place, total in enumerate(totals)]
        shown = ", ".join([*self._aliases, *cells])
        return f"SELECT {shown} FROM ({rows}) AS r{self._grouping()}"

    def tally_statement(
        self,
        tally: Tallied,
        bounding: bool = True,
        only: Mapping[int, Sequence[str]] | None = None,
        wanted: Wanted | None = None,
        unknown: bool = False,
    ) -> str:
        """SELECT key places or values (see `placing`), a value, and how many of the kept rows have it.

        `only` lists what some keys may be, `wanted` which values are counted; with `unknown`, NULL is one as well.
        On an even grid a value is the number of its cell, of which `gridding.pointed` makes a point.
        """
        # In 64 bits whatever it was computed in: arrays of the database know no wider integers.
        value = cast(self._input(Cell("known", tally.subject, tally.where)), "BIGINT")
        counted = "t" if tally.grid is None else "x"
        rows = self._kept([(counted, value)], bounding)
        known = "" if unknown else f"{counted} IS NOT NULL"
        if isinstance(wanted, ByGroup):
            number = number_sql(self._summary.keys, self._aliases)
            rows, known = own_values(rows, [*self._aliases, counted], number, counted, wanted), ""
        elif wanted is not None:
            known = inside(counted, wanted)
        if tally.grid is not None:
            rows = gridded_rows(rows, self._aliases, tally.grid, known)
        grouped = ", ".join([*self._aliases, "t"])
        sums = sum_columns(tally.grid) if tally.sums and tally.grid is not None else []
        shown = ", ".join([grouped, "COUNT(*) AS n", *sums])
        where = f" WHERE {known}" if tally.grid is None and known else ""
        counts = f"SELECT {shown} FROM ({rows}) AS r{where} GROUP BY {grouped}"
        domains = [
            among(f"k{place}", only[place]) if only and place in only else _domain(key, f"k{place}")
            for place, key in enumerate(self._summary.keys)
        ]
        kept = f" HAVING {case([('COUNT(*) >= 0', ' AND '.join(domains))], 'FALSE')}" if domains else ""
        keys = list(zip(self._aliases, self._summary.keys, strict=True))
        if not any(placed(key) for _, key in keys):
            return f"{counts}{kept}"
        told = [(alias, place_sql(key, alias) if placed(key) else alias) for alias, key in keys]
        rest = [(label, label) for label in ("t", "n", *(f"s{place}" for place in range(len(sums))))]
        return select([*told, *rest], f"({counts}{kept}) AS g")

    def cells_statement(self, groups: Sequence[Sequence[int]], bounding: bool) -> str:
        """SELECT the cells `p` that hold rows, of every group of keys (places in the summary's), and their counts `n`.

        Cells are numbered group after group, each group's by its keys in turn. One reading of the rows serves them all.
        """
        sizes = [key_size(key) or 0 for key in self._summary.keys]
        places = [(f"e{place}", place_sql(key, f"k{place}")) for place, key in enumerate(self._summary.keys)]
        if len(groups) == 1 and groups[0] and prod(sizes) <= _FEW_CELLS:
            return self._few_cells(_numbered(groups[0], sizes), places, bounding)
        codes, first = [], 0
        for number, group in enumerate(groups):
            codes.append((f"p{number}", f"{_numbered(group, sizes)} + {integer(first)}"))
            first += prod(sizes[place] for place in group)
        coded = select(codes, f"({select(places, f'({self._kept([], bounding)}) AS r')}) AS q")
        names = [alias for alias, _ in codes]
        grouped = f"GROUPING SETS ({', '.join(f'({alias})' for alias in names)})" if len(names) > 1 else names[0]
        counted = f"SELECT {', '.join(names)}, COUNT(*) AS n FROM ({coded}) AS c GROUP BY {grouped}"
        cell = f"COALESCE({', '.join(names)})" if len(names) > 1 else names[0]
        return f"SELECT {cell} AS p, n FROM ({counted}) AS g WHERE {cell} IS NOT NULL"

    def _few_cells(self, number: str, places: Sequence[tuple[str, str]], bounding: bool) -> str:
        """The same for one group of few cells: rows are grouped first, so that places are told once for each group."""
        keys = ", ".join(self._aliases)
        grouped = f"SELECT {keys}, COUNT(*) AS m FROM ({self._kept([], bounding)}) AS r GROUP BY {keys}"
        coded = select([("p", number), ("m", "m")], f"({select([*places, ('m', 'm')], f'({grouped}) AS q')}) AS c")
        return f"SELECT p, {cast('SUM(m)', 'BIGINT')} AS n FROM ({coded}) AS g WHERE p IS NOT NULL GROUP BY p"

    def words_statement(self, words: Sequence[Sequence[int]], bounding: bool) -> str:
        """SELECT for every row that counts the places of its keys (given by theirs in the summary), several in a word
        `w`: the first counts most.
        """
        sizes = [key_size(key) or 0 for key in self._summary.keys]
        places = [(f"e{place}", place_sql(key, f"k{place}")) for place, key in enumerate(self._summary.keys)]
        packed = [(f"w{number}", _numbered(word, sizes)) for number, word in enumerate(words)]
        coded = select(packed, f"({select(places, f'({self._kept([], bounding)}) AS r')}) AS q")
        names = [alias for alias, _ in packed]
        known = " AND ".join(f"{alias} IS NOT NULL" for alias in names)
        return f"SELECT {', '.join(names)} FROM ({coded}) AS c WHERE {known}"

    def unbounded_rows(self, inputs: list[tuple[str, str]]) -> str:
        """The rows that count, without bounds on what a unit has, with their keys and inputs."""
        return self._kept(inputs, bounding=False)

    def source(self) -> str:
        """The relation, as FROM takes it."""
        return self._from(self._summary.relation)

    def input_of(self, cell: Cell) -> str:
        return self._input(cell)

    @property
    def _aliases(self) -> list[str]:
        return [f"k{place}" for place in range(len(self._summary.keys))]

    def _kept(self, inputs: list[tuple[str, str]], bounding: bool) -> str:
        """The rows that count, with their keys and inputs: the same rows whatever the inputs are."""
        summary = self._summary
        keys = list(zip(self._aliases, map(self._key, summary.keys), strict=True))
        conditions = [] if summary.where == Always(True) else [self._rows.predicate(summary.where)]
        source = self._from(summary.relation)
        if summary.bound is not None:
            unit = self._rows.column(summary.bound.unit)
            # Rows of nobody, and rows outside every group, do not use up a bound.
            conditions = [*conditions, f"{unit} IS NOT NULL", *self._valid(keys)]
        if summary.bound is None or not bounding:
            return select([*keys, *inputs], source, conditions)
        order = [self._order(field) for field in summary.order_by]
        write = bounded_once if self._once else bounded_rows
        bounded = BoundedRows(source, conditions, unit, keys, inputs, order, self._texts(summary.bound))
        return write(bounded, summary.bound, self._secret)

    def _texts(self, bound: Bound) -> frozenset[str]:
        """Which columns of a relation to bound may be texts of any length."""
        summary = self._summary
        fields = {"u": bound.unit} | {f"o{place}": field for place, field in enumerate(summary.order_by)}
        fields |= {f"k{place}": key.field for place, key in enumerate(summary.keys) if isinstance(key, UnknownKey)}
        kinds = {alias: self._rows.storage(field).kind for alias, field in fields.items() if _is_free(field.column)}
        return frozenset(alias for alias, kind in kinds.items() if kind not in ("integer", "wide integer"))

    def _grouping(self) -> str:
        if not self._summary.keys:
            return ""
        grouped = f" GROUP BY {', '.join(self._aliases)}"
        if self._summary.bound is not None:
            return grouped
        domains = [_domain(key, f"k{place}") for place, key in enumerate(self._summary.keys)]
        # The condition reads an aggregate so that it is not pushed below the grouping, where it would be paid per row.
        return f"{grouped} HAVING {case([('COUNT(*) >= 0', ' AND '.join(domains))], 'FALSE')}"

    # --- relations ----------------------------------------------------------------------------------------------------

    def _from(self, relation: Relation) -> str:
        match relation:
            case Scan(table, source):
                # With its schema, so that no name of ours in the statement can stand before it.
                return f"main.{name(table)} AS {source}"
            case Join(left, right, on, optional):
                condition = " AND ".join(self._rows.equal(first, second) for first, second in on)
                return f"{self._from(left)} {'LEFT JOIN' if optional else 'JOIN'} {self._from(right)} ON {condition}"
            case PerUnit():
                return f"({self._per_unit(relation)}) AS {relation.source}"
            case _:
                assert_never(relation)

    def _per_unit(self, relation: PerUnit) -> str:
        unit = self._rows.column(relation.unit)
        columns = [(name(relation.unit.name), unit)]
        for label, cell, span in relation.columns:
            columns.append((name(label), _limited(_aggregate(cell, self._input(cell)), span)))
        conditions = [f"{unit} IS NOT NULL"]
        if relation.where != Always(True):
            conditions.append(self._rows.predicate(relation.where))
        return f"{select(columns, self._from(relation.inner), conditions)} GROUP BY {unit}"

    def _order(self, field: Field) -> str:
        """A column in the order of a unit's rows: as no query can see more of it, or the order would depend on that."""
        if isinstance(field.column, Unbounded):
            return self._rows.number(unbounded_reading(field))
        return self._rows.seen(field)

    # --- keys and cells -----------------------------------------------------------------------------------------------

    def _key(self, key: Key) -> str:
        match key:
            case DeclaredKey(_, field, values):
                return self._rows.seen(field) if None in values else self._rows.column(field)
            case BinnedKey(_, number, first, width):
                shifted = f"({self._rows.number(number)} - ({first}))"
                if width == 1:
                    return shifted
                # Never negative, so truncating division is flooring on every engine. Its cast says that 64 bits do.
                return f"{cast(shifted, 'BIGINT') if number.span.largest < NARROW else shifted} // {width}"
            case UnknownKey(_, field):
                return self._rows.column(field)
            case _:
                assert_never(key)

    def _valid(self, keys: Sequence[tuple[str, str]]) -> list[str]:
        """Which rows fall into a group of the result."""
        parts = []
        for key, (_, value) in zip(self._summary.keys, keys, strict=True):
            if isinstance(key, DeclaredKey):
                parts += [] if None in key.values else [among(value, key.values)]  # type: ignore[arg-type]
            elif not key.nulls:
                parts.append(f"{value} IS NOT NULL")
        return parts

    def _inputs(self, cells: Sequence[Cell]) -> tuple[list[tuple[str, str]], list[str]]:
        """The distinct inputs of all cells, and which each cell uses: a total and its count read one column."""
        names: dict[str, str] = {}
        used = []
        for cell in cells:
            value = "" if cell.kind == "rows" and cell.where == Always(True) else self._input(cell)
            used.append(names.setdefault(value, f"c{len(names)}") if value else "")
        return [(alias, value) for value, alias in names.items()], used

    def _input(self, cell: Cell) -> str:
        """What a row gives to a cell, NULL if it does not pass the cell's filter."""
        value = "1" if cell.subject is None else self._rows.subject(cell.subject)
        return value if cell.where == Always(True) else case([(self._rows.predicate(cell.where), value)])


def _numbered(group: Sequence[int], sizes: Sequence[int]) -> str:
    """The number of a cell, from the places of its keys in turn."""
    number = "0"
    for place in group:
        number = f"({number}) * {sizes[place]} + e{place}"
    return number


def _is_free(column: Column) -> bool:
    return isinstance(column, Identifier | Text)


def _aggregate(cell: Cell, column: str) -> str:
    if cell.kind == "rows":
        return "COUNT(*)" if cell.where == Always(True) else f"COUNT({column})"
    if cell.kind in ("distinct", "distinct total"):
        return f"{'COUNT' if cell.kind == 'distinct' else 'SUM'}(DISTINCT {column})"
    return f"{_FUNCTIONS[cell.kind]}({column})"


def _domain(key: Key, alias: str) -> str:
    """Which groups are part of the result, told from the key alone."""
    if isinstance(key, DeclaredKey):
        listed = among(alias, [value for value in key.values if value is not None])
        return f"({listed} OR {alias} IS NULL)" if None in key.values else listed
    return "TRUE" if key.nulls else f"{alias} IS NOT NULL"


def _limited(value: str, span: Span) -> str:
    return cast(clamped(value, span.low, span.high), "BIGINT" if span.largest < NARROW else "HUGEINT")
