"""What is known of a row of one group: by the values of its keys, and by columns that a join makes equal.

Each function takes facts of a row, and gives those of a row that also has a value or agrees with another; or None, if
there can be no such row.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor

from confide.policy import Category
from confide.query.row_facts import RowFacts, Value
from confide.query.scope import reading
from confide.query.tree import BinnedKey, DeclaredKey, Derived, Field, Key, Reading

Pair = tuple[Field, Field]


def valued(facts: RowFacts, column: Field, value: Value | None) -> RowFacts | None:
    """What is known where a column has a value, as its policy sees it: an index, if it is ranged."""
    facts.steps.take()
    subject = reading(column)
    if isinstance(subject, Field):
        return facts.where_field(subject, frozenset(() if value is None else (value,)), null=value is None)
    return facts.where_number(subject, *((1, 0) if value is None else (int(value), int(value))), null=value is None)


def agreeing(facts: RowFacts, pairs: Iterable[Pair]) -> RowFacts | None:
    """What is known where joined columns are equal, and so none of them NULL."""
    inside: RowFacts | None = facts
    for one, two in pairs:
        for first, second in ((one, two), (two, one)):
            inside = None if inside is None else _agreeing_with(inside, first, second)
    return inside


def _agreeing_with(facts: RowFacts, column: Field, other: Field) -> RowFacts | None:
    facts.steps.take()
    own, partner = reading(column), reading(other)
    if isinstance(own, Field):
        return facts.where_field(own, _equal_values(facts, own, partner), null=False)
    seen = facts.of_number(own)
    low, high = seen.low, seen.high
    if isinstance(partner, Reading):
        there, scale = facts.of_number(partner), partner.span.grain / own.span.grain
        low, high = ceil(there.low * scale), floor(there.high * scale)
    elif isinstance(partner.column, Category) and partner.column.kind is int:
        whole = [Fraction(value) / own.span.grain for value in facts.of_field(partner).values or ()]
        low, high = (ceil(min(whole)), floor(max(whole))) if whole else (1, 0)
    return facts.where_number(own, low, high, null=False)


def _equal_values(facts: RowFacts, own: Field, partner: Field | Reading) -> frozenset[Value] | None:
    """Which values a column may have beside its partner; None if any."""
    if not isinstance(own.column, Category):
        return None
    if isinstance(partner, Field):
        return facts.of_field(partner).values if isinstance(partner.column, Category) else None
    there, values = facts.of_number(partner), facts.of_field(own).values or frozenset()
    facts.steps.take(len(values))
    grain = partner.span.grain
    return frozenset(value for value in values if there.low * grain <= int(value) <= there.high * grain)


def candidates(facts: RowFacts, key: Key) -> Iterable[int]:
    """The places of a key's values that a row may have, by what is known of its column alone."""
    if isinstance(key, BinnedKey):
        seen = facts.of_number(key.number)
        yield from range(
            max(0, (seen.low - key.first) // key.width) if seen.some else 0,
            min(key.count, (seen.high - key.first) // key.width + 1) if seen.some else 0,
        )
        if key.nulls and seen.null:
            yield key.count
    elif isinstance(key, DeclaredKey):
        own = facts.of_field(key.field)
        facts.steps.take(len(key.values) // 8)
        for place, value in enumerate(key.values):
            if own.null if value is None else own.values is None or value in own.values:
                yield place


def at_place(facts: RowFacts, key: Key, place: int) -> RowFacts | None:
    if isinstance(key, BinnedKey):
        if place == key.count:
            return at_null(facts, key)
        low = key.first + place * key.width
        return facts.where_number(key.number, low, low + key.width - 1, null=False)
    assert isinstance(key, DeclaredKey)
    value = key.values[place]
    return at_null(facts, key) if value is None else facts.where_field(key.field, frozenset((value,)), null=False)


def at_null(facts: RowFacts, key: Key) -> RowFacts | None:
    if isinstance(key, BinnedKey):
        return facts.where_number(key.number, 1, 0, null=True)
    return facts.where_field(key.field, frozenset(), null=True)


def consistent(facts: RowFacts, key: Key) -> bool:
    """Whether what is known of a computed number, and of its columns, leaves it a value."""
    if not isinstance(key, BinnedKey) or isinstance(key.number, Reading | Derived):
        return True
    seen = facts.of_number(key.number)
    return seen.some or seen.null


def plain_keys(keys: tuple[Key, ...]) -> bool:
    """Whether a key's values are those of a column, each of which a row may have."""
    return all(isinstance(key, DeclaredKey) or isinstance(key.number, Reading | Derived) for key in keys)  # type: ignore[union-attr]
