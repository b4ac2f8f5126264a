"""How much of a join is left when no entity keeps more than τ: a maximum flow for pairs, a concave program beyond.

Each set of entities that share joined rows has a variable u between 0 and what its rows count for; for every entity the
variables of its sets add up to at most τ; their sum is as large as may be. Taking one entity away takes at most τ from
the optimum, and from τ on that no entity exceeds the optimum is the exact total ([Dong2022];
[Kasiviswanathan2013] for graphs). For sets of three and more the sum is curved, which costs a quarter of τ: see
`curved`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from confide.mechanism.join.curved import Curved, UncertifiedError, raised
from confide.mechanism.join.sharing import PAIR, slack
from confide.mechanism.noise import limbs
from confide.mechanism.noise.limbs import AnyIntegers

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
FLOW_LIMIT: Final = 2**31 - 2  # the flow's integers have 32 bits
CERTIFIED: Final = 0.25  # of `slack`, what an optimum is certified to
KEPT: Final = 0.6  # of the sets of a program; below that a smaller one is worth making
USUAL_BITS: Final = 11  # of τ in a linear program; a larger one is scaled down, so that a solver's tolerances suit it


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Sets of entities (a row of `entities` each; an entity named twice counts once) and what their rows count for.

    `kinds`: numbers of entities that are alike: exchanging two of the same number changes no set and no weight, and
    then they may keep the same. None: all differ. Only sets without repetition may have kinds.
    """

    entities: Integers
    weights: Integers
    kinds: Integers | None = None

    def __post_init__(self) -> None:
        if self.entities.ndim != 2 or len(self.entities) != len(self.weights) or np.any(self.weights < 0):
            raise ValueError("every set of entities has a weight that is not negative")
        if np.any(self.weights > limbs.MOST):
            raise ValueError("a weight is below 2^62, so that sums of parts of it fit into 64 bits")

    @property
    def total(self) -> int:
        return limbs.total(self.weights)

    def contributions(self) -> AnyIntegers:
        """Of every entity the weight of all its sets; 0 for one that has kinds and no set."""
        size = max(int(self.entities.max(initial=-1)) + 1, 0 if self.kinds is None else len(self.kinds))
        result: AnyIntegers = np.zeros(size, dtype=np.int64)
        members = np.sort(self.entities, axis=1)
        for column in range(members.shape[1]):
            fresh = np.ones(len(members), dtype=bool) if column == 0 else members[:, column] != members[:, column - 1]
            result = limbs.plus(result, limbs.totals_at(members[fresh, column], self.weights[fresh], size))
        return result

    def totals(self, levels: Sequence[int]) -> list[int]:
        """The optimum for every τ, rounded to nearest."""
        found = dict(self.each(levels))
        return [found[most] for most in levels]

    def each(self, levels: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The same, level by level, from the smallest on."""
        rising = sorted(set(levels))
        if not len(self.weights):
            yield from ((most, 0) for most in rising)
            return
        contributions = self.contributions()
        if self.entities.shape[1] <= PAIR:
            yield from ((most, self._paired(most, contributions)) for most in rising)
        else:
            yield from self._curved(rising, contributions)

    def _paired(self, most: int, contributions: AnyIntegers) -> int:
        binding = contributions > most
        if not binding.any():
            return self.total
        members = _distinct(np.where(binding[self.entities], self.entities, -1))
        touched = members[:, -1] >= 0
        # Sets without a binding entity are kept whole; sets with the same binding entities are one variable.
        fixed = limbs.total(self.weights[~touched])
        columns, places = np.unique(members[touched], axis=0, return_inverse=True)
        sums = limbs.totals_at(places.ravel(), self.weights[touched], len(columns))
        # What an entity could never use beyond τ is cut before the solver sees it.
        limits = np.minimum(sums, most).astype(np.int64)
        if 2 * limbs.total(limits) < FLOW_LIMIT:
            return fixed + _flow(columns, limits, most) // 2
        return fixed + round(_linear(columns, limits, most))

    def _curved(self, rising: Sequence[int], contributions: AnyIntegers) -> Iterator[tuple[int, int]]:
        """Prices found for one level are where the search begins for the next.

        From the smallest level on: entities that bind at one are all those that bind at the next, and a program for
        them does for that too, until it has far more sets than are needed.
        """
        kinds = np.arange(len(contributions)) if self.kinds is None else self.kinds
        _, examples, places, sizes = np.unique(kinds, return_index=True, return_inverse=True, return_counts=True)
        of = np.append(places, -1)
        members = np.sort(of[_distinct(self.entities)], axis=1)
        merged = sets, weights = _merged(members, self.weights, len(sizes))
        heaviest = contributions[examples]
        largest = int(self.weights.max())
        part: _Part | None = None
        for most in rising:
            # What a set could never use beyond τ is cut, as for pairs: Newton's method may not end where weights are
            # very uneven. Before sets are merged, so that the cut of one does not depend on who else is there.
            sets, weights = merged if largest <= most else _merged(members, np.minimum(self.weights, most), len(sizes))
            binding = np.append(heaviest > most, False)
            touched = _any_of(binding, sets)
            needed = int(touched.sum())
            if not needed:
                yield most, limbs.total(weights)
                continue
            if part is None or part.cut != min(most, largest) or needed < KEPT * part.needed:
                part = _Part.of(sets, weights, binding, touched, min(most, largest), part)
            yield most, part.fixed + round(part.optimum(most, sizes))


@dataclass(slots=True, eq=False)
class _Part:
    """The sets that some entities bind, as a program, and what is kept whole of all others."""

    program: Curved
    rows: Integers
    fixed: int
    cut: int
    needed: int
    prices: Floats
    """Of all entities, those of the level before; NaN before the first."""
    level: int

    @classmethod
    def of(
        cls,
        sets: Integers,
        weights: AnyIntegers,
        binding: NDArray[np.bool_],
        touched: NDArray[np.bool_],
        cut: int,
        before: "_Part | None",
    ) -> "_Part":
        rows = np.flatnonzero(binding)
        place = np.full(len(binding), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        columns, sums = _merged(np.sort(place[sets[touched]], axis=1), weights[touched], len(rows))
        program = Curved.of(columns, sums.astype(np.float64), len(rows))
        prices = np.full(len(binding) - 1, np.nan) if before is None else before.prices
        level = 0 if before is None else before.level
        return cls(program, rows, limbs.total(weights[~touched]), cut, int(touched.sum()), prices, level)

    def optimum(self, most: int, sizes: Integers) -> float:
        limits = sizes[self.rows].astype(np.float64) * most
        known = [] if not self.level else [self.prices[self.rows]]
        known += [raised(one, most / self.level, self.program.width) for one in known]
        value, found = self.program.optimum(limits, CERTIFIED * slack(most), known)
        self.prices = np.full(len(self.prices), np.nan)
        self.prices[self.rows], self.level = found, most
        return value


def _any_of(chosen: NDArray[np.bool_], sets: Integers) -> NDArray[np.bool_]:
    """Which sets have a chosen member."""
    found = np.zeros(len(sets), dtype=bool)
    if chosen.any():
        for column in sets.T:
            found |= chosen[column]
    return found


def _distinct(members: Integers) -> Integers:
    """Members in order, those named again as -1."""
    members = np.sort(members, axis=1)
    for column in range(1, members.shape[1]):
        members[members[:, column] == members[:, column - 1], column - 1] = -1
    return np.sort(members, axis=1)


def _merged(places: Integers, weights: AnyIntegers, size: int) -> tuple[Integers, AnyIntegers]:
    """Distinct rows of places, and the sum of the weights of each."""
    if (size + 1) ** places.shape[1] < 2**62:
        codes = np.zeros(len(places), dtype=np.int64)
        for column in places.T:
            codes = codes * (size + 1) + column + 1
        order = np.argsort(codes, kind="stable")
        begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    else:
        order = np.lexsort(places.T[::-1])
        begins = np.flatnonzero(np.append(True, (np.diff(places[order], axis=0) != 0).any(axis=1)))
    return places[order[begins]], limbs.totals_of_runs(weights[order], begins)


def _flow(columns: Integers, limits: Integers, most: int) -> int:
    """Twice the optimum for sets of two, as a maximum flow: every entity on both sides, τ in and τ out of each, and a
    pair's limit across in both directions ([Kasiviswanathan2013]). Entities that do not bind are one, unlimited.
    """
    names, places = np.unique(columns, return_inverse=True)
    first, second = places.reshape(columns.shape).T
    size = len(names)
    start, end = 2 * size, 2 * size + 1
    nodes = np.arange(size)
    free = int(2 * limits.sum()) + 1
    ends = np.where(names < 0, free, np.minimum(most, free))
    tails = np.concatenate([np.full(size, start), first, second, size + nodes])
    heads = np.concatenate([nodes, size + second, size + first, np.full(size, end)])
    capacities = np.concatenate([ends, limits, limits, ends]).astype(np.int32)
    graph = sparse.csr_array((capacities, (tails, heads)), shape=(end + 1, end + 1))
    return int(csgraph.maximum_flow(graph, start, end).flow_value)


def _linear(columns: Integers, exact_limits: Integers, exact_most: int) -> Fraction:
    """max Σu, 0 <= u <= limits, Σ over each entity <= most; certified between a primal and a dual value."""
    unit = 1 << max(0, exact_most.bit_length() - USUAL_BITS)
    limits, most = exact_limits / unit, exact_most / unit
    rows, numbers = np.unique(columns[columns >= 0], return_inverse=True)
    owners = np.repeat(np.arange(len(columns)), (columns >= 0).sum(axis=1))
    matrix: Any = sparse.csc_array((np.ones(len(numbers)), (numbers, owners)), shape=(len(rows), len(columns)))
    values, duals = _solve(matrix, limits, most)
    values = np.clip(values, 0.0, limits)
    load = np.maximum((matrix @ values) / most, 1.0)
    entries = matrix.indptr[:-1]
    shrunk = values / np.maximum.reduceat(load[matrix.indices], entries)
    duals = np.maximum(duals, 0.0)
    lower = float(shrunk.sum())
    upper = most * float(duals.sum()) + float((limits * np.maximum(0.0, 1.0 - matrix.T @ duals)).sum())
    if not (upper - lower) * unit <= CERTIFIED * slack(exact_most):
        raise UncertifiedError
    return Fraction(lower) * unit


def _solve(matrix: Any, limits: Floats, most: float) -> tuple[Floats, Floats]:
    import highspy  # noqa: PLC0415  heavy, and only joins of several entities need it

    rows, columns = matrix.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns, rows
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = np.ones(columns)
    program.col_lower_, program.col_upper_ = np.zeros(columns), limits
    program.row_lower_, program.row_upper_ = np.full(rows, -highspy.kHighsInf), np.full(rows, most)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = matrix.indptr
    program.a_matrix_.index_ = matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("solver", "simplex")):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
