"""A question: what a checked query becomes. Everything in it follows from the text and the policy."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, assert_never

from confide.query.grid import Grid
from confide.query.tree import Key, Summary

Neighbours = Literal["add-remove", "replace-one"]


@dataclass(frozen=True, slots=True)
class Measure:
    """An integer to be noised in every group: Σ coefficient × cell, worth `grain` each.

    `l1` and `l2_squared` are its sensitivity over all groups together, under the policy's unit and neighbours.
    `floor` is the least it can be, if that is known, and `ceiling` the most; `typical` what a row might add to it, for
    forecasts only.
    """

    label: str
    terms: tuple[tuple[int, int], ...]
    grain: Fraction
    l1: int
    l2_squared: int
    floor: int | None
    typical: Fraction
    ceiling: int | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number that is released by a mechanism of its own, from a tally: its sensitivity is not a matter of one bound.

    Values are indices in [low, high] (both None if the column is unbounded), worth `grain` each. One unit has at most
    `rows` rows, over all groups together, that change under `neighbours`. On a grid its tally holds points of cells.
    """

    kind: Literal["quantile", "total", "mean", "mode"]
    tally: int
    q: Fraction | None
    low: int | None
    high: int | None
    grain: Fraction
    rows: int
    neighbours: Neighbours
    mechanism: str
    grid: Grid | None = None
    typical: tuple[Fraction, Fraction] | None = None
    """Indices between which most values are believed to lie, for forecasts only."""
    places: tuple[int, ...] = ()
    """Of a mode: the places of the values that a row may have. Only these are measured."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """The statistic itself."""

    statistic: int


@dataclass(frozen=True, slots=True)
class Dated:
    """A statistic of days, shown as a date."""

    inner: Estimated


@dataclass(frozen=True, slots=True)
class Commonest:
    """The value that most rows have: a place in the domain of a key, shown as the key's value."""

    statistic: int
    key: Key


@dataclass(frozen=True, slots=True)
class Measured:
    """The measure itself."""

    measure: int


@dataclass(frozen=True, slots=True)
class Mean:
    """centre + total/count, in [low, high] (indices on `grain`), from a total taken about `centre`."""

    total: int
    count: int
    centre: int
    low: int
    high: int
    grain: Fraction


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance or standard deviation from squares and total about `centre`, of values within `radius` of it."""

    squares: int
    total: int
    count: int
    radius: int
    grain: Fraction
    sample: bool
    root: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """One of two numbers: its total and, where needed, squares about `centre`; no value is further than `radius`."""

    total: int
    squares: int | None
    centre: int
    radius: int
    grain: Fraction


@dataclass(frozen=True, slots=True)
class Association:
    """How y goes with x over the rows where both are known, from their products, totals and squares about centres."""

    kind: Literal["corr", "r2", "covariance", "slope", "intercept"]
    x: Axis
    y: Axis
    products: int
    count: int
    sample: bool = False
    """Of a covariance: whether its divisor is one less than the number of rows."""


@dataclass(frozen=True, slots=True)
class Occurs:
    """1 where a count of rows is above 0, else 0; the other way round if `never`."""

    count: int
    never: bool


@dataclass(frozen=True, slots=True)
class FixedNumber:
    value: Fraction


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operation: Literal["+", "-", "*", "/"]
    left: "Value"
    right: "Value"


@dataclass(frozen=True, slots=True)
class Between:
    """What is known to lie between two numbers, if it exists: a mean is where the values are."""

    inner: "Value"
    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class Magnitude:
    inner: "Value"


@dataclass(frozen=True, slots=True)
class Rounded:
    inner: "Value"
    digits: int


Value = (
    Estimated
    | Dated
    | Commonest
    | Measured
    | Mean
    | Spread
    | Association
    | Occurs
    | FixedNumber
    | Arithmetic
    | Between
    | Magnitude
    | Rounded
)


@dataclass(frozen=True, slots=True)
class ShownKey:
    name: str
    key: int


@dataclass(frozen=True, slots=True)
class ShownValue:
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on released numbers; a key is compared, by = and <>, with a constant as the key is printed."""

    operation: Literal["<", "<=", "=", "<>", ">=", ">"]
    left: "Value | ShownKey"
    right: "Value | str | bool"


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Condition", ...]


