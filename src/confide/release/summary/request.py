"""A summary priced, charged and measured: all its counts are read in few statements, against one charge.

Releases     the number of rows; of every column the counts of its cells, with what is missing; of text columns keys
             above a threshold, with the noised number of units that hold each.
Neighbours   the policy's: one unit comes or goes, or becomes another, with all rows that count of it.
Loss         the cost of the call. Each of these is paid from its own part of it, and parts add up (sequential
             composition of ε, or of ρ and δ). The counts of one column are one vector: a row is in one of its cells, so
             a unit of r rows changes it by r in L1 at most, and by r² in squared L2 (twice each if it is replaced).
Theorem      discrete Laplace and Gaussian noise, as `laplace` and `gaussian` state; thresholds, as
             `gaussian_key_threshold` states.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from confide.engine.protocol import Keep
from confide.mechanism import Additive, exact, laplace
from confide.mechanism.noise.additive import narrower
from confide.mechanism.selection.threshold import KeyThreshold, gaussian_key_threshold
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import ZCDP, PureDP
from confide.query.question import Question
from confide.release.arguments import exact_epsilon
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.summary.counted_columns import SummaryColumn, SummaryDesign, bind_summary, shares_of
from confide.release.summary.noised_counts import Bins, NoisedColumn, NoisedNumber, NoisedSummary
from confide.workload import Binned, ExactTables
from confide.workload.domain import Listed

FORECAST_CONFIDENCE: Final = 0.95  # at which two laws are compared: the choice must not depend on what is shown later
_NEEDS_DELTA = (
    "its values are not declared, and a pure budget has no δ to find them with: declare `values` in the policy"
)
_UNBOUNDED = "it has no range: declare one in the policy to see its shape"


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The summary of a table at ε. At which confidence it is shown is no part of it: that is free."""

    design: SummaryDesign
    policy: Policy
    epsilon: Fraction

    @property
    def purpose(self) -> str:
        return f"summary: {self.design.table}"

    def identity(self) -> str:
        return written("summary", *self.design.form(), self.epsilon)

    def price(self, budget: Budget) -> "PricedSummary":
        return made_at(self.epsilon, lambda tried: self._priced(budget, tried))

    def _priced(self, budget: Budget, epsilon: Fraction) -> "PricedSummary":
        design, cost = self.design, budget.cost(epsilon)
        pure = isinstance(cost, PureDP)
        amount = cost.epsilon if isinstance(cost, PureDP) else cost.rho
        shares, each = shares_of(design, pure)

        def noise(l1: int, l2_squared: int, share: Fraction) -> Additive:
            if not l1:
                return exact()
            part = amount * share
            return laplace(l1, part) if pure else narrower(l1, l2_squared, part, FORECAST_CONFIDENCE)

        known = tuple(noise(measure.l1, measure.l2_squared, each) for measure in design.known.measures)
        change = design.sensitivity
        tables = {
            column.name: noise(change.l1, change.l2_squared, shares[column.name])
            for column in design.columns
            if column.attribute is not None
        }
        texts = [column for column in design.columns if column.kind == "text"]
        if isinstance(cost, PureDP) or not texts:
            return PricedSummary(self, known, tables, {}, cost)
        delta = budget.explicit_delta(cost) / len(texts)
        keys = {column.name: _threshold(column, amount * shares[column.name], delta) for column in texts}
        return PricedSummary(self, known, tables, keys, ZCDP(cost.rho, delta * len(texts)))

    def decode(self, stored: bytes) -> NoisedSummary:
        return NoisedSummary.from_bytes(stored)


def summary_request(holdings: Holdings, table: object, epsilon: object) -> SummaryRequest:
    """What is asked, bound from public facts."""
    design = bind_summary(holdings.policy, holdings.engine, table)
    return SummaryRequest(design, holdings.policy, exact_epsilon(epsilon))


