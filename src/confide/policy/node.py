"""A document as a tree whose every node knows its line, made from YAML or from plain Python values.

Numbers are exact from the start: `0.01` is 1/100, never the nearest binary fraction.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from types import MappingProxyType

Path = tuple[str | int, ...]
"""The keys and positions that lead from the root of a policy to a place in it."""

DEPTH_LIMIT = 40
NODES_LIMIT = 1_000_000

Scalar = None | bool | int | Fraction | float | str | date
"""A float is only ever a number that cannot be used: not finite, or of absurd length."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value; `text` is how it was written and `blank` whether it is a blank that was never filled in."""

    value: Scalar
    text: str
    line: int | None = None
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of nodes."""

    items: tuple["Node", ...]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Named nodes in their order; `key_lines` says where each name stands."""

    entries: Mapping[str, "Node"] = field(hash=False)
    line: int | None = None
    key_lines: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", MappingProxyType(dict(self.entries)))


Node = Leaf | Listing | Block


class UnreadableError(Exception):
    """The document cannot be read any further: what is wrong, what to do, and the line."""

    def __init__(self, what: str, advice: str = "", line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.advice, self.line = what, advice, line


def line_at(root: Node | None, path: Path) -> int | None:
    """The line of the deepest node on the path that exists."""
    line = None if root is None else root.line
    node: Node | None = root
    for step in path:
        if isinstance(node, Block) and isinstance(step, str) and step in node.entries:
            line = node.key_lines.get(step, line)
            node = node.entries[step]
            if isinstance(node, Leaf) and node.line is not None:
                line = node.line
        elif isinstance(node, Listing) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            line = line if node.line is None else node.line
        else:
            break
    return line


_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_RATIO = re.compile(r"([-+]?[0-9]{1,60})/([0-9]{1,60})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BLANK = re.compile(r"_{3,}")
_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER_LENGTH = 60
_EXPONENT = 300


def plain_leaf(text: str, line: int | None) -> Leaf:
    """An unquoted YAML scalar. `no`, `on`, `N` and `01234` stay strings: only `true` and `false` are truth values."""
    return Leaf(_plain_value(text), text, line, blank=_BLANK.fullmatch(text) is not None)


def _plain_value(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return math.nan
    if (day := read_day(text)) is not None:
        return day
    # A leading zero means a code, such as a post code, and the zero would be lost in a number.
    if _DECIMAL.fullmatch(text) is None or (_LEADING_ZERO.match(text) and "." not in text):
        return text
    exponent = re.search(r"[eE]([-+]?[0-9]+)$", text)
    if len(text) > _NUMBER_LENGTH or (exponent is not None and abs(int(exponent[1])) > _EXPONENT):
        return math.nan
    if _INTEGER.fullmatch(text):
        return int(text)
    number = Fraction(text)
    # `1e6` is a whole number; `1.0` was written as a decimal, so its column is not taken to be whole.
    return int(number) if "." not in text and number.denominator == 1 else number


def read_day(text: str) -> date | None:
    """The day that `2024-01-31` stands for; None if the calendar has no such day."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def ratio(text: str) -> Fraction | None:
    """The number that `1/3` stands for, where a number is expected."""
    match = _RATIO.fullmatch(text)
    return Fraction(int(match[1]), int(match[2])) if match is not None and int(match[2]) != 0 else None


def from_python(value: object, depth: int = 0) -> Node:
    """The tree of a dict of dicts, lists and scalars; a float means the decimal that it prints as."""
    if depth > DEPTH_LIMIT:
        raise UnreadableError(f"the policy is nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, Mapping):
        entries: dict[str, Node] = {}
        for key, item in value.items():
            if not isinstance(key, str | int):
                raise UnreadableError(f"the key {key!r} is not a string", "write every key as a string")
            if str(key) in entries:
                raise UnreadableError(f"the key {str(key)!r} is given twice, as a string and as a number")
            entries[str(key)] = from_python(item, depth + 1)
        return Block(entries)
    if isinstance(value, list | tuple | range):
        return Listing(tuple(from_python(item, depth + 1) for item in value))
    if isinstance(value, set | frozenset):
        raise UnreadableError("a set has no order", "write a list")
    return _python_leaf(value)


def _python_leaf(value: object) -> Leaf:
    match value:
        case None | bool():
            return Leaf(value, str(value))
        case str():
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise UnreadableError(f"the string {value!r} holds half a character", "no text file can hold it")
            return Leaf(str(value), str(value))
        case Rational():
            if max(abs(int(value.numerator)), int(value.denominator)) >= 10**_NUMBER_LENGTH:
                return Leaf(math.nan, f"a number of more than {_NUMBER_LENGTH} digits")
            return Leaf(int(value) if isinstance(value, Integral) else Fraction(value), str(value))
        case float() | Decimal():
            text = repr(float(value)) if isinstance(value, float) else str(value)
            return Leaf(_plain_value(text) if math.isfinite(value) else math.nan, text)
        case datetime():
            return Leaf(str(value), str(value))
        case date():
            return Leaf(value, str(value))
    what = f"a value of type {type(value).__name__} cannot stand in a policy"
    raise UnreadableError(what, "use strings, numbers, dates, lists and dicts")
