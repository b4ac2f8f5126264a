"""The columns of a result, and their names: every output name is there once, the ends of intervals included."""

from collections.abc import Callable
from itertools import count

from sqlglot import exp

from confide.errors import QueryError
from confide.query.grouping import find_key
from confide.query.question import ShownKey, ShownValue, Value, measures_of, statistics_of
from confide.query.scope import Scope
from confide.query.tree import Key

_WORDS: dict[type[exp.Expr], str] = {
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
}
"""What an aggregate is called in the name of a column; others are called as the parser does."""


def result_columns(
    select: exp.Select, keys: tuple[Key, ...], scope: Scope, value: Callable[[exp.Expr, str], Value]
) -> tuple[ShownKey | ShownValue, ...]:
    """Of every item of the SELECT its column; `value` reads an expression of aggregates, given its column's name."""
    columns: list[ShownKey | ShownValue] = []
    taken: set[str] = set()
    for item in select.expressions:
        node = item.unalias()
        place = find_key(node, keys, scope)
        if place is not None:
            column: ShownKey | ShownValue = ShownKey(item.alias or keys[place].name, place)
        else:
            name = item.alias or _default_name(node, taken)
            column = ShownValue(name, value(node, name))
        for name in _output_names(column):
            if name.casefold() in taken:
                raise QueryError(
                    f"two columns of the result would be called {name[:60]} "
                    "(each aggregate a comes with a_low and a_high); give one another name with AS"
                )
        taken |= {name.casefold() for name in _output_names(column)}
        columns.append(column)
    values = [column.value for column in columns if isinstance(column, ShownValue)]
    if not any(measures_of(value) | statistics_of(value) for value in values):
        raise QueryError("the SELECT has no aggregate; add COUNT(*)")
    return tuple(columns)


def _output_names(column: ShownKey | ShownValue) -> tuple[str, ...]:
    if isinstance(column, ShownKey):
        return (column.name,)
    return column.name, f"{column.name}_low", f"{column.name}_high"


def _default_name(node: exp.Expr, taken: set[str]) -> str:
    """count, sum_income, avg_age_2: the aggregate, its column, and a number if that is taken."""
    inner = node.this if isinstance(node, exp.Filter) else node
    column = inner.find(exp.Column)
    word = _WORDS.get(type(inner), inner.key).lower()
    name = f"{word}_{column.name}" if column is not None else word
    options = (name if place == 1 else f"{name}_{place}" for place in count(1))
    ends = ("", "_low", "_high")
    return next(option for option in options if not any(f"{option}{end}".casefold() in taken for end in ends))
