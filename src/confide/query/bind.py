"""From SQL to a `Question`, with public facts only: parse, resolve, bound."""

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Contribution, Policy, RowUnit
from confide.privacy.limits import MOST_COLUMNS, MOST_GROUPS, MOST_MEASURED
from confide.query.aggregate import Aggregates
from confide.query.clause import check_clauses, check_parts, whole_number
from confide.query.grouping import bind_keys, check_numbers, group_count
from confide.query.magnitude import check_magnitudes
from confide.query.parse import DIALECT, parse
from confide.query.possible_groups import possible_groups
from confide.query.question import Condition, Order, Question, ShownKey, ShownValue, Value, all_values, statistics_of
from confide.query.relation import bind_from, row_condition
from confide.query.released import Released, aliases_of
from confide.query.result_columns import result_columns
from confide.query.rewrite import plain_form
from confide.query.scope import Catalog, Scope
from confide.query.tree import Key, Summary, UnknownKey
from confide.query.typed_division import check_released_division


def bind(
    text: str | exp.Select,
    policy: Policy,
    catalog: Catalog,
    bounds: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    dialect: str = DIALECT,
    mechanisms: Mapping[str, str] | str = "auto",
    at_most: Contribution | None = None,
) -> Question:
    """The question that a SQL text asks under a policy; it may be parsed already, and in plain form.

    `bounds` limit computed columns of an inner query.

    `mechanisms` names a mechanism for all columns, or by column; `auto` leaves the choice to forecasts. `at_most` is
    what one unit may have in the whole of FROM, in place of what the policy's tables say.
    """
    try:
        select = text if isinstance(text, exp.Select) else plain_form(parse(text, dialect), policy, catalog)
        return _question(select, Scope(policy, catalog, at_most=at_most), bounds or {}, dialect, mechanisms)
    except RecursionError:
        raise QueryError("the query is nested too deep; write it flatter") from None


def bind_whole(table: str, policy: Policy, catalog: Catalog) -> Question:
    """How many rows a table has, as a question."""
    name = exp.Table(this=exp.to_identifier(table, quoted=True))
    return bind(exp.select(exp.Count(this=exp.Star()).as_("n")).from_(name), policy, catalog)


def _question(
    select: exp.Select,
    scope: Scope,
    bounds: Mapping[str, tuple[Fraction, Fraction]],
    dialect: str,
    mechanisms: Mapping[str, str] | str,
) -> Question:
    check_clauses(select)
    check_parts(select)
    if len(select.expressions) > MOST_COLUMNS:
        raise QueryError(
            f"the SELECT has {len(select.expressions)} columns, at most {MOST_COLUMNS} are answered at once"
        )
    source = bind_from(select, scope, bounds)
    clause = select.args.get("where")
    where = row_condition(clause, scope, source)
    scope.rows_pass(where)
    check_released_division(select, scope)
    keys = bind_keys(select, scope)
    source = source.under(keys)
    left = scope.room.left
    aggregates = Aggregates(scope, source, bool(keys), where)
    columns, condition, orders = _released(select, keys, aggregates, scope, dialect, mechanisms)
    if aggregates.shared:
        # Which sums are told by others is known when all are: then all is bound once more.
        scope.room.left = left
        aggregates = Aggregates(scope, source, bool(keys), where, aggregates.shared)
        columns, condition, orders = _released(select, keys, aggregates, scope, dialect, mechanisms)
    open_keys = any(isinstance(key, UnknownKey) for key in keys)
    threshold = aggregates.threshold() if open_keys else None
    summary = Summary(source.relation, where, source.bound, keys, aggregates.cells, aggregates.tallies, source.order_by)
    question = Question(
        summary=summary,
        measures=aggregates.measures,
        statistics=aggregates.statistics,
        threshold=threshold,
        columns=columns,
        having=condition,
        order=orders,
        limit=whole_number(select, "limit"),
        offset=whole_number(select, "offset") or 0,
        neighbours=source.neighbours,
        unit="row" if isinstance(scope.policy.unit, RowUnit) else str(scope.policy.unit),
        tables=tuple(dict.fromkeys((*source.tables, *scope.inner_tables))),
        possible=possible_groups(summary, condition, scope.catalog),
        counted=source.counted,
    )
    _check_released(question)
    return question


def _check_released(question: Question) -> None:
    """What is computed of what is released can be held, number by number and all together."""
    if len(question.measures) + len(question.statistics) > MOST_MEASURED:
        raise QueryError(
            f"the query measures more than {MOST_MEASURED} numbers in each group; ask them in several queries"
        )
    most = max((len(statistic.places) for statistic in question.statistics), default=0)
    if most * group_count(question) > MOST_GROUPS:
        raise QueryError(
            f"MODE of {most:,} values in {group_count(question):,} groups is more than {MOST_GROUPS:,} counts; use "
            "fewer groups, or MODE(BIN(x, width))"
        )
    values = all_values(question)
    measures = [(measure.grain, measure.l1) for measure in question.measures]
    check_magnitudes(values, measures, [statistic.grain for statistic in question.statistics])
    check_numbers(group_count(question), question.columns, values)


def _released(
    select: exp.Select,
    keys: tuple[Key, ...],
    aggregates: Aggregates,
    scope: Scope,
    dialect: str,
    mechanisms: Mapping[str, str] | str,
) -> tuple[tuple[ShownKey | ShownValue, ...], Condition | None, tuple[Order, ...]]:
    """The columns, HAVING and ORDER BY."""
    columns = _columns(select, keys, aggregates, scope, mechanisms)
    released = Released(aliases_of(select.expressions), columns, keys, aggregates, scope)
    having, order = select.args.get("having"), select.args.get("order")
    condition = released.condition(having.this) if having is not None else None
    return columns, condition, released.orders(order, dialect) if order is not None else ()


def _columns(
    select: exp.Select,
    keys: tuple[Key, ...],
    aggregates: Aggregates,
    scope: Scope,
    mechanisms: Mapping[str, str] | str,
) -> tuple[ShownKey | ShownValue, ...]:
    def value(node: exp.Expr, name: str) -> Value:
        aggregates.mechanism = mechanisms if isinstance(mechanisms, str) else mechanisms.get(name, "auto")
        return aggregates.value(node)

    columns = result_columns(select, keys, scope, value)
    aggregates.mechanism = "auto"
    _check_mechanisms(mechanisms, columns)
    return columns


def _check_mechanisms(mechanisms: Mapping[str, str] | str, columns: tuple[ShownKey | ShownValue, ...]) -> None:
    """A mechanism that is asked for is used, or the question is refused."""
    values = {column.name: column.value for column in columns if isinstance(column, ShownValue)}
    choosing = {name for name, value in values.items() if statistics_of(value)}
    asked = dict.fromkeys(choosing or values, mechanisms) if isinstance(mechanisms, str) else mechanisms
    for name, mechanism in asked.items():
        if name not in values:
            raise QueryError(
                f"mechanism names {str(name)[:60]}, which is no column of the result; it has {', '.join(values)}"
            )
        if name not in choosing and mechanism not in ("auto", "laplace"):
            raise QueryError(
                f"{name} has no mechanism {str(mechanism)[:60]}: it takes integer noise; quantiles, SUM and AVG of one "
                "column have mechanisms to choose from"
            )
