"""Sums and means in GROUP BY ROLLUP, CUBE and GROUPING SETS: every number of a question by the same strategy.

All tables are measured together, each number with a share of the cost. Sums follow as counts do; what one unit can
change of them is what it can change of the number itself. A mean is a ratio of two numbers whose noises are
independent, each of them a sum of many: see `ratio_ends`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Final

import numpy as np

from confide.errors import QueryError
from confide.policy import Policy
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import ZCDP, PureDP
from confide.query import Question
from confide.query.grouping import check_groups
from confide.query.grouping_sets import Grouping
from confide.query.identity import SPELLING
from confide.query.question import Mean, Measure, ShownKey, ShownValue, Value, measures_of
from confide.query.tree import Summary
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.answer.evaluation import Linear, linear_form
from confide.release.answer.size import require_room
from confide.release.block_noise import BlockNoise, noises_for
from confide.release.cost import Cost
from confide.release.expected import known_size
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.workload.answers import whole_ends
from confide.release.workload.mean_intervals import ratio_ends
from confide.release.workload.measured_design import Ends, MeasuredDesign
from confide.release.workload.noise import best_design, widths
from confide.release.workload.rolled_keys import (
    ROW_BYTES,
    cells_in,
    grouping_column,
    key_columns,
    note_of,
    rows_with_keys,
    sizes_of,
)
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import Floats, Kind

COUNT_OF_MEAN: Final = Fraction(1, 2)
"""The weight of a mean's count beside its total's 1: it is moved mostly by its total."""
TYPICAL: Final = 8
"""A forecast takes a mean to lie an eighth of the range off its middle."""


@dataclass(frozen=True, slots=True)
class RolledNumbersRequest:
    """Counts, sums and means by several sets of keys of one question, at ε. Public facts only."""

    question: Question
    tables: tuple[tuple[int, ...], ...]
    groupings: tuple[Grouping, ...]
    sql: str
    epsilon: Fraction
    confidence: float

    @property
    def purpose(self) -> str:
        return f"sql: {self.sql}"

    @property
    def summary(self) -> Summary:
        """Every cell of all keys, of the rows that hold a value in each of them."""
        where, bound = rows_with_keys(self.question)
        return replace(self.question.summary, where=where, bound=bound)

    def identity(self) -> str:
        extra = tuple((own.place, own.name, own.keys) for own in self.groupings)
        parts = (self.question, self.tables, extra, self.epsilon, Fraction(self.confidence))
        return written("grouping sets of numbers", *parts, spelling=SPELLING)

    @property
    def asked(self) -> tuple[AskedTable, ...]:
        return tuple(AskedTable(own, tuple[Kind, ...](["each"] * len(own))) for own in self.tables)

    def price(self, budget: Budget) -> "PricedNumbers":
        return made_at(self.epsilon, lambda epsilon: replace(self, epsilon=epsilon)._priced(budget))

    def _priced(self, budget: Budget) -> "PricedNumbers":
        """One design for all numbers: which is best does not depend on how large a number is."""
        cost, sizes = budget.cost(self.epsilon), sizes_of(self.question)
        weights = weights_of(self.question, pure=isinstance(cost, PureDP))
        whole = sum(weights.values(), Fraction(0))
        measures = self.question.measures
        first = next(iter(weights))
        replaced = self.question.neighbours == "replace-one"
        part = _portion(cost, weights[first] / whole)
        _, design, _ = best_design(sizes, self.asked, "auto", change_of(measures[first], replaced), part)
        noises = {
            place: noises_for(design, change_of(measures[place], replaced), _portion(cost, weight / whole))
            for place, weight in weights.items()
        }
        values = sum(isinstance(column, ShownValue) for column in self.question.columns)
        rows = sum(cells_in(sizes, own) for own in self.tables)
        require_room(ROW_BYTES * rows * values, "these tables", "use wider bins")
        return PricedNumbers(self, design, noises, cost)

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True, eq=False)
class PricedNumbers:
    """Tables with what is measured of each number for them."""

    request: RolledNumbersRequest
    design: Design
    noises: Mapping[int, tuple[BlockNoise, ...]]
    loss: Currency

    @property
    def widths(self) -> tuple[float, ...]:
        """Of each number in its widest cell, in indices."""
        confidence = self.request.confidence
        return tuple(
            max(float(own.widths_alone(asked, numbers, confidence).max()) for asked, numbers in self._tables())
            for own in self.empty().values()
        )

    def _tables(self) -> list[tuple[AskedTable, tuple[int, ...]]]:
        return list(zip(self.request.asked, self.design.sources, strict=True))

    def empty(self) -> dict[int, MeasuredDesign]:
        design, sizes = self.design, sizes_of(self.request.question)
        return {
            place: MeasuredDesign(sizes, design.strategy, design.blocks, own, (), design.sources)
            for place, own in self.noises.items()
        }

    def forecast(self, policy: Policy) -> list[float]:
        """The half-width of the widest interval of each column, where rows are spread evenly over groups."""
        request, found = self.request, self.empty()
        size = known_size(request.question, policy)
        rows = 1_000 * cells_in(sizes_of(request.question), tuple(range(len(request.question.keys))))
        rows = rows if size is None else size.rows
        widest = []
        for column in request.question.columns:
            if not isinstance(column, ShownValue):
                continue
            most = 0.0
            for asked, numbers in self._tables():
                each = max(1.0, rows / cells_in(sizes_of(request.question), asked.columns))
                moments = {place: own.moments(asked, numbers) for place, own in found.items()}
                most = max(most, _expected(column.value, request, self.noises, numbers, moments, each))
            widest.append(most)
        return widest

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Reads every cell of all keys once and adds noise to each block of each number: see `BlockNoise`."""
        request, sizes = self.request, sizes_of(self.request.question)
        exact = holdings.engine.evaluate(request.summary, charge, holdings.ledger.secret)
        found = {}
        for place, noises in self.noises.items():
            terms = request.question.measures[place].terms
            cells = sum(exact.cells[cell].astype(object) * factor for factor, cell in terms)
            whole = np.asarray(cells, dtype=object).reshape(sizes)
            values = []
            for block, noise in zip(self.design.blocks, noises, strict=True):
                gone = tuple(axis for axis in range(len(sizes)) if axis not in block.columns)
                values.append(
                    noise.measure_sums(block, np.array(whole.sum(axis=gone), dtype=object), holdings.randomness)
                )
            found[place] = replace(self.empty()[place], values=tuple(values))
        return _answer(self, found, not holdings.randomness.kernel).to_bytes()


