"""Intervals of cells. What a cell is made of is taken apart into noisy pieces, each with a part of its miss rate.

A piece is a sum of noised integers, whose law is known (`mechanism.interval.linear`), or a released number with an
interval of its own. With K different pieces each has the miss rate divided by K, so that all hold together with the
confidence (Bonferroni); then interval arithmetic bounds the cell. A piece that stands in a cell twice counts once, and
so do pieces that are multiples of one another.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import Any, Final

import numpy as np

from confide.mechanism.interval.interval import bounded_ends, nearest_double
from confide.mechanism.interval.many_terms import repeated_half_width
from confide.mechanism.interval.ratio import ratio_estimates, ratio_intervals
from confide.mechanism.noise.law import Confidence
from confide.release.answer.derived.answered_numbers import AnsweredNumbers
from confide.release.answer.derived.cell import (
    Atom,
    DerivedCell,
    LeafCell,
    MadeCell,
    PublicCell,
    SumCell,
    Touched,
    together,
)
from confide.release.answer.derived.cell_function import FUNCTIONS
from confide.release.answer.derived.cell_range import CellRange, double, number, point
from confide.release.answer.derived.gather import gathered
from confide.release.answer.derived.part_of_sum import PartsOfSums
from confide.release.answer.derived.ranking import (
    Places,
    RankCell,
    Ranking,
    RunningCell,
    halves,
    places_of,
    rank_range,
    running_range,
    uniform,
)

_FEW: Final = 8
Linear = tuple[dict[Atom, Fraction], Fraction]


class CellEvaluation:
    """Evaluates cells over what the questions of a derivation released. Total: it never raises."""

    def __init__(self, sources: Sequence[AnsweredNumbers], confidence: Confidence) -> None:
        self.sources = sources
        self.confidence = confidence
        self._ranges: dict[tuple[int, Confidence], tuple[DerivedCell, CellRange]] = {}
        self._places: dict[tuple[int, Confidence], tuple[Ranking, list[tuple[float, float]], Places]] = {}
        self._laws: dict[Ranking, Any] = {}
        self._orders: dict[Ranking, Touched] = {}
        self._halves: dict[Any, Fraction] = {}
        self._parts_of_sums = PartsOfSums(self)

    def value(self, cell: DerivedCell) -> Any:
        """The estimate."""
        return self.range(cell, self.confidence).value

    def range(self, cell: DerivedCell, confidence: Confidence) -> CellRange:
        """The estimate, and ends that hold with the confidence."""
        return self._range(cell, 1 - (1 - Fraction(confidence)) / self.share(cell))

    def share(self, cell: DerivedCell) -> int:
        """How many pieces share the miss rate of a cell, rounded up so that few different levels are needed."""
        return rounded_up(self.count(cell))

    def count(self, cell: DerivedCell) -> int:
        return max(1, sum(1 if not isinstance(piece, Ranking) else self._shared(piece) for piece in self.pieces(cell)))

    # --- what a cell is made of ---------------------------------------------------------------------------------------

    def linear(self, cell: DerivedCell) -> Linear | None:
        """A cell as a sum of noised integers, if it is one."""
        if isinstance(cell, SumCell):
            return dict(cell.terms), cell.constant
        if isinstance(cell, PublicCell):
            return ({}, cell.value) if isinstance(cell.value, Fraction) else None
        if isinstance(cell, LeafCell):
            found = self.sources[cell.question].linears[cell.column]
            if found is not None:
                terms, constant = found
                return {(cell.question, measure, cell.group): own for measure, own in terms.items()}, constant
        return None

    def pieces(self, cell: DerivedCell) -> frozenset[Any]:
        if cell.pieces is None:
            cell.pieces = self._pieces(cell)
        return cell.pieces

    def _pieces(self, cell: DerivedCell) -> frozenset[Any]:
        match cell:
            case PublicCell():
                return frozenset()
            case MadeCell():
                share = self._parts_of_sums.piece(*cell.parts) if cell.function == "/" else None
                if share is not None:
                    return frozenset((share,))
                pair = self._pair(*cell.parts) if cell.function == "/" else None
                if pair is not None:
                    return frozenset(((pair[0][0], pair[1][0], "ratio"),))
                return frozenset().union(*(self.pieces(part) for part in cell.parts))
            case RankCell():
                return frozenset((cell.ranking,))
            case RunningCell():
                return frozenset((cell.ranking,)).union(*(self.pieces(part) for part in cell.values))
        linear = self.linear(cell)
        if linear is None:
            assert isinstance(cell, LeafCell)
            return frozenset(((cell.question, cell.column, cell.group, "leaf"),))
        terms = sorted(linear[0].items())
        if not terms:
            return frozenset()
        if len(terms) == 1:
            return frozenset((terms[0][0],))
        first = terms[0][1]
        return frozenset((tuple((atom, own / first) for atom, own in terms),))

    def touched(self, cell: DerivedCell) -> Touched:
        """The groups whose noise a cell depends on."""
        if cell.touched is None:
            cell.touched = self._touched(cell)
        return cell.touched

    def _touched(self, cell: DerivedCell) -> Touched:
        match cell:
            case PublicCell():
                return frozenset()
            case LeafCell():
                return frozenset(((cell.question, cell.group),))
            case SumCell():
                return frozenset((question, group) for question, _, group in cell.terms)
            case MadeCell():
                return together(self.touched(part) for part in cell.parts)
            case RankCell():
                return self._touched_by(cell.ranking)
            case RunningCell():
                return together((self._touched_by(cell.ranking), *map(self.touched, cell.values)))
        raise TypeError(type(cell).__name__)

    def _touched_by(self, ranking: Ranking) -> Touched:
        """What any place in a ranking depends on: one set for all of them."""
        if ranking not in self._orders:
            parts = [own for own in (*ranking.cells, *ranking.there) if own is not None]
            self._orders[ranking] = frozenset().union(*map(self.touched, parts))
        return self._orders[ranking]

    # --- intervals ----------------------------------------------------------------------------------------------------

    def _range(self, cell: DerivedCell, level: Confidence) -> CellRange:
        """With every piece at a level."""
        known = self._ranges.get((id(cell), level))
        if known is None:
            try:
                made = self._made(cell, level)
            except (ArithmeticError, ValueError):  # all of this runs after a charge: what cannot be told is unknown
                made = CellRange(None, -inf, inf, missing=True)
            known = (cell, made)  # the cell is kept, so that its id stays its own
            self._ranges[id(cell), level] = known
        return known[1]

    def _made(self, cell: DerivedCell, level: Confidence) -> CellRange:
        match cell:
            case PublicCell():
                return point(cell.value)
            case LeafCell():
                return self._leaf(cell, level)
            case SumCell():
                return self._sum(cell.terms, cell.constant, level)
            case RankCell():
                ends, places = self._ranked(cell.ranking, level)
                return rank_range(cell, places, self._assumptions(cell.ranking, level))
            case RunningCell():
                ends, places = self._ranked(cell.ranking, level)
                return running_range(cell, ends, [self._range(own, level) for own in cell.values], places)
            case MadeCell():
                if cell.function.startswith("gather "):
                    ranges = [self._range(part, level) for part in cell.parts]
                    return gathered(cell.function[7:], list(zip(ranges[::2], ranges[1::2], strict=True)))
                if cell.function == "/":
                    share = self._parts_of_sums.range(cell.parts[0], cell.parts[1], level)
                    ratio = share if share is not None else self._ratio(cell.parts[0], cell.parts[1], level)
                    if ratio is not None:
                        return ratio
                return FUNCTIONS[cell.function]([self._range(part, level) for part in cell.parts])
        raise TypeError(type(cell).__name__)

    def _leaf(self, cell: LeafCell, level: Confidence) -> CellRange:
        source = self.sources[cell.question]
        if not source.promised(cell.column, level):
            made = source.estimate(cell.column, source.confidence)
            return CellRange(made.values[cell.group], -inf, inf, False, False, made.assumes)
        made = source.estimate(cell.column, level)
        value, low, high = (part[cell.group] for part in (made.values, made.low, made.high))
        if made.whole:
            return CellRange(int(value), int(low), int(high), False, True, made.assumes)
        return CellRange(float(value), float(low), float(high), False, False, made.assumes)

    def _sum(self, terms: Any, constant: Fraction, level: Confidence) -> CellRange:
        """By the law of all its noise together."""
        laws = self._signature(terms)
        half = self._half(laws, level)
        exact = constant + sum((own * self.measured(atom) for atom, own in terms.items()), Fraction(0))
        low, high = self._bounds(terms, constant)
        whole = all(own.denominator == 1 for own in terms.values()) and constant.denominator == 1
        one = half
        twice = 2 * Fraction(level) - 1
        near = (low is not None and exact < low + 2 * half) or (high is not None and exact > high - 2 * half)
        if near and twice > 0:
            one = min(half, self._half(laws, twice))
        if whole:
            ends = bounded_ends(
                np.array([int(exact)], dtype=object), math.ceil(half), math.ceil(one),
                None if low is None else math.ceil(low), None if high is None else math.floor(high),
            )  # fmt: skip
            value, least, most = (int(part[0]) for part in ends)
            return CellRange(value, least, most, whole=True)
        ends = bounded_ends(np.array([exact], dtype=object), half, one, low, high)
        shown, low_end, high_end = (nearest_double(Fraction(part[0])) for part in ends)
        return number(shown, low_end, high_end, ())

    def half_width(self, cell: DerivedCell, confidence: Confidence) -> float | None:
        """Of a sum of noise, whose law alone says it; None for anything else."""
        linear = self.linear(cell)
        return None if linear is None else nearest_double(self._half(self._signature(linear[0]), confidence))

    def _signature(self, terms: Any) -> tuple[Any, ...]:
        """Coefficients with their laws, each with how often it is there."""
        found: dict[Any, int] = {}
        for (question, measure, _), own in terms.items():
            key = (abs(own), self.sources[question].measurements[measure].law)
            found[key] = found.get(key, 0) + 1
        return tuple(sorted(((key, count) for key, count in found.items()), key=repr))

    def _half(self, laws: tuple[Any, ...], level: Confidence) -> Fraction:
        if (laws, level) not in self._halves:
            terms = [(coefficient, law, count) for (coefficient, law), count in laws]
            self._halves[laws, level] = Fraction(repeated_half_width(terms, level))
        return self._halves[laws, level]

    def measured(self, atom: Atom) -> int:
        """A noised integer."""
        question, measure, group = atom
        return int(self.sources[question].evaluator.measurements[measure].values[group])

    def _bounds(self, terms: Any, constant: Fraction) -> tuple[Fraction | None, Fraction | None]:
        """Between which a sum lies, as far as that is known."""
        low: Fraction | None = constant
        high: Fraction | None = constant
        for (question, place, _), own in terms.items():
            measure = self.sources[question].question.measures[place]
            least, most = (measure.floor, measure.ceiling)[:: 1 if own >= 0 else -1]
            low = None if low is None or least is None else low + own * least
            high = None if high is None or most is None else high + own * most
        return low, high

    def _pair(
        self, top: DerivedCell, bottom: DerivedCell
    ) -> tuple[tuple[Atom, Fraction], tuple[Atom, Fraction]] | None:
        """Two different noised integers, each times a number, that are divided."""
        one, two = self.linear(top), self.linear(bottom)
        if one is None or two is None or one[1] or two[1] or len(one[0]) != 1 or len(two[0]) != 1:
            return None
        (above,), (below,) = one[0].items(), two[0].items()
        return None if above[0] == below[0] else (above, below)

    def _ratio(self, top: DerivedCell, bottom: DerivedCell, level: Confidence) -> CellRange | None:
        """Of two noised integers, by the joint law of their noise: one piece."""
        pair = self._pair(top, bottom)
        if pair is None:
            return None
        (above, over), (below, under) = pair
        (one, two), (floor, other) = (
            [self.sources[q].measurements[m].law for q, m, _ in (above, below)],
            [self.sources[q].question.measures[m].floor for q, m, _ in (above, below)],
        )
        first, second = (np.array([self.measured(atom)], dtype=object) for atom in (above, below))
        nonnegative = other == 0
        least = 0.0 if nonnegative and floor == 0 else -inf
        found = ratio_intervals(first, second, one, two, level, low=least, denominator_nonnegative=nonnegative)
        middle = ratio_estimates(first, second, found, denominator_nonnegative=nonnegative)
        scale = double(over / under)
        low, high = sorted((float(found.low[0]) * scale, float(found.high[0]) * scale))
        return number(float(middle[0]) * scale, low, high, ())

    # --- ranks --------------------------------------------------------------------------------------------------------

    def _shared(self, ranking: Ranking) -> int:
        """How many pieces a place in a ranking depends on."""
        there = [own for own in ranking.there if own is not None]
        extra = sum(self.count(own) for own in there)
        if self._law(ranking) is not None:
            return len(ranking) - 1 + extra
        return extra + sum(self.count(own) for own in ranking.cells if own is not None)

    def _law(self, ranking: Ranking) -> Any:
        """The one law that all rows of a ranking have, with no noise in two of them; None if there is none."""
        if ranking not in self._laws:
            found = [None if own is None else self.linear(own) for own in ranking.cells]
            signatures = [None if own is None else self._signature(own[0]) for own in found]
            touched = [self.touched(own) for own in ranking.cells if own is not None]
            apart = sum(map(len, touched)) == len(frozenset().union(*touched)) if touched else False
            self._laws[ranking] = signatures[0] if len(ranking) > 1 and apart and uniform(signatures) else None
        return self._laws[ranking]

    def _ranked(self, ranking: Ranking, level: Confidence) -> tuple[list[tuple[float, float]], Places]:
        known = self._places.get((id(ranking), level))
        if known is None:
            law = self._law(ranking)
            if law is not None:
                doubled = tuple((own, 2 * count) for own, count in law)
                exact = []
                for own in ranking.cells:
                    terms, constant = self.linear(own)  # type: ignore[misc, arg-type]
                    exact.append(constant + sum((c * self.measured(a) for a, c in terms.items()), Fraction(0)))
                ends = halves(exact, self._half(doubled, level))
            else:
                ends = [(0.0, 0.0) if own is None else _span(self._range(own, level)) for own in ranking.cells]
            if ranking.descending:
                ends = [(-high, -low) for low, high in ends]
            there = [(True, True) if own is None else _there(self._range(own, level)) for own in ranking.there]
            known = (ranking, ends, places_of(ranking.classes, ends, there))
            self._places[id(ranking), level] = known
        return known[1], known[2]

    def _assumptions(self, ranking: Ranking, level: Confidence) -> list[CellRange]:
        if self._law(ranking) is not None:
            return []
        return [self._range(own, level) for own in ranking.cells if own is not None]


def _span(own: CellRange) -> tuple[float, float]:
    """NULLs come last: they are as far as can be."""
    if own.low is None or isinstance(own.low, bool):
        return (float(own.low), float(own.high)) if own.low is not None else (inf, inf)
    return double(own.low), double(own.high)


def _there(own: CellRange) -> tuple[bool, bool]:
    return own.low is True and not own.missing, own.high is True


def rounded_up(count: int) -> int:
    """A few counts stand for all: up to a tenth more."""
    if count <= _FEW:
        return count
    step = 1 << (count.bit_length() - 4)
    return -(-count // step) * step
