"""What is known of one row before it is read: which values its columns may have, and which conditions it may pass.

Facts are supersets: a row of any data has values among them. `passing` asks whether a condition can hold, and gives
what is known where it does; None means that it holds for no row. Predicates hold no negation, so a condition that is
unknown is one that does not pass, as in SQL. What is not understood changes nothing, so facts stay supersets.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

from confide.policy import Category
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    Both,
    Choice,
    Combined,
    Compare,
    Constant,
    CurveValue,
    Derived,
    Divided,
    Either,
    Field,
    FirstKnown,
    Floored,
    Known,
    Matched,
    Number,
    OneOf,
    PartOfText,
    Predicate,
    Reading,
    SameField,
    Scaled,
    TextHolds,
    TextIs,
    TextLength,
    TextLike,
    TextOrder,
)

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class ValueSet:
    """One of these values, or NULL if `null`; `values` None is any value."""

    values: frozenset[Value] | None
    null: bool

    @property
    def some(self) -> bool:
        return self.values is None or bool(self.values)


@dataclass(frozen=True, slots=True)
class IndexRange:
    """An index from `low` to `high`, none if these are reversed, or NULL if `null`."""

    low: int
    high: int
    null: bool

    @property
    def some(self) -> bool:
        return self.low <= self.high


_NOTHING = IndexRange(1, 0, null=False)


class TooLongError(Exception):
    """What is asked takes more steps than it is worth."""


@dataclass(slots=True)
class StepsLeft:
    """How many more steps may be taken."""

    left: int

    def take(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooLongError


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What the columns and numbers of a row may be, where that is less than their policy says."""

    steps: StepsLeft
    fields: Mapping[Field, ValueSet] = field(default_factory=dict)
    numbers: Mapping[Number, IndexRange] = field(default_factory=dict)
    sets: dict[int, frozenset[Value]] = field(default_factory=dict)
    """Lists of values as sets, by the lists' addresses: made once for all that is asked of one question."""

    # --- what is known ------------------------------------------------------------------------------------------------

    def of_field(self, column: Field) -> ValueSet:
        known = self.fields.get(column)
        if known is not None:
            return known
        declared = column.column
        return ValueSet(self._set(declared.values) if isinstance(declared, Category) else None, null=True)

    def _set(self, values: tuple[Value, ...]) -> frozenset[Value]:
        if id(values) not in self.sets:
            self.sets[id(values)] = frozenset(values)
        return self.sets[id(values)]

    def of_number(self, node: Number) -> IndexRange:
        self.steps.take()
        found = self._computed(node)
        known = self.numbers.get(node) if self.numbers and _short(node) else None
        return found if known is None else _both(found, known)

    def _computed(self, node: Number) -> IndexRange:
        match node:
            case Constant(index):
                return IndexRange(index, index, null=False)
            case Reading(span=span) | Derived(span=span) | TextLength(span=span):
                return IndexRange(span.low, span.high, span.nullable)
            case Scaled(inner, factor, offset):
                own = self.of_number(inner)
                low, high = sorted((own.low * factor + offset, own.high * factor + offset))
                return IndexRange(low, high, own.null) if own.some else own
            case Combined("least" | "greatest" as operation, left, right):
                return _extreme(operation, self.of_number(left), self.of_number(right))
            case Combined(operation, left, right):
                one, two = self.of_number(left), self.of_number(right)
                null = one.null or two.null
                if not one.some or not two.some:
                    return IndexRange(1, 0, null)
                if operation == "add":
                    return IndexRange(one.low + two.low, one.high + two.high, null)
                corners = [a * b for a in (one.low, one.high) for b in (two.low, two.high)]
                least = 0 if left == right and one.low <= 0 <= one.high else min(corners)
                return IndexRange(max(least, 0) if left == right else least, max(corners), null)
            case Absolute(inner):
                own = self.of_number(inner)
                ends = sorted((abs(own.low), abs(own.high)))
                return IndexRange(0 if own.low <= 0 <= own.high else ends[0], ends[1], own.null) if own.some else own
            case Floored(inner, divisor):
                own = self.of_number(inner)
                return IndexRange(own.low // divisor, own.high // divisor, own.null) if own.some else own
            case Divided(left, right, span):
                null = self.of_number(left).null or self.of_number(right).null
                return IndexRange(span.low, span.high, null)
            case CurveValue(inner=inner, span=span):
                return IndexRange(span.low, span.high, self.of_number(inner).null)
            case Choice(branches, otherwise):
                return self._choice(branches, otherwise)
            case FirstKnown(options):
                found = IndexRange(1, 0, null=True)
                for option in options:
                    own = self.of_number(option)
                    found = IndexRange(*_hull(found, own), own.null)
                    if not own.null:
                        break
                return found
            case _:
                assert_never(node)

    def _choice(self, branches: tuple[tuple[Predicate, Number], ...], otherwise: Number | None) -> IndexRange:
        found = _NOTHING
        for condition, value in branches:
            inside = self.passing(condition)
            if inside is not None:
                own = inside.of_number(value)
                found = IndexRange(*_hull(found, own), found.null or own.null)
                if self.surely(condition):
                    return found
        last = IndexRange(1, 0, null=True) if otherwise is None else self.of_number(otherwise)
        return IndexRange(*_hull(found, last), found.null or last.null)

    # --- what else is known where something holds ---------------------------------------------------------------------

    def where_field(self, column: Field, values: frozenset[Value] | None, null: bool) -> "RowFacts | None":
        """The column is one of the values (None: has any), or NULL if that is allowed."""
        own = self.of_field(column)
        kept = own.values
        if values is not None:
            kept = values if own.values is None else own.values & values
            self.steps.take(len(kept) // 32)
        left = ValueSet(kept, own.null and null)
        if not left.some and not left.null:
            return None
        return self if left == own else RowFacts(self.steps, {**self.fields, column: left}, self.numbers, self.sets)

    def where_number(self, node: Number, low: int, high: int, null: bool) -> "RowFacts | None":
        """The number is from `low` to `high`, or NULL if that is allowed."""
        own = self.of_number(node)
        left = _both(own, IndexRange(low, high, null))
        if not left.some and not left.null:
            return None
        if left == own or isinstance(node, Constant):
            return self
        if isinstance(node, Scaled) and node.factor:
            ends = (
                [low - node.offset, high - node.offset] if node.factor > 0 else [node.offset - high, node.offset - low]
            )
            size = abs(node.factor)
            return self.where_number(node.inner, -(-ends[0] // size), ends[1] // size, null)
        if not _short(node):
            return self
        return RowFacts(self.steps, self.fields, {**self.numbers, node: left}, self.sets)

    def passing(self, node: Predicate) -> "RowFacts | None":
        """What is known of a row that passes; None if none can."""
        self.steps.take()
        match node:
            case Always(holds):
                return self if holds else None
            case Both(parts):
                return self.passing_all(parts)
            case Either(parts):
                found = [facts for part in parts if (facts := self.passing(part)) is not None]
                return self._either(found) if found else None
            case Among(column, values):
                return self.where_field(column, self._set(values), null=False)
            case TextIs(column, values, negated):
                return self.where_field(_field(column), None, null=False) if values or negated else None
            case TextLike(column) | TextOrder(column) | TextHolds(column):
                return self.where_field(_field(column), None, null=False)
            case SameField(left, right):
                one = self.where_field(left, None, null=False)
                return None if one is None else one.where_field(right, None, null=False)
            case Known(subject, negated):
                return self._where_known(subject, negated)
            case Matched():
                return self
            case OneOf(subject, indices, negated):
                return self._where_listed(subject, indices, negated)
            case Compare():
                return self._compared(node)
            case _:
                assert_never(node)

    def passing_all(self, parts: Iterable[Predicate]) -> "RowFacts | None":
        """What is known of a row that passes all of these; each may tell more once the others are known."""
        facts, listed = self, list(parts)
        for _ in range(2):
            for part in listed:
                narrower = facts.passing(part)
                if narrower is None:
                    return None
                facts = narrower
        return facts

    def _where_known(self, subject: Field | Number, negated: bool) -> "RowFacts | None":
        if isinstance(subject, Field):
            return self.where_field(subject, frozenset() if negated else None, null=negated)
        own = self.of_number(subject)
        return self.where_number(subject, *((1, 0) if negated else (own.low, own.high)), null=negated)

    def _where_listed(self, subject: Number, indices: tuple[int, ...], negated: bool) -> "RowFacts | None":
        own = self.of_number(subject)
        first, last = bisect_left(indices, own.low), bisect_right(indices, own.high)
        if negated:
            low, high = own.low, own.high
            while first < last and indices[first] == low:
                first, low = first + 1, low + 1
            while first < last and indices[last - 1] == high:
                last, high = last - 1, high - 1
            return self.where_number(subject, low, high, null=False)
        return None if first >= last else self.where_number(subject, indices[first], indices[last - 1], null=False)

    def _compared(self, node: Compare) -> "RowFacts | None":
        left, right = self.of_number(node.left), self.of_number(node.right)
        if not left.some or not right.some:
            return None
        one, two = _ends(node.operation, left, right)
        facts = self.where_number(node.left, *one, null=False)
        return None if facts is None else facts.where_number(node.right, *two, null=False)

    def _either(self, found: list["RowFacts"]) -> "RowFacts":
        """What is known whichever of these is true."""
        first, *others = found
        if not others:
            return first
        fields = {
            column: reduce(_either_field, (facts.of_field(column) for facts in found))
            for column in first.fields
            if all(column in facts.fields for facts in others)
        }
        numbers = {
            node: reduce(_either_number, (facts.of_number(node) for facts in found))
            for node in first.numbers
            if all(node in facts.numbers for facts in others)
        }
        return RowFacts(self.steps, {**self.fields, **fields}, {**self.numbers, **numbers}, self.sets)

    # --- what holds for every row -------------------------------------------------------------------------------------

    def surely(self, node: Predicate) -> bool:
        """Whether a condition holds for every row of which this is known. A no says nothing."""
        self.steps.take()
        match node:
            case Always(holds):
                return holds
            case Both(parts):
                return all(self.surely(part) for part in parts)
            case Either(parts):
                return any(self.surely(part) for part in parts)
            case Among(column, values):
                own = self.of_field(column)
                return own.values is not None and not own.null and own.values <= self._set(values)
            case Known(subject, negated):
                seen = self.of_field(subject) if isinstance(subject, Field) else self.of_number(subject)
                return not seen.some if negated else not seen.null
            case OneOf(subject, indices, negated):
                seen = self.of_number(subject)
                inside = bisect_right(indices, seen.high) - bisect_left(indices, seen.low)
                return not seen.null and (inside == 0 if negated else inside == seen.high - seen.low + 1)
            case Compare(operation, left, right):
                one, two = self.of_number(left), self.of_number(right)
                return not one.null and not two.null and _always(operation, one, two)
            case TextIs() | TextLike() | TextOrder() | TextHolds() | SameField() | Matched():
                return False
            case _:
                assert_never(node)


def _field(subject: Field | PartOfText) -> Field:
    return subject.field if isinstance(subject, PartOfText) else subject


def _short(node: Number, depth: int = 2) -> bool:
    """Whether a number is made of so few parts that facts are kept of it, and not of its columns alone."""
    match node:
        case Reading() | Derived() | Constant():
            return True
        case Scaled(inner) | Absolute(inner) | Floored(inner):
            return depth > 0 and _short(inner, depth - 1)
        case Combined(_, left, right):
            return depth > 0 and _short(left, depth - 1) and _short(right, depth - 1)
    return False


def _both(one: IndexRange, two: IndexRange) -> IndexRange:
    return IndexRange(max(one.low, two.low), min(one.high, two.high), one.null and two.null)


def _hull(one: IndexRange, two: IndexRange) -> tuple[int, int]:
    if not one.some or not two.some:
        return (two.low, two.high) if two.some else (one.low, one.high)
    return min(one.low, two.low), max(one.high, two.high)


def _either_field(one: ValueSet, two: ValueSet) -> ValueSet:
    values = None if one.values is None or two.values is None else one.values | two.values
    return ValueSet(values, one.null or two.null)


def _either_number(one: IndexRange, two: IndexRange) -> IndexRange:
    return IndexRange(*_hull(one, two), one.null or two.null)


def _extreme(operation: str, one: IndexRange, two: IndexRange) -> IndexRange:
    """Of two numbers; where one is NULL it is the other."""
    null = one.null and two.null
    if not one.some or not two.some:
        return IndexRange(*_hull(one, two), null)
    pick = min if operation == "least" else max
    low, high = pick(one.low, two.low), pick(one.high, two.high)
    if one.null:
        low, high = min(low, two.low), max(high, two.high)
    if two.null:
        low, high = min(low, one.low), max(high, one.high)
    return IndexRange(low, high, null)


def _ends(operation: str, left: IndexRange, right: IndexRange) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the two sides of a comparison are if it holds; reversed where it cannot."""
    match operation:
        case "<" | "<=":
            step = int(operation == "<")
            return (left.low, right.high - step), (left.low + step, right.high)
        case ">" | ">=":
            step = int(operation == ">")
            return (right.low + step, left.high), (right.low, left.high - step)
        case "=":
            both = max(left.low, right.low), min(left.high, right.high)
            return both, both
    return _without(left, right), _without(right, left)


def _without(one: IndexRange, other: IndexRange) -> tuple[int, int]:
    """The first without the second, where that is a single value at its end."""
    if other.low < other.high:
        return one.low, one.high
    return one.low + int(one.low == other.low), one.high - int(one.high == other.high)


def _always(operation: str, left: IndexRange, right: IndexRange) -> bool:
    match operation:
        case "<":
            return left.high < right.low
        case "<=":
            return left.high <= right.low
        case ">":
            return left.low > right.high
        case ">=":
            return left.low >= right.high
        case "=":
            return left.low == left.high == right.low == right.high
    return left.high < right.low or left.low > right.high
