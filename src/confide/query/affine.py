"""Sums that say the same of the same rows: SUM(ax + b) is a·SUM(x) + b·COUNT(x), so that one of them tells all others.

What is measured once has the whole of ε that many would share. It is one of the sums that are asked, and the count. In
units of x, let s be what one unit changes of the sum that is measured, s_j of another, d_j the distance of their
shifts, and n how many there are. Under noise whose variance goes with the inverse of its share, and with the share of
the count best for the largest d (d/s of that of the sum), the variance of sum j is (1 + d/s)(s² + d_j² s/d), where it
would be n s_j² if each were measured. Sums are shared only if none gets worse.

`multiples` and `parts_of` take sums of measured numbers, and conditions, apart again: so a ratio is known to be
a share, a count of some rows over a count of all of them, which lies between 0 and 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from confide.query.question import Arithmetic, Estimated, FixedNumber, Measured, Value
from confide.query.tree import Always, Both, Number, Predicate, Scaled

Shared = dict[tuple[Number, Predicate], Number]
"""For sums of one number and condition, what is summed of it."""


@dataclass(frozen=True, slots=True)
class Affine:
    """factor·base + shift, of the values of a number of rows."""

    base: Number
    factor: Fraction
    shift: Fraction


@dataclass(frozen=True, slots=True)
class AskedSum:
    """A sum of the rows that pass `where`, what one unit changes of it, and of the number of its rows."""

    subject: Number
    where: Predicate
    most: Fraction
    rows: int


def affine(subject: Number) -> Affine:
    """What a number is a multiple of, plus a constant."""
    factor, shift = Fraction(1), Fraction(0)
    while isinstance(subject, Scaled) and subject.factor and not subject.inner.span.date:
        shift += factor * subject.offset * subject.span.grain
        factor *= subject.factor * subject.span.grain / subject.inner.span.grain
        subject = subject.inner
    return Affine(subject, factor, shift)


def shared_sums(asked: Iterable[AskedSum]) -> Shared:
    """Which sums are told by another one and a count."""
    families: dict[tuple[Number, Predicate], list[tuple[Affine, AskedSum]]] = {}
    for one in asked:
        found = affine(one.subject)
        families.setdefault((found.base, one.where), []).append((found, one))
    shared = {}
    for key, family in families.items():
        least = min(family, key=lambda member: member[1].most / abs(member[0].factor))
        if len(family) > 1 and _gains(family, least):
            shared[key] = least[1].subject
    return shared


def told_by(wanted: Affine, measured: Affine, total: int, count: int) -> Value:
    """A sum, from the measure of another one of the same rows and that of their number."""
    factor = wanted.factor / measured.factor
    shift = wanted.shift - measured.shift * factor
    value: Value = Measured(total)
    if factor != 1:
        value = Arithmetic("*", FixedNumber(factor), value)
    return Arithmetic("+", value, Arithmetic("*", FixedNumber(shift), Measured(count))) if shift else value


def multiples(value: Value, of: type[Measured] | type[Estimated]) -> Mapping[int, Fraction] | None:
    """A value as multiples of measured numbers, or of statistics, added up, if it is that and has nothing of the other.

    Each kind is numbered for itself: the first sum and the first statistic are different numbers.
    """
    match value:
        case Measured(place) | Estimated(place):
            return {place: Fraction(1)} if isinstance(value, of) else None
        case Arithmetic("+" | "-" as operation, left, right):
            first, second = _or_zero(left, of), _or_zero(right, of)
            if first is None or second is None:
                return None
            sign = 1 if operation == "+" else -1
            return {p: first.get(p, Fraction(0)) + sign * second.get(p, Fraction(0)) for p in sorted({*first, *second})}
        case Arithmetic("*", FixedNumber(factor), inner) | Arithmetic("*", inner, FixedNumber(factor)):
            found = multiples(inner, of)
        case Arithmetic("/", inner, FixedNumber(divisor)):
            found, factor = multiples(inner, of), 1 / divisor
        case _:
            return None
    return None if found is None else {place: factor * part for place, part in found.items()}


def times(factor: Fraction, value: Value, more: Fraction = Fraction(0)) -> Value:
    """factor × value + more."""
    product = value if factor == 1 else Arithmetic("*", FixedNumber(factor), value)
    return Arithmetic("+", product, FixedNumber(more)) if more else product


def parts_of(predicate: Predicate) -> frozenset[Predicate]:
    """Conditions that all hold where a predicate does."""
    if isinstance(predicate, Both):
        return frozenset().union(*map(parts_of, predicate.parts))
    return frozenset() if predicate == Always(True) else frozenset((predicate,))


def _gains(family: Sequence[tuple[Affine, AskedSum]], least: tuple[Affine, AskedSum]) -> bool:
    def shift(member: Affine) -> Fraction:
        return member.shift / member.factor

    measured = len({shift(found) for found, _ in family})
    if measured == 1:
        return True
    size = least[1].most / abs(least[0].factor)
    apart = [abs(shift(found) - shift(least[0])) * one.rows for found, one in family]
    if not size:
        return False
    share = max(apart) / size
    return all(
        (1 + share) * (size**2 + distance**2 / share) <= measured * (one.most / found.factor) ** 2
        for distance, (found, one) in zip(apart, family, strict=True)
    )


def _or_zero(value: Value, of: type[Measured] | type[Estimated]) -> Mapping[int, Fraction] | None:
    return {} if value == FixedNumber(Fraction(0)) else multiples(value, of)
