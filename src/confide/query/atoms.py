"""The atoms of several counts: rows that every one of the counts adds up alike, as conditions that no two rows share.

Counts of one question often overlap: ages below 10, below 20, and all of these by sex. What they say of a row follows
from a few classes of values of each column, and so from the text and the policy alone. Classes of several columns
together are joined to atoms wherever no count tells them apart; rows that no count has are in none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.policy import Category
from confide.privacy.limits import MOST_ATOMS
from confide.query.comparison import Operation
from confide.query.tree import (
    Always,
    Among,
    Both,
    Cell,
    Choice,
    Compare,
    Constant,
    Either,
    Field,
    Known,
    Number,
    OneOf,
    Predicate,
    Reading,
    Scaled,
    Span,
)

MOST_TOGETHER: Final = 1 << 14
"""Classes of all columns together."""
MOST_VALUES: Final = 10_000
"""Of a declared column, to tell classes of."""
MOST_BOXES: Final = 1_024
"""Of products of classes that all atoms are written out by."""

Name = tuple[str, str]
Value = str | int | bool | None
Mask = NDArray[np.bool_]
Weights = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Atoms:
    """Conditions of which a row passes one at most, and what a row that does adds to each of some cells."""

    conditions: tuple[Predicate, ...]
    weights: tuple[tuple[int, ...], ...]
    """For each cell a number for each atom."""
    whole: bool
    """Whether every row passes one of them, if it is counted at all."""


class _UntoldError(Exception):
    """Something that these classes do not tell."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column in classes: pieces of its range, both ends included, or values; None stands for NULL."""

    subject: Field | Reading
    classes: tuple[tuple[Any, ...], ...]

    def holds(self, test: Any) -> Mask:
        return np.array([test(_shown(own[0])) for own in self.classes], dtype=bool)

    def condition(self, chosen: Sequence[int]) -> Predicate | None:
        """That the column is in one of the classes; None if it always is."""
        if len(chosen) == len(self.classes):
            return None
        parts = [part for place in chosen for part in self.classes[place]]
        found: list[Predicate] = [Known(self.subject, negated=True)] if None in parts else []
        known = [part for part in parts if part is not None]
        if known and len(known) == sum(part is not None for own in self.classes for part in own):
            found.append(Known(self.subject, negated=False))
        elif isinstance(self.subject, Field):
            found += [Among(self.subject, tuple(known))] if known else []
        else:
            found += [_between(self.subject, low, high) for low, high in _merged(sorted(known))]
        return found[0] if len(found) == 1 else Either(tuple(found))


def atoms_of(cells: Sequence[Cell], where: Predicate) -> Atoms | None:
    """The atoms of counts, or sums of constants, among rows that pass `where`; None if they are not told, or many."""
    try:
        return _atoms(cells, where)
    except _UntoldError:
        return None


def _atoms(cells: Sequence[Cell], where: Predicate) -> Atoms:
    nodes: list[Predicate | Number | Field | None] = [part for cell in cells for part in (cell.where, cell.subject)]
    leaves = [leaf for node in nodes for leaf in _leaves(node)]
    spoken = {_name(leaf) for leaf in leaves}
    passing = [own for own in (where.parts if isinstance(where, Both) else (where,)) if _speaks_of(own, spoken)]
    leaves += [leaf for own in passing for leaf in _leaves(own)]
    axes = {name: _axis([leaf for leaf in leaves if _name(leaf) == name]) for name in sorted(spoken)}
    shape = tuple(len(axis.classes) for axis in axes.values())
    if prod(shape) > MOST_TOGETHER:
        raise _UntoldError
    table = _Table(axes, shape)
    weights = np.stack([np.broadcast_to(table.weight(cell), shape).reshape(-1) for cell in cells])
    possible = np.ones(shape, dtype=bool)
    for own in passing:
        possible = possible & table.holds(own)
    told, places = np.unique(weights[:, possible.reshape(-1)], axis=1, return_inverse=True)
    numbers = np.full(prod(shape), -1)
    numbers[possible.reshape(-1)] = places.reshape(-1)
    kept = [number for number in range(told.shape[1]) if told[:, number].any()]
    if not 1 <= len(kept) <= MOST_ATOMS:
        raise _UntoldError
    lines, boxes, conditions = list(axes.values()), 0, []
    for number in kept:
        parts = list(_boxes((numbers == number).reshape(shape), lines))
        boxes += len(parts)
        if boxes > MOST_BOXES:
            raise _UntoldError
        conditions.append(parts[0] if len(parts) == 1 else Either(tuple(parts)))
    rows = tuple(tuple(int(own[number]) for number in kept) for own in told)
    return Atoms(tuple(conditions), rows, len(kept) == told.shape[1])


