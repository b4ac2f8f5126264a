"""GROUP BY: keys whose domain is public before anything is read, or that a private threshold releases."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import Literal, Protocol, assert_never

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Date, Identifier, Text
from confide.policy import Number as NumberColumn
from confide.privacy.limits import MOST_GROUPS, MOST_KEYS, MOST_NUMBERS
from confide.query.computed_key import MOST_PLAIN, computed_key
from confide.query.expression import number
from confide.query.literal import bare, literal_number
from confide.query.parse import shown
from confide.query.question import ShownKey, ShownValue, Value
from confide.query.room import size
from confide.query.scope import Scope
from confide.query.tree import BinnedKey, DeclaredKey, Derived, Field, Key, Number, Reading, UnknownKey, fields_of

_FIRST_DAY = (date.min - date(1970, 1, 1)).days
MOST_STEPS = 100_000_000
"""Of arithmetic on released numbers, over all groups."""


def bind_keys(select: exp.Select, scope: Scope) -> tuple[Key, ...]:
    """The keys of GROUP BY, positions and aliases resolved."""
    clause = select.args.get("group")
    if clause is None:
        return ()
    extras = [name for name, value in clause.args.items() if value and name != "expressions"]
    if extras:
        raise QueryError(f"GROUP BY {extras[0].upper()} is not answered; list the keys")
    if len(clause.expressions) > MOST_KEYS:
        raise QueryError(f"GROUP BY has {len(clause.expressions):,} keys, at most {MOST_KEYS} are answered")
    nodes = [_resolve(node, select, scope) for node in clause.expressions]
    keys: list[Key] = []
    for node in nodes:
        key = bind_key(node, scope)
        if place_of(key, keys) is not None:
            raise QueryError(f"GROUP BY names {shown(node)} twice")
        keys.append(replace(key, name=_name(node, key)))
    check_groups([size for size in map(key_size, keys) if size is not None])
    return tuple(keys)


def check_groups(sizes: Sequence[int]) -> None:
    """Keys of so many values each do not make too many groups."""
    groups = prod(sizes)
    if groups > MOST_GROUPS:
        raise QueryError(
            f"the keys make {groups:,} groups, at most {MOST_GROUPS:,} are answered; use wider bins or fewer keys"
        )


def check_numbers(groups: int, columns: tuple[ShownKey | ShownValue, ...], values: tuple[Value, ...]) -> None:
    """An answer has not too many numbers, and computing them is not too long."""
    shown = groups * sum(1 if isinstance(column, ShownKey) else 3 for column in columns)
    if shown > MOST_NUMBERS or groups * sum(map(size, values)) > MOST_STEPS:
        raise QueryError(
            f"{groups:,} groups with {len(columns)} columns, each with what it is computed from, are too many numbers "
            "for one answer; use wider bins, fewer keys or fewer columns"
        )


def find_key(node: exp.Expr, keys: tuple[Key, ...], scope: Scope) -> int | None:
    """The place of the key that an expression stands for, however it is spelled."""
    inner = bare(node)
    if not keys or not ((isinstance(inner, exp.Column) and scope.holds(inner)) or _is_computed(inner)):
        return None
    if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
        subject = scope.field(inner)
        places = (place for place, key in enumerate(keys) if _subject(key) == subject)
        return next(places, None)
    if not any(isinstance(key, BinnedKey) for key in keys):
        return None
    try:
        return place_of(bind_key(inner, scope), keys)
    except QueryError:
        return None


def place_of(wanted: Key, keys: tuple[Key, ...] | list[Key]) -> int | None:
    unnamed = replace(wanted, name="")
    return next((place for place, key in enumerate(keys) if replace(key, name="") == unnamed), None)


def key_size(key: Key) -> int | None:
    """How many groups the key makes; None if that is private."""
    match key:
        case DeclaredKey():
            return len(key.values)
        case BinnedKey():
            return key.count + key.nulls
        case UnknownKey():
            return None
        case _:
            assert_never(key)


class Grouped(Protocol):
    """What has groups, of which only some may be possible."""

    @property
    def keys(self) -> tuple[Key, ...]: ...
    @property
    def possible(self) -> tuple[int, ...] | None: ...


def group_count(question: Grouped) -> int:
    """How many groups can have rows, over the keys of public domain."""
    if question.possible is not None:
        return len(question.possible)
    return prod(size for size in map(key_size, question.keys) if size is not None)


def group_places(question: Grouped) -> list[tuple[int, ...]]:
    """The places of every group that can have rows, one for each key; all domains are public."""
    sizes = [key_size(key) or 0 for key in question.keys]
    if question.possible is None:
        return list(product(*(range(size) for size in sizes)))
    return [_unravelled(place, sizes) for place in question.possible]


def _unravelled(place: int, sizes: Sequence[int]) -> tuple[int, ...]:
    found, left = [], place
    for count in reversed(sizes):
        left, own = divmod(left, count)
        found.append(own)
    return tuple(reversed(found))


def _subject(key: Key) -> Field | Number | None:
    if isinstance(key, BinnedKey):
        return key.number if key.width == 1 and isinstance(key.number, Reading | Derived) else None
    return key.field


def _is_computed(node: exp.Expr) -> bool:
    """An expression of columns and no aggregates."""
    if _is_bin(node):
        return True
    return not isinstance(node, exp.Column) and not any(isinstance(own, exp.AggFunc | exp.Query) for own in node.walk())


def _is_bin(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "BIN"


def _resolve(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """A position, or an alias that is not also a column, becomes the expression of the SELECT it stands for."""
    inner = bare(node)
    if isinstance(inner, exp.Literal) and not inner.is_string:
        place = literal_number(inner)
        if place.denominator != 1 or not 1 <= place <= len(select.expressions):
            raise QueryError(
                f"GROUP BY {inner.name}: the SELECT has {len(select.expressions)} columns; write one of their names"
            )
        chosen: exp.Expr = select.expressions[int(place) - 1]
        return bare(chosen.unalias())
    if isinstance(inner, exp.Column) and not inner.table and not scope.holds(inner):
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.casefold() == inner.name.casefold():
                return bare(item.this)
    return inner


def _name(node: exp.Expr, key: Key) -> str:
    subject = _subject(key)
    if isinstance(subject, Field | Reading):
        return subject.name if isinstance(subject, Field) else subject.field.name
    inner = node.find(exp.Column)
    name = "key" if inner is None else inner.name
    return f"{name}_bin" if _is_bin(node) else name


def bind_key(node: exp.Expr, scope: Scope) -> Key:
    """What one expression of GROUP BY is, unnamed."""
    if isinstance(node, exp.Anonymous) and _is_bin(node):
        return _binned(node, scope)
    if not isinstance(node, exp.Column):
        key = computed_key(node, scope)
        return replace(key, nulls=_nulls(key.number))
    subject = scope.field(node)
    if isinstance(subject, Reading | Derived):
        steps = subject.span.high - subject.span.low + 1
        if steps > MOST_PLAIN:
            raise QueryError(f"{node.name} has {steps:,} possible values; group by BIN({node.name}, width)")
        return BinnedKey("", subject, subject.span.low, 1, steps, _kind(subject), _nulls(subject))
    column = subject.column
    if isinstance(column, Category):
        return DeclaredKey("", subject, (*column.values, None) if column.nulls else column.values)
    if isinstance(column, Text):
        if scope.policy.budget.pure:
            raise QueryError(
                f"the values of {column.name} are not public, and a pure budget cannot release them; "
                "declare its `values` in the policy, or give the budget a delta"
            )
        return UnknownKey("", subject, column.nulls)
    if isinstance(column, Identifier):
        raise QueryError(
            f"{column.name} is an id: a group of one unit would show that unit; group by a declared column"
        )
    raise QueryError(
        f"{column.name} has no bounds in the policy; give it a range to group by BIN({column.name}, width)"
    )


def _binned(node: exp.Anonymous, scope: Scope) -> Key:
    if not 1 <= len(node.expressions) <= 2:
        raise QueryError("BIN takes a ranged column and a width: BIN(age, 10)")
    subject = number(node.expressions[0], scope)
    return bin_key(subject, literal_number(node.expressions[1]) if len(node.expressions) == 2 else None)


def bin_key(subject: Number, width: Fraction | None) -> BinnedKey:
    """The bins of a number, of a width in its units, or of that which the policy declares; or a refusal."""
    span = subject.span
    width = _default_width(subject) if width is None else width
    steps = width / span.grain
    if steps.denominator != 1 or steps < 1:
        raise QueryError(f"the width {width} of BIN is not a positive multiple of the grain {span.grain}")
    if steps > span.high - span.low + 1:
        raise QueryError(f"the width {width} of BIN is wider than the whole range; use a narrower one, or no GROUP BY")
    step = int(steps)
    first = floor(Fraction(span.low, step)) * step
    if span.date and first < _FIRST_DAY:
        raise QueryError(
            f"bins of {step:,} days would begin before the year 1, which no date says; use a narrower width"
        )
    return BinnedKey("", subject, first, step, (span.high - first) // step + 1, _kind(subject), _nulls(subject))


def _nulls(subject: Number) -> bool:
    """Whether NULL is a group of its own: the policy says so of a column that may make the number NULL."""
    if not subject.span.nullable:
        return False
    columns = (field.column for field in fields_of(subject) if isinstance(field, Field))
    return any(isinstance(column, NumberColumn | Date | Category | Text) and column.nulls for column in columns)


def _kind(subject: Number) -> Literal["number", "date"]:
    return "date" if subject.span.date else "number"


def _default_width(subject: Number) -> Fraction:
    column = subject.field.column if isinstance(subject, Reading) else None
    if isinstance(column, NumberColumn | Date) and column.bins is not None:
        return column.bins
    raise QueryError("BIN needs a width: BIN(age, 10); or declare `bins` for the column in the policy")
