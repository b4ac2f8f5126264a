"""What a released value is shown as: a number, a date, or a value of a key. Only numbers are computed with."""

from datetime import date, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query.key_value import key_kind, spelled
from confide.query.literal import bare, day, is_text
from confide.query.number import FIRST_DAY, LAST_DAY
from confide.query.parse import shown
from confide.query.question import Commonest, Dated, FixedNumber, Value

_EPOCH: Final = date(1970, 1, 1)
_DATES: Final = (exp.DType.DATE, exp.DType.TIMESTAMP)
_WRAPPED: Final = (exp.TsOrDsToDate, exp.TimeStrToTime)

Kind = Literal["text", "integer", "number", "boolean", "date"]


def released_kind(value: Value) -> Kind:
    """Of what kind a value is, as far as the text tells: a number may be whole."""
    if isinstance(value, Dated):
        return "date"
    return key_kind(value.key) if isinstance(value, Commonest) else "number"


def is_label(value: Value) -> bool:
    """Whether a value is shown as something else than the number that it is."""
    return isinstance(value, Dated | Commonest)


def label(value: Dated | Commonest, number: float, end: Literal["value", "low", "high"] = "value") -> Any:
    """What a number stands for. Between two days an end lies further out."""
    if isinstance(value, Commonest):
        return spelled(value.key, int(number))
    within = min(max(number, FIRST_DAY), LAST_DAY)
    return _EPOCH + timedelta(days=ceil(within) if end == "high" else floor(within))


def require_number(value: Value, node: exp.Expr) -> Value:
    """A value that is computed with."""
    if isinstance(value, Dated):
        raise QueryError(
            f"{shown(node)} is a date: of released dates there are differences in days, comparisons and ORDER BY; move "
            "the column inside, MAX(d + INTERVAL 1 MONTH)"
        )
    if isinstance(value, Commonest):
        raise QueryError(
            f"{shown(node)} is what MODE finds: it is shown as it is, and nothing is computed of it; ask it as a "
            "column by itself, and choose and sort rows by keys or numbers"
        )
    return value


def day_of(node: exp.Expr) -> FixedNumber | None:
    """The number of the day that a constant says; None if it says none."""
    inner = unwrapped(node)
    cast = isinstance(inner, exp.Cast) and inner.to.this == exp.DType.DATE and is_text(inner.this)
    if cast or (isinstance(inner, exp.Date) and not inner.expressions and inner.this is not None):
        return FixedNumber(Fraction(day(inner.this).index))
    return None


def day_in_quotes(node: exp.Expr) -> FixedNumber | None:
    """The same of a text, beside a date."""
    return FixedNumber(Fraction(day(node).index)) if is_text(node) else day_of(node)


def has_aggregate(node: exp.Expr) -> bool:
    return node.find(exp.AggFunc) is not None


def is_date_cast(node: exp.Expr) -> bool:
    """Whether a date is said to be one."""
    return isinstance(node, exp.Cast) and node.to.this in _DATES


def require_days(node: exp.DateDiff) -> None:
    """Between two released dates days are counted."""
    unit = node.args.get("unit")
    if unit is not None and bare(unit).name.upper().removesuffix("S") != "DAY":
        raise QueryError(f"{shown(node)}: between released dates days are counted; write MAX(d) - MIN(d)")


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Without parentheses, and what some dialects put around a date."""
    node = bare(node)
    while isinstance(node, _WRAPPED):
        node = bare(node.this)
    return node
