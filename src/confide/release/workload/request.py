"""A workload at ε: the path of `Session.answer` and of its plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.policy import Policy, Table
from confide.privacy.amount import shown_value
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import PureDP
from confide.release.account import AUTO
from confide.release.answer.size import require_room
from confide.release.arguments import plain_text, private_table
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.whole_table import TabulatedTable, tabulated
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import BlockNoise, forecast, noises_for
from confide.release.workload.partition_price import PARTITIONS, PricedPartition, price_partition
from confide.workload.asked import AskedTable, LinearWorkload, bound_linear, columns_of
from confide.workload.identity import WORKLOAD_SPELLING
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import Design, designs
from confide.workload.strategy.line import NoiseKind

_NUMBER: Final = 8
"""Bytes of a measured number."""


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """What is asked for, as it was given."""

    workload: object
    strategy: str = "auto"
    table: str | None = None
    bins: Mapping[str, object] | None = None
    confidence: float = 0.95
    account: object = AUTO


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadRequest:
    """A workload bound to a policy, at ε. Public facts only."""

    table: Table
    linear: LinearWorkload
    counted: TabulatedTable
    strategy: str
    epsilon: Fraction
    confidence: float

    @property
    def purpose(self) -> str:
        return f"answer {self.linear.describe()}"

    def identity(self) -> str:
        parts = (self.table.name, self.linear, self.strategy, self.epsilon)
        return written("answer", *parts, spelling=WORKLOAD_SPELLING)

    @property
    def change(self) -> UnitChange:
        return UnitChange(self.counted.rows, self.counted.neighbours == "replace-one")

    def price(self, budget: Budget) -> "PricedWorkload | PricedPartition":
        priced = self.planned(budget)
        require_room_for(priced)
        return priced

    def planned(self, budget: Budget) -> "PricedWorkload | PricedPartition":
        """The same, whether a ledger would keep the answer or not."""
        return made_at(self.epsilon, lambda epsilon: self.priced_at(budget, epsilon))

    def priced_at(self, budget: Budget, epsilon: Fraction) -> "PricedWorkload | PricedPartition":
        """The design of the least exact forecast, of all that the strategy and the budget allow."""
        cost = budget.cost(epsilon)
        if self.strategy in PARTITIONS:
            return price_partition(replace(self, epsilon=epsilon), cost)
        kinds: tuple[NoiseKind, ...] = ("laplace",) if isinstance(cost, PureDP) else ("gaussian", "laplace")
        found: list[tuple[float, Design, tuple[BlockNoise, ...]]] = []
        refusal: ParameterError | None = None
        for kind in kinds:
            try:
                made = _designs(self.linear, self.strategy, kind)
            except ParameterError as error:
                refusal = error
                continue
            for design in made:
                noises = noises_for(design, self.change, cost)
                found.append((forecast(design, noises), design, noises))
        if not found:
            raise refusal or ParameterError("no strategy suits this workload; ask for fewer columns, or wider bins")
        total, design, noises = min(found, key=lambda each: each[0])
        return PricedWorkload(replace(self, epsilon=epsilon), design, noises, cost, total)

    def decode(self, stored: bytes) -> WorkloadAnswers:
        return WorkloadAnswers.from_bytes(stored, self.table, self.linear, self.confidence)


@dataclass(frozen=True, slots=True, eq=False)
class PricedWorkload:
    """A workload with what is measured for it and the noise of each number."""

    request: WorkloadRequest
    design: Design
    noises: tuple[BlockNoise, ...]
    loss: Currency
    total: float

    @property
    def deviation(self) -> float:
        """The root of the mean variance of answers, every table counted the same."""
        return float(np.sqrt(self.total / len(self.request.linear.tables)))

    @property
    def widths(self) -> tuple[float, ...]:
        return (self.deviation,)

    def measured(self, values: tuple[NDArray[Any], ...] = ()) -> MeasuredDesign:
        """The design with what was released; without numbers, to look at widths."""
        design = self.design
        sizes = self.request.linear.domain.sizes
        return MeasuredDesign(sizes, design.strategy, design.blocks, self.noises, values, design.sources)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Reads the tables of all blocks and adds noise to each: see `BlockNoise.measure`."""
        exact = holdings.engine.tabulate(self.request.counted.tabulation, charge, holdings.ledger.secret)
        values = []
        for block, noise in zip(self.design.blocks, self.noises, strict=True):
            if block.columns:
                counts = exact.marginal(block.columns, 0, exact.sizes[block.columns[0]])
            else:
                counts = np.array(exact.rows, dtype=np.int64)
            values.append(noise.measure(block, counts, holdings.randomness))
        request = self.request
        return WorkloadAnswers(
            request.table,
            request.linear,
            self.measured(tuple(values)),
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


@lru_cache(maxsize=64)
def _known_designs(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str, kind: NoiseKind
) -> tuple[Design, ...]:
    return tuple(designs(sizes, tables, strategy, kind))


def _designs(linear: LinearWorkload, strategy: str, kind: NoiseKind) -> tuple[Design, ...]:
    return _known_designs(linear.domain.sizes, linear.tables, strategy, kind)


def bind_answer(holdings: Holdings, options: WorkloadOptions, epsilon: Fraction) -> WorkloadRequest:
    """The request of some options; every fault named, nothing read."""
    policy = holdings.policy
    table = _table_of(policy, options)
    linear = bound_linear(options.workload, table, options.bins)
    strategy = plain_text(options.strategy)
    if not isinstance(strategy, str):
        raise ParameterError(f"strategy={shown_value(strategy)} is not the name of a strategy, such as 'auto'")
    counted = tabulated(policy, holdings.engine, table, linear.domain, linear.sets)
    return WorkloadRequest(table, linear, counted, strategy, epsilon, options.confidence)


def _table_of(policy: Policy, options: WorkloadOptions) -> Table:
    """The table that is named, or the only private one that has all the columns that are."""
    named = columns_of(options.workload)
    if options.table is None and named and len(policy.private_tables) > 1:
        fitting = [each for each in policy.private_tables if named <= set(each.columns)]
        if len(fitting) == 1:
            return fitting[0]
    return private_table(policy, options.table, "answer")


def require_room_for(priced: PricedWorkload | PricedPartition) -> None:
    """Refuse what a ledger would not keep, before anything is charged; plans are for any size."""
    dense = sum(
        2 * line.rows * line.size
        for line in {id(line): line for block in priced.design.blocks for line in block.lines}.values()
        if hasattr(line, "matrix")
    )
    require_room(
        _NUMBER * priced.design.numbers + dense,
        f"{priced.design.numbers:,} measured numbers",
        "take a smaller k, fewer columns or wider bins",
    )


def answer_workload(holdings: Holdings, options: WorkloadOptions, epsilon: Fraction) -> WorkloadAnswers:
    """Measures, or finds what was measured before. One charge; everything that can be refused is, before it."""
    asked = holdings.ask(bind_answer(holdings, options, epsilon), options.account)
    return replace(asked.result, stored=asked.stored)
