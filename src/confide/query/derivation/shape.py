"""Which queries speak of rows of the data, and which of what was released: told from the text and the policy.

A query over rows that aggregates is a question, and what it shows is released. One that groups by an id makes one row
per unit: those are rows still. Everything over released rows is a derivation; and so is a question of which more is
asked than a question says: windows, DISTINCT, QUALIFY, functions of aggregates, sub-queries beside FROM.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Column, Identifier, Policy
from confide.query.literal import bare, literal_number
from confide.query.released_kind import day_of, is_date_cast, unwrapped

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_DESCENDED = (exp.Alias, exp.Ordered, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Abs)
_CONDITIONS = (exp.And, exp.Or, exp.Not, *COMPARED)
_MOST_DIGITS = 12
REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of a WITH clause, the names of its columns that are given there, and the queries that it may name."""

    query: exp.Expr
    columns: tuple[str, ...]
    known: "Mapping[str, NamedQuery]"


Known = Mapping[str, NamedQuery]


def with_queries(query: exp.Expr, known: Known) -> dict[str, NamedQuery]:
    """The queries that a query may name: those around it, and those of its WITH."""
    clause, found = query.args.get("with_"), dict(known)
    if clause is None:
        return found
    if clause.args.get("recursive"):
        raise QueryError("recursive queries are not answered; ask each level by itself")
    for item in clause.expressions:
        if item.args.get("scalar") or not isinstance(item.this, exp.Query):
            raise QueryError("WITH takes a plain query: WITH t AS (SELECT a, b FROM ... WHERE ...)")
        columns = tuple(column.name for column in item.args["alias"].args.get("columns") or ())
        found[item.alias.casefold()] = NamedQuery(item.this, columns, dict(found))
    return found


def inner_query(node: exp.Expr) -> exp.Expr:
    """Without parentheses that hold a query."""
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Subquery) and not node.args.get("with_")):
        node = node.this
    return node


