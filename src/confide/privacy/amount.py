"""Amounts of privacy: exact numbers in, whole quanta in the ledger.

A quantum is 1/QUANTA. QUANTA is divisible by every integer up to 40 and by 10³⁰, so decimals and small fractions are
whole numbers of quanta: ten charges of 0.1, or three of 1/3, fill a cap of 1 exactly. Whatever falls between two quanta
is rounded against us: a charge up, a cap down.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from operator import index

from confide.errors import ParameterError

QUANTA = math.lcm(*range(1, 41)) * 10**30

_ROOT_SCALE = 10**24

SMALLEST = Fraction(1, 10**30)
LARGEST = Fraction(10**6)

# Read by pattern before any arithmetic: Fraction("1e999999999") would build an integer of a gigabyte.
_NUMBER = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?[0-9]{1,60}/[0-9]{1,60}", re.ASCII)
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_LONGEST = 10**60


def parse_amount(value: object, name: str) -> Fraction:
    """The exact positive number behind `value`; a float stands for its shortest decimal, so 0.1 is one tenth."""
    exact = exact_number(value, name)
    if exact <= 0:
        raise _refusal(value, name, "it must be above 0")
    if exact < SMALLEST:
        raise _refusal(value, name, "it is too small to mean anything")
    if exact > LARGEST:
        raise _refusal(value, name, "it is too large to mean anything")
    return exact


def to_quanta_up(amount: Fraction) -> int:
    """The fewest whole quanta that are not less than `amount`."""
    return -(-amount.numerator * QUANTA // amount.denominator)


def to_quanta_down(amount: Fraction) -> int:
    """The most whole quanta that are not more than `amount`."""
    return amount.numerator * QUANTA // amount.denominator


def from_quanta(quanta: int) -> Fraction:
    return Fraction(quanta, QUANTA)


def show(amount: Fraction, digits: int = 6) -> str:
    """A short decimal for people, exact where `digits` significant digits suffice, else rounded to nearest."""
    if amount.denominator == 1 and abs(amount.numerator) < 10**digits:
        return str(amount.numerator)
    return f"{float(amount):.{digits}g}"


def exact_number(value: object, name: str) -> Fraction:
    """The exact number behind `value`, of any sign; refused by its length before any arithmetic is done with it.

    It is looked at once, and what is returned is of Python's own type: a number of a caller's class might be one when
    it is charged and another when noise is made for it.
    """
    match value:
        case bool():
            raise _refusal(value, name, "it is a truth value, not a number")
        case str():
            return _read(str.__str__(value), name)
        case Decimal():
            # Bounded by exponent and by length before it is expanded into an integer.
            plain = Decimal(value)
            if not plain.is_finite():
                raise _refusal(value, name, "it must be finite")
            if abs(plain.adjusted()) > 999 or len(plain.as_tuple().digits) > 60:
                raise _refusal(value, name, "it is out of range")
            return Fraction(plain)
        case Fraction():
            above, below = int(value.numerator), int(value.denominator)
            if abs(above) > _LONGEST or not 0 < below <= _LONGEST:
                raise _refusal(value, name, "its numerator or denominator is too long")
            return Fraction(above, below)
        case Integral():
            whole = int(value)
            if abs(whole) > _LONGEST:
                raise _refusal(value, name, "it is too large to mean anything")
            return Fraction(whole)
        case float() | Real():
            number = float(value)
            if not math.isfinite(number):
                raise _refusal(value, name, "it must be finite")
            return Fraction(repr(number))
        case _:
            raise _refusal(value, name, "it is not a number")


def _read(text: str, name: str) -> Fraction:
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return Fraction(stripped)
    if _RATIO.fullmatch(stripped):
        numerator, denominator = stripped.split("/")
        if int(denominator) == 0:
            raise _refusal(text, name, "its denominator is 0")
        return Fraction(int(numerator), int(denominator))
    if stripped.lstrip("+-").lower() in _NOT_FINITE:
        raise _refusal(text, name, "it must be finite")
    if _NUMBER.fullmatch(stripped.replace(",", ".")):
        raise _refusal(text, name, "numbers are written with a point, not a comma")
    raise _refusal(text, name, "it is not a number, or is out of range")


def _refusal(value: object, name: str, reason: str) -> ParameterError:
    return ParameterError(
        f"{name} = {shown_value(value)} is refused: {reason}. "
        f'Give a number above 0 (from 1e-30 to 1e6), like 0.5, or "1/3" for an exact fraction.'
    )


def whole_number(value: object) -> int | None:
    """The whole number behind `value`, an integer of Python's own; None if it is none. A truth value is none."""
    if isinstance(value, bool):
        return None
    try:
        return index(value)  # type: ignore[arg-type]
    except Exception:
        return None


def shown_value(value: object) -> str:
    """What was given, for a message, however long it is, and whatever it says of itself."""
    try:
        if isinstance(value, int | Fraction) and max(abs(value.numerator), value.denominator) > _LONGEST:
            return f"a {type(value).__name__} of more than 60 digits"  # int to str is quadratic, and capped by Python
        text = str(value) if isinstance(value, Decimal | Real) else repr(value)
    except Exception:  # an integer inside of it that is too long to be written, or a class of the caller's
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def root(value: Fraction) -> Fraction:
    """√value, rounded down."""
    return Fraction(math.isqrt(value.numerator * _ROOT_SCALE**2 // value.denominator), _ROOT_SCALE)
