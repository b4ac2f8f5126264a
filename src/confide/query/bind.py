"""From SQL to a `Question`, with public facts only: parse, resolve, bound."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Policy, RowUnit
from confide.query.aggregate import Aggregates, threshold_measure
from confide.query.expression import predicate
from confide.query.grouping import bind_keys
from confide.query.literal import literal_number
from confide.query.number import constant
from confide.query.parse import conjuncts, parse
from confide.query.question import (
    Comparison,
    Condition,
    Every,
    KeyColumn,
    Order,
    Question,
    Some,
    Value,
    ValueColumn,
    measures_of,
)
from confide.query.relation import bind_from
from confide.query.scope import Catalog, Scope, nearest
from confide.query.tree import Always, DeclaredKey, Key, Summary, UnknownKey

_REFUSED = {
    "distinct": "SELECT DISTINCT shows raw values; GROUP BY a declared column",
    "qualify": "QUALIFY is not answered; filter released numbers with HAVING",
    "windows": "window functions are not answered",
    "sample": "sampling is not answered: what it draws is not bounded; ask the whole table",
    "laterals": "LATERAL is not answered",
    "pivots": "PIVOT is not answered; GROUP BY both columns",
    "match": "MATCH_RECOGNIZE is not answered",
    "into": "SELECT INTO is not answered",
    "locks": "FOR UPDATE is not answered",
    "connect": "CONNECT BY is not answered",
    "prewhere": "PREWHERE is not answered; use WHERE",
    "cluster": "CLUSTER BY is not answered",
    "distribute": "DISTRIBUTE BY is not answered",
    "sort": "SORT BY is not answered; use ORDER BY",
}
_KNOWN = {
    "kind", "hint", "with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "operation_modifiers",
}  # fmt: skip
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GTE: ">=",
    exp.GT: ">",
}
_NEGATED = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
_FLIPPED = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}


def bind(
    text: str,
    policy: Policy,
    catalog: Catalog,
    bounds: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    dialect: str = "duckdb",
) -> Question:
    """The question that a SQL text asks under a policy. `bounds` limit computed columns of an inner query."""
    select = parse(text, dialect)
    try:
        return _Binder(select, policy, catalog, bounds or {}).question()
    except RecursionError:
        raise QueryError("the query is nested too deep; write it flatter") from None


class _Binder:
    """One pass over one SELECT."""

    def __init__(
        self, select: exp.Select, policy: Policy, catalog: Catalog, bounds: Mapping[str, tuple[Fraction, Fraction]]
    ) -> None:
        for name, value in select.args.items():
            if value and name not in _KNOWN:
                raise QueryError(_REFUSED.get(name, f"{name.strip('_').upper()} is not answered"))
        if select.args.get("kind"):
            raise QueryError("SELECT AS STRUCT or VALUE is not answered")
        self.select, self.policy = select, policy
        self.scope = Scope(policy, catalog)
        limits = {name: (constant(low), constant(high)) for name, (low, high) in bounds.items()}
        self.source = bind_from(select, self.scope, limits)
        where = select.args.get("where")
        self.where = predicate(where.this, self.scope) if where is not None else Always(True)
        self.key_nodes, self.keys = bind_keys(select, self.scope)
        filtered = self.where != Always(True)
        self.aggregates = Aggregates(self.scope, self.source, bool(self.keys), filtered)
        self.columns: list[KeyColumn | ValueColumn] = []

    def question(self) -> Question:
        for item in self.select.expressions:
            self.columns.append(self._column(item))
        if not any(isinstance(column, ValueColumn) for column in self.columns):
            raise QueryError("the SELECT has no aggregate; add COUNT(*)")
        _check_names(self.columns)
        having = self.select.args.get("having")
        condition = self._condition(having.this, False) if having is not None else None
        order = tuple(self._order(item) for item in self._ordered())
        limit, offset = self._whole("limit"), self._whole("offset") or 0
        open_keys = any(isinstance(key, UnknownKey) for key in self.keys)
        threshold = threshold_measure(self.aggregates) if open_keys else None
        source = self.source
        summary = Summary(
            source.relation, self.where, source.bound, self.keys, tuple(self.aggregates.cells), source.order_by
        )
        unit = "row" if isinstance(self.policy.unit, RowUnit) else str(self.policy.unit)
        return Question(
            summary, tuple(self.aggregates.measures), threshold, tuple(self.columns), condition, order, limit, offset,
            source.neighbours, unit, source.tables,
        )  # fmt: skip

    def _column(self, item: exp.Expr) -> KeyColumn | ValueColumn:
        node = item.unalias()
        place = self._key_place(node)
        if place is not None:
            return KeyColumn(item.alias or self.keys[place].name, place)
        return ValueColumn(item.alias or self._default_name(node), self.aggregates.value(node))

    def _key_place(self, node: exp.Expr) -> int | None:
        """Which key an expression is, however it is spelled."""
        if node in self.key_nodes:
            return self.key_nodes.index(node)
        if isinstance(node, exp.Column):
            spelled = [self.scope.field(key) if isinstance(key, exp.Column) else None for key in self.key_nodes]
            own = self.scope.field(node) if any(spelled) and not isinstance(node.this, exp.Star) else None
            return spelled.index(own) if own is not None and own in spelled else None
        return None

    def _default_name(self, node: exp.Expr) -> str:
        inner = node.this if isinstance(node, exp.Filter) else node
        column = inner.find(exp.Column)
        word = inner.key.lower()
        name = f"{word}_{column.name}" if column is not None else word
        taken = {column.name for column in self.columns}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, 10_000))) if n not in taken)

    def _whole(self, clause: str) -> int | None:
        node = self.select.args.get(clause)
        if node is None:
            return None
        value = literal_number(node.expression) if isinstance(node, exp.Limit | exp.Offset) else Fraction(-1)
        if value.denominator != 1 or value < 0:
            raise QueryError(f"{clause.upper()} takes a whole number")
        return int(value)

    # --- on released numbers --------------------------------------------------------------------------------------

    def _ordered(self) -> list[exp.Ordered]:
        clause = self.select.args.get("order")
        return list(clause.expressions) if clause is not None else []

    def _order(self, item: exp.Ordered) -> Order:
        return Order(self._released(item.this), bool(item.args.get("desc")))

    def _released(self, node: exp.Expr) -> Value | KeyColumn:
        """A column of the result by position, alias or expression, or an aggregate of its own."""
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string and isinstance(node.parent, exp.Ordered):
            position = literal_number(node)
            if position.denominator != 1 or not 1 <= position <= len(self.columns):
                raise QueryError(f"ORDER BY {node.name}: the SELECT has {len(self.columns)} columns")
            return _content(self.columns[int(position) - 1])
        if isinstance(node, exp.Column) and not node.table:
            for column in self.columns:
                if column.name.lower() == node.name.lower():
                    return _content(column)
        place = self._key_place(node)
        if place is not None:
            return KeyColumn(self.keys[place].name, place)
        if isinstance(node, exp.Column):
            names = [column.name for column in self.columns]
            raise QueryError(f"{node.sql()[:60]} is not a column of the result; {nearest(node.name, names, 'it has')}")
        return self.aggregates.value(_expand(node, self._alias))

    def _alias(self, name: str) -> exp.Expr | None:
        for item in self.select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == name.lower():
                named: exp.Expr = item.this
                return named
        return None

    def _condition(self, node: exp.Expr, negated: bool) -> Condition:
        node = node.unnest()
        match node:
            case exp.Not():
                return self._condition(node.this, not negated)
            case exp.And() | exp.Or():
                parts = tuple(self._condition(part, negated) for part in conjuncts(node))
                return Every(parts) if isinstance(node, exp.And) != negated else Some(parts)
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                parts = (self._condition(low, negated), self._condition(high, negated))
                return Some(parts) if negated else Every(parts)
            case exp.In() if not node.args.get("query"):
                each = [exp.EQ(this=node.this.copy(), expression=option.copy()) for option in node.expressions]
                parts = tuple(self._condition(part, negated) for part in each)
                return Every(parts) if negated else Some(parts)
        if type(node) not in _COMPARISONS:
            raise QueryError(f"HAVING {node.sql()[:60]} is not answered; compare aggregates with numbers")
        operation, left, right = _COMPARISONS[type(node)], node.this, node.expression
        if isinstance(left, exp.Literal | exp.Boolean) and not isinstance(right, exp.Literal | exp.Boolean):
            operation, left, right = _FLIPPED[operation], right, left
        if negated:
            operation = _NEGATED[operation]
        subject = self._released(left)
        if isinstance(subject, KeyColumn):
            return Comparison(operation, subject, _key_constant(self.keys[subject.key], operation, right))  # type: ignore[arg-type]
        other = self._released(right)
        if isinstance(other, KeyColumn):
            raise QueryError(f"HAVING {node.sql()[:60]}: a key is compared with a constant")
        return Comparison(operation, subject, other)  # type: ignore[arg-type]


def _content(column: KeyColumn | ValueColumn) -> Value | KeyColumn:
    return column if isinstance(column, KeyColumn) else column.value


def _expand(node: exp.Expr, alias: Callable[[str], exp.Expr | None]) -> exp.Expr:
    """Aliases inside an expression on released numbers become what they stand for, unless they are inside an aggregate."""

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.find_ancestor(exp.AggFunc) is None:
            return (alias(part.name) or part).copy()
        return part

    return node.copy().transform(replaced)


def _key_constant(key: Key, operation: str, node: exp.Expr) -> str | bool:
    if operation not in ("=", "<>") or not isinstance(node, exp.Literal | exp.Boolean):
        raise QueryError("HAVING compares a key with = or <> and a constant; put other conditions on keys into WHERE")
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(key, DeclaredKey) and isinstance(key.field.column, Category):
        shown = [str(value) for value in key.values]
        if node.name not in shown:
            raise QueryError(f"{key.name} has no value {node.sql()[:60]}; {nearest(node.name, shown, 'it has')}")
    return node.name


def _check_names(columns: list[KeyColumn | ValueColumn]) -> None:
    """Every output name once, the ends of intervals included."""
    taken: set[str] = set()
    for column in columns:
        own = {column.name}
        if isinstance(column, ValueColumn):
            own |= {f"{column.name}_low", f"{column.name}_high"}
        clash = sorted(own & taken)
        if clash:
            raise QueryError(
                f"two columns of the result would be called {clash[0]} (each aggregate a comes with a_low and a_high); "
                "give one another name with AS"
            )
        taken |= own


def needed_measures(question: Question) -> frozenset[int]:
    """Measures behind the shown columns (others serve HAVING or ORDER BY only)."""
    shown = (column.value for column in question.columns if isinstance(column, ValueColumn))
    return frozenset().union(*(measures_of(value) for value in shown))
