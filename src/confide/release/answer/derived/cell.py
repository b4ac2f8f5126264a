"""Cells of derived tables: what each is made of, down to single noised numbers, so that no noise is counted twice.

A sum of noised integers, each times a fixed number, is kept as that: its law is known. Everything else is a function
of such sums and of other released numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Atom = tuple[int, int, int]
"""A noised integer: of which question, which measure, which group."""
Touched = frozenset[tuple[int, int]]
"""Groups of questions: what is released of two different ones has independent noise."""


def together(parts: Iterable[Touched]) -> Touched:
    """Their union. Where one of them holds all others it is that one: so the rows of a table have one set, and not as
    many of that size as there are rows.
    """
    every = list(parts)
    largest = max(every, key=len, default=frozenset())
    return largest if all(own is largest or own <= largest for own in every) else largest.union(*every)


class DerivedCell:
    """`pieces`: the noisy parts, of which each interval is computed by itself; `touched`: where its noise is from."""

    __slots__ = ("pieces", "touched")

    pieces: frozenset[Any] | None
    touched: Touched | None

    def __init__(self) -> None:
        self.pieces = None
        self.touched = None


class PublicCell(DerivedCell):
    """A key, a constant, or what follows from them. Numbers are fractions; None is NULL."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class LeafCell(DerivedCell):
    """A value of a question in one of its groups."""

    __slots__ = ("column", "group", "question")

    def __init__(self, question: int, column: int, group: int) -> None:
        super().__init__()
        self.question, self.column, self.group = question, column, group


class SumCell(DerivedCell):
    """Σ coefficient × noised integer + constant."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[Atom, Fraction], constant: Fraction) -> None:
        super().__init__()
        self.terms, self.constant = terms, constant


class MadeCell(DerivedCell):
    """A function of other cells."""

    __slots__ = ("function", "parts")

    def __init__(self, function: str, parts: Sequence[DerivedCell]) -> None:
        super().__init__()
        self.function, self.parts = function, tuple(parts)


TRUE, NOTHING = PublicCell(True), PublicCell(None)


def as_number(value: Any) -> Any:
    """A key's value as a cell holds it."""
    return Fraction(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