def sources_of_from(select: exp.Select) -> list[exp.Expr]:
    clause = select.args.get("from_")
    nodes = [] if clause is None else [clause.this]
    return nodes + [join.this for join in select.args.get("joins") or ()]


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without those of queries inside it."""
    pending = [node]
    while pending:
        own = pending.pop()
        yield own
        if not isinstance(own, exp.Query):
            pending += own.iter_expressions()


def is_aggregate(node: exp.Expr) -> bool:
    """A call that makes one value of many rows; where it stands in a window it is none."""
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def has_aggregate(node: exp.Expr) -> bool:
    pending = [node]
    while pending:
        own = pending.pop()
        if isinstance(own, exp.Window):
            called = own.this.this if isinstance(own.this, exp.Filter) else own.this
            pending += [*called.iter_expressions(), *(own.args.get("partition_by") or ())]
            pending += [own.args["order"]] if own.args.get("order") is not None else []
        elif is_aggregate(own):
            return True
        elif not isinstance(own, exp.Query):
            pending += own.iter_expressions()
    return False


def alike(first: exp.Expr, second: exp.Expr) -> bool:
    """Whether two expressions say the same; a column may be written with its table, or without."""
    pending: list[tuple[Any, Any]] = [(first, second)]
    while pending:
        one, two = (bare(side) if isinstance(side, exp.Expr) else side for side in pending.pop())
        if isinstance(one, exp.Column) and isinstance(two, exp.Column):
            tables = {one.table.casefold(), two.table.casefold()} - {""}
            if one.name.casefold() != two.name.casefold() or len(tables) > 1:
                return False
        elif isinstance(one, exp.Expr) and isinstance(two, exp.Expr):
            if type(one) is not type(two):
                return False
            names = {name for node in (one, two) for name, value in node.args.items() if value not in (None, [], False)}
            pending += [(one.args.get(name), two.args.get(name)) for name in names]
        elif isinstance(one, list) and isinstance(two, list):
            if len(one) != len(two):
                return False
            pending += zip(one, two, strict=True)
        elif one != two:
            return False
    return True


def group_nodes(select: exp.Select, held: frozenset[str]) -> list[exp.Expr]:
    """The keys of GROUP BY: positions, and aliases that are no columns, as the expressions that they stand for.

    `held`: the names of columns of FROM, in lower case.
    """
    clause = select.args.get("group")
    if clause is None:
        return []
    every = clause.args.get("all")
    if every:
        return [bare(item.unalias()) for item in select.expressions if not has_aggregate(item)]
    named = {item.alias.casefold(): bare(item.this) for item in select.expressions if isinstance(item, exp.Alias)}
    found = []
    for node in clause.expressions:
        inner = bare(node)
        if isinstance(inner, exp.Literal) and not inner.is_string:
            place = literal_number(inner)
            if place.denominator != 1 or not 1 <= place <= len(select.expressions):
                raise QueryError(
                    f"GROUP BY {inner.name}: the SELECT has {len(select.expressions)} columns; write one of their names"
                )
            inner = bare(select.expressions[int(place) - 1].unalias())
        elif isinstance(inner, exp.Column) and not inner.table and inner.name.casefold() not in held:
            inner = named.get(inner.name.casefold(), inner)
        found.append(inner)
    return found


@dataclass(slots=True)
class Shapes:
    """Tells queries apart; every query is looked at once."""

    policy: Policy
    _released: dict[int, bool] = field(default_factory=dict)

    def released(self, node: exp.Expr, known: Known) -> bool:
        """Whether a query, or a table of a FROM, shows released rows."""
        if isinstance(node, exp.Table):
            named = None if node.args.get("db") else known.get(node.name.casefold())
            return named is not None and self.released(named.query, named.known)
        query = inner_query(node)
        if not isinstance(query, exp.Query):
            return False
        if id(query) not in self._released:
            self._released[id(query)] = False  # a query that names itself is refused where it is bound
            self._released[id(query)] = self._is_released(query, known)
        return self._released[id(query)]

    def _is_released(self, query: exp.Expr, known: Known) -> bool:
        known = with_queries(query, known)
        if isinstance(query, exp.SetOperation):
            return self.released(query.this, known) or self.released(query.expression, known)
        if not isinstance(query, exp.Select):
            return isinstance(query, exp.Subquery) and self.released(query.this, known)
        nodes = sources_of_from(query)
        if not nodes or any(self.released(node, known) for node in nodes):
            return True
        aggregates = query.args.get("group") is not None or any(has_aggregate(item) for item in query.expressions)
        return aggregates and not self._per_unit(query, known)

    def _per_unit(self, select: exp.Select, known: Known) -> bool:
        """Whether a query groups by an id."""
        keys = group_nodes(select, self.names(select, known))
        return any(isinstance(key, exp.Column) and self._is_id(key, select, known) for key in keys)

    def _is_id(self, column: exp.Column, select: exp.Select, known: Known) -> bool:
        for node in sources_of_from(select):
            alias = node.alias_or_name
            if column.table and column.table.casefold() != alias.casefold():
                continue
            found = self._column(node, column.name.casefold(), known)
            if found is not None:
                return isinstance(found, Identifier)
        return False

    def _column(self, node: exp.Expr, name: str, known: Known) -> Column | None:
        """The policy's column that a column of a table or an inner query stands for; None if it is computed."""
        if isinstance(node, exp.Table):
            named = None if node.args.get("db") else known.get(node.name.casefold())
            if named is None:
                table = {own.casefold(): table for own, table in self.policy.tables.items()}.get(node.name.casefold())
                columns = {} if table is None else {own.casefold(): column for own, column in table.columns.items()}
                return columns.get(name)
            query, given, known = named.query, named.columns, named.known
        else:
            query, given = inner_query(node), _given(node)
        if not isinstance(query, exp.Select):
            return None
        known = with_queries(query, known)
        for place, item in enumerate(query.expressions):
            shown = given[place] if place < len(given) else item.alias_or_name
            inner = item.unalias()
            star = isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star))
            wanted = name if star else inner.name.casefold() if isinstance(inner, exp.Column) else None
            if wanted is None or (not star and shown.casefold() != name):
                continue
            for part in sources_of_from(query):
                if isinstance(inner, exp.Column) and inner.table.casefold() not in ("", part.alias_or_name.casefold()):
                    continue
                found = self._column(part, wanted, known)
                if found is not None:
                    return found
        return None

    def names(self, select: exp.Select, known: Known) -> frozenset[str]:
        """The names of the columns of a FROM, in lower case, as far as the text and the policy tell."""
        found: set[str] = set()
        tables = {own.casefold(): table for own, table in self.policy.tables.items()}
        pending: list[tuple[exp.Expr, Known]] = [(node, known) for node in sources_of_from(select)]
        while pending:
            node, around = pending.pop()
            given = _given(node)
            if isinstance(node, exp.Table):
                named = None if node.args.get("db") else around.get(node.name.casefold())
                if named is None:
                    table = tables.get(node.name.casefold())
                    found |= {column.casefold() for column in (table.columns if table is not None else ())}
                    continue
                query, given, around = named.query, given or named.columns, named.known
            else:
                query = inner_query(node)
            while isinstance(query, exp.SetOperation):
                query = inner_query(query.this)
            if not isinstance(query, exp.Select):
                continue
            found |= {name.casefold() for name in given}
            found |= {item.alias_or_name.casefold() for item in query.expressions[len(given) :]} - {"", "*"}
            if any(
                isinstance(item, exp.Star) or isinstance(item.args.get("this"), exp.Star) for item in query.expressions
            ):
                pending += [(part, with_queries(query, around)) for part in sources_of_from(query)]
        return frozenset(found)

    def derived(self, query: exp.Expr) -> bool:
        """Whether a text asks more of released numbers than a question says by itself."""
        if not isinstance(query, exp.Select):
            return True
        known = with_queries(query, {})
        nodes = sources_of_from(query)
        if not nodes:
            return any(isinstance(own, exp.Query) for item in query.expressions for own in own_nodes(item))
        if any(self.released(node, known) for node in nodes):
            return True
        aggregates = query.args.get("group") is not None or any(has_aggregate(item) for item in query.expressions)
        if not aggregates:
            return False
        if any(query.args.get(name) for name in ("distinct", "qualify", "windows")):
            return True
        if not any(has_aggregate(item) for item in query.expressions) and query.args.get("having") is not None:
            return True  # keys alone, chosen by released numbers
        held = self.names(query, known)
        keys = group_nodes(query, held) if query.args.get("group") is not None else []
        aliases = [item for item in query.expressions if isinstance(item, exp.Alias)]
        named = {item.alias.casefold() for item in aliases} - held
        if any(_names_alias(item, named) for item in query.expressions):
            return True
        items = [("select", item) for item in query.expressions]
        having, order = query.args.get("having"), query.args.get("order")
        items += [("having", having.this)] if having is not None else []
        items += [("order", item) for item in order.expressions] if order is not None else []
        called = [
            item for item in aliases if item.alias.casefold() in named and any(alike(item.this, key) for key in keys)
        ]
        keys += [exp.column(item.args["alias"].copy()) for item in called]
        return any(not _plain(item, keys, clause) for clause, item in items)


