"""A workload at ε: the path of `Session.answer` and of its plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.policy import Policy, Table
from confide.privacy.amount import shown_value
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.release.account import AUTO
from confide.release.answer.size import require_room
from confide.release.arguments import plain_text, private_table
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.whole_table import TabulatedTable, tabulated
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import BlockNoise, best_design, read_blocks
from confide.release.workload.partition_price import PARTITIONS, PricedPartition, price_partition
from confide.workload.asked import LinearWorkload, bound_linear, columns_of
from confide.workload.identity import WORKLOAD_SPELLING
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import Design

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
        sizes, tables = self.linear.domain.sizes, self.linear.tables
        total, design, noises = best_design(sizes, tables, self.strategy, self.change, cost)
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
        values = read_blocks(holdings, charge, self.request.counted.tabulation, self.design, self.noises)
        request = self.request
        return WorkloadAnswers(
            request.table,
            request.linear,
            self.measured(values),
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


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
