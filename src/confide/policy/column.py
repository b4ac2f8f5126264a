"""Columns: what a policy makes public about the values of each. Nothing here ever looks at data.

Every number is measured on a public grid, the integer multiples of its `grain`; an index is a place on that grid.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

INDEX_LIMIT = 2**62
"""Every index of a column stays below this in magnitude, so that a difference of two fits 64 bits."""

ROWS_LIMIT = 2**44
"""No table is assumed to have more rows."""

TOTAL_LIMIT = 2**126
"""rows × bound stays below this, so that an exact sum fits the 128-bit integers of an engine."""

VALUES_LIMIT = 100_000
"""A list of values longer than this is a text column, not a category."""

EPOCH = date(1970, 1, 1)

CategoryValue = str | int | bool

Typical = tuple[Fraction, Fraction]
"""Between which two numbers most values of a column are believed to lie: a public belief, that no answer rests on."""

Fault = tuple[str, str, str]
"""What is wrong with a part of a value: the part, what is wrong, what to write instead."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A key: it tells units or rows apart, and is never a value or a group."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """Strings of no declared domain: for LIKE, =, IN, COUNT, COUNT DISTINCT, and group keys above a τ-threshold;
    `nulls` makes NULL such a key.
    """

    name: str
    nulls: bool = False


@dataclass(frozen=True, slots=True)
class Category:
    """A short public list of values. Data outside the list counts as NULL; `nulls` adds the NULL group to groupings."""

    name: str
    values: tuple[CategoryValue, ...]
    nulls: bool = False

    def __post_init__(self) -> None:
        _refuse(self.name, category_faults(self.values))
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"column {self.name}: a value is listed twice")

    @property
    def kind(self) -> type[CategoryValue]:
        """The one type of all values: str, int or bool."""
        return type(self.values[0])


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers clamped to [low, high] and rounded to multiples of `grain`; `bins` is the usual width of a binning, and
    `nulls` adds the NULL group to it.

    `typical`: where most values are believed to lie, for forecasts only.
    """

    name: str
    low: Fraction
    high: Fraction
    grain: Fraction = Fraction(1)
    bins: Fraction | None = None
    nulls: bool = False
    typical: Typical | None = None

    def __post_init__(self) -> None:
        _refuse(self.name, number_faults(self.low, self.high, self.grain, self.bins))
        _refuse(self.name, typical_faults(self.typical, (self.low, self.high)))

    @property
    def integer(self) -> bool:
        """Whether every value on the grid is a whole number."""
        return self.grain.denominator == 1

    @property
    def low_index(self) -> int:
        return int(self.low / self.grain)

    @property
    def high_index(self) -> int:
        return int(self.high / self.grain)

    @property
    def steps(self) -> int:
        """How many values the grid has between low and high, both included."""
        return self.high_index - self.low_index + 1


@dataclass(frozen=True, slots=True)
class Date:
    """Days from low to high, both included; an index counts days since 1970-01-01, `bins` is in whole days, and `nulls`
    adds the NULL group to a binning.
    """

    name: str
    low: date
    high: date
    bins: Fraction | None = None
    nulls: bool = False

    def __post_init__(self) -> None:
        _refuse(self.name, date_faults(self.low, self.high, self.bins))

    @property
    def grain(self) -> Fraction:
        return Fraction(1)

    @property
    def low_index(self) -> int:
        return (self.low - EPOCH).days

    @property
    def high_index(self) -> int:
        return (self.high - EPOCH).days

    @property
    def steps(self) -> int:
        return self.high_index - self.low_index + 1


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Numbers of no declared range, rounded to multiples of `grain`: for mechanisms that find a range privately.

    `typical`: where most values are believed to lie, for forecasts only.
    """

    name: str
    grain: Fraction
    typical: Typical | None = None

    def __post_init__(self) -> None:
        _refuse(self.name, grain_faults(self.grain))
        _refuse(self.name, typical_faults(self.typical, self.reach))

    @property
    def reach(self) -> tuple[Fraction, Fraction]:
        """Between which numbers indices are held; what is beyond is moved to the nearer end."""
        most = (INDEX_LIMIT - 1) * self.grain
        return -most, most


Column = Identifier | Category | Number | Date | Text | Unbounded