def weights_of(question: Question, pure: bool) -> dict[int, Fraction]:
    """A weight for every number that is measured; what two columns use is measured once, at the larger."""
    weights: dict[int, Fraction] = {}
    for column in question.columns:
        if isinstance(column, ShownValue):
            for place in sorted(measures_of(column.value)):
                mean = isinstance(column.value, Mean) and place == column.value.count
                weight = COUNT_OF_MEAN if mean else Fraction(1)
                weights[place] = max(weights.get(place, Fraction(0)), weight if pure else weight**2)
    return weights


def change_of(measure: Measure, replaced: bool) -> UnitChange:
    """How much one unit can change a number in the cells of a table, where it is measured by itself in one of them.

    Its sensitivity by groups bounds Σ|value| over the rows of a unit; a row that is replaced counts twice in it. Values
    u ≥ 0 of one sign move K·x by ‖ua − vb‖ at most, which is largest at 0 or at the largest value; others by both.
    """
    if replaced and (measure.floor == 0 or measure.ceiling == 0):
        return UnitChange(-(-measure.l1 // 2), replaced=True)
    return UnitChange(measure.l1, replaced=False)


def _portion(cost: Currency, share: Fraction) -> Currency:
    return PureDP(cost.epsilon * share) if isinstance(cost, PureDP) else ZCDP(cost.rho * share)


def check_numbers(question: Question) -> None:
    """Refuse what several tables are not answered for."""
    for column in question.columns:
        if isinstance(column, ShownValue) and not isinstance(column.value, Mean):
            linear = linear_form(column.value, question.measures)
            if linear is None or not any(linear[0].values()):
                raise QueryError(
                    "ROLLUP, CUBE and GROUPING SETS are answered for COUNT, SUM and AVG, and sums of these; ask "
                    f"{column.name} with one GROUP BY each"
                )
    used = {
        place for column in question.columns if isinstance(column, ShownValue) for place in measures_of(column.value)
    }
    cells = {question.summary.cells[cell].kind for place in used for _, cell in question.measures[place].terms}
    if not cells <= {"rows", "known", "total"} or question.statistics or question.summary.open_keys or not used:
        raise QueryError(
            "ROLLUP, CUBE and GROUPING SETS are answered for COUNT, SUM and AVG by declared columns and bins; ask "
            "other aggregates with one GROUP BY each"
        )
    if any(question.measures[place].l1 == 0 for place in used):
        raise QueryError("there is nothing to measure where no unit can change a number; leave that column out")
    check_groups(sizes_of(question))


# --- values -----------------------------------------------------------------------------------------------------------


def _answer(priced: PricedNumbers, found: Mapping[int, MeasuredDesign], test_noise: bool) -> Answer:
    """One row for each group of each table; a key that a table does not have is NULL."""
    request, question = priced.request, priced.request.question
    columns: list[KeyColumn | ValueColumn] = []
    keys = iter(key_columns(question, request.tables))
    law = "gaussian" if priced.design.noise == "gaussian" else "laplace"
    mechanism = f"{priced.design.strategy}, discrete {law}"
    for column in question.columns:
        if isinstance(column, ShownKey):
            columns.append(next(keys))
            continue
        parts: list[tuple[Ends, Floats]] = []
        for asked, numbers in zip(request.asked, priced.design.sources, strict=True):
            parts.append(_value(column.value, request, found, asked, numbers))
        middle, low, high = (
            np.concatenate([ends[part].reshape(-1) for ends, _ in parts]).tolist() for part in range(3)
        )
        unknown = np.flatnonzero(np.concatenate([empty.reshape(-1) for _, empty in parts])).tolist()
        own = tuple(middle), tuple(low), tuple(high)
        columns.append(ValueColumn(column.name, "number", *own, mechanism, "always", "", tuple(unknown)))
    for grouping in request.groupings:
        columns.insert(grouping.place, grouping_column(grouping, sizes_of(question), request.tables))
    return Answer(
        tuple(columns), request.confidence, Cost.of(request.epsilon, priced.loss), question.unit, question.neighbours,
        request.sql, (note_of(priced.design.strategy),), test_noise,
    )  # fmt: skip


def _value(
    value: Value,
    request: RolledNumbersRequest,
    found: Mapping[int, MeasuredDesign],
    asked: AskedTable,
    numbers: tuple[int, ...],
) -> tuple[Ends, Floats]:
    """One column of one table, and where nothing is known of it."""
    measures, confidence = request.question.measures, request.confidence
    if isinstance(value, Mean):
        top, bottom = found[value.total], found[value.count]
        noises = [own.noises[number] for own in (top, bottom) for number in numbers]
        ends, empty = ratio_ends(
            (top.table(asked, numbers), bottom.table(asked, numbers)),
            (top.moments(asked, numbers), bottom.moments(asked, numbers)),
            (top.rounding(numbers), bottom.rounding(numbers)),
            (float(value.low - value.centre), float(value.high - value.centre)),
            noises,
            confidence,
        )
        grain, shift = float(value.grain), float(value.centre * value.grain)
        middle, low, high = (part * grain + shift for part in ends)
        least, most = float(value.low * value.grain), float(value.high * value.grain)
        low, high = np.nextafter(low, -inf), np.nextafter(high, inf)
        middle, low, high = (np.clip(part, least, most) for part in (middle, low, high))
        return (middle, low, high), empty
    linear = linear_form(value, measures)
    assert linear is not None
    terms, constant = linear
    middle = sum(
        (float(factor) * found[place].table(asked, numbers) for place, factor in terms.items()),
        start=np.asarray(float(constant)),
    )
    half = _linear_width(linear, found, asked, numbers, confidence)
    low, high = middle - half, middle + half
    if len(terms) == 1 and not constant:
        ((place, factor),) = terms.items()
        own = measures[place]
        if factor == 1 and own.floor == 0 and request.question.summary.cells[own.terms[0][1]].kind != "total":
            low, high = whole_ends(low, high)
        elif factor > 0:
            low = low if own.floor is None else np.maximum(low, float(factor * own.floor))
            high = np.maximum(low, high) if own.ceiling is None else np.minimum(high, float(factor * own.ceiling))
            low, high = np.minimum(low, high), np.maximum(low, high)
    return (np.asarray(middle), np.asarray(low), np.asarray(high)), np.zeros(np.shape(middle))


def _linear_width(
    linear: Linear, found: Mapping[int, MeasuredDesign], asked: AskedTable, numbers: tuple[int, ...], confidence: float
) -> Floats:
    """Noises of different numbers are independent, so that their squares add up."""
    second, fourth, rounding = np.zeros(()), np.zeros(()), 0.0
    for place, factor in linear[0].items():
        two, four = found[place].moments(asked, numbers)
        second, fourth = second + float(factor) ** 2 * two, fourth + float(factor) ** 4 * four
        rounding += abs(float(factor)) * found[place].rounding(numbers)
    noises = [found[place].noises[number] for place in linear[0] for number in numbers]
    return widths(second, fourth, noises, confidence) + rounding


def _expected(
    value: Value,
    request: RolledNumbersRequest,
    noises: Mapping[int, tuple[BlockNoise, ...]],
    numbers: tuple[int, ...],
    moments: Mapping[int, tuple[Floats, Floats]],
    rows: float,
) -> float:
    """The half-width of the widest interval of a column of one table."""
    confidence = request.confidence
    if isinstance(value, Mean):
        own = [noises[place][number] for place in (value.total, value.count) for number in numbers]
        typical = float(value.high - value.low) / TYPICAL
        ends, _ = ratio_ends(
            (
                np.full(np.shape(moments[value.total][0]), typical * rows),
                np.full(np.shape(moments[value.count][0]), rows),
            ),
            (moments[value.total], moments[value.count]),
            (0.0, 0.0),
            (float(value.low - value.centre), float(value.high - value.centre)),
            own,
            confidence,
        )
        return float((ends[2] - ends[1]).max() / 2 * float(value.grain))
    linear = linear_form(value, request.question.measures)
    assert linear is not None
    second = sum((float(factor) ** 2 * moments[place][0] for place, factor in linear[0].items()), start=np.zeros(()))
    fourth = sum((float(factor) ** 4 * moments[place][1] for place, factor in linear[0].items()), start=np.zeros(()))
    used = [noises[place][number] for place in linear[0] for number in numbers]
    return float(widths(second, fourth, used, confidence).max())