def _threshold(column: SummaryColumn, rho: Fraction, delta: Fraction) -> KeyThreshold:
    assert column.keys is not None
    assert column.keys.threshold is not None
    units = 1 if column.keys.neighbours == "add-remove" else 2
    # `l1` counts the keys of both units, the one that goes and the one that comes.
    return gaussian_key_threshold(column.keys.threshold.l1 // units, rho, delta, units)


@dataclass(frozen=True, slots=True)
class PricedSummary:
    """A summary with the noise of each of its parts."""

    request: SummaryRequest
    known: tuple[Additive, ...]
    """Of the number of rows, then of known values."""
    tables: dict[str, Additive]
    keys: dict[str, KeyThreshold]
    loss: PureDP | ZCDP

    @property
    def widths(self) -> tuple[float, ...]:
        laws = [own.law for own in (*self.known, *self.tables.values())] + [own.law for own in self.keys.values()]
        return tuple(float(law.half_width(FORECAST_CONFIDENCE)) for law in laws)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        design, engine, secret = self.request.design, holdings.engine, holdings.ledger.secret
        counted = engine.evaluate(design.known.summary, charge, secret).cells
        tables = None if design.tabulation is None else engine.tabulate(design.tabulation, charge, secret)
        found: dict[str, Any] = {}
        for column in design.columns:
            if column.name in self.keys and column.keys is not None:
                keep = _keep(column.keys, self.keys[column.name], holdings)
                found[column.name] = engine.evaluate(column.keys.summary, charge, secret, keep)
        numbers = []
        for measure, mechanism in zip(design.known.measures, self.known, strict=True):
            ((_, cell),) = measure.terms
            numbers.append(NoisedNumber(mechanism.noised(int(counted[cell][0]), holdings.randomness), mechanism.law))
        rows, rest = numbers[0], iter(numbers[1:])
        columns = [
            self._table(column, tables, holdings)
            if column.attribute is not None
            else self._other(column, next(rest), found.get(column.name))
            for column in self._in_order()
        ]
        order = [column.name for column in design.columns]
        columns.sort(key=lambda column: order.index(column.name))
        notes = (*([design.counted] if design.counted else []), *design.skipped)
        cost = Cost.of(self.request.epsilon, self.loss)
        test = not holdings.randomness.kernel
        return NoisedSummary(
            design.table, rows, tuple(columns), cost, design.unit, design.neighbours, notes, test
        ).to_bytes()

    def _in_order(self) -> list[SummaryColumn]:
        """Text columns before others that are only counted, as known values were asked for."""
        rank = {"values": 0, "range": 0, "text": 1, "other": 2}
        return sorted(self.request.design.columns, key=lambda column: rank[column.kind])

    def _table(self, column: SummaryColumn, tables: ExactTables | None, holdings: Holdings) -> NoisedColumn:
        assert tables is not None
        assert column.attribute is not None
        assert column.place is not None
        attribute, mechanism = column.attribute, self.tables[column.name]
        cells = len(attribute.column.values) if isinstance(attribute, Listed) else attribute.size
        exact_counts = tables.marginal((column.place,), 0, cells + 1)
        counts = [int(own) for own in np.asarray(mechanism.measure(exact_counts, holdings.randomness).values)]
        labels = attribute.column.values if isinstance(attribute, Listed) else ()
        own = _bins(attribute) if isinstance(attribute, Binned) else None
        return NoisedColumn(
            column.name, column.kind, tuple(counts[:-1]), mechanism.law, labels, own, missing=counts[-1]
        )

    def _other(self, column: SummaryColumn, known: NoisedNumber, found: Any) -> NoisedColumn:
        if found is None:
            note = _NEEDS_DELTA if column.kind == "text" else _UNBOUNDED
            return NoisedColumn(column.name, column.kind, (), known.law, known=known, note=note)
        released = self.keys[column.name]
        pairs = sorted(
            zip((key[0] for key in found.keys), found.noised, strict=True), key=lambda own: (-own[1], own[0])
        )
        labels, counts = tuple(key for key, _ in pairs), tuple(int(count) for _, count in pairs)
        return NoisedColumn(
            column.name, "text", counts, released.law, labels, threshold=released.threshold, known=known
        )


def _bins(attribute: Binned) -> Bins:
    column = attribute.column
    date = not hasattr(column, "integer")
    grain = Fraction(1) if date else column.grain
    return Bins(attribute.first, attribute.width, column.low_index, column.high_index, grain, date)


def _keep(question: Question, released: KeyThreshold, holdings: Holdings) -> Keep:
    """Which of some keys are shown. Each has noise of its own, so it does not matter which come together."""
    assert question.threshold is not None
    ((_, place),) = question.threshold.terms

    def keep(cells: tuple[Any, ...]) -> tuple[Any, Any]:
        shown = released.release(cells[place], holdings.randomness)
        return shown.places, shown.values

    return keep