def category_faults(values: tuple[CategoryValue, ...]) -> Iterator[Fault]:
    """Every fault of a list of values but those that show in a single value's type."""
    if not values:
        yield "values", "the list of values is empty", "list every value, or write {type: text}"
    if len(values) > VALUES_LIMIT:
        yield "values", f"{len(values):,} values are listed, at most {VALUES_LIMIT:,} are allowed", "write {type: text}"
    kinds = sorted({type(value).__name__ for value in values})
    if len(kinds) > 1:
        names = " and ".join(_KINDS.get(kind, kind) for kind in kinds)
        yield "values", f"the values mix {names}", "all values must be of one kind; put strings in quotes"
    elif kinds and kinds[0] not in _KINDS:
        yield "values", f"values of type {kinds[0]} are not allowed", "use strings, whole numbers, or true and false"
    for value in values:
        if type(value) is int and abs(value) >= INDEX_LIMIT:
            yield "values", "a whole number in the list is too large", "stay below 2^62, or put the values in quotes"
            break
        if isinstance(value, str) and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
            yield (
                "values",
                "a value holds a character that no database stores (NUL, or half a character)",
                "leave it out",
            )
            break


def typical_faults(typical: Typical | None, ends: tuple[Fraction, Fraction]) -> Iterator[Fault]:
    """Every fault of where values are believed to lie, beside the ends of their range."""
    if typical is None:
        return
    low, high = typical
    if low >= high:
        what = f"{show(low)} is not below {show(high)}"
        yield "typical", what, "write typical: [low, high], between which most values lie"
    elif not ends[0] <= low < high <= ends[1]:
        what = f"[{show(low)}, {show(high)}] is not within the range"
        yield "typical", what, f"values are clamped to [{show(ends[0])}, {show(ends[1])}], so most lie in there"


def number_faults(low: Fraction, high: Fraction, grain: Fraction, bins: Fraction | None) -> Iterator[Fault]:
    """Every fault of a range of numbers."""
    broken = tuple(grain_faults(grain))
    yield from broken
    if low > high:
        yield "range", f"the range is reversed: {show(low)} is above {show(high)}", f"write [{show(high)}, {show(low)}]"
    elif low == high:
        yield "range", f"the range holds a single value, {show(low)}", "the low end must be below the high end"
    if broken:
        return
    for end in (low, high):
        if abs(end / grain) >= INDEX_LIMIT:
            yield (
                "range",
                f"the end {show(end)} is 2^62 or more steps of the grain {show(grain)} away from 0",
                "narrow the range or use a coarser grain",
            )
        elif (end / grain).denominator != 1:
            below = (end // grain) * grain
            yield (
                "range",
                f"the end {show(end)} is not a multiple of the grain {show(grain)}",
                f"write {show(below)} or {show(below + grain)}, or change the grain",
            )
    yield from _bins_faults(bins, grain, high - low, "the grain")


def date_faults(low: date, high: date, bins: Fraction | None) -> Iterator[Fault]:
    """Every fault of a range of days."""
    if low > high:
        yield "range", f"the range is reversed: {low} is after {high}", f"write [{high}, {low}]"
    elif low == high:
        yield "range", f"the range holds a single day, {low}", "the first day must be before the last"
    yield from _bins_faults(bins, Fraction(1), Fraction((high - low).days + 1), "one day")


def grain_faults(grain: Fraction) -> Iterator[Fault]:
    if grain <= 0:
        yield "grain", f"the grain is {show(grain)}", "it must be above 0, for example 1 or 0.01"


def show(amount: Fraction) -> str:
    """An exact number as a person writes it: a decimal where one exists, else a ratio."""
    if amount.denominator == 1:
        return str(amount.numerator)
    twos, rest = _strip(amount.denominator, 2)
    fives, rest = _strip(rest, 5)
    if rest != 1:
        return f"{amount.numerator}/{amount.denominator}"
    places = max(twos, fives)
    digits = f"{abs(amount.numerator) * 10**places // amount.denominator:0{places + 1}d}"
    return f"{'-' if amount < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _strip(number: int, factor: int) -> tuple[int, int]:
    count = 0
    while number % factor == 0:
        number //= factor
        count += 1
    return count, number


def _bins_faults(bins: Fraction | None, grain: Fraction, width: Fraction, unit: str) -> Iterator[Fault]:
    if bins is None:
        return
    if bins <= 0 or (bins / grain).denominator != 1:
        yield (
            "bins",
            f"the width {show(bins)} is not a positive multiple of {unit}",
            f"write a multiple of {show(grain)}",
        )
    elif width > 0 and bins > width:
        yield "bins", f"the width {show(bins)} is wider than the whole range", f"write at most {show(width)}"


_KINDS = {"str": "strings", "int": "whole numbers", "bool": "true/false"}


def _refuse(name: str, faults: Iterator[Fault]) -> None:
    for _, what, advice in faults:
        raise ValueError(f"column {name}: {what} ({advice})")
