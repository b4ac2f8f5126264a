"""From SQL to a `Question`, with public facts only: parse, resolve, bound."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import count

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy, RowUnit
from confide.query.aggregate import Aggregates
from confide.query.clause import check_clauses, check_parts, whole_number
from confide.query.expression import predicate
from confide.query.grouping import bind_keys, find_key
from confide.query.parse import parse
from confide.query.question import KeyColumn, Question, ValueColumn, measures_of, statistics_of
from confide.query.relation import bind_from
from confide.query.released import Released
from confide.query.scope import Catalog, Scope
from confide.query.tree import Always, Key, Summary, UnknownKey

_MOST_COLUMNS = 200


def bind(
    text: str,
    policy: Policy,
    catalog: Catalog,
    bounds: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    dialect: str = "duckdb",
    mechanisms: Mapping[str, str] | str = "auto",
) -> Question:
    """The question that a SQL text asks under a policy. `bounds` limit computed columns of an inner query.

    `mechanisms` names a mechanism for all columns, or by column; `auto` leaves the choice to forecasts.
    """
    select = parse(text, dialect)
    try:
        return _question(select, policy, catalog, bounds or {}, dialect, mechanisms)
    except RecursionError:
        raise QueryError("the query is nested too deep; write it flatter") from None


def _question(
    select: exp.Select,
    policy: Policy,
    catalog: Catalog,
    bounds: Mapping[str, tuple[Fraction, Fraction]],
    dialect: str,
    mechanisms: Mapping[str, str] | str,
) -> Question:
    check_clauses(select)
    check_parts(select)
    if len(select.expressions) > _MOST_COLUMNS:
        raise QueryError(
            f"the SELECT has {len(select.expressions)} columns, at most {_MOST_COLUMNS} are answered at once"
        )
    scope = Scope(policy, catalog)
    source = bind_from(select, scope, bounds)
    clause = select.args.get("where")
    where = predicate(clause.this, scope) if clause is not None else Always(True)
    keys = bind_keys(select, scope)
    aggregates = Aggregates(scope, source, bool(keys), where != Always(True))
    columns = _columns(select, keys, aggregates, scope, mechanisms)
    released = Released(select.expressions, columns, keys, aggregates, scope)
    having, order = select.args.get("having"), select.args.get("order")
    condition = released.condition(having.this) if having is not None else None
    orders = tuple(released.order(item, dialect) for item in order.expressions) if order is not None else ()
    open_keys = any(isinstance(key, UnknownKey) for key in keys)
    threshold = aggregates.threshold() if open_keys else None
    return Question(
        summary=Summary(
            source.relation, where, source.bound, keys, aggregates.cells, aggregates.tallies, source.order_by
        ),
        measures=aggregates.measures,
        statistics=aggregates.statistics,
        threshold=threshold,
        columns=columns,
        having=condition,
        order=orders,
        limit=whole_number(select, "limit"),
        offset=whole_number(select, "offset") or 0,
        neighbours=source.neighbours,
        unit="row" if isinstance(policy.unit, RowUnit) else str(policy.unit),
        tables=source.tables,
    )


def _columns(
    select: exp.Select,
    keys: tuple[Key, ...],
    aggregates: Aggregates,
    scope: Scope,
    mechanisms: Mapping[str, str] | str,
) -> tuple[KeyColumn | ValueColumn, ...]:
    """The columns of the result; every output name is there once, the ends of intervals included."""
    columns: list[KeyColumn | ValueColumn] = []
    taken: set[str] = set()
    for item in select.expressions:
        node = item.unalias()
        place = find_key(node, keys, scope)
        if place is not None:
            column: KeyColumn | ValueColumn = KeyColumn(item.alias or keys[place].name, place)
        else:
            name = item.alias or _default_name(node, taken)
            aggregates.mechanism = mechanisms if isinstance(mechanisms, str) else mechanisms.get(name, "auto")
            column = ValueColumn(name, aggregates.value(node))
        for name in _output_names(column):
            if name.casefold() in taken:
                raise QueryError(
                    f"two columns of the result would be called {name[:60]} "
                    "(each aggregate a comes with a_low and a_high); give one another name with AS"
                )
        taken |= {name.casefold() for name in _output_names(column)}
        columns.append(column)
    aggregates.mechanism = "auto"
    _check_mechanisms(mechanisms, columns)
    values = [column.value for column in columns if isinstance(column, ValueColumn)]
    if not any(measures_of(value) | statistics_of(value) for value in values):
        raise QueryError("the SELECT has no aggregate; add COUNT(*)")
    return tuple(columns)


def _check_mechanisms(mechanisms: Mapping[str, str] | str, columns: list[KeyColumn | ValueColumn]) -> None:
    """A mechanism that is asked for is used, or the question is refused."""
    values = {column.name: column.value for column in columns if isinstance(column, ValueColumn)}
    choosing = {name for name, value in values.items() if statistics_of(value)}
    asked = dict.fromkeys(choosing or values, mechanisms) if isinstance(mechanisms, str) else mechanisms
    for name, mechanism in asked.items():
        if name not in values:
            raise QueryError(f"mechanism names {name}, which is no column of the result; it has {', '.join(values)}")
        if name not in choosing and mechanism not in ("auto", "laplace"):
            raise QueryError(
                f"{name} has no mechanism {mechanism}: it takes integer noise; quantiles, SUM and AVG of one column "
                "have mechanisms to choose from"
            )


def _output_names(column: KeyColumn | ValueColumn) -> tuple[str, ...]:
    if isinstance(column, KeyColumn):
        return (column.name,)
    return column.name, f"{column.name}_low", f"{column.name}_high"


def _default_name(node: exp.Expr, taken: set[str]) -> str:
    """count, sum_income, avg_age_2: the aggregate, its column, and a number if that is taken."""
    inner = node.this if isinstance(node, exp.Filter) else node
    column = inner.find(exp.Column)
    word = inner.key.lower()
    name = f"{word}_{column.name}" if column is not None else word
    options = (name if place == 1 else f"{name}_{place}" for place in count(1))
    ends = ("", "_low", "_high")
    return next(option for option in options if not any(f"{option}{end}".casefold() in taken for end in ends))
