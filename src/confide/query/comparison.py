"""Comparisons of columns that are not numbers: declared values and texts, with constants and with each other."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier, Text
from confide.privacy.limits import LONGEST_PATTERN, MOST_WILDCARDS
from confide.query.literal import bare, literal_number, text
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.spelling import nearest
from confide.query.tree import (
    Always,
    Among,
    Both,
    Compare,
    Constant,
    Either,
    Field,
    OneOf,
    Predicate,
    SameField,
    TextIs,
    TextLike,
    TextOrder,
)

Operation = Literal["<", "<=", "=", "<>", ">=", ">"]
Value = str | int | bool

HOLDS: dict[Operation, Callable[[Value, Value], bool]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
}
_MOST_PAIRS = 1_000
_MATCHED_PER_PART = 4
"""Declared values tried with a pattern that count as one part: each takes longer than to list it."""


def joined(parts: tuple[Predicate, ...], every: bool) -> Predicate:
    """AND or OR of predicates, without what decides nothing."""
    kept = tuple(dict.fromkeys(part for part in parts if part != Always(every)))
    if Always(not every) in kept:
        return Always(not every)
    if not kept:
        return Always(every)
    if len(kept) == 1:
        return kept[0]
    listed = _listed(kept, every)
    if listed is not None:
        return listed
    return Both(kept) if every else Either(kept)


def _listed(parts: tuple[Predicate, ...], every: bool) -> OneOf | None:
    """x = 1 OR x = 2 OR ... as one list, and x <> 1 AND x <> 2 as its opposite."""
    operation, first = "<>" if every else "=", parts[0]
    if not isinstance(first, Compare):
        return None
    places = []
    for part in parts:
        if not isinstance(part, Compare) or part.operation != operation or not isinstance(part.right, Constant):
            return None
        if part.left is not first.left and part.left != first.left:
            return None
        places.append(part.right.index)
    return OneOf(first.left, tuple(sorted(places)), every)


def compare_field(operation: Operation, field: Field, literals: Sequence[exp.Expr], scope: Scope) -> Predicate:
    """A column against a constant, or (with = and <>) against any and all of several."""
    column = field.column
    if any(isinstance(bare(literal), exp.Null) for literal in literals):
        raise QueryError(f"nothing equals NULL; write {column.name} IS NULL")
    if isinstance(column, Category):
        if operation in ("=", "<>"):
            places = scope.places(column)
            listed = {places[declared(column, literal, scope)] for literal in literals}
            chosen = sorted(listed) if operation == "=" else _others(len(column.values), listed, scope)
            return Among(field, tuple(column.values[place] for place in chosen))
        limit, holds = _of_kind(column, literals[0]), HOLDS[operation]
        scope.room.take_listed(len(column.values))
        return Among(field, tuple(v for v in column.values if holds(v, limit)))
    if isinstance(column, Text):
        if operation not in ("=", "<>"):
            return TextOrder(field, operation, text(literals[0]))
        return TextIs(field, tuple(sorted({text(literal) for literal in literals})), operation == "<>")
    raise QueryError(not_a_number(field))


def _others(count: int, listed: set[int], scope: Scope) -> Iterator[int]:
    scope.room.take_listed(count)
    return (place for place in range(count) if place not in listed)


def declared(column: Category, literal: exp.Expr, scope: Scope) -> Value:
    """A constant that is one of the column's declared values."""
    value = _of_kind(column, literal)
    if value not in scope.places(column):
        listed = [str(v) for v in column.values]
        raise QueryError(
            f"{column.name} has no value {shown(literal)}; {nearest(str(value), listed, 'the policy declares')}"
        )
    return value


def _of_kind(column: Category, literal: exp.Expr) -> Value:
    value: Value
    inner = bare(literal)
    if isinstance(inner, exp.Literal) and inner.is_string:
        value = inner.name
    elif isinstance(inner, exp.Boolean):
        value = bool(inner.this)
    else:
        exact = literal_number(inner)
        if exact.denominator != 1:
            raise QueryError(f"{column.name} holds {_KINDS[column.kind]}; {shown(literal)} is not one of them")
        value = int(exact)
    if column.kind is not type(value):
        raise QueryError(f"{column.name} holds {_KINDS[column.kind]}; {shown(literal)} is not one of them")
    return value


_KINDS: dict[type[Value], str] = {str: "texts in quotes", int: "whole numbers", bool: "TRUE and FALSE"}