def _given(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    columns = alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()
    return tuple(column.name for column in columns)


def _plain(root: exp.Expr, keys: list[exp.Expr], clause: str) -> bool:
    """Whether a question says an item of its SELECT, HAVING or ORDER BY by itself."""
    conditions, pending = clause == "having", [root]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Ordered) and node.args.get("nulls_first"):
            return False
        inner = bare(node.unalias())
        if is_aggregate(inner) or any(alike(inner, key) for key in keys):
            continue
        if isinstance(inner, exp.Column | exp.Literal | exp.Boolean):
            continue
        if isinstance(inner, exp.Query | exp.Window):
            return False
        if conditions and _orders_keys(inner, keys):
            return False
        if clause == "select" and not has_aggregate(inner):
            # A key, a constant, or wrong; what is computed of a key that stands in GROUP BY by itself is none of them.
            if any(isinstance(own, exp.Query | exp.Window) for own in own_nodes(inner)):
                return False
            if any(alike(own, key) for key in keys for own in own_nodes(inner)):
                return False
            continue
        if conditions and isinstance(inner, exp.Between):
            ends = [inner.this, inner.args["low"], inner.args["high"]]
            pending += [end for end in ends if day_of(end) is None] if _of_values(inner, keys) else ends
        elif conditions and isinstance(inner, exp.In) and inner.expressions and not inner.args.get("query"):
            pending += [inner.this, *inner.expressions]
        elif isinstance(inner, (*(COMPARED if conditions else ()), exp.Sub)) and _of_values(inner, keys):
            pending += [part for part in (inner.this, inner.expression) if day_of(part) is None]
        elif isinstance(inner, exp.DateDiff) and has_aggregate(inner):
            pending += [part for part in (unwrapped(inner.this), unwrapped(inner.expression)) if day_of(part) is None]
        elif isinstance(inner, _DESCENDED) or (conditions and isinstance(inner, _CONDITIONS)):
            pending += inner.iter_expressions()
        elif (
            (isinstance(inner, exp.Round) and _few_digits(inner.args.get("decimals")))
            or (isinstance(inner, exp.Nullif) and is_zero(inner.expression))
            or (isinstance(inner, exp.Coalesce) and len(inner.expressions) == 1 and is_zero(inner.expressions[0]))
            or (isinstance(inner, exp.Cast) and inner.to.this in REALS)
            or (is_date_cast(inner) and has_aggregate(inner))
        ):
            pending.append(inner.this)
        else:
            return False
    return True


def _of_values(node: exp.Expr, keys: list[exp.Expr]) -> bool:
    """Whether a comparison or a difference is of aggregates, or of columns of the result that are no keys."""
    sides = [bare(side) for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expr)]
    columns = (side for side in sides if isinstance(side, exp.Column))
    return has_aggregate(node) or any(not any(alike(own, key) for key in keys) for own in columns)


def _names_alias(item: exp.Expr, named: set[str]) -> bool:
    """Whether an item of a SELECT names another one, outside of aggregates."""
    pending = [item.unalias()]
    while pending:
        own = pending.pop()
        if isinstance(own, exp.Column) and not own.table and own.name.casefold() in named:
            return True
        if not is_aggregate(own) and not isinstance(own, exp.Query):
            pending += own.iter_expressions()
    return False


def _orders_keys(node: exp.Expr, keys: list[exp.Expr]) -> bool:
    """Whether a condition compares a key with a constant otherwise than by = and <>."""
    if not isinstance(node, (*COMPARED[2:], exp.Between)):
        return False
    sides = [side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expr)]
    return any(alike(side, key) for side in sides for key in keys)


def _few_digits(node: exp.Expr | None) -> bool:
    if node is None:
        return True
    inner = bare(node)
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return False
    digits = literal_number(inner)
    return digits.denominator == 1 and 0 <= digits <= _MOST_DIGITS


def is_zero(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal) and not inner.is_string and literal_number(inner) == 0
