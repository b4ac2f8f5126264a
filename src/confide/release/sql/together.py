"""Counts of one question, and sums of one column, that are measured together, by the atoms of their conditions: which,
how, and whether at all.

Measured by itself, each of m counts has a share of the cost, as if one row were in all of them. Together they have the
sum of these shares, and what a row changes is told from which counts it is in. The strategy with the least variance
is taken of those that make no answer wider than it would be by itself; if there is none, each is measured by itself.
Sums of one column are such a vector by themselves: a row adds its number to one atom at most, and not one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Additive, combined_half_width, gaussian, laplace
from confide.mechanism.noise.law import Confidence
from confide.privacy.amount import root
from confide.privacy.limits import MOST_COUNTS
from confide.query.atoms import Atoms, atoms_of
from confide.query.grouping import group_count
from confide.query.question import Measure, Question, Value, all_values, measures_of
from confide.query.tree import Cell, Summary
from confide.release.answer.evaluation import ToldMeasures, linear_terms
from confide.release.sql.summand import Summand, rows_of, summand_of
from confide.workload.overlapping import Overlap, overlaps
from confide.workload.strategy.line import NoiseKind

MOST_WORK: Final = 1 << 24
"""Products of measured numbers, atoms and groups: of a strategy that adds atoms up, a second or two."""

Terms = dict[int, Fraction]


@dataclass(frozen=True, slots=True)
class Together:
    """How some measures of a question are told by numbers that are measured in their place."""

    places: tuple[int, ...]
    summand: Summand
    atoms: Atoms
    strategy: Overlap
    mechanisms: tuple[Additive, ...]
    """One for each measured number."""
    gain: float
    """The mean variance of the answers, as a share of what each by itself would have."""

    @property
    def name(self) -> str:
        law = self.mechanisms[0].name
        return law if self.strategy.name == "together" else f"{self.strategy.name}, {law}"

    @property
    def numbers(self) -> tuple[Measure, ...]:
        """What is measured, and on which side of zero it is."""
        low, high = self.summand.ends
        found = []
        for row in self.strategy.rows:
            sums = min(row) >= 0
            floor, ceiling = 0 if sums and low >= 0 else None, 0 if sums and high <= 0 else None
            found.append(Measure("atoms", (), self.summand.grain, 0, 0, floor, Fraction(0), ceiling))
        return tuple(found)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The atoms, as they are read."""
        return tuple(map(self.summand.cell, self.atoms.conditions))

    def half_widths(self, level: Confidence) -> dict[int, float]:
        """Of each of the measures."""
        return {
            place: float(combined_half_width([(c, self.mechanisms[k].law) for k, c in own], level))
            for place, own in zip(self.places, self.strategy.told, strict=True)
        }

    def note(self, names: Sequence[str]) -> str:
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        atoms, numbers = len(self.atoms.conditions), len(self.strategy.rows)
        what = {
            "together": "as they are: one row is not in all of them",
            "atoms": f"by {atoms} parts of rows that no two of them share",
            "optimised": f"by {numbers} numbers made of {atoms} parts of rows that no two of them share",
        }[self.strategy.name]
        agree = "; parts add up to totals, so a count may be below its interval"
        if self.summand.subject is not None:
            agree = "; parts add up to totals, so a sum may be outside of its interval"
        return (
            f"{shown}: measured together, {what}; their mean variance is {self.gain:.2g} of what it would be one by one"
            f"{agree if self.strategy.agree else ''}"
        )

    def typical(self, rows: float, question: Question) -> list[int]:
        """What is measured of rows that are spread evenly over atoms, for forecasts."""
        each = rows / (len(self.atoms.conditions) + (not self.atoms.whole))
        if self.summand.subject is not None:
            each *= float(question.measures[self.places[0]].typical)
        return [round(sum(row) * each) for row in self.strategy.rows]


def told_by(vectors: Sequence[Together], measures: int) -> ToldMeasures:
    """What the measured numbers, which come after so many measures of the question, say of these."""
    terms: dict[int, tuple[tuple[int, Fraction], ...]] = {}
    numbers: list[Measure] = []
    agree: set[int] = set()
    for own in vectors:
        first = measures + len(numbers)
        for place, told in zip(own.places, own.strategy.told, strict=True):
            terms[place] = tuple((first + number, share) for number, share in told)
        numbers += own.numbers
        agree.update(own.places if own.strategy.agree else ())
    return ToldMeasures(tuple(numbers), terms, frozenset(agree))


def cells_with(
    vectors: Sequence[Together], summary: Summary, used: Sequence[Measure]
) -> tuple[Summary, list[int], list[int]]:
    """The summary to read: what other measures need, then the atoms. With it the new places of the old cells, and of
    the first atom of each vector.
    """
    kept = sorted({cell for measure in used for _, cell in measure.terms})
    moved = [kept.index(place) if place in kept else -1 for place in range(len(summary.cells))]
    cells, firsts = [summary.cells[place] for place in kept], []
    for own in vectors:
        firsts.append(len(cells))
        cells += own.cells
    return replace(summary, cells=tuple(cells)), moved, firsts