# --- classes of a column ----------------------------------------------------------------------------------------------


def _leaves(node: object) -> Iterator[Predicate]:
    """The conditions on one column each that an expression is made of."""
    match node:
        case None | Always() | Constant():
            return
        case Both(parts) | Either(parts):
            for part in parts:
                yield from _leaves(part)
        case Choice(branches, otherwise):
            for condition, value in branches:
                yield from _leaves(condition)
                yield from _leaves(value)
            yield from _leaves(otherwise)
        case Field() if isinstance(node.column, Category):
            yield Known(node, negated=False)
        case Reading() | Scaled():
            yield Known(node, negated=False)
        case Compare() | OneOf() | Among() | Known():
            yield node
        case _:
            raise _UntoldError


def _name(leaf: Predicate) -> Name:
    subject = _subject(leaf)
    field = subject if isinstance(subject, Field) else subject.field
    return field.source, field.name


def _subject(leaf: Predicate) -> Field | Reading:
    match leaf:
        case Among(field):
            return field
        case Known(Field() as field) if isinstance(field.column, Category):
            return field
        case Known(subject) if not isinstance(subject, Field):
            return _line(subject)[0]
        case OneOf(subject):
            return _line(subject)[0]
        case Compare(_, left, right):
            return _line(right if isinstance(left, Constant) else left)[0]
    raise _UntoldError


def _line(number: Number) -> tuple[Reading, int, int]:
    """A column times a factor plus an offset, in indices."""
    factor, offset = 1, 0
    while isinstance(number, Scaled):
        factor, offset = factor * number.factor, offset + factor * number.offset
        number = number.inner
    if not isinstance(number, Reading) or not factor:
        raise _UntoldError
    return number, factor, offset


def _speaks_of(condition: Predicate, spoken: set[Name]) -> bool:
    try:
        found = {_name(leaf) for leaf in _leaves(condition)}
    except _UntoldError:
        return False
    return bool(found) and found <= spoken


def _axis(leaves: Sequence[Predicate]) -> _Axis:
    subjects = [_subject(leaf) for leaf in leaves]
    first = subjects[0]
    pieces: list[Any]
    if isinstance(first, Field):
        assert isinstance(first.column, Category)
        if len(first.column.values) > MOST_VALUES:
            raise _UntoldError
        pieces = [*first.column.values, None]
    else:
        spans = [own.span for own in subjects if isinstance(own, Reading)]
        if len({(own.low, own.high, own.grain) for own in spans}) > 1:
            raise _UntoldError
        ends = sorted({first.span.low, *(cut for leaf in leaves for cut in _cuts(leaf, first.span))})
        pieces = [(low, high - 1) for low, high in zip(ends, [*ends[1:], first.span.high + 1], strict=True)]
        if any(own.nullable for own in spans):
            pieces.append(None)
    classes: dict[tuple[bool, ...], list[Any]] = {}
    tests = dict.fromkeys(leaves)
    for piece in pieces:
        classes.setdefault(tuple(_passes(leaf, _shown(piece)) for leaf in tests), []).append(piece)
    return _Axis(first, tuple(map(tuple, classes.values())))


def _cuts(leaf: Predicate, span: Span) -> Iterator[int]:
    """Indices at which a condition may change: each constant begins a piece, and what comes after it another."""
    match leaf:
        case Compare(_, left, right):
            number, constant = (right, left) if isinstance(left, Constant) else (left, right)
            if not isinstance(constant, Constant):
                raise _UntoldError
            places: tuple[int, ...] = (constant.index,)
            line = _line(number)
        case OneOf(subject, indices):
            places, line = indices, _line(subject)
        case _:
            return
    _, factor, offset = line
    for place in places:
        cut = (place - offset) // factor
        yield from (own for own in (cut, cut + 1) if span.low < own <= span.high)


def _shown(piece: Any) -> Value:
    """One value of a piece."""
    value: Value = piece[0] if isinstance(piece, tuple) else piece
    return value


