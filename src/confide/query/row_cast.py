"""Casts that change nothing, or what the policy lists: all others could fail for one row, or mean what a database does.

A number is the same as DOUBLE, and as an integer or decimal that holds all of its grid; a date is the same as DATE and
TIMESTAMP; declared texts that are all numbers are those numbers.
"""

import re
from fractions import Fraction
from typing import Final, NoReturn

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Text, Unbounded
from confide.query import number as arithmetic
from confide.query.literal import bare
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.tree import Among, Field, Number

_DOUBLES: Final = (exp.DType.DOUBLE, exp.DType.FLOAT)
_DECIMALS: Final = (exp.DType.DECIMAL, exp.DType.BIGDECIMAL)
_DATES: Final = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DATETIME, exp.DType.TIMESTAMPNTZ)
_DIGITS: Final = 3
"""Behind the point of a DECIMAL that does not say how many it has."""
_NUMERAL: Final = re.compile(r"[+-]?[0-9]{1,18}([.][0-9]{1,18})?")


def is_number_type(kind: exp.DataType) -> bool:
    return kind.this in (*_DOUBLES, *_DECIMALS) or kind.is_type(*exp.DataType.INTEGER_TYPES)


def is_text_type(kind: exp.DataType) -> bool:
    return bool(kind.is_type(*exp.DataType.TEXT_TYPES))


def is_date_type(kind: exp.DataType) -> bool:
    return kind.this in _DATES


def constant_in_cast(node: exp.Cast) -> exp.Expr | None:
    """The number that a cast of a constant is: CAST('12' AS INT), CAST(1 AS DOUBLE); None if it is none."""
    inner = bare(node.this)
    negative = isinstance(inner, exp.Neg)
    literal = bare(inner.this) if negative else inner
    if not isinstance(literal, exp.Literal) or not is_number_type(node.to):
        return None
    if not _NUMERAL.fullmatch(literal.name):
        raise QueryError(f"{shown(node)}: the constant is no number; write the number itself")
    number = exp.Literal.number(literal.name.lstrip("+"))
    if not _holds(node.to, Fraction(literal.name)):
        _refused(node, "another number")
    return exp.Neg(this=number) if negative else number


def cast_of(node: exp.Cast, subject: Field | Number, scope: Scope) -> Field | Number:
    """What a cast of a column or a number is, where that is the same for every row; or a refusal."""
    kind = node.to
    if isinstance(subject, Field):
        return _cast_field(node, subject, scope)
    if subject.span.date:
        if is_date_type(kind):
            return subject
        raise QueryError(f"{shown(node)}: a date stays a date; days since another are `a - b`, its parts YEAR(d), ...")
    if is_number_type(kind):
        if not _holds(kind, subject.span.grain):
            _refused(node, "other numbers")
        return subject
    if is_text_type(kind):
        raise QueryError(f"{shown(node)}: a number is compared, summed and grouped as it is; leave the cast out")
    raise QueryError(f"{shown(node)}: a number is not cast to that; the policy gives every column its type")


def _cast_field(node: exp.Cast, field: Field, scope: Scope) -> Field | Number:
    column, kind = field.column, node.to
    if is_text_type(kind) and (isinstance(column, Text) or (isinstance(column, Category) and column.kind is str)):
        return field
    if isinstance(column, Unbounded) and kind.this in _DOUBLES:
        return field
    if isinstance(column, Category) and kind.this is exp.DType.BOOLEAN and column.kind is bool:
        return field
    if isinstance(column, Category) and is_number_type(kind):
        scope.room.take(2 * len(column.values))
        numbers = [(value, _numeral(node, value)) for value in column.values]
        if not all(_holds(kind, number) for _, number in numbers):
            _refused(node, "other numbers")
        return arithmetic.choice(
            tuple((Among(field, (value,)), arithmetic.constant(number)) for value, number in numbers), None
        )
    raise QueryError(
        f"{shown(node)}: a cast could fail for one row; the policy gives every column its type, and declared values "
        "that are numbers are cast to numbers"
    )


def _numeral(node: exp.Cast, value: str | int | bool) -> Fraction:
    if not isinstance(value, str):
        return Fraction(value)
    if not _NUMERAL.fullmatch(value):
        raise QueryError(
            f"{shown(node)}: {value[:40]!r}, one of the declared values, is no number; write a CASE of them"
        )
    return Fraction(value)


def _holds(kind: exp.DataType, step: Fraction) -> bool:
    """Whether a type holds all multiples of a step."""
    if kind.this in _DOUBLES:
        return True
    if kind.this not in _DECIMALS:
        return step.denominator == 1
    told = [bare(part.this).name for part in kind.expressions]
    digits = int(told[1]) if len(told) > 1 else 0 if told else _DIGITS
    return (step * Fraction(10) ** digits).denominator == 1


def _refused(node: exp.Cast, what: str) -> NoReturn:
    raise QueryError(
        f"{shown(node)} could make {what} of it, and databases round differently; write ROUND(x), FLOOR(x) or TRUNC(x)"
    )
