"""Constants of a query: exact numbers, days and texts."""

from datetime import date
from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.parse import shown
from confide.query.tree import Constant, Span

_EPOCH = date(1970, 1, 1)
_MOST_DIGITS = 40
_LARGEST_EXPONENT = 30


def constant(node: exp.Expr) -> Constant:
    """A number or a day, as a node of our tree."""
    if isinstance(node, exp.Date) and node.this is not None and not node.expressions:
        return day(node.this)
    if isinstance(node, exp.Cast):
        if node.to.this not in (exp.DType.DATE, exp.DType.TIMESTAMP):
            raise QueryError(f"{shown(node)}: casts are not answered; the policy gives every column its type")
        return day(node.this)
    inner = bare(node)
    if isinstance(inner, exp.Literal) and inner.is_string:
        raise QueryError(
            f"the text '{inner.name[:40]}' stands where a number is needed; a date is written DATE '2024-01-31'"
        )
    return arithmetic.constant(literal_number(node))


def literal_number(node: exp.Expr) -> Fraction:
    """An exact number from its digits."""
    negative, digits = False, bare(node)
    while isinstance(digits, exp.Neg):
        negative, digits = not negative, bare(digits.this)
    if not isinstance(digits, exp.Literal) or digits.is_string or len(digits.name) > _MOST_DIGITS:
        raise QueryError(f"{shown(node)} is not a plain number of at most {_MOST_DIGITS} digits")
    try:
        mantissa, sign, exponent = digits.name.replace("_", "").lower().partition("e")
        power = int(exponent) if sign else 0
        if abs(power) > _LARGEST_EXPONENT:
            raise QueryError(f"the number {digits.name} is too large or too small")
        value = Fraction(mantissa) * Fraction(10) ** power
    except ValueError:
        raise QueryError(f"{shown(digits)} is not a number") from None
    return -value if negative else value


def day(node: exp.Expr) -> Constant:
    inner = bare(node)
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        raise QueryError(
            "a date is written DATE '2024-01-31'; casts of columns are not needed, the policy gives their types"
        )
    try:
        days = (date.fromisoformat(inner.name) - _EPOCH).days
    except ValueError:
        raise QueryError(f"'{inner.name[:40]}' is not a date; write DATE '2024-01-31'") from None
    return Constant(days, Span(days, days, Fraction(1), nullable=False, date=True))


def text(node: exp.Expr) -> str:
    inner = bare(node)
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        raise QueryError(f"{shown(node)} stands where a text in quotes is needed")
    return inner.name


def is_literal(node: exp.Expr) -> bool:
    inner = bare(node)
    while isinstance(inner, exp.Neg):
        inner = bare(inner.this)
    return isinstance(inner, exp.Literal | exp.Boolean)


def is_text(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal) and bool(inner.is_string)


def bare(node: exp.Expr) -> exp.Expr:
    """Without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
