"""A ranged column as an index: clamped to its range, rounded to its grain, NULL for NULL and NaN.

Whole numbers and decimals are rounded exactly, half up. Floating-point numbers are rounded as FLOOR(x·q/p + ½) in
double precision, for a grain of p/q: the same on every engine, and a function of the value alone. Whole ones below 2⁵³
are what they would be as integers: one missing value makes doubles of all integers of a column.
"""

import sys
from fractions import Fraction
from math import ceil, floor, gcd

from confide.engine.sql.syntax import NARROW, case, cast, clamped, double, integer
from confide.engine.storage import Storage
from confide.policy import Date, Number

_EXACT_FLOAT = 1 << 40
"""Below this the index is off by less than 2⁻¹⁰ in double precision, so clamping the value clamps the index."""
_EXACT_SUM = 1 << 51
"""A whole double × q below this, divided by p, plus ½, is rounded to the index of the integer."""
_LARGEST_EXACT = 1 << 53
_WIDE = 1 << 125
_MOST_DIGITS = 38


def number_index(column: Number, value: str, storage: Storage) -> str:
    """The SQL of the index of a number."""
    if storage.kind == "nothing":
        return "NULL::BIGINT"
    if storage.kind == "index":
        return _within(column, value, storage)
    if storage.kind in ("integer", "wide integer", "decimal"):
        exact = _exact_index(column, value, storage)
        if exact is not None:
            return exact
    return _float_index(column, value if storage == Storage("float") else cast(value, "DOUBLE"))


def date_index(column: Date, value: str, storage: Storage) -> str:
    """The SQL of the number of days since 1970-01-01."""
    if storage.kind == "nothing":
        return "NULL::BIGINT"
    day = value if storage.kind == "date" else cast(value, "DATE")
    first, last = (f"DATE '{end.isoformat()}'" for end in (column.low, column.high))
    return case(
        [
            (f"{day} BETWEEN {first} AND {last}", cast(f"{day} - DATE '1970-01-01'", "BIGINT")),
            (f"{day} < {first}", integer(column.low_index)),
            (f"{day} > {last}", integer(column.high_index)),
        ]
    )


def _within(column: Number, value: str, storage: Storage) -> str:
    """A stored index, cut where a question reads the column in a narrower range than the policy's."""
    low, high = column.low_index, column.high_index
    return value if low <= storage.low and storage.high <= high else clamped(value, low, high)


def _exact_index(column: Number, value: str, storage: Storage) -> str | None:
    """Integer arithmetic on value × 10^scale; None where 128 bits would not hold it."""
    unscaled = _unscaled(value, storage)
    if unscaled is None:
        return None
    units, wide = unscaled
    scale = 10**storage.scale
    low, high = column.low_index, column.high_index
    least, most = ceil(column.low * scale), floor(column.high * scale)
    # index = round(units × a / b), with the fraction in lowest terms
    share = gcd(column.grain.denominator, column.grain.numerator * scale)
    a, b = column.grain.denominator // share, column.grain.numerator * scale // share
    reach = max(abs(least), abs(most)) * a
    if b > 1:
        reach = max(reach, abs(low) * b, 2 * (most * a - low * b) + b)
    if reach >= _WIDE:
        return None
    if reach >= NARROW:
        units = cast(units, "HUGEINT")
    inner = units if a == 1 else f"{units} * {integer(a)}"
    if b > 1:
        # ⌊(2(units·a − low·b) + b) / 2b⌋ + low, where nothing is negative, so that every engine's division agrees
        inner = f"({integer(2)} * ({inner} - {integer(low * b)}) + {integer(b)}) // {integer(2 * b)} + {integer(low)}"
    result = case([(f"{units} > {most}", integer(high)), (f"{units} < {least}", integer(low))], inner)
    return cast(result, "BIGINT") if wide or reach >= NARROW else result


def _unscaled(value: str, storage: Storage) -> tuple[str, bool] | None:
    """value × 10^scale as an integer, and whether it takes 128 bits."""
    if storage.kind == "integer":
        return value if storage.exact else cast(value, "BIGINT"), False
    if storage.kind == "wide integer":
        return value, True
    width, scale = storage.width, storage.scale
    if scale == 0:
        return cast(value, "BIGINT" if width <= 18 else "HUGEINT"), width > 18
    # A product of decimals of at most 18 digits stays in 64 bits, and fails where it does not fit: widen before.
    wider = width if width + scale + 1 <= 18 else max(width, 19)
    if wider + scale + 1 > _MOST_DIGITS:
        return None
    product = f"{cast(value, f'DECIMAL({wider},{scale})')} * {cast(str(10**scale), f'DECIMAL({scale + 1},0)')}"
    return cast(product, "BIGINT" if width <= 18 else "HUGEINT"), width > 18


def _float_index(column: Number, value: str) -> str:
    low, high = column.low_index, column.high_index
    p, q = column.grain.numerator, column.grain.denominator
    position = value if q == 1 else f"{value} * {double(_nearest(Fraction(q)))}"
    position = position if p == 1 else f"{position} / {double(_nearest(Fraction(p)))}"
    # FLOOR(x + ½), since engines differ in how ROUND treats halves.
    # TRY_CAST, lest an optimiser move the cast out of the CASE that guards it.
    index = f"TRY_CAST(FLOOR({position} + {double(0.5)}) AS BIGINT)"
    if max(abs(low), abs(high)) >= _EXACT_FLOAT:
        index = clamped(index, low, high)
    least, most = double(_nearest(column.low)), double(_nearest(column.high))
    # NaN has no index. It is above every number here, but where all others are below something, it may seem to be too.
    branches = [
        (f"{value} BETWEEN {least} AND {most}", index),
        (f"{value} < {least} AND NOT ISNAN({value})", integer(low)),
        (f"{value} > {most} AND NOT ISNAN({value})", integer(high)),
    ]
    return case([*_whole_index(column, value), *branches])


def _whole_index(column: Number, value: str) -> list[tuple[str, str]]:
    """Of whole numbers that double precision may move to another index."""
    least = Fraction(_EXACT_SUM, column.grain.denominator)
    if max(abs(column.low), abs(column.high)) < least or least >= _LARGEST_EXACT:
        return []
    exact = _exact_index(column, f"TRY_CAST({value} AS BIGINT)", Storage("integer"))
    if exact is None:
        return []
    size = f"ABS({value})"
    large = f"{size} >= {double(float(least))} AND {size} < {double(float(_LARGEST_EXACT))}"
    # An optimiser that knows no NaN believes that the cast is never NULL, and compares it as such.
    return [(f"{large} AND {value} = FLOOR({value}) AND NOT ISNAN({value})", exact)]


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