Condition = Comparison | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Order:
    by: Value | ShownKey
    descending: bool


@dataclass(frozen=True, slots=True)
class Question:
    """The summary to fetch, what is measured on it, and the table that is made of the measurements."""

    summary: Summary
    measures: tuple[Measure, ...]
    statistics: tuple[Statistic, ...]
    threshold: Measure | None
    """Units per key, for keys of undeclared domain; `l1` is the most keys one unit can touch."""
    columns: tuple[ShownKey | ShownValue, ...]
    having: Condition | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    neighbours: Neighbours
    unit: str
    tables: tuple[str, ...]
    possible: tuple[int, ...] | None = None
    """The groups that can have rows, by their places in the product of the keys' domains; None if all can, or if how
    many there are is private. No other group is measured or shown.
    """
    counted: str = ""
    """Of each unit how many rows count, and what says so; empty where nothing is ever left out."""

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.summary.keys


def measures_of(value: Value) -> frozenset[int]:
    """The measures that a value is computed from."""
    match value:
        case Measured(measure):
            return frozenset((measure,))
        case Mean(total, count):
            return frozenset((total, count))
        case Spread(squares, total, count):
            return frozenset((squares, total, count))
        case Association():
            return frozenset(association_places(value))
        case Occurs(count):
            return frozenset((count,))
        case Arithmetic(_, left, right):
            return measures_of(left) | measures_of(right)
        case Between(inner) | Magnitude(inner) | Rounded(inner):
            return measures_of(inner)
        case Estimated() | Dated() | Commonest() | FixedNumber():
            return frozenset()
    assert_never(value)


def association_places(value: Association) -> tuple[int, ...]:
    """Products, then the totals and squares that are needed, then the count."""
    axes = (value.x.total, value.y.total, value.x.squares, value.y.squares)
    return (value.products, *(place for place in axes if place is not None), value.count)


def statistics_of(value: Value) -> frozenset[int]:
    """The statistics that a value is computed from."""
    match value:
        case Estimated(statistic) | Dated(Estimated(statistic)) | Commonest(statistic):
            return frozenset((statistic,))
        case Arithmetic(_, left, right):
            return statistics_of(left) | statistics_of(right)
        case Between(inner) | Magnitude(inner) | Rounded(inner):
            return statistics_of(inner)
        case Measured() | Mean() | Spread() | Association() | Occurs() | FixedNumber():
            return frozenset()
    assert_never(value)


class Shown(Protocol):
    """What a question shows of what is measured for it."""

    @property
    def keys(self) -> tuple[Key, ...]: ...
    @property
    def possible(self) -> tuple[int, ...] | None: ...
    @property
    def measures(self) -> tuple[Measure, ...]: ...
    @property
    def columns(self) -> tuple[ShownKey | ShownValue, ...]: ...
    @property
    def having(self) -> Condition | None: ...
    @property
    def order(self) -> tuple[Order, ...]: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def offset(self) -> int: ...


def all_values(question: Shown) -> tuple[Value, ...]:
    """Everything that is computed: the columns shown, and what HAVING and ORDER BY look at."""
    values: list[Value] = [column.value for column in question.columns if isinstance(column, ShownValue)]
    values += [order.by for order in question.order if not isinstance(order.by, ShownKey)]
    pending = [question.having] if question.having is not None else []
    while pending:
        match pending.pop():
            case AllOf(parts) | AnyOf(parts):
                pending += parts
            case Comparison(_, left, right):
                sides = (left, right)
                values += [side for side in sides if not isinstance(side, ShownKey | str | bool | int | float | None)]
            case other:
                assert_never(other)
    return tuple(values)
