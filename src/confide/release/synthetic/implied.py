"""Intervals of counts that follow from what was measured for synthetic data: free, and valid whatever the data are.

A count of rows that some condition keeps, by groups, is a sum of cells of any measured marginal that has all columns of
the question. The noise of these cells is independent and of one known law, so their sum has an interval. Where parts of
marginals were measured it is a sum of these. Where no marginal has all the columns nothing follows.

Which of several is taken must not hang on its own noise. Those that were certain to be measured come first, and of them
the one with the least variance, which the question and public facts tell. Where a private choice came before, or places
were merged by noisy counts, whether a marginal tells a count at all hangs on earlier noise: then the first is taken.
The step at which a marginal first tells the count is known before that step's noise is drawn, which is independent of
all before it; so whatever led there, the interval holds as often as it says. (The later of two would not do: a marginal
that looks wrong is measured again, and one that was left as it is looked right.)
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import QueryError
from confide.mechanism.interval.interval import bounded_ends
from confide.mechanism.interval.many_terms import repeated_half_width
from confide.mechanism.noise.law import Law
from confide.query import Question
from confide.query.question import Arithmetic, Measured, ShownKey
from confide.release.count_questions import MOST_ROWS, group_places, holds, key_name, names_in
from confide.release.synthetic.kept import KeptMarginal, KeptMeasurements
from confide.release.synthetic.kept_effects import KeptEffects
from confide.workload import Domain

Weights = NDArray[np.int64]
Floats = NDArray[np.float64]
Ends = tuple[list[int | None], list[int | None]]
Shape = tuple[tuple[int, int], ...]
"""Weights other than 0, and how many cells have each."""


def implied_ends(question: Question, domain: Domain, kept: KeptMeasurements, confidence: float) -> dict[str, Ends]:
    """The ends of each count of a question's result, in the order of its rows; None where nothing follows."""
    sizes = [group_places(key, domain)[1] for key in question.keys]
    nothing: list[int | None] = [None] * prod(sizes)
    return {
        column.name: _ends(question, column.value, domain, kept, confidence) or (nothing, nothing)
        for column in question.columns
        if not isinstance(column, ShownKey)
    }


def _ends(question: Question, value: Any, domain: Domain, kept: KeptMeasurements, confidence: float) -> Ends | None:
    keys = [domain.place_of(key_name(key)) for key in question.keys]
    cells = sorted(_cells(question, value))
    conditions = [question.summary.where, *(question.summary.cells[cell].where for cell in cells)]
    spoken = {domain.place_of(name) for condition in conditions for name in names_in(condition)}
    columns = (*keys, *sorted(spoken - set(keys)))
    if prod(domain.sizes[column] for column in columns) > MOST_ROWS:
        return None
    shape = tuple(domain.sizes[column] for column in columns)
    grid = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij", sparse=True)
    places = {domain.names[column]: axis for column, axis in zip(columns, grid, strict=True)}
    weights = np.broadcast_to(_weights(question, value, domain, places), shape).astype(np.int64)
    groups = [group_places(key, domain) for key in question.keys]
    plain = isinstance(value, Measured) and all(
        coefficient > 0 for coefficient, _ in question.measures[value.measure].terms
    )
    best: tuple[tuple[int, float], NDArray[Any], list[Shape], KeptMarginal] | None = None
    for own in kept.of_bins(len(domain)):
        if set(columns) <= set(own.columns):
            found = _summed(own, columns, weights, groups, domain)
            if found is not None:
                values, shapes = found
                spread = max(sum(weight**2 * count for weight, count in one) for one in shapes) * own.variance
                if best is None or (own.turn, spread) < best[0]:
                    best = (own.turn, spread), values, shapes, own
    from_parts = _of_parts(kept.effects, columns, weights, groups)
    if from_parts is not None and (best is None or (0, float(from_parts[1].max())) < best[0]):
        return _ends_of_parts(kept.effects, *from_parts, confidence, 0 if plain else None)
    return None if best is None else _ends_of_cells(*best[1:], confidence, 0 if plain else None)


def _ends_of_cells(
    values: NDArray[Any], shapes: Sequence[Shape], own: KeptMarginal, confidence: float, floor: int | None
) -> Ends:
    lows: list[int | None] = [None] * len(shapes)
    highs: list[int | None] = [None] * len(shapes)
    for kind in dict.fromkeys(shapes):
        rows = [row for row, one in enumerate(shapes) if one == kind]
        _, least, most = bounded_ends(values[rows], *_widths(kind, own.law, confidence), floor)
        for row, low, high in zip(rows, least, most, strict=True):
            lows[row], highs[row] = int(low) // own.fineness, -(-int(high) // own.fineness)
    return lows, highs


def _of_parts(
    effects: KeptEffects, columns: tuple[int, ...], weights: Weights, groups: Sequence[tuple[NDArray[np.int64], int]]
) -> tuple[Floats, Floats] | None:
    """The sums of each group, and the variances of their noise, by the parts of marginals."""
    sizes = [size for _, size in groups]
    if effects.parts(columns) is None or prod(sizes) * weights.size > MOST_ROWS:
        return None
    marks = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.int64)
    by_group = np.broadcast_to(weights, (marks.shape[1], *weights.shape)).astype(np.float64)
    for axis, (places, _) in enumerate(groups):
        inside = marks[axis][:, None] == places
        by_group = by_group * inside.reshape(len(inside), *(-1 if at == axis else 1 for at in range(weights.ndim)))
    return effects.sums(columns, by_group)


