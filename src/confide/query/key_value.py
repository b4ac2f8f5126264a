"""The value of a key: what a place in its domain stands for, and how HAVING compares it."""

from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Literal, assert_never

from confide.query.tree import BinnedKey, DeclaredKey, Key, UnknownKey

_EXACT = 2.0**53
_EPOCH = date(1970, 1, 1)
HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


def key_kind(key: Key) -> Literal["text", "integer", "number", "boolean", "date"]:
    """Of what kind the values of a key are."""
    match key:
        case DeclaredKey(values=values):
            return "text" if isinstance(values[0], str) else "boolean" if isinstance(values[0], bool) else "integer"
        case BinnedKey(labels=(bool(), *_)):
            return "boolean"
        case BinnedKey(labels=(str(), *_)):
            return "text"
        case BinnedKey(kind="date") | BinnedKey(labels=(date(), *_)):
            return "date"
        case BinnedKey():
            return "integer" if whole(key) else "number"
        case UnknownKey():
            return "text"
    assert_never(key)


def spelled(key: Key, place: Any) -> Any:
    """A key's value as it is shown; places of keys of undeclared domain are their values."""
    match key:
        case DeclaredKey(values=values):
            return values[place]
        case BinnedKey(number=number, first=first, width=width, kind=kind):
            if place == key.count:
                return None
            if key.labels:
                label = key.labels[place]
                return _plain(label) if isinstance(label, Fraction) else label
            index = first + place * width
            if kind == "date":
                return _EPOCH + timedelta(days=index)
            value = index * number.span.grain
            return int(value) if whole(key) else float(value)
        case UnknownKey():
            return place
    assert_never(key)


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def whole(key: BinnedKey) -> bool:
    """Whether every bin begins at a whole number."""
    if key.labels:
        return all(isinstance(label, Fraction) and label.denominator == 1 for label in key.labels)
    grain = key.number.span.grain
    return (grain * key.first).denominator == 1 and (grain * key.width).denominator == 1


def key_holds(key: Key, place: Any, operation: str, constant: str | bool) -> bool:
    """Whether HAVING holds for a key's value, as it is printed. Nothing equals NULL, or differs from it."""
    value = spelled(key, place)
    return value is not None and bool(HOLDS[operation](_text(value), _text(constant)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))  # as a constant without a fraction is written
    return str(Fraction(value)) if isinstance(value, int) else str(value)