def _passes(leaf: Predicate, value: Value) -> bool:
    """Whether a value passes; NULL passes nothing but IS NULL."""
    match leaf:
        case Known(_, negated):
            return (value is None) == negated
        case _ if value is None:
            return False
        case Among(_, values):
            return any(value == own and isinstance(value, bool) == isinstance(own, bool) for own in values)
        case OneOf(subject, indices, negated):
            return (_index(subject, value) in indices) != negated
        case Compare(operation, left, right):
            return bool(_COMPARED[operation](_index(left, value), _index(right, value)))
    raise _UntoldError


def _index(number: Number, value: Value) -> int:
    if isinstance(number, Constant):
        return number.index
    _, factor, offset = _line(number)
    assert isinstance(value, int)
    return value * factor + offset


_COMPARED: Final[dict[Operation, Any]] = {
    "<": int.__lt__,
    "<=": int.__le__,
    "=": int.__eq__,
    "<>": int.__ne__,
    ">=": int.__ge__,
    ">": int.__gt__,
}


# --- classes of all columns together ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """Arrays over the classes of all columns."""

    axes: dict[Name, _Axis]
    shape: tuple[int, ...]

    def holds(self, node: Predicate) -> Any:
        match node:
            case Always(holds):
                return np.broadcast_to(np.bool_(holds), self.shape)
            case Both(parts):
                return np.logical_and.reduce(np.broadcast_arrays(*map(self.holds, parts)))
            case Either(parts):
                return np.logical_or.reduce(np.broadcast_arrays(*map(self.holds, parts)))
        name = _name(node)
        shape = [1] * len(self.shape)
        shape[list(self.axes).index(name)] = -1
        return np.broadcast_to(self.axes[name].holds(lambda value: _passes(node, value)).reshape(shape), self.shape)

    def weight(self, cell: Cell) -> Weights:
        """What a row adds to a cell."""
        inside = self.holds(cell.where)
        match cell.kind, cell.subject:
            case "rows", None:
                return np.asarray(inside, dtype=np.int64)
            case "known", subject if subject is not None:
                return np.asarray(inside & self._known(subject), dtype=np.int64)
            case "total", Choice() as subject:
                known, value = self._chosen(subject)
                return np.where(inside & known, value, 0)
        raise _UntoldError

    def _known(self, subject: Field | Number) -> Any:
        if isinstance(subject, Choice):
            return self._chosen(subject)[0]
        return self.holds(Known(subject, negated=False))

    def _chosen(self, subject: Choice) -> tuple[Any, Weights]:
        """Where a choice of constants is known, and its index."""
        known, value = np.zeros(self.shape, dtype=bool), np.zeros(self.shape, dtype=np.int64)
        left = np.ones(self.shape, dtype=bool)
        for condition, number in (*subject.branches, (Always(True), subject.otherwise)):
            here = left & self.holds(condition)
            left = left & ~here
            if number is None:
                continue
            if not isinstance(number, Constant) or abs(number.index) >= 1 << 31:
                raise _UntoldError
            known, value = known | here, np.where(here, number.index, value)
        return known, value


def _boxes(mask: Mask, axes: Sequence[_Axis]) -> Iterator[Predicate]:
    """Products of classes that make up a set of them, each as a condition."""
    if not axes:
        if mask:
            yield Always(True)
        return
    slices: dict[bytes, list[int]] = {}
    for place in range(len(mask)):
        if mask[place].any():
            slices.setdefault(mask[place].tobytes(), []).append(place)
    for places in slices.values():
        own = axes[0].condition(places)
        for rest in _boxes(mask[places[0]], axes[1:]):
            parts = [part for part in (own, rest) if part is not None and part != Always(True)]
            flat = [part for node in parts for part in (node.parts if isinstance(node, Both) else (node,))]
            yield Always(True) if not flat else flat[0] if len(flat) == 1 else Both(tuple(flat))


def _between(subject: Reading, low: int, high: int) -> Predicate:
    span = subject.span

    def constant(index: int) -> Constant:
        return Constant(index, Span(index, index, span.grain, nullable=False, date=span.date))

    if low == high:
        return Compare("=", subject, constant(low))
    ends: list[Predicate] = [Compare(">=", subject, constant(low))] if low > span.low else []
    ends += [Compare("<=", subject, constant(high))] if high < span.high else []
    return ends[0] if len(ends) == 1 else Both(tuple(ends))


def _merged(pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in pieces:
        if found and found[-1][1] + 1 == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return found