def _ends_of_parts(
    effects: KeptEffects, values: Floats, variances: Floats, confidence: float, floor: int | None
) -> Ends:
    half = effects.half_widths(variances, confidence)
    both = 2 * confidence - 1
    one_sided = np.minimum(half, effects.half_widths(variances, both)) if both > 0 else half
    lows: list[int | None] = []
    highs: list[int | None] = []
    for value, own, side in zip(values, half, one_sided, strict=True):
        _, low, high = bounded_ends(np.array([value]), float(own), float(side), floor)
        lows.append(int(np.floor(low[0])))
        highs.append(int(np.ceil(high[0])))
    return lows, highs


def _cells(question: Question, value: Any) -> set[int]:
    match value:
        case Measured(measure):
            return {cell for _, cell in question.measures[measure].terms}
        case Arithmetic("+" | "-", left, right):
            return _cells(question, left) | _cells(question, right)
    raise QueryError("counts are answered as they are, or added and subtracted; do other arithmetic on the result")


def _weights(question: Question, value: Any, domain: Domain, places: dict[str, NDArray[np.int64]]) -> Weights:
    """How often each cell is counted, below nought if it is subtracted."""
    match value:
        case Measured(measure):
            where = holds(question.summary.where, domain, places)
            parts = [
                coefficient * (where & holds(question.summary.cells[cell].where, domain, places)).astype(np.int64)
                for coefficient, cell in question.measures[measure].terms
            ]
            return np.asarray(sum(parts[1:], parts[0]), dtype=np.int64)
        case Arithmetic(operation, left, right):
            one, two = (_weights(question, side, domain, places) for side in (left, right))
            return one + two if operation == "+" else one - two
    raise AssertionError


def _summed(
    own: KeptMarginal,
    columns: tuple[int, ...],
    weights: Weights,
    groups: Sequence[tuple[NDArray[np.int64], int]],
    domain: Domain,
) -> tuple[NDArray[np.int64], list[Shape]] | None:
    """The noisy count of each group, and how many cells it adds up with which weight; None where a group or a
    condition cuts through places that were measured as one.
    """
    others = [column for column in own.columns if column not in columns]
    order = [own.columns.index(column) for column in (*columns, *others)]
    noisy = np.transpose(own.counts, order).reshape(*(own.counts.shape[axis] for axis in order[: len(columns)]), -1)
    more, noisy = noisy.shape[-1], _added(noisy)
    merged = dict(zip(own.columns, own.spread(domain.sizes), strict=True))
    labels = []
    for axis, column in enumerate(columns):
        places = merged[column]
        first = np.unique(places, return_index=True)[1]
        if not np.array_equal(weights, np.take(np.take(weights, first, axis), places, axis)):
            return None
        if axis < len(groups):
            group = groups[axis][0]
            if not np.array_equal(group, group[first][places]):
                return None
            labels.append(group[first])
        weights = np.take(weights, first, axis)
    sizes = [size for _, size in groups]
    index = np.zeros((1,) * len(columns), dtype=np.int64)
    for axis, label in enumerate(labels):
        index = index * sizes[axis] + label.reshape([-1 if at == axis else 1 for at in range(len(columns))])
    index = np.broadcast_to(index, weights.shape).reshape(-1)
    values = np.zeros(prod(sizes), dtype=object)
    np.add.at(values, index, np.asarray(weights.astype(object) * noisy, dtype=object).reshape(-1))
    kinds = [int(weight) for weight in np.unique(weights) if weight]
    counts = [np.bincount(index[weights.reshape(-1) == kind], minlength=prod(sizes)) * more for kind in kinds]
    shapes = [
        tuple((kind, int(count[group])) for kind, count in zip(kinds, counts, strict=True) if count[group])
        for group in range(prod(sizes))
    ]
    return values, shapes


def _added(noisy: NDArray[np.int64]) -> NDArray[Any]:
    """The sums along the last axis: noise may be as large as 64 bits hold."""
    largest = max(abs(int(noisy.max(initial=0))), abs(int(noisy.min(initial=0))))
    held = noisy if largest * max(1, noisy.shape[-1]) < 2**62 else noisy.astype(object)
    return np.asarray(held.sum(axis=-1))


@lru_cache(maxsize=1024)
def _widths(shape: Shape, law: Law, confidence: float) -> tuple[int, int]:
    """Within which the noise of so many cells is, and what it exceeds on either side as rarely."""
    if not shape:  # no cell counts: nothing but zero can be
        return 0, 0
    terms = [(Fraction(weight), law, count) for weight, count in shape]
    half = ceil(repeated_half_width(terms, confidence))
    both = 2 * confidence - 1
    return half, min(half, ceil(repeated_half_width(terms, both))) if both > 0 else half
