"""Expressions over a released table: columns by name, aggregates, windows, sub-queries of one number, functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query.derivation.derivation import DerivedColumn, Fixed, Gathered, RowOrder, Taken, Windowed
from confide.query.derivation.released_function import (
    NUMERIC,
    Meant,
    called,
    constant,
    deeper,
    function_of,
    only,
)
from confide.query.literal import bare, is_literal, literal_number
from confide.query.parse import shown
from confide.query.quantile import quantile_call
from confide.query.room import Room
from confide.query.spelling import nearest

_MOST_SHIFTED: Final = 10_000
_GATHERED: Final[dict[type[exp.Expr], str]] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "var", exp.VariancePop: "var_pop", exp.Stddev: "sd",
    exp.StddevSamp: "sd", exp.StddevPop: "sd_pop",
}  # fmt: skip
_RANKS: Final[dict[type[exp.Expr], str]] = {
    exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist", exp.Ntile: "ntile",
}  # fmt: skip
_PICKED: Final[dict[type[exp.Expr], str]] = {
    exp.Lag: "lag", exp.Lead: "lead", exp.FirstValue: "first", exp.LastValue: "last",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class VisibleColumn:
    """A column that expressions may name, with the table's name before it or without."""

    table: str
    place: int
    column: DerivedColumn


@dataclass(slots=True)
class ReleasedNames:
    """The columns of a FROM. `merged`: names of USING, one for the equal columns of both sides."""

    visible: list[VisibleColumn]
    merged: set[str] = field(default_factory=set)

    def find(self, node: exp.Column) -> VisibleColumn | None:
        name, table = node.name.casefold(), node.table.casefold()
        found = [own for own in self.visible if own.column.name.casefold() == name]
        if table:
            found = [own for own in found if own.table.casefold() == table]
        if len(found) > 1 and not (name in self.merged and not table):
            owners = " or ".join(f"{own.table}.{node.name}" for own in found)
            raise QueryError(f"the column {node.name[:60]} could be {owners[:200]}; write the table before it")
        return found[0] if found else None


