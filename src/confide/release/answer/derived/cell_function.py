"""Functions of cells with intervals: monotone ones take ends to ends, others are bounded by interval arithmetic.

Whatever numbers come in, nothing raises: these run after a charge.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, isfinite, isinf
from typing import Final

from confide.release.answer.derived.cell_condition import (
    all_true,
    any_true,
    chosen_case,
    comparison,
    is_null,
    may_be_same,
    negation,
    surely_same,
)
from confide.release.answer.derived.cell_range import EXACT, NULL, CellRange, double, hull, number, point, strict
from confide.release.answer.derived.key_function import like, of_key, part_between, part_of, text_of

Ranges = Sequence[CellRange]
Function = Callable[[Ranges], CellRange]


def _floats(part: CellRange) -> tuple[float | None, float, float]:
    return None if part.value is None else double(part.value), double(part.low), double(part.high)


def _monotone(function: Callable[[float], float], whole: bool = False, keeps: bool = False) -> Function:
    """`keeps`: whole numbers stay whole."""

    def ranged(parts: Ranges) -> CellRange:
        value, low, high = _floats(parts[0])
        own = whole or (keeps and parts[0].whole)
        return number(None if value is None else function(value), function(low), function(high), parts[:1], own)

    return strict(ranged)


def _both(function: Callable[[float, float], float], corners: bool) -> Function:
    def ranged(parts: Ranges) -> CellRange:
        (a, a_low, a_high), (b, b_low, b_high) = map(_floats, parts)
        value = None if a is None or b is None else function(a, b)
        whole = all(part.whole for part in parts)
        if corners:
            ends = [function(x, y) for x in (a_low, a_high) for y in (b_low, b_high)]
            return number(value, min(ends), max(ends), parts, whole)
        return number(value, function(a_low, b_low), function(a_high, b_high), parts, whole)

    return strict(ranged)


def product(x: float, y: float) -> float:
    """0 × ∞ is 0 at the end of an interval: the exact zero is reached, the infinity is not."""
    return 0.0 if x == 0 or y == 0 else x * y


def _subtract(parts: Ranges) -> CellRange:
    (a, a_low, a_high), (b, b_low, b_high) = map(_floats, parts)
    value = None if a is None or b is None else a - b
    return number(value, a_low - b_high, a_high - b_low, parts, all(part.whole for part in parts))


def _divide(parts: Ranges) -> CellRange:
    (a, a_low, a_high), (b, b_low, b_high) = map(_floats, parts)
    value = None if a is None or not b else a / b
    if b_low <= 0 <= b_high:
        if b_low == b_high:
            return NULL  # there is no such number
        return number(value, -inf, inf, parts)
    ends = [product(x, 1 / y) for x in (a_low, a_high) for y in (b_low, b_high)]
    return number(value, min(ends), max(ends), parts)


def _magnitude(parts: Ranges) -> CellRange:
    value, low, high = _floats(parts[0])
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return number(None if value is None else abs(value), least, max(abs(low), abs(high)), parts, parts[0].whole)


def _limited(function: Callable[[float], float], at_zero: float) -> Function:
    """A function of positive numbers that grows; at zero, and below, its end is `at_zero`."""

    def ranged(parts: Ranges) -> CellRange:
        value, low, high = _floats(parts[0])
        if high < 0 or (high == 0 and isinf(at_zero)):
            return NULL  # there is no such number
        inside = value is not None and (value > 0 or (value == 0 and not isinf(at_zero)))
        own = (
            function(value)
            if inside and value is not None
            else at_zero
            if value is not None and not isinf(at_zero)
            else None
        )
        ends = [inf if end == inf else function(end) if end > 0 else at_zero for end in (low, high)]
        return number(own, ends[0], ends[1], parts[:1])

    return strict(ranged)


def _exponential(value: float) -> float:
    return math.exp(value) if value < 709 else inf


def _raised(base: float, power: float) -> float:
    try:
        result = math.pow(base, power)
    except OverflowError:
        return inf if base > 0 or power % 2 == 0 else -inf
    except ValueError:
        return math.nan
    return result


def _power(parts: Ranges) -> CellRange:
    base, power = parts
    (a, a_low, a_high), (b, b_low, b_high) = _floats(base), _floats(power)
    value = None if a is None or b is None or (a == 0 and b < 0) else _raised(a, b)
    if b_low == b_high:  # a constant power
        if b_low < 0:
            inverse = _power((base, point(Fraction(-b_low))))
            found = _divide((point(Fraction(1)), inverse)) if inverse.low is not None else NULL
            return found if found.low is None else number(value, found.low, found.high, (base,))
        if b_low % 2 == 0 and a_low < 0:
            least, most = (0.0 if a_high >= 0 else -a_high), max(-a_low, abs(a_high))
            return number(value, _raised(least, b_low), _raised(most, b_low), (base,))
        if b_low % 1 != 0:
            if a_high < 0:
                return NULL
            value = None if a is None else _raised(max(a, 0.0), b_low)
            a_low = max(a_low, 0.0)
        return number(value, _raised(a_low, b_low), _raised(a_high, b_low), (base,), base.whole and b_low % 1 == 0)
    if a_low <= 0:
        return NULL  # a constant base is positive, or there may be no such number
    ends = [_raised(a_low, end) for end in (b_low, b_high)]
    return number(value, min(ends), max(ends), parts)


def half_away(value: float, digits: int) -> float:
    """Rounded half away from zero, as databases do."""
    if not isfinite(value) or abs(value) * 10.0**digits >= EXACT:
        return value
    unit = Fraction(10) ** digits
    exact = Fraction(repr(value)) * unit  # by its shortest spelling: 2.675 is what was meant
    rounded = math.floor(abs(exact) + Fraction(1, 2))
    return float((rounded if exact >= 0 else -rounded) / unit)


def _round(parts: Ranges) -> CellRange:
    value, low, high = _floats(parts[0])
    digits = int(parts[1].value)
    ends = (half_away(low, digits), half_away(high, digits))
    own = None if value is None else half_away(value, digits)
    return number(own, *ends, parts[:1], digits <= 0)


def cut(value: float, digits: int) -> float:
    if not isfinite(value) or abs(value) * 10.0**digits >= EXACT:
        return value
    unit = Fraction(10) ** digits
    return float(math.trunc(Fraction(repr(value)) * unit) / unit)


def _trunc(parts: Ranges) -> CellRange:
    value, low, high = _floats(parts[0])
    digits = int(parts[1].value)
    return number(
        None if value is None else cut(value, digits), cut(low, digits), cut(high, digits), parts[:1], digits <= 0
    )


def _remainder(parts: Ranges) -> CellRange:
    """With the sign of the dividend, as databases do."""
    (value, low, high), (_, divisor, _) = _floats(parts[0]), _floats(parts[1])
    size, whole = abs(divisor), parts[0].whole and parts[1].whole
    own = None if value is None or not isfinite(value) else math.fmod(value, size)
    if (
        isfinite(low)
        and isfinite(high)
        and (low >= 0 or high <= 0)
        and math.trunc(low / size) == math.trunc(high / size)
    ):
        return number(own, math.fmod(low, size), math.fmod(high, size), parts[:1], whole)
    most = size - 1 if whole else size
    return number(own, 0.0 if low >= 0 else -most, 0.0 if high <= 0 else most, parts[:1], whole)


def _least(largest: bool) -> Function:
    pick = max if largest else min

    def ranged(parts: Ranges) -> CellRange:
        """NULLs are passed over, as databases do."""
        known = [part for part in parts if part.low is not None]
        if not known:
            return NULL
        values = [double(part.value) for part in known if part.value is not None]
        sure = [part for part in known if not part.missing] or known
        ends = [pick(double(getattr(part, end)) for part in known) for end in ("low", "high")]
        kept = [pick(double(getattr(part, end)) for part in sure) for end in ("low", "high")]
        found = number(
            pick(values) if values else None,
            min(ends[0], kept[0]),
            max(ends[1], kept[1]),
            known,
            all(p.whole for p in known),
        )
        return found if len(sure) < len(known) or all(p.missing for p in known) else _certain(found)

    return ranged


def _certain(found: CellRange) -> CellRange:
    return CellRange(found.value, found.low, found.high, False, found.whole, found.assumes, found.options)


def _coalesce(parts: Ranges) -> CellRange:
    reached, value = [], next((part.value for part in parts if part.value is not None), None)
    for part in parts:
        if part.low is not None:
            reached.append(part)
        if part.low is not None and not part.missing:
            return _certain(hull(reached, value, missing=False))
    return hull(reached, value, missing=True)


FUNCTIONS: Final[dict[str, Function]] = {
    "+": _both(lambda a, b: a + b, corners=False),
    "-": strict(_subtract),
    "*": _both(product, corners=True),
    "/": strict(_divide),
    "%": strict(_remainder),
    "neg": strict(lambda parts: _subtract((point(Fraction(0)), parts[0]))),
    "abs": strict(_magnitude),
    "sign": _monotone(lambda x: float((x > 0) - (x < 0)), whole=True),
    "sqrt": _limited(math.sqrt, 0.0),
    "cbrt": _monotone(math.cbrt),
    "ln": _limited(math.log, -inf),
    "exp": _monotone(_exponential),
    "power": strict(_power),
    "floor": _monotone(lambda x: float(math.floor(x)) if isfinite(x) else x, whole=True),
    "ceil": _monotone(lambda x: float(math.ceil(x)) if isfinite(x) else x, whole=True),
    "round": strict(_round),
    "trunc": strict(_trunc),
    "least": _least(largest=False),
    "greatest": _least(largest=True),
    "coalesce": _coalesce,
    "case": chosen_case,
    "<": comparison(lambda a, b: a.high < b.low, lambda a, b: a.low < b.high, lambda a, b: a < b),
    "<=": comparison(lambda a, b: a.high <= b.low, lambda a, b: a.low <= b.high, lambda a, b: a <= b),
    ">": comparison(lambda a, b: a.low > b.high, lambda a, b: a.high > b.low, lambda a, b: a > b),
    ">=": comparison(lambda a, b: a.low >= b.high, lambda a, b: a.high >= b.low, lambda a, b: a >= b),
    "=": comparison(surely_same, may_be_same, lambda a, b: a == b),
    "<>": strict(lambda parts: negation([FUNCTIONS["="](parts)])),
    "and": all_true,
    "or": any_true,
    "not": negation,
    "is null": is_null,
    "upper": of_key(str.upper),
    "lower": of_key(str.lower),
    "trim": of_key(lambda value: value.strip(" ")),
    "left": of_key(lambda value, size: part_of(value, size, left=True)),
    "right": of_key(lambda value, size: part_of(value, size, left=False)),
    "substring": of_key(part_between),
    "||": of_key(lambda one, two: text_of(one) + text_of(two)),
    "text": of_key(text_of),
    "like": like(ignore_case=False),
    "ilike": like(ignore_case=True),
    "year": of_key(lambda day: Fraction(day.year)),
    "quarter": of_key(lambda day: Fraction((day.month + 2) // 3)),
    "month": of_key(lambda day: Fraction(day.month)),
    "day": of_key(lambda day: Fraction(day.day)),
}


def _logarithm(parts: Ranges) -> CellRange:
    scale = math.log(double(parts[1].value))
    found = FUNCTIONS["ln"](parts[:1])
    if found.low is None:
        return NULL
    ends = sorted((found.low / scale, found.high / scale))
    base = double(parts[1].value)
    value = parts[0].value
    exact = math.log10 if base == 10 else math.log2 if base == 2 else None
    own = None if found.value is None else exact(double(value)) if exact is not None else found.value / scale
    return number(own, ends[0], ends[1], parts[:1])


FUNCTIONS["log"] = strict(_logarithm)
