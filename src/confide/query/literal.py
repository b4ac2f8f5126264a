"""Constants of a query: exact numbers, days and texts."""

from datetime import date
from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.tree import Constant, Span

_EPOCH = date(1970, 1, 1)


def constant(node: exp.Expr) -> Constant:
    if isinstance(node, exp.Neg):
        inner = constant(node.this)
        if inner.span.date:
            raise QueryError("a date has no sign")
        return arithmetic.constant(-inner.index * inner.span.grain)
    if isinstance(node, exp.Date) and node.this is not None and not node.expressions:
        return day(node.this)
    if isinstance(node, exp.Cast):
        if node.to.this not in (exp.DType.DATE, exp.DType.TIMESTAMP):
            raise QueryError(f"a cast to {node.to.sql()} is not answered; the policy gives every column its type")
        return day(node.this)
    if node.is_string:
        raise QueryError(
            f"the text '{node.name[:40]}' stands where a number is needed; a date is written DATE '2024-01-31'"
        )
    return arithmetic.constant(literal_number(node))


def literal_number(node: exp.Expr) -> Fraction:
    """An exact number from its digits."""
    negative = isinstance(node, exp.Neg)
    digits = node.this if negative else node
    if not isinstance(digits, exp.Literal) or digits.is_string or len(digits.name) > 40:
        raise QueryError(f"{node.sql()[:60]} is not a number of at most 40 digits")
    try:
        mantissa, _, exponent = digits.name.replace("_", "").lower().partition("e")
        if abs(int(exponent or 0)) > 30:
            raise QueryError(f"the number {digits.name} is too large or too small")
        value = Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
    except ValueError:
        raise QueryError(f"{digits.name} is not a number") from None
    return -value if negative else value


def day(node: exp.Expr) -> Constant:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise QueryError(
            "a date is written DATE '2024-01-31'; casts of columns are not needed, the policy gives their types"
        )
    try:
        days = (date.fromisoformat(node.name) - _EPOCH).days
    except ValueError:
        raise QueryError(f"'{node.name[:40]}' is not a date; write DATE '2024-01-31'") from None
    return Constant(days, Span(days, days, Fraction(1), nullable=False, date=True))


def is_literal(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal | exp.Boolean) or (
        isinstance(inner, exp.Neg) and isinstance(inner.this, exp.Literal)
    )


def is_text_literal(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal) and bool(inner.is_string)


def bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def text(node: exp.Expr) -> str:
    inner = bare(node)
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        raise QueryError(f"{node.sql()[:60]} stands where a text in quotes is needed")
    return inner.name