@dataclass(slots=True)
class ReleasedExpressions:
    """Reads expressions. `place` knows keys and aggregates, where a query has them; `number` reads a sub-query of one
    number; `aliases` are names that the SELECT gives. `chosen`: rows are chosen by value already, by as many functions
    in each other as `depth` says.
    """

    names: ReleasedNames
    room: Room
    number: Callable[[exp.Expr], Meant]
    chosen: bool = False
    depth: int = 0
    place: Callable[[exp.Expr], Meant | None] = lambda _: None
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    crossing: bool = False
    _open: set[str] = field(default_factory=set)

    def read(self, node: exp.Expr, *, aliases_first: bool = False) -> Meant:
        """What is computed with: a date or a value that an aggregate found is shown, and no more."""
        found = self.item(node, aliases_first=aliases_first)
        if found.label:
            raise QueryError(
                f"{shown(node)} is a released date, or what MODE found: nothing is computed of it here; show it as "
                "a column of its own, with HAVING and ORDER BY of the same SELECT for dates: SELECT k, MAX(d) AS m "
                "FROM t GROUP BY k HAVING m > DATE '2024-01-31'"
            )
        return found

    def item(self, node: exp.Expr, *, aliases_first: bool = False) -> Meant:
        """What a column of a SELECT shows."""
        self.room.take(1)
        inner = bare(node)
        found = constant(inner)
        if found is not None:
            return found
        if aliases_first and isinstance(inner, exp.Column) and not inner.table:
            named = self._aliased(inner)
            if named is not None:
                return named
        found = self.place(inner)
        if found is not None:
            return found
        if isinstance(inner, exp.Column):
            return self._column(inner)
        if isinstance(inner, exp.Window):
            return self._window(inner)
        if isinstance(inner, exp.Query):
            return self.number(inner)
        if isinstance(inner, exp.Exists | exp.Any | exp.All) or (isinstance(inner, exp.In) and inner.args.get("query")):
            raise QueryError(f"{shown(inner)}: compare with a list of constants, or join the released tables on keys")
        return function_of(inner, lambda part: self.read(part, aliases_first=aliases_first))

    def ordered(self, item: exp.Ordered) -> Meant:
        """What an item of ORDER BY orders by."""
        if is_literal(item.this):
            raise QueryError(f"ORDER BY {shown(item.this)} is a constant; name a column of the result")
        found = self.read(item.this, aliases_first=True)
        if found.kind == "text" and not found.public:
            raise QueryError(f"ORDER BY {shown(item.this)}: order by the number that it follows from")
        return found

    def _column(self, node: exp.Column) -> Meant:
        if isinstance(node.this, exp.Star):
            raise QueryError("`*` stands by itself in a SELECT; name a column here")
        if node.args.get("db") or node.args.get("catalog"):
            raise QueryError(f"{shown(node)}: write table.column or just the column")
        found = self.names.find(node)
        if found is not None:
            own = found.column
            return Meant(Taken(found.place), own.kind, own.public, own.depth, own.label)
        named = self._aliased(node)
        if named is not None:
            return named
        known = [own.column.name for own in self.names.visible]
        raise QueryError(f"there is no column {node.name[:60]} here; {nearest(node.name, known, 'there are')}")

    def _aliased(self, node: exp.Column) -> Meant | None:
        name = node.name.casefold()
        item = None if node.table else self.aliases.get(name)
        if item is None or name in self._open:
            return None
        self._open.add(name)
        try:
            return self.item(item)
        finally:
            self._open.discard(name)

    # --- aggregates over released rows --------------------------------------------------------------------------------

    def gathered(self, node: exp.Expr) -> tuple[Gathered, DerivedColumn]:
        """An aggregate over the rows of a released table."""
        self.crossing = True
        where = None
        if isinstance(node, exp.Filter):
            where, node = self.read(node.expression.this), node.this
        function, subject, share = self._aggregate(node)
        meant = None if subject is None else self.read(subject)
        if function == "count if":
            assert meant is not None
            if meant.kind not in ("boolean", None):
                raise QueryError(f"{shown(node)}: COUNT_IF takes a condition")
            if where is not None:
                meant = called("and", [where, meant], "boolean")
            function, where, meant = "count", meant, None
        if function in ("any", "all"):
            return self._ever(function, meant, where, node)
        ordered = function in ("min", "max") and meant is not None and meant.public
        if meant is not None and function not in ("count", "distinct") and not ordered and meant.kind not in NUMERIC:
            raise QueryError(f"{shown(node)}: {meant.kind} is nothing to add up; count it, or GROUP BY it")
        if function == "distinct" and meant is not None and not meant.public:
            raise QueryError(f"{shown(node)}: released numbers differ by their noise; count distinct keys")
        public = ordered and not self.chosen and where is None
        depth = deeper(max((part.depth for part in (meant, where) if part is not None), default=0) + self.depth)
        kind = meant.kind if ordered and meant is not None and meant.kind is not None else "number"
        subject_read, where_read = (None if part is None else part.expression for part in (meant, where))
        return Gathered(function, subject_read, where_read, share), DerivedColumn(node.key, kind, public, depth)

    def _ever(
        self, function: str, meant: Meant | None, where: Meant | None, node: exp.Expr
    ) -> tuple[Gathered, DerivedColumn]:
        """BOOL_OR and BOOL_AND."""
        if meant is None or meant.kind not in ("boolean", None):
            raise QueryError(f"{shown(node)} takes a condition")
        condition = None if where is None else where.expression
        column = DerivedColumn(node.key, "boolean", public=False, depth=deeper(deeper(meant.depth + self.depth)))
        return Gathered(function, meant.expression, condition), column

    def _aggregate(self, node: exp.Expr) -> tuple[str, exp.Expr | None, Fraction | None]:
        """The function, what it is of, and the share of a quantile."""
        match node:
            case exp.Count(this=exp.Star()):
                return "count", None, None
            case exp.Count(this=exp.Distinct()) if len(node.this.expressions) == 1:
                return "distinct", node.this.expressions[0], None
            case exp.Count() if node.this is not None and not node.expressions:
                return "count", node.this, None
            case exp.CountIf():
                return "count if", node.this, None
            case exp.LogicalOr() | exp.LogicalAnd():
                return "any" if isinstance(node, exp.LogicalOr) else "all", node.this, None
            case exp.Min() | exp.Max() if node.this is not None and not node.expressions:
                return node.key, node.this, None
        quantile = quantile_call(node)
        if quantile is not None:
            called_by = node.this if isinstance(node, exp.WithinGroup) else node
            continuous = isinstance(called_by, exp.Median | exp.PercentileCont)
            return "quantile" if continuous else "discrete", quantile[0], quantile[1]
        if type(node) in _GATHERED and not isinstance(node.this, exp.Distinct):
            only(node, ("this",))
            return _GATHERED[type(node)], node.this, None
        raise QueryError(
            f"{shown(node)} is not answered over released rows; there are COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE, "
            "STDDEV, VARIANCE, COUNT_IF, and FILTER"
        )

    # --- windows ------------------------------------------------------------------------------------------------------

    def _window(self, node: exp.Window) -> Meant:
        self.crossing = True
        only(node, ("this", "partition_by", "order", "spec", "over", "alias", "first"))
        named = node.args.get("alias")
        base = None
        if named is not None:
            base = self.windows.get(named.name.casefold())
            if base is None:
                raise QueryError(f"there is no window {named.name[:60]}; write OVER (PARTITION BY ... ORDER BY ...)")
        part = {
            name: node.args.get(name) or (base.args.get(name) if base else None)
            for name in ("partition_by", "order", "spec")
        }
        partition = [self.read(own) for own in part["partition_by"] or ()]
        if any(not own.public for own in partition):
            raise QueryError("PARTITION BY takes keys; released numbers differ by their noise")
        items = part["order"].expressions if part["order"] is not None else []
        by = [self.read(item.this) for item in items]
        order = tuple(
            RowOrder(own.expression, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
            for own, item in zip(by, items, strict=True)
        )
        by_value = any(not own.public for own in by)
        if order and self.chosen:
            raise QueryError(
                "a window with ORDER BY is not answered over rows that are chosen by value; compute it in the inner "
                "query, and filter outside, or with QUALIFY"
            )
        function, parts, public = self._windowed(node.this, bool(order), by_value)
        depth = deeper(max((own.depth for own in (*parts, *partition, *by)), default=0) + self.depth)
        frame, peers = _frame(part["spec"], bool(order), by_value)
        if by_value and function not in (*_RANKS.values(), "sum", "count"):
            raise QueryError(
                f"{shown(node)}: in the order of a released number there are ranks and running sums; order by keys"
            )
        kind = parts[0].kind if function in _PICKED.values() and parts else "number"
        expression = Windowed(
            function,
            tuple(own.expression for own in parts),
            tuple(own.expression for own in partition),
            order,
            frame,
            peers,
        )
        return Meant(expression, kind, public and not by_value and not self.chosen, depth)

    def _windowed(self, node: exp.Expr, ordered: bool, by_value: bool) -> tuple[str, list[Meant], bool]:
        kind = type(node)
        if kind in _RANKS:
            if not ordered and kind is not exp.RowNumber:
                raise QueryError(f"{shown(node)} OVER () ranks nothing; write OVER (ORDER BY n DESC)")
            own = []
            if kind is exp.Ntile:
                tiles = constant(node.this)
                if tiles is None or not isinstance(tiles.expression, Fixed) or tiles.kind != "integer":
                    raise QueryError("NTILE takes a whole number: NTILE(4) OVER (ORDER BY n)")
                own = [tiles]
            return _RANKS[kind], own, False
        if kind in _PICKED:
            only(node, ("this", "offset", "default"))
            subject = self.read(node.this)
            steps = Fraction(1) if node.args.get("offset") is None else literal_number(node.args["offset"])
            if steps.denominator != 1 or not 0 <= steps <= _MOST_SHIFTED:
                raise QueryError(f"{shown(node)}: LAG and LEAD take a whole number of rows")
            other = node.args.get("default")
            default = Meant(Fixed(None), None, public=True) if other is None else self.read(other)
            shift = Meant(Fixed(steps), "integer", public=True)
            return _PICKED[kind], [subject, shift, default], subject.public and default.public
        function, argument, _ = self._aggregate(node)
        if function in ("distinct", "any", "all", "count if", "quantile", "discrete", "var", "var_pop", "sd", "sd_pop"):
            raise QueryError(
                f"{shown(node)} OVER (...): over windows there are SUM, AVG, MIN, MAX, COUNT, ranks, LAG and LEAD"
            )
        parts = [] if argument is None else [self.read(argument)]
        if any(part.kind not in NUMERIC for part in parts) and function != "count":
            raise QueryError(f"{shown(node)} takes numbers")
        return function, parts, False


def _frame(spec: exp.WindowSpec | None, ordered: bool, by_value: bool) -> tuple[tuple[int | None, int | None], bool]:
    """Rows before and after that count, and whether rows that the order cannot tell apart count together."""
    if spec is None:
        return ((None, 0), True) if ordered else ((None, None), False)
    only(spec, ("kind", "start", "start_side", "end", "end_side"))
    start = _end(spec.args.get("start"), spec.args.get("start_side"), "PRECEDING")
    end = 0 if spec.args.get("end") is None else _end(spec.args["end"], spec.args.get("end_side"), "FOLLOWING")
    kind = str(spec.args.get("kind") or "").upper()
    if (start, end) in ((None, None), (None, 0)) and kind in ("ROWS", "RANGE") and not (by_value and kind == "ROWS"):
        return (start, end), kind == "RANGE" and end == 0
    if kind != "ROWS" or by_value:
        raise QueryError("frames are ROWS BETWEEN ... PRECEDING AND ... FOLLOWING, in an order of keys")
    return (start, end), False


def _end(node: object, side: object, after: str) -> int | None:
    """Rows up to an end of a frame: negative on the other side of this row; None for all."""
    if node == "UNBOUNDED":
        return None if side == after else _refuse()
    if node == "CURRENT ROW":
        return 0
    if not isinstance(node, exp.Expr):
        return _refuse()
    steps = literal_number(node)
    if steps.denominator != 1 or abs(steps) > _MOST_SHIFTED:
        return _refuse()
    return int(steps) if side == after else -int(steps)


def _refuse() -> int:
    raise QueryError("a frame begins with rows PRECEDING and ends with rows FOLLOWING, or with CURRENT ROW")


def output_name(item: exp.Expr, taken: Sequence[str]) -> str:
    """What a column of a SELECT is called, if it says no name itself."""
    inner = bare(item.unalias())
    if item.alias or isinstance(inner, exp.Column):
        return item.alias_or_name
    called_by = inner.this if isinstance(inner, exp.Filter | exp.Window) else inner
    column = None if isinstance(called_by, exp.Query) else called_by.find(exp.Column)
    word = "number" if isinstance(called_by, exp.Query | exp.Literal) else called_by.key.lower()
    name, place = f"{word}_{column.name}" if column is not None else word, 2
    free = name
    while free.casefold() in taken:
        free, place = f"{name}_{place}", place + 1
    return free
