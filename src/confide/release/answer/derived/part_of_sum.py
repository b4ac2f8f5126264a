"""Shares over a sum that holds what is divided: `n / SUM(n) OVER ()`. Part and rest have independent noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from confide.mechanism.interval.share import share_interval
from confide.mechanism.noise.law import Confidence
from confide.release.answer.derived.cell import Atom, DerivedCell
from confide.release.answer.derived.cell_range import CellRange, double, number

if TYPE_CHECKING:
    from confide.release.answer.derived.cell_evaluation import CellEvaluation

Laws = dict[tuple[Fraction, Any], int]
"""Coefficients with their laws, each with how often it is there."""


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """A divisor: what was measured of it, its noise, and whether no term of it is below 0. The cell keeps its id."""

    cell: DerivedCell
    terms: Mapping[Atom, Fraction]
    constant: Fraction
    measured: Fraction
    laws: Laws
    nonnegative: bool


class PartsOfSums:
    """Finds shares, and gives their intervals. A divisor that many rows have is taken apart once."""

    def __init__(self, evaluation: "CellEvaluation") -> None:
        self._evaluation = evaluation
        self._wholes: dict[int, _Whole | None] = {}

    def piece(self, top: DerivedCell, bottom: DerivedCell) -> Any:
        """What tells a share from others, the constant beside the rest among it; None if it is none."""
        found = self._found(top, bottom)
        if found is None:
            return None
        part, whole, _ = found
        beside = whole.constant / whole.terms[min(whole.terms)]
        return tuple(sorted(part)), self._evaluation.pieces(bottom), beside, "share"

    def range(self, top: DerivedCell, bottom: DerivedCell, level: Confidence) -> CellRange | None:
        """Ends of a share; None if it is none."""
        found = self._found(top, bottom)
        if found is None:
            return None
        part, whole, times = found
        own, rest = self._laws(part), dict(whole.laws)
        for key, count in own.items():
            rest[key] -= count
        measured = sum((factor * self._evaluation.measured(atom) for atom, factor in part.items()), Fraction(0))
        low, high = share_interval(measured, whole.measured, _listed(own), _listed(rest), level, least=whole.constant)
        value = double(measured / whole.measured) if whole.measured > 0 else low / 2 + high / 2
        scale = double(1 / times)
        return number(min(max(value, low), high) * scale, low * scale, high * scale, ())

    def _found(self, top: DerivedCell, bottom: DerivedCell) -> tuple[dict[Atom, Fraction], _Whole, Fraction] | None:
        """The part as it stands in the whole, and by how much it is more there than in what is divided."""
        own, whole = self._evaluation.linear(top), self._whole(bottom)
        if own is None or whole is None or not whole.nonnegative or own[1] or not own[0]:
            return None
        part = {atom: whole.terms.get(atom, Fraction(0)) for atom in own[0]}
        times = {part[atom] / factor for atom, factor in own[0].items()}
        if len(times) > 1 or min(times) <= 0:
            return None
        return part, whole, min(times)

    def _whole(self, cell: DerivedCell) -> _Whole | None:
        if id(cell) not in self._wholes:
            linear = self._evaluation.linear(cell)
            self._wholes[id(cell)] = self._taken_apart(cell, *linear) if linear is not None and linear[0] else None
        return self._wholes[id(cell)]

    def _taken_apart(self, cell: DerivedCell, terms: Mapping[Atom, Fraction], constant: Fraction) -> _Whole:
        sources = self._evaluation.sources
        nonnegative = constant >= 0 and all(
            factor > 0 and _at_least_zero(sources[question].question.measures[measure].floor)
            for (question, measure, _), factor in terms.items()
        )
        measured = constant + sum((own * self._evaluation.measured(atom) for atom, own in terms.items()), Fraction(0))
        return _Whole(cell, terms, constant, measured, self._laws(terms), nonnegative)

    def _laws(self, terms: Mapping[Atom, Fraction]) -> Laws:
        found: Laws = {}
        for (question, measure, _), factor in terms.items():
            key = factor, self._evaluation.sources[question].measurements[measure].law
            found[key] = found.get(key, 0) + 1
        return found


def _at_least_zero(floor: int | None) -> bool:
    return floor is not None and floor >= 0


def _listed(laws: Laws) -> Sequence[tuple[Fraction, Any, int]]:
    return sorted(((factor, law, count) for (factor, law), count in laws.items() if count), key=repr)
