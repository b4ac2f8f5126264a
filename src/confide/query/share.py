"""Ratios that are shares or means: a count of some rows over a count of all of them lies between 0 and 1."""

from collections.abc import Mapping
from fractions import Fraction

from confide.query.question import Arithmetic, Estimated, FixedNumber, Measured, Value
from confide.query.tree import Always, Both, Predicate


def parts_of(predicate: Predicate) -> frozenset[Predicate]:
    """Conditions that all hold where a predicate does."""
    if isinstance(predicate, Both):
        return frozenset().union(*map(parts_of, predicate.parts))
    return frozenset() if predicate == Always(True) else frozenset((predicate,))


def multiples(value: Value) -> Mapping[int, Fraction] | None:
    """A value as multiples of measured numbers (or of statistics), added up, if it is that."""
    match value:
        case Measured(place) | Estimated(place):
            return {place: Fraction(1)}
        case Arithmetic("+" | "-" as operation, left, right):
            first, second = _or_zero(left), _or_zero(right)
            if first is None or second is None:
                return None
            sign = 1 if operation == "+" else -1
            return {p: first.get(p, Fraction(0)) + sign * second.get(p, Fraction(0)) for p in sorted({*first, *second})}
        case Arithmetic("*", FixedNumber(factor), inner) | Arithmetic("*", inner, FixedNumber(factor)):
            found = multiples(inner)
        case Arithmetic("/", inner, FixedNumber(divisor)):
            found, factor = multiples(inner), 1 / divisor
        case _:
            return None
    return None if found is None else {place: factor * part for place, part in found.items()}


def _or_zero(value: Value) -> Mapping[int, Fraction] | None:
    return {} if value == FixedNumber(Fraction(0)) else multiples(value)


def times(factor: Fraction, value: Value, more: Fraction = Fraction(0)) -> Value:
    """factor × value + more."""
    product = value if factor == 1 else Arithmetic("*", FixedNumber(factor), value)
    return Arithmetic("+", product, FixedNumber(more)) if more else product