def together(
    question: Question, mechanisms: Sequence[Additive], shares: Sequence[Fraction], pure: bool, level: Confidence
) -> tuple[Together, ...]:
    """The best way to measure counts together, and sums of each column, where it is better than each by itself. Public
    facts only."""
    made = (
        _together(question, summand, tuple(cells), list(cells.values()), mechanisms, shares, pure, level)
        for summand, cells in _vectors(question).items()
    )
    return tuple(own for own in made if own is not None)


def _together(
    question: Question,
    summand: Summand,
    places: tuple[int, ...],
    cells: Sequence[Cell],
    mechanisms: Sequence[Additive],
    shares: Sequence[Fraction],
    pure: bool,
    level: Confidence,
) -> Together | None:
    if len(places) < 2:
        return None
    atoms = atoms_of(cells, question.summary.where)
    if atoms is None:
        return None
    share = sum((shares[place] for place in places), Fraction(0))
    alone = np.array([float(mechanisms[place].law.variance) for place in places])
    if not alone.any():  # at an ε at which no noise is left
        return None
    values = [terms for value in all_values(question) if (terms := _told(value, question, places))]
    kinds: tuple[NoiseKind, ...] = ("laplace",) if pure else ("gaussian", "laplace")
    found = sorted(
        (own for kind in kinds for own in _priced(question, places, summand, atoms, share, pure, kind, alone)),
        key=lambda own: own.gain,
    )
    return next((own for own in found if own.gain < 1 and _narrower(own, values, mechanisms, level)), None)


def _priced(
    question: Question,
    places: tuple[int, ...],
    summand: Summand,
    atoms: Atoms,
    share: Fraction,
    pure: bool,
    kind: NoiseKind,
    alone: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
) -> Iterator[Together]:
    """Every strategy for one kind of noise, with the noise that a share of the cost buys."""
    replaced = question.neighbours == "replace-one"
    rows = rows_of(question, places, summand)
    groups = group_count(question) or 1
    for strategy in overlaps(atoms.weights, kind):
        entries = sum(1 for row in strategy.rows for entry in row if entry) + sum(map(len, strategy.told))
        if entries * groups > MOST_WORK:
            continue
        try:
            noises = _noises(strategy, kind, strategy.norm(kind, replaced, *summand.ends), rows, share, pure)
        except ParameterError:  # too small a share for exact arithmetic: each by itself says so, or does
            continue
        variances = [float(own.law.variance) for own in noises]
        made = np.array([sum(float(c) ** 2 * variances[k] for k, c in terms) for terms in strategy.told])
        yield Together(places, summand, atoms, strategy, noises, float(made.mean() / alone.mean()))


def _noises(
    strategy: Overlap, kind: NoiseKind, norm: Fraction, rows: int, share: Fraction, pure: bool
) -> tuple[Additive, ...]:
    """Noise on every measured number, as wide as its scale says.

    Releases K·x plus independent discrete noise, x counts or sums of atoms. Neighbours: one unit, of at most `rows`
    rows. Loss: Laplace, Σ|d|/b ≤ rows × norm, times the share by what b is beside s ([Ghosh2012]);
    Gaussian, Σd²/2σ², by the squares in the same way ([Canonne2020], Theorem 14). Laplace noise at √(2ρ) costs ρ.
    """
    if kind == "gaussian":
        return tuple(gaussian(scale**2 * norm * rows**2, share) for scale in strategy.scales)
    epsilon = share if pure else root(2 * share)
    return tuple(laplace(1, epsilon / (scale * norm * rows)) for scale in strategy.scales)


def _vectors(question: Question) -> dict[Summand, dict[int, Cell]]:
    """What rows add, and for each such the measures that add it up, with their conditions. Only those that are added up
    among themselves: what is divided or drawn a root of needs a law of its own.
    """
    if question.threshold is not None or len(question.measures) > MOST_COUNTS:
        return {}
    found = {place: own for place in range(len(question.measures)) if (own := summand_of(question, place)) is not None}
    bound: set[int] = set()
    for value in all_values(question):
        used = measures_of(value)
        kinds = {found[place][0] if place in found else None for place in used}
        if linear_terms(value, question.measures) is None or None in kinds or len(kinds) > 1:
            bound |= used
    vectors: dict[Summand, dict[int, Cell]] = {}
    for place, (summand, cell) in found.items():
        if place not in bound:
            vectors.setdefault(summand, {})[place] = cell
    return vectors


def _told(value: Value, question: Question, places: Sequence[int]) -> Terms | None:
    """A value as a sum of these counts; None if it is made of others."""
    if not measures_of(value) & set(places):
        return None
    return linear_terms(value, question.measures)


def _narrower(
    own: Together, values: Sequence[Mapping[int, Fraction]], alone: Sequence[Additive], level: Confidence
) -> bool:
    """Whether nothing that is asked for is wider than it would be if each were measured by itself."""
    shares = dict(zip(own.places, own.strategy.told, strict=True))
    for terms in values:
        combined: Terms = {}
        for place, factor in terms.items():
            for number, share in shares[place]:
                combined[number] = combined.get(number, Fraction(0)) + factor * share
        now = combined_half_width([(c, own.mechanisms[k].law) for k, c in combined.items()], level)
        if now > combined_half_width([(c, alone[m].law) for m, c in terms.items()], level):
            return False
    return True
