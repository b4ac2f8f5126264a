"""A workload at ε: the path of `Session.answer` and of its plan."""

from collections.abc import Collection, Mapping
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
from confide.query.spelling import nearest
from confide.release.account import AUTO
from confide.release.answer.size import require_room
from confide.release.arguments import plain_text, private_table
from confide.release.block_noise import BlockNoise, forecast
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.whole_table import TabulatedTable, tabulated
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.compact_design import CompactDesign, compact_bits, compact_size
from confide.release.workload.compact_measure import measured_compactly
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.net_price import NET, PricedNet, price_net
from confide.release.workload.noise import best_design, read_blocks
from confide.release.workload.partition_price import (
    AUTO_PARTS,
    PARTITIONS,
    PricedPartition,
    price_partition,
    rows_changed,
    suits_parts,
)
from confide.workload.asked import LinearWorkload, bound_linear, columns_of
from confide.workload.identity import WORKLOAD_SPELLING
from confide.workload.strategy.asked_parts import MOST_OPTIMISED
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import AUTO as AUTO_STRATEGY
from confide.workload.strategy.design import GOALS, Design, Goal

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
    goal: str = "typical"


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadRequest:
    """A workload bound to a policy, at ε. Public facts only."""

    table: Table
    linear: LinearWorkload
    counted: TabulatedTable
    strategy: str
    epsilon: Fraction
    confidence: float
    goal: Goal = "typical"

    @property
    def purpose(self) -> str:
        return f"answer {self.linear.describe()}"

    def identity(self) -> str:
        parts = (self.table.name, self.linear, self.strategy, self.epsilon)
        goal = () if self.goal == "typical" else (self.goal,)  # requests of before there were goals keep their names
        return written("answer", *parts, *goal, spelling=WORKLOAD_SPELLING)

    @property
    def change(self) -> UnitChange:
        return UnitChange(self.counted.rows, self.counted.neighbours == "replace-one")

    def price(self, budget: Budget) -> "Priced":
        priced = self.planned(budget)
        require_room_for(priced)
        return priced

    def planned(self, budget: Budget) -> "Priced":
        """The same, whether a ledger would keep the answer or not."""
        return made_at(self.epsilon, lambda epsilon: self.priced_at(budget, epsilon))

    def priced_at(self, budget: Budget, epsilon: Fraction) -> "Priced":
        """The design of the least exact forecast, of all that the strategy and the budget allow."""
        cost = budget.cost(epsilon)
        if self.strategy == NET:
            return price_net(replace(self, epsilon=epsilon), cost)
        if self.strategy in PARTITIONS:
            return price_partition(replace(self, epsilon=epsilon), cost)
        if self.finds_parts(cost):
            return price_partition(replace(self, epsilon=epsilon, strategy=AUTO_PARTS), cost)
        sizes, tables = self.linear.domain.sizes, self.linear.tables
        total, design, noises = best_design(sizes, tables, self.strategy, self.change, cost, self.goal)
        return PricedWorkload(replace(self, epsilon=epsilon), design, noises, cost, total)

    def finds_parts(self, cost: Currency) -> bool:
        """Whether `auto` looks at the data first, by the policy's number of rows."""
        sizes, tables, changes = self.linear.domain.sizes, self.linear.tables, rows_changed(self.change)
        looks = self.strategy == AUTO_STRATEGY and self.goal == "typical"
        return looks and suits_parts(sizes, tables, self.table.size, cost, changes)

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
        total = forecast(self.design, self.noises) if self.request.goal == "worst" else self.total
        return float(np.sqrt(total / len(self.request.linear.tables)))

    @property
    def widths(self) -> tuple[float, ...]:
        return (self.deviation if self.request.goal == "typical" else float(np.sqrt(self.total)),)

    def measured(self, values: tuple[NDArray[Any], ...] = ()) -> MeasuredDesign:
        """The design with what was released; without numbers, to look at widths."""
        design, bits = self.design, compact_bits(self.design, self.noises)
        coarse = 0.0 if bits is None else 2.0 ** -(bits + 1)
        sizes = self.request.linear.domain.sizes
        return MeasuredDesign(sizes, design.strategy, design.blocks, self.noises, values, design.sources, coarse)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Reads the tables of all blocks and adds noise to each: see `BlockNoise.measure`."""
        request, bits = self.request, compact_bits(self.design, self.noises)
        tabulation = request.counted.tabulation
        found: MeasuredDesign | CompactDesign
        if bits is None:
            found = self.measured(read_blocks(holdings, charge, tabulation, self.design, self.noises))
        else:
            found = measured_compactly(holdings, charge, tabulation, self.design, self.noises, bits)
        return WorkloadAnswers(
            request.table,
            request.linear,
            found,
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


Priced = PricedWorkload | PricedPartition | PricedNet


def bind_answer(holdings: Holdings, options: WorkloadOptions, epsilon: Fraction) -> WorkloadRequest:
    """The request of some options; every fault named, nothing read."""
    policy = holdings.policy
    table = _table_of(policy, options)
    linear = bound_linear(options.workload, table, options.bins)
    strategy = plain_text(options.strategy)
    if not isinstance(strategy, str):
        raise ParameterError(f"strategy={shown_value(strategy)} is not the name of a strategy, such as 'auto'")
    every = strategy == NET and table.rows == "public"  # how many rows there are bounds the counts of a table chosen
    counted = tabulated(policy, holdings.engine, table, linear.domain, linear.sets, missing=every)
    goal = next((own for own in GOALS if own == options.goal), None)
    if goal is None:
        raise ParameterError(
            f"goal={shown_value(options.goal)} is no goal; write goal='typical' for the least mean error, or "
            "goal='worst' for the narrowest widest interval"
        )
    if goal == "worst" and strategy in (*PARTITIONS, NET):
        finds = "chooses by the largest error" if strategy == NET else "has widths that follow from the parts it finds"
        raise ParameterError(
            f"strategy={strategy!r} {finds}, so there is no goal='worst' for it; leave goal= out, or write "
            "strategy='auto'"
        )
    return WorkloadRequest(table, linear, counted, strategy, epsilon, options.confidence, goal)


def _table_of(policy: Policy, options: WorkloadOptions) -> Table:
    """The table that is named, or the only private one that has all the columns that are."""
    named = columns_of(options.workload)
    if options.table is None and named and len(policy.private_tables) > 1:
        fitting = [each for each in policy.private_tables if named <= set(each.columns)]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            raise ParameterError(_nowhere(policy, named))
    return private_table(policy, options.table, "answer")


def _nowhere(policy: Policy, named: Collection[str]) -> str:
    """That no table has all of these columns, and what is near those that none has."""
    known = {column for each in policy.private_tables for column in each.columns}
    strange = sorted(set(named) - known)
    if not strange:
        return f"no private table has all of {', '.join(sorted(named))}; a workload is of one table"
    return f"no private table has a column {strange[0]}; {nearest(strange[0], sorted(known), 'there are')}"


def require_room_for(priced: Priced) -> None:
    """Refuse what a ledger would not keep, before anything is charged; plans are for any size."""
    if isinstance(priced, PricedNet):
        return  # at most sixteen counts
    bits = compact_bits(priced.design, priced.noises) if isinstance(priced, PricedWorkload) else None
    numbers = priced.design.numbers
    advice = "take a smaller k, fewer columns or wider bins"
    if bits is None:
        parts = min(MOST_OPTIMISED, priced.design.blocks[0].lines[0].size) if isinstance(priced, PricedPartition) else 0
        lines = {id(line): line for block in priced.design.blocks for line in block.lines}.values()
        dense = 4 * parts * parts + sum(2 * line.rows * line.size for line in lines if hasattr(line, "matrix"))
        size = _NUMBER * numbers + dense
    else:
        size = compact_size(numbers, bits)
    require_room(size, f"{numbers:,} measured numbers", advice)


def answer_workload(holdings: Holdings, options: WorkloadOptions, epsilon: Fraction) -> WorkloadAnswers:
    """Measures, or finds what was measured before. One charge; everything that can be refused is, before it."""
    asked = holdings.ask(bind_answer(holdings, options, epsilon), options.account)
    return replace(asked.result, stored=asked.stored)