def like(node: exp.Like | exp.ILike, subject: object, negated: bool, scope: Scope) -> Predicate:
    if isinstance(subject, Field) and isinstance(subject.column, Identifier):
        raise QueryError(not_a_number(subject))
    if not isinstance(subject, Field) or not isinstance(subject.column, Text | Category):
        raise QueryError("LIKE is for columns of text")
    wanted, ignore_case = like_pattern(node), isinstance(node, exp.ILike)
    if isinstance(subject.column, Category):
        scope.room.take(1 + len(subject.column.values) // _MATCHED_PER_PART)
        values = (v for v in subject.column.values if matches(wanted, str(v), ignore_case) != negated)
        return Among(subject, tuple(values))
    return TextLike(subject, wanted, negated, ignore_case)


def like_pattern(node: exp.Like | exp.ILike) -> str:
    """The pattern of a LIKE, a row of % as one."""
    pattern = bare(node.expression)
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise QueryError("LIKE takes a constant pattern with % and _")
    if len(pattern.name) > LONGEST_PATTERN or "\\" in pattern.name:
        raise QueryError(f"a LIKE pattern has at most {LONGEST_PATTERN} characters and no backslash")
    wanted = pattern.name
    while "%%" in wanted:
        wanted = wanted.replace("%%", "%")
    if wanted.count("%") > MOST_WILDCARDS:
        raise QueryError(f"a LIKE pattern has at most {MOST_WILDCARDS} %; use several LIKEs joined with AND")
    return wanted


def matches(pattern: str, value: str, ignore_case: bool) -> bool:
    """SQL's LIKE on a public value, in time of at most the product of both lengths: what stands between two % is taken
    where it is found first, and never elsewhere.
    """
    if ignore_case:
        pattern, value = lowered(pattern), lowered(value)
    first, *rest = pattern.split("%")
    if not rest:
        return len(first) == len(value) and _found(first, value, 0, len(value)) == 0
    *between, last = rest
    place, end = len(first), len(value) - len(last)
    if place > end or _found(first, value, 0, place) != 0 or _found(last, value, end, len(value)) != end:
        return False
    for part in between:
        found = _found(part, value, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _found(part: str, value: str, place: int, end: int) -> int:
    """Where a part of a pattern is found first in a stretch of a text, or -1; _ is any letter."""
    if "_" not in part:
        return value.find(part, place, end)
    letters = "".join("." if letter == "_" else re.escape(letter) for letter in part)
    found = re.compile(letters, re.DOTALL).search(value, place, end)
    return -1 if found is None else found.start()


def lowered(text: str) -> str:
    """In lower case letter by letter, as databases do it: not by where a Σ stands, and İ is one letter."""
    return "".join(letter.lower() for letter in text.replace("İ", "i"))


def compare_fields(operation: Operation, first: Field, second: Field, scope: Scope) -> Predicate:
    if operation not in ("=", "<>"):
        raise QueryError(f"{first.name} and {second.name} are not numbers: they are compared with = or <>")
    if all(isinstance(field.column, Text | Identifier) for field in (first, second)):
        return SameField(first, second, operation == "<>")
    if isinstance(first.column, Category) and isinstance(second.column, Category):
        left, right = first.column, second.column
        if left.kind is right.kind:
            pairs = tuple(_pairs(operation == "=", first, second, left, right))
            scope.room.take(3 * len(pairs))
            return joined(pairs, every=False)
    raise QueryError(f"{first.name} and {second.name} are of different kinds and are not compared")


def _pairs(equal: bool, first: Field, second: Field, left: Category, right: Category) -> Iterator[Predicate]:
    known = set(right.values)
    if len(left.values) * (1 if equal else len(known)) > _MOST_PAIRS:
        raise QueryError(f"{left.name} and {right.name} have too many values to be compared")
    for value in left.values:
        others = ((value,) if value in known else ()) if equal else tuple(v for v in right.values if v != value)
        if others:
            yield Both((Among(first, (value,)), Among(second, others)))


def not_a_number(field: Field) -> str:
    column = field.column
    if isinstance(column, Identifier):
        return (
            f"{column.name} is an id: it joins tables and is counted, COUNT(DISTINCT {column.name}), "
            "but is not filtered, grouped or summed"
        )
    if isinstance(column, Category):
        return (
            f"{column.name} is a category, not a number; count it, "
            f"or write CASE WHEN {column.name} = ... THEN 1 ELSE 0 END"
        )
    if isinstance(column, Text):
        return f"{column.name} is text, not a number; count it, or compare it with = or LIKE"
    return f"{column.name} has no bounds in the policy (range: unbounded); give it a range to use it here"
