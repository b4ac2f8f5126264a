"""The curator of one call: it charges each step, reads, adds noise, and stores what it gives.

Steps are numbered, and a step's key is made of the call's key and its number. So a call that was stopped goes on where
it stopped when it is made again: steps that were paid for are given again, as they were, and cost nothing. With the
first step a seed is drawn for the arithmetic between the steps, and kept with it, so that this goes the same way too.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EngineError
from confide.mechanism import Additive
from confide.mechanism.selection.net import net
from confide.privacy.budget import Currency, add
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.query.sensitivity import Sensitivity
from confide.query.tabulation import Tabulation
from confide.release.account import AUTO
from confide.release.guard import was_charged
from confide.release.holdings import Holdings
from confide.release.request import listed
from confide.release.synthetic.design_step import cells_of, design_noises, released, told
from confide.release.synthetic.kept import KeptMarginal, KeptMeasurements
from confide.release.synthetic.kept_effects import NO_EFFECTS, effects_of
from confide.release.synthetic.step_request import StepRequest, Values, step_identity
from confide.release.synthetic.steps import one_count, paid_share, share_of, step_noise
from confide.release.synthetic.values import ValuesStep, left_for_the_model, value_sets
from confide.synthesis.curator import (
    MeasuredEffect,
    MeasuredMarginal,
    MeasuredQueries,
    Merging,
    Model,
    Picked,
    Score,
    UnitReach,
    merged_counts,
    merged_sizes,
)
from confide.synthesis.relaxed import cell_count
from confide.synthesis.selection import LargestError, TopErrors, selection_epsilon
from confide.workload import BoundWorkload, ExactTables, threshold_blocks
from confide.workload.strategy.design import Design

MOST_COUNTED: Final = 2.0**62
"""No count of a model is taken for larger."""


class LedgerCurator:
    """A curator whose every step is a charge in the ledger. `spent` adds them up.

    `tables` is how much one unit can change the counts of one table; `rows` how much it can change one count.
    """

    def __init__(
        self,
        holdings: Holdings,
        tabulation: Tabulation,
        workload: BoundWorkload,
        cost: Currency,
        tables: Sensitivity,
        rows: int,
        call: str,
        account: str = AUTO,
        values: ValuesStep | None = None,
    ) -> None:
        self._holdings, self._tabulation, self._workload = holdings, tabulation, workload
        self._modelled, self._values = left_for_the_model(cost, values), values
        self._cost, self._tables, self._rows, self._call, self._account = cost, tables, rows, call, account
        self._exact: ExactTables | None = None
        self._step, self._adapted = 0, False
        self._seed: int | None = None
        self.spent: Currency = share_of(cost, Fraction(0))
        self._marginals_kept: list[KeptMarginal] = []
        self._effects_kept = NO_EFFECTS

    @property
    def kept(self) -> KeptMeasurements:
        """What was measured, as it is kept with what is made of it."""
        return KeptMeasurements(tuple(self._marginals_kept), self._effects_kept)

    @property
    def rest(self) -> Currency:
        """What the steps have left of the call's cost: at least one quantum, because shares are rounded down."""
        if isinstance(self._cost, PureDP) and isinstance(self.spent, PureDP):
            return PureDP(self._cost.epsilon - self.spent.epsilon)
        assert isinstance(self._cost, ZCDP)
        assert isinstance(self.spent, ZCDP)
        return ZCDP(self._cost.rho - self.spent.rho, self._cost.delta)

    @property
    def begun(self) -> bool:
        """Whether this call was made before, and stopped after its first charge."""
        first = self._holdings.identified(step_identity(self._call, 1), self._account)
        return self._holdings.ledger.paid(self._holdings.key(first))

    @property
    def seed(self) -> int:
        """Random bits that have nothing to do with the data: a key, or a hash of anything that was read, has."""
        if self._seed is None:
            raise ValueError("the seed is drawn with the first step")
        return self._seed

    @property
    def paid(self) -> bool:
        """Whether any step of this call was paid for, now or before."""
        return self._seed is not None

    # --- steps --------------------------------------------------------------------------------------------------------

    @property
    def change(self) -> UnitReach:
        return UnitReach(self._rows, self._tables.l1)

    def deviation(self, share: Fraction) -> float:
        return math.sqrt(_variance(step_noise(self._loss(share), 1, self._tables)))

    def measure(
        self, sets: Sequence[tuple[int, ...]], share: Fraction, merging: Merging | None = None
    ) -> tuple[MeasuredMarginal, ...]:
        """Releases every count of some marginals, with discrete Gaussian or Laplace noise on each.

        Neighbours: the policy's. One unit changes the counts of one marginal by at most `tables` in L1 and L2; sums of
        them over merged places are counts of a coarser marginal, so no more.
        Loss: the share of the call's cost, divided evenly among the marginals (composition).
        """
        names = listed([", ".join(self._workload.domain.names[column] for column in columns) for columns in sets], "; ")
        return self._marginals(f"measure {names}", sets, self._workload.domain.sizes, self._loss(share), merging)

    def measure_values(self) -> tuple[MeasuredMarginal, ...]:
        """Noisy counts of every value of the columns whose bins are to be divided, in their order: what the method
        leaves of the call's cost, but for the last of it, is divided evenly among them.
        """
        assert self._values is not None
        attributes, sets = self._values.attributes, value_sets(self._workload.domain, self._values)
        sizes = (*self._workload.domain.sizes, *(own.size for own in attributes))
        names = listed([own.name for own in attributes], "; ")
        return self._marginals(f"measure values of {names}", sets, sizes, paid_share(self._cost, self._values.share))

    def _marginals(
        self,
        what: str,
        sets: Sequence[tuple[int, ...]],
        all_sizes: tuple[int, ...],
        loss: Currency,
        merging: Merging | None = None,
    ) -> tuple[MeasuredMarginal, ...]:
        mechanism = step_noise(loss, len(sets), self._tables)
        own = all_sizes if merging is None else merged_sizes(merging)
        sizes = [cell_count(own, columns) for columns in sets]

        def release(charge: Charge) -> NDArray[np.int64]:
            exact = self._read(charge)
            tables = [(columns, exact.marginal(columns, 0, exact.sizes[columns[0]])) for columns in sets]
            counts = [
                (cells if merging is None else merged_counts(cells, columns, merging)).reshape(-1)
                for columns, cells in tables
            ]
            return np.asarray(mechanism.measure(np.concatenate(counts), self._holdings.randomness).values)

        values = self._once(what, loss, release)
        self._adapted = self._adapted or merging is not None  # which places are merged hangs on noise as well
        variance = _variance(mechanism)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        for columns, part in zip(sets, parts, strict=True):
            merged = tuple(None if merging is None else np.asarray(merging[column]) for column in columns)
            shape = tuple(own[column] for column in columns)
            turn = self._step if self._adapted else 0
            self._marginals_kept.append(KeptMarginal(columns, part.reshape(shape), mechanism.law, merged, turn))
        return tuple(
            MeasuredMarginal(columns, part.astype(np.float64), variance)
            for columns, part in zip(sets, parts, strict=True)
        )

    def choose(self, candidates: Sequence[tuple[int, ...]], score: Score, share: Fraction) -> int:
        """Releases one of some sets of columns by the exponential mechanism.

        Neighbours: the policy's. One unit moves each score by at most what `score.sensitivity` says of it.
        Loss: the share of the call's cost ([McSherryTalwar2007]; under ρ ε²/8, [CesarRogers2021]).
        """
        mechanism = LargestError(selection_epsilon(self._loss(share), 1), score.sensitivity(self.change))

        def release(charge: Charge) -> NDArray[np.int64]:
            exact = self._read(charge)
            scores = [
                score.of(place, exact.marginal(columns, 0, exact.sizes[columns[0]]))
                for place, columns in enumerate(candidates)
            ]
            return np.array([mechanism.choose(np.array(scores, dtype=np.int64), self._holdings.randomness)])

        return int(self._chosen(f"choose one of {len(candidates)} tables", self._loss(share), release)[0])

    def choose_table(self, queries: NDArray[np.int64], most: int, share: Fraction) -> NDArray[np.int64]:
        """Releases the counts of all cells of one of all tables of at most `most` rows; `queries` say which of them
        each count adds up.

        Neighbours: the policy's; those of one unit differ in at most its rows, each added, removed or replaced.
        Loss: the share of the call's cost; theorem: see `Net`.
        """
        made = net(selection_epsilon(self._loss(share), 1), self._rows, queries, most)
        every = tuple(range(len(self._workload.domain)))

        def release(charge: Charge) -> NDArray[np.int64]:
            exact = self._read(charge)
            return made.choose(exact.marginal(every, 0, exact.sizes[0]).reshape(-1), self._holdings.randomness)

        return self._chosen(f"choose one of {len(made.tables):,} tables of few rows", self._loss(share), release)

    def measure_design(self, design: Design, share: Fraction) -> tuple[MeasuredMarginal | MeasuredEffect, ...]:
        """Releases what each block of a design measures, with noise on each number.

        Neighbours: the policy's. One unit changes a block by no more than its strategies' norms say. Loss: the share of
        the call's cost, divided among the blocks as the design says (composition); theorem: see `BlockNoise.measure`.
        """
        loss = self._loss(share)
        noises = design_noises(design, loss, self.change)

        def release(charge: Charge) -> NDArray[np.int64]:
            return released(design, noises, self._read(charge), self._holdings.randomness)

        names = listed([", ".join(self._workload.domain.names[c] for c in own.columns) for own in design.blocks], "; ")
        values = self._once(f"measure parts of {names}", loss, release)
        found = told(design, noises, values)
        self._marginals_kept += cells_of(design, noises, values, self._workload.domain.sizes)
        self._effects_kept = effects_of(design.blocks, noises, found, self._workload.domain.sizes)
        return found

    def choose_set(self, candidates: Sequence[tuple[int, ...]], model: Model, share: Fraction) -> int:
        mechanism = LargestError(selection_epsilon(self._loss(share), 1), self._rows)

        def release(charge: Charge) -> NDArray[np.int64]:
            exact = self._read(charge)
            scores = [self._largest(exact, model, columns) for columns in candidates]
            return np.array([mechanism.choose(np.array(scores, dtype=np.int64), self._holdings.randomness)])

        return int(self._chosen(f"choose one of {len(candidates)} tables", self._loss(share), release)[0])

    def choose_queries(self, count: int, taken: Picked, model: Model, share: Fraction) -> Picked:
        mechanism = TopErrors(selection_epsilon(self._loss(share), count), self._rows)
        starts = np.cumsum([0, *(self._workload.cells(marks.columns) for marks in self._workload.thresholds)])
        before = starts[taken.thresholds] + taken.cells

        def release(charge: Charge) -> NDArray[np.int64]:
            exact = self._read(charge)

            def scores() -> Iterator[tuple[int, NDArray[np.int64]]]:
                for place, marks in enumerate(self._workload.thresholds):
                    pairs = zip(threshold_blocks(exact, marks), threshold_blocks(model.table, marks), strict=True)
                    for (start, counts), (_, shares) in pairs:
                        yield int(starts[place]) + start, np.abs(counts - _rounded(shares, model.total))

            return mechanism.choose(scores, before, count, self._holdings.randomness)

        chosen = self._chosen(f"choose {count} queries", self._loss(share), release)
        places = np.searchsorted(starts, chosen, side="right") - 1
        return Picked(places, chosen - starts[places])

    def ask(self, picked: Picked, share: Fraction) -> MeasuredQueries:
        """Releases single counts, each with noise of its own; the share of the call's cost is divided among them."""
        mechanism = step_noise(self._loss(share), len(picked), one_count(self._rows))
        places, need = self._places(picked)

        def release(charge: Charge) -> NDArray[np.int64]:
            counts = np.array([_count(self._read(charge), self._workload, *one) for one in _pairs(picked)], np.int64)
            return np.asarray(mechanism.measure(counts, self._holdings.randomness).values)

        values = self._once(f"measure {len(picked)} queries", self._loss(share), release)
        return MeasuredQueries(places, need, values.astype(np.float64), _variance(mechanism))

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _loss(self, share: Fraction) -> Currency:
        return paid_share(self._modelled, share)

    def _chosen(self, what: str, loss: Currency, release: Values) -> NDArray[np.int64]:
        """A step that chooses: what is measured from then on hangs on noise."""
        self._adapted = True
        return self._once(what, loss, release)

    def _once(self, what: str, loss: Currency, release: Values) -> NDArray[np.int64]:
        self._step += 1
        first = self._step == 1
        request = StepRequest(step_identity(self._call, self._step), self._step, what, loss, release, first)
        try:
            values = self._holdings.ask(request, self._account).result
        except EngineError:
            self._exact = None  # nothing that leads here leads to what was read
            raise
        except KeyboardInterrupt as stop:
            if was_charged(stop):
                self.spent = add(self.spent, loss)
            raise
        if first:
            self._seed, values = int(values[0]), values[1:]
        self.spent = add(self.spent, loss)
        return values

    def _read(self, charge: Charge) -> ExactTables:
        """Read once, against the charge of the first step that needs it; a later step has paid before it looks."""
        if self._exact is None:
            self._exact = self._holdings.engine.tabulate(self._tabulation, charge, self._holdings.ledger.secret)
        return self._exact

    def _largest(self, exact: ExactTables, model: Model, columns: tuple[int, ...]) -> int:
        rest = prod(exact.sizes[column] for column in columns[1:])
        step = max(1, 2**21 // rest)
        largest = 0
        for start in range(0, exact.sizes[columns[0]], step):
            stop = min(start + step, exact.sizes[columns[0]])
            shares = model.table.marginal(columns, start, stop)
            errors = np.abs(exact.marginal(columns, start, stop) - _rounded(shares, model.total))
            largest = max(largest, int(errors.max()))
        return largest

    def _places(self, picked: Picked) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns of the relaxed table that each query speaks of."""
        domain, thresholds = self._workload.domain, self._workload.thresholds
        offsets = np.cumsum([0, *domain.sizes])
        widest = max(len(thresholds[place].columns) for place in picked.thresholds)
        places = np.full((len(picked), widest), -1, dtype=np.int64)
        need = np.empty(len(picked), dtype=np.int64)
        for row, (place, cell) in enumerate(_pairs(picked)):
            marks = thresholds[place]
            own = np.unravel_index(cell, [domain.sizes[column] for column in marks.columns])
            places[row, : len(own)] = [offsets[c] + int(o) for c, o in zip(marks.columns, own, strict=True)]
            need[row] = marks.need
        return places, need


def _variance(mechanism: Additive) -> float:
    """Of the noise; not so small that a fit could take a count for beyond doubt."""
    return max(float(mechanism.law.variance), 1 / 12)


def _rounded(shares: NDArray[np.float32], total: float) -> NDArray[np.int64]:
    """The model's counts, as integers: a score is then an integer, and changes by whole rows.

    Whatever the model says, also where it is no number: beyond 64 bits a score would change by all of them.
    """
    return np.rint(np.fmin(np.fmax(shares.astype(np.float64) * total, 0.0), MOST_COUNTED)).astype(np.int64)


def _pairs(picked: Picked) -> list[tuple[int, int]]:
    return [(int(place), int(cell)) for place, cell in zip(picked.thresholds, picked.cells, strict=True)]


def _count(exact: ExactTables, workload: BoundWorkload, place: int, cell: int) -> int:
    """One exact count of a threshold, from the occupied cells of its columns."""
    marks = workload.thresholds[place]
    table = exact.sparse(marks.columns)
    own = np.unravel_index(cell, [exact.sizes[column] for column in marks.columns])
    matches = sum((places == int(o)).astype(np.int64) for places, o in zip(table.places(exact.sizes), own, strict=True))
    return int(table.counts[matches >= marks.need].sum())
