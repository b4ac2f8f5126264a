"""Comparisons of columns that are not numbers: declared values and texts, with constants and with each other."""

from collections.abc import Callable, Iterator
from re import DOTALL, IGNORECASE, escape, fullmatch
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier, Text
from confide.query.literal import bare, literal_number, text
from confide.query.scope import nearest
from confide.query.tree import Always, Among, Both, Either, Field, Predicate, SameField, TextIs, TextLike

Operation = Literal["<", "<=", "=", "<>", ">=", ">"]
Value = str | int | bool

_HOLDS: dict[Operation, Callable[[Value, Value], bool]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
}
_LONGEST_PATTERN = 256


def joined(parts: tuple[Predicate, ...], every: bool) -> Predicate:
    kept = tuple(part for part in parts if part != Always(every))
    if Always(not every) in kept:
        return Always(not every)
    if not kept:
        return Always(every)
    if len(kept) == 1:
        return kept[0]
    return Both(kept) if every else Either(kept)


def compare_field(operation: Operation, field: Field, literals: list[exp.Expr]) -> Predicate:
    column = field.column
    if isinstance(column, Category):
        wanted = [_declared(column, literal) for literal in literals]
        holds = _HOLDS[operation]
        combine = all if operation == "<>" else any
        return Among(field, tuple(v for v in column.values if combine(holds(v, w) for w in wanted)))
    if isinstance(column, Text):
        if operation not in ("=", "<>"):
            raise QueryError(f"{column.name} is text: it is compared with = or <>, IN or LIKE")
        return TextIs(field, tuple(sorted({text(literal) for literal in literals})), operation == "<>")
    raise QueryError(not_a_number(field))


def _declared(column: Category, literal: exp.Expr) -> Value:
    """A constant that is one of the column's declared values."""
    value: Value
    inner = bare(literal)
    if isinstance(inner, exp.Literal) and inner.is_string:
        value = inner.name
    elif isinstance(inner, exp.Boolean):
        value = bool(inner.this)
    else:
        exact = literal_number(inner)
        value = int(exact) if exact.denominator == 1 else str(exact)
    if column.kind is not type(value) and not (column.kind is str and isinstance(value, str)):
        raise QueryError(f"{column.name} holds {column.kind.__name__} values, {literal.sql()[:60]} is not one")
    if value not in column.values:
        listed = [str(v) for v in column.values]
        raise QueryError(
            f"{column.name} has no value {literal.sql()[:60]}; {nearest(str(value), listed, 'the policy declares')}"
        )
    return value


def like(node: exp.Expr, subject: object, negated: bool) -> Predicate:
    pattern = bare(node.expression)
    if not isinstance(subject, Field) or not isinstance(subject.column, Text | Category):
        raise QueryError("LIKE is for columns of text")
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise QueryError("LIKE takes a constant pattern with % and _")
    if len(pattern.name) > _LONGEST_PATTERN or "\\" in pattern.name:
        raise QueryError(f"a LIKE pattern has at most {_LONGEST_PATTERN} characters and no backslash")
    ignore_case = isinstance(node, exp.ILike)
    if isinstance(subject.column, Category):
        fits = like_matcher(pattern.name, ignore_case)
        return Among(subject, tuple(v for v in subject.column.values if fits(str(v)) != negated))
    return TextLike(subject, pattern.name, negated, ignore_case)


def like_matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """SQL's LIKE, evaluated on public values."""
    parts = (".*" if c == "%" else "." if c == "_" else escape(c) for c in pattern)
    expression, flags = "".join(parts), DOTALL | (IGNORECASE if ignore_case else 0)
    return lambda value: fullmatch(expression, value, flags) is not None


def compare_fields(operation: Operation, first: Field, second: Field) -> Predicate:
    if operation not in ("=", "<>"):
        raise QueryError("two columns of text are compared with = or <>")
    if isinstance(first.column, Text) and isinstance(second.column, Text):
        return SameField(first, second, operation == "<>")
    if isinstance(first.column, Category) and isinstance(second.column, Category):
        pairs = tuple(_pairs(operation, first, second, first.column, second.column))
        if len(pairs) > 1_000:
            raise QueryError(f"{first.name} and {second.name} have too many values to be compared")
        return joined(pairs, every=False)
    raise QueryError(f"{first.name} and {second.name} are of different kinds and are not compared")


def _pairs(operation: Operation, first: Field, second: Field, left: Category, right: Category) -> Iterator[Predicate]:
    for value in left.values:
        others = tuple(other for other in right.values if _HOLDS[operation](other, value))
        if others:
            yield Both((Among(first, (value,)), Among(second, others)))


def not_a_number(field: Field) -> str:
    column = field.column
    if isinstance(column, Identifier):
        return f"{column.name} is an id: it joins tables and is counted, COUNT(DISTINCT {column.name}), but is not filtered, grouped or summed"
    if isinstance(column, Category):
        return f"{column.name} is a category, not a number; count it, or write CASE WHEN {column.name} = ... THEN 1 ELSE 0 END"
    if isinstance(column, Text):
        return f"{column.name} is text, not a number; count it, or compare it with = or LIKE"
    return f"{column.name} has no bounds in the policy (range: unbounded); give it a range to use it here"
