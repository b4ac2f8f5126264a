"""From a SQL text to a derivation: which questions it asks, and what it makes of their answers. Public facts only."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.privacy.limits import MOST_COLUMNS, MOST_DERIVED_ROWS, MOST_INNER_QUESTIONS, MOST_TABLES
from confide.query.clause import check_subquery, whole_number
from confide.query.conjunction import Conjunction
from confide.query.derivation.bound_table import BoundTable, renamed
from confide.query.derivation.derivation import (
    ComputedColumns,
    Derivation,
    DerivedColumn,
    DerivedTable,
    DistinctRows,
    FirstRows,
    GroupedRowsOf,
    KeptRows,
    OneNumber,
    OneRow,
    QuestionTable,
    RowOrder,
    Taken,
)
from confide.query.derivation.inner_question import InnerQuestion
from confide.query.derivation.public_rows import public_rows, public_table
from confide.query.derivation.released_expression import ReleasedExpressions, ReleasedNames, output_name
from confide.query.derivation.released_function import Meant, deeper
from confide.query.derivation.released_join import ReleasedFrom
from confide.query.derivation.released_union import stacked_tables
from confide.query.derivation.select_part import (
    aggregates_in,
    check_names,
    checked_keys,
    clauses_with_aggregates,
    name_of_key,
    position_of,
    require_no_labels,
    still_keyed,
    written_out,
)
from confide.query.derivation.shape import (
    Known,
    Shapes,
    alike,
    group_nodes,
    has_aggregate,
    inner_query,
    sources_of_from,
    with_queries,
)
from confide.query.grouping import group_count
from confide.query.literal import bare
from confide.query.parse import shown
from confide.query.question import Question
from confide.query.room import Room
from confide.query.scope import Catalog
from confide.query.tree import UnknownKey

_READ: Final = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit",
    "offset", "distinct",
)  # fmt: skip
Ask = Callable[[exp.Select], Question | Conjunction]


def bind_derivation(query: exp.Expr, policy: Policy, catalog: Catalog, ask: Ask) -> Derivation:
    """The derivation that a parsed text asks for; `ask` binds a question over rows of the data."""
    return _Binding(policy, catalog, ask).derivation(query)


@dataclass(slots=True)
class _Binding:
    policy: Policy
    catalog: Catalog
    ask: Ask
    room: Room = field(default_factory=Room)
    questions: dict[Question, int] = field(default_factory=dict)
    crossing: bool = False
    gathering: bool = False
    tables: int = 0
    shapes: Shapes = field(init=False)
    _named: dict[int, BoundTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shapes = Shapes(self.policy)

    def derivation(self, query: exp.Expr) -> Derivation:
        bound = self.query(query, {})
        if len(bound.columns) > MOST_COLUMNS:
            raise QueryError(
                f"the SELECT has {len(bound.columns)} columns, at most {MOST_COLUMNS} are answered at once"
            )
        check_names(bound.columns)
        if not self.questions or (all(column.public for column in bound.columns) and not bound.chosen):
            raise QueryError("the SELECT shows nothing that is released; add COUNT(*), or a column that has it")
        return Derivation(tuple(self.questions), bound.table, bound.columns, self.crossing, self.gathering)

    def query(self, node: exp.Expr, known: Known) -> BoundTable:
        """A query in whatever parentheses it stands."""
        query = inner_query(node)
        if isinstance(query, exp.SetOperation):
            return self._stacked(query, known)
        if not isinstance(query, exp.Select):
            raise QueryError(f"{shown(node)} is not answered here; write a SELECT")
        for name, value in query.args.items():
            if value and name not in _READ:
                raise QueryError(
                    f"{name.strip('_').upper()} is not answered; a query has SELECT, FROM, JOIN, WHERE, GROUP BY, "
                    "HAVING, QUALIFY, ORDER BY and LIMIT"
                )
        known = with_queries(query, known)
        nodes = sources_of_from(query)
        if not nodes:
            return self._selected(
                query,
                BoundTable(OneRow(), (), chosen=False, rows=1, parts=1, keyed=frozenset()),
                ReleasedNames([]),
                known,
            )
        if any(self.shapes.released(own, known) for own in nodes):
            source = ReleasedFrom(self.shapes, self._source, self._public).joined(query, known)
            return self._selected(query, self._sized(source.bound), source.names, known)
        return self._asked(query, known)

    def named(self, name: str, known: Known) -> BoundTable:
        """A query of WITH: bound once, and counted as often as it is named."""
        query = known[name.casefold()]
        if id(query.query) not in self._named:
            self._named[id(query.query)] = self.query(query.query, query.known)
        bound = self._named[id(query.query)]
        self.room.take(bound.parts)
        return renamed(bound, query.columns)

    def _source(self, node: exp.Expr, known: Known) -> BoundTable:
        """A table of a FROM that is released."""
        self.tables += 1
        if self.tables > MOST_TABLES:
            raise QueryError(f"the query names more than {MOST_TABLES} tables")
        alias = node.args.get("alias")
        given = tuple(column.name for column in alias.args.get("columns") or ()) if alias is not None else ()
        bound = self._table(node, known, given)
        if bound.blurred:
            raise QueryError(
                "DISTINCT over released numbers stands outermost: rows that look alike may differ but for their noise; "
                "leave it out, or GROUP BY keys"
            )
        return bound

    def _public(self, node: exp.Expr, select: exp.Select, known: Known) -> BoundTable | None:
        """A public table of a FROM; None if it is none."""
        table = public_table(node, self.policy) if node.name.casefold() not in known else None
        if table is None:
            return None
        bound = public_rows(table, select, self.catalog)
        self.room.take(bound.parts)
        alias = node.args.get("alias")
        given = tuple(column.name for column in alias.args.get("columns") or ()) if alias is not None else ()
        if given:
            raise QueryError(f"{shown(node)}: the columns of a public table keep their names; give it an alias alone")
        return bound

    def _table(self, node: exp.Expr, known: Known, given: tuple[str, ...]) -> BoundTable:
        if isinstance(node, exp.Table):
            if any(value for name, value in node.args.items() if name not in ("this", "alias")):
                raise QueryError(f"{shown(node)}: name the table, and nothing else beside its alias")
            return renamed(self.named(node.name, known), given)
        if given:
            node = node.copy()
            node.args["alias"].set("columns", None)
        if not isinstance(node, exp.Subquery):
            raise QueryError(f"{shown(node)} is not a table; name one, or write a query in parentheses")
        check_subquery(node)
        return renamed(self.query(node.this, known), given)

    def _sized(self, bound: BoundTable) -> BoundTable:
        if bound.rows is not None and bound.rows > MOST_DERIVED_ROWS:
            raise QueryError(
                f"what is computed of released rows takes at most {MOST_DERIVED_ROWS:,} of them, and this has "
                f"{bound.rows:,}; use wider bins or fewer keys, or ask without outer queries and windows"
            )
        return bound

    # --- a question and what is made of its answer --------------------------------------------------------------------

    def _asked(self, select: exp.Select, known: Known) -> BoundTable:
        """A query over rows of the data: a question, and a SELECT over what it shows."""
        if select.args.get("group") is None and not any(
            has_aggregate(item) for item in (*select.expressions, *clauses_with_aggregates(select))
        ):
            raise QueryError(
                f"{shown(select)} shows rows, which never leave the data; aggregate them, or use it inside an aggregate"
            )
        inner = InnerQuestion(select, known, group_nodes(select, self.shapes.names(select, known)))
        question = self.ask(inner.select)
        if isinstance(question, Conjunction):
            raise QueryError(
                "outer queries, windows and functions are not answered over a join in which one unit may change any "
                "number of rows; ask the join by itself"
            )
        place = self.questions.setdefault(question, len(self.questions))
        if place >= MOST_INNER_QUESTIONS:
            raise QueryError(
                f"the text asks more than {MOST_INNER_QUESTIONS} different inner questions; ask fewer at once"
            )
        columns, keys = inner.columns(question), len(inner.keys)
        open_keys = any(isinstance(key, UnknownKey) for key in question.keys)
        bound = BoundTable(
            QuestionTable(place),
            columns,
            chosen=False,
            rows=None if open_keys else group_count(question),
            parts=1,
            keyed=frozenset(range(keys)),
        )

        def found(node: exp.Expr) -> Meant | None:
            own = inner.place(node)
            return (
                None
                if own is None
                else Meant(Taken(own), columns[own].kind, columns[own].public, 0, columns[own].label)
            )

        return self._shown(select, self._sized(bound), ReleasedNames([]), known, found)

    # --- a SELECT over released rows ----------------------------------------------------------------------------------

    def _selected(self, select: exp.Select, source: BoundTable, names: ReleasedNames, known: Known) -> BoundTable:
        where = select.args.get("where")
        expressions = self._expressions(names, source, known)
        if where is not None:
            source = self._kept(source, expressions.read(where.this), where.this)
            expressions = self._expressions(names, source, known)
        aggregates = select.args.get("group") is not None or any(
            has_aggregate(item) for item in (*select.expressions, *clauses_with_aggregates(select))
        )
        if not aggregates:
            return self._shown(select, source, names, known, lambda _: None)
        held = frozenset(own.column.name.casefold() for own in names.visible)
        keys = checked_keys(select, held)
        return self._grouped(select, source, names, known, keys)

    def _grouped(
        self, select: exp.Select, source: BoundTable, names: ReleasedNames, known: Known, keys: list[exp.Expr]
    ) -> BoundTable:
        self.crossing = self.gathering = True
        aliases = {item.alias.casefold(): bare(item.this) for item in select.expressions if isinstance(item, exp.Alias)}
        expressions = replace(self._expressions(names, source, known), aliases=aliases)
        meant = [expressions.read(key) for key in keys]
        columns = [
            DerivedColumn(name_of_key(node, select), own.kind or "text", own.public, own.depth)
            for node, own in zip(keys, meant, strict=True)
        ]
        gathered: list[exp.Expr] = []
        bound = []
        for node in (*select.expressions, *clauses_with_aggregates(select)):
            for own in aggregates_in(node, keys):
                if not any(alike(own, other) for other in gathered):
                    gathered.append(own)
                    bound.append(expressions.gathered(own))
        columns += [column for _, column in bound]
        table = GroupedRowsOf(source.table, tuple(own.expression for own in meant), tuple(own for own, _ in bound))
        chosen = bool(keys) and (source.chosen or any(not own.public for own in meant))
        rows = source.rows if keys else 1
        keyed = frozenset(range(len(keys)))
        depth = deeper(max(source.depth, *(own.depth for own in meant))) if chosen else 0
        result = BoundTable(table, tuple(columns), chosen, rows, source.parts + 1 + len(columns), keyed, depth)
        nodes = [*keys, *gathered]

        def found(node: exp.Expr) -> Meant | None:
            places = [place for place, own in enumerate(nodes) if alike(node, own)]
            if not places:
                return None
            column = columns[places[0]]
            return Meant(Taken(places[0]), column.kind, column.public, column.depth)

        return self._shown(select, result, ReleasedNames([]), known, found)

    def _shown(
        self,
        select: exp.Select,
        source: BoundTable,
        names: ReleasedNames,
        known: Known,
        place: Callable[[exp.Expr], Meant | None],
    ) -> BoundTable:
        """HAVING, the columns, QUALIFY, DISTINCT, ORDER BY and LIMIT."""
        items = written_out(select, names)
        aliases = {item.alias.casefold(): bare(item.this) for item in items if isinstance(item, exp.Alias)}
        windows = {own.name.casefold(): own for own in select.args.get("windows") or ()}

        def expressions() -> ReleasedExpressions:
            own = self._expressions(names, source, known)
            own.place, own.aliases, own.windows = place, aliases, windows
            return own

        having = select.args.get("having")
        if having is not None:
            source = self._kept(source, expressions().read(having.this), having.this)
        reading = expressions()
        if len(items) > MOST_COLUMNS:
            raise QueryError(f"the SELECT has {len(items)} columns, at most {MOST_COLUMNS} are answered at once")
        meant = [reading.item(item.unalias()) for item in items]
        called: list[str] = []
        for item in items:
            called.append(output_name(item, [name.casefold() for name in called]))
        qualify, order = select.args.get("qualify"), select.args.get("order")
        more = [] if qualify is None else [reading.read(qualify.this)]
        orders: list[tuple[int, exp.Ordered]] = []
        for item in order.expressions if order is not None else ():
            if item.this.name.upper() == "ALL" and not isinstance(item.this, exp.Literal):
                orders += [(place, item) for place in range(len(items))]
                continue
            at = position_of(item.this, len(items))
            if at is None:
                more.append(reading.ordered(item))
                at = len(items) + len(more) - 1
            orders.append((at, item))
        width, every = len(items), [*meant, *more]
        self.crossing |= reading.crossing
        self.gathering |= reading.crossing
        columns = tuple(
            DerivedColumn(name, own.kind or "text", own.public, own.depth, own.label)
            for name, own in zip([*called, *("" for _ in more)], every, strict=True)
        )
        table: DerivedTable = ComputedColumns(
            source.table, tuple(own.name for own in columns), tuple(own.expression for own in every)
        )
        parts = source.parts + 1 + len(columns)
        keyed = still_keyed(source, meant)
        bound = BoundTable(table, columns, source.chosen, source.rows, parts, keyed, source.depth)
        if qualify is not None:
            bound = self._kept(bound, replace(more[0], expression=Taken(width)), qualify.this)
        if select.args.get("distinct") is not None:
            if select.args["distinct"].args.get("on"):
                raise QueryError(
                    "DISTINCT ON is not answered; QUALIFY ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1 "
                    "says the same"
                )
            if more:
                hidden = [own for own in more if not any(own.expression == shown.expression for shown in meant)]
                if hidden:
                    raise QueryError("with DISTINCT, ORDER BY and QUALIFY name columns of the SELECT")
            self.crossing = True
            require_no_labels(columns[:width], "DISTINCT")
            by_value = any(not own.public for own in meant)
            bound = replace(
                bound,
                table=DistinctRows(FirstRows(bound.table, (), None, 0, width)),
                columns=columns[:width],
                chosen=bound.chosen or by_value,
                blurred=by_value,
            )
            orders = [
                (
                    at
                    if at < width
                    else next(p for p, own in enumerate(meant) if own.expression == every[at].expression),
                    item,
                )
                for at, item in orders
            ]
        return self._cut(bound, select, tuple(orders), width)

    def _cut(
        self, bound: BoundTable, select: exp.Expr, orders: tuple[tuple[int, exp.Ordered], ...], width: int
    ) -> BoundTable:
        for _, item in orders:
            if item.args.get("with_fill"):
                raise QueryError("ORDER BY ... WITH FILL is not answered; all declared keys are in the result anyway")
        require_no_labels([bound.columns[at] for at, _ in orders], "ORDER BY")
        order = tuple(
            RowOrder(Taken(at), bool(i.args.get("desc")), bool(i.args.get("nulls_first"))) for at, i in orders
        )
        limit, offset = whole_number(select, "limit"), whole_number(select, "offset") or 0  # type: ignore[arg-type]
        cuts = (limit is not None and (bound.rows is None or limit + 0 < bound.rows)) or offset > 0
        by_value = cuts and any(not bound.columns[at].public for at, _ in orders)
        self.crossing |= cuts
        rows = bound.rows if limit is None or bound.rows is None else bound.rows if by_value else min(limit, bound.rows)
        if not order and limit is None and not offset and width == len(bound.columns):
            return bound
        table = FirstRows(bound.table, order, limit if cuts else None, offset, width)
        if by_value or (cuts and bound.chosen):
            bound = replace(bound, depth=deeper(max(bound.depth, *(bound.columns[at].depth for at, _ in orders), 0)))
        return replace(bound, table=table, columns=bound.columns[:width], chosen=bound.chosen or by_value, rows=rows)

    def _kept(self, source: BoundTable, condition: Meant, node: exp.Expr) -> BoundTable:
        if condition.kind not in ("boolean", None):
            raise QueryError(f"{shown(node)} is no condition; compare it with something")
        depth = source.depth if condition.public else deeper(max(source.depth, condition.depth))
        chosen = source.chosen or not condition.public
        self.crossing |= not condition.public
        table = KeptRows(source.table, condition.expression)
        return replace(source, table=table, chosen=chosen, parts=source.parts + 1, depth=depth)

    # --- several tables -----------------------------------------------------------------------------------------------

    def _stacked(self, query: exp.SetOperation, known: Known) -> BoundTable:
        bound, orders = stacked_tables(query, known, self.query)
        self.crossing |= bool(query.args.get("distinct"))
        return self._cut(self._sized(bound), query, orders, len(bound.columns))

    def _expressions(self, names: ReleasedNames, source: BoundTable, known: Known) -> ReleasedExpressions:
        return ReleasedExpressions(
            names, self.room, lambda node: self._number(node, known), source.chosen, source.depth
        )

    def _number(self, node: exp.Expr, known: Known) -> Meant:
        """A sub-query that stands for one number."""
        bound = self.query(node, known)
        if len(bound.columns) != 1 or bound.rows != 1 or bound.chosen:
            raise QueryError(
                f"{shown(node)} stands for one number, so it has one column and no GROUP BY; join tables on their keys"
            )
        column = bound.columns[0]
        require_no_labels([column], "a sub-query")
        self.crossing = True
        return Meant(OneNumber(bound.table), column.kind, column.public, column.depth + 1)
