"""GROUP BY ROLLUP, CUBE and GROUPING SETS: several tables of one question, measured together so that parts add up."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from confide.errors import ParameterError, QueryError
from confide.host.progress import Tell
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.query import Question
from confide.query.grouping import check_groups, key_size
from confide.query.grouping_sets import Grouping, GroupingSets
from confide.query.identity import SPELLING
from confide.query.question import Mean, Measured, ShownKey, ShownValue
from confide.query.tabulation import Tabulation
from confide.query.tree import Always, Scan
from confide.release.account import AUTO
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.answer.plan import Plan, PlannedColumn, Within
from confide.release.answer.size import require_room
from confide.release.arguments import confidence_level, exact_epsilon
from confide.release.block_noise import BlockNoise
from confide.release.cost import Cost, budget_state, rooms
from confide.release.expected import expected_rows
from confide.release.guard import listening
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.workload.answers import whole_ends
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import best_design, read_blocks
from confide.release.workload.rolled_keys import (
    ROW_BYTES,
    cells_in,
    grouping_column,
    key_columns,
    note_of,
    plain_keys,
    rows_with_keys,
    sizes_of,
)
from confide.release.workload.rolled_numbers import PricedNumbers, RolledNumbersRequest, check_numbers
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import Kind


@dataclass(frozen=True, slots=True)
class RollupRequest:
    """Counts by several sets of keys of one question, at ε. Public facts only."""

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
    def tabulation(self) -> Tabulation:
        """The rows that hold a value in every key: all tables count the same."""
        summary = self.question.summary
        where, bound = rows_with_keys(self.question)
        sets = tuple(own for own in self.tables if own)
        return Tabulation(summary.relation, where, bound, plain_keys(self.question), sets, summary.order_by)

    def identity(self) -> str:
        names = tuple(column.name for column in self.question.columns)
        shown = tuple(column.key if isinstance(column, ShownKey) else -1 for column in self.question.columns)
        parts = (self.tabulation, self.tables, names, shown, self.epsilon, Fraction(self.confidence))
        extra = tuple((own.place, own.name, own.keys) for own in self.groupings)
        return written("grouping sets", *parts, *((extra,) if extra else ()), spelling=SPELLING)

    @property
    def sizes(self) -> tuple[int, ...]:
        return sizes_of(self.question)

    @property
    def asked(self) -> tuple[AskedTable, ...]:
        return tuple(AskedTable(own, tuple[Kind, ...](["each"] * len(own))) for own in self.tables)

    @property
    def change(self) -> UnitChange:
        bound = self.question.summary.bound
        return UnitChange(1 if bound is None else bound.rows, self.question.neighbours == "replace-one")

    def price(self, budget: Budget) -> "PricedRollup":
        return made_at(self.epsilon, lambda epsilon: replace(self, epsilon=epsilon)._priced(budget))

    def _priced(self, budget: Budget) -> "PricedRollup":
        cost = budget.cost(self.epsilon)
        total, design, noises = best_design(self.sizes, self.asked, "auto", self.change, cost)
        require_room(
            ROW_BYTES * sum(cells_in(self.sizes, own) for own in self.tables), "these tables", "use wider bins"
        )
        return PricedRollup(self, design, noises, cost, total)

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True, eq=False)
class PricedRollup:
    """Grouping sets with what is measured for them."""

    request: RollupRequest
    design: Design
    noises: tuple[BlockNoise, ...]
    loss: Currency
    total: float

    @property
    def widths(self) -> tuple[float, ...]:
        return (float(np.sqrt(self.total)),)

    def worst(self) -> float:
        """The half-width of the widest interval."""
        request, design = self.request, self.design
        empty = MeasuredDesign(request.sizes, design.strategy, design.blocks, self.noises, (), design.sources)
        return max(
            float(empty.widths_alone(own, numbers, request.confidence).max())
            for own, numbers in zip(request.asked, design.sources, strict=True)
        )

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Reads the tables of all blocks and adds noise to each: see `BlockNoise.measure`."""
        request, design = self.request, self.design
        values = read_blocks(holdings, charge, request.tabulation, design, self.noises)
        found = MeasuredDesign(request.sizes, design.strategy, design.blocks, self.noises, values, design.sources)
        return _answer(request, found, self.loss, not holdings.randomness.kernel).to_bytes()


def _answer(request: RollupRequest, found: MeasuredDesign, loss: Currency, test_noise: bool) -> Answer:
    """One row for each group of each table; a key that a table does not have is NULL."""
    question = request.question
    values, lows, highs = [], [], []
    for place, asked in enumerate(request.asked):
        estimates, below, above = found.answers(asked, place, request.confidence)
        low, high = whole_ends(below, above)
        values += estimates.reshape(-1).tolist()
        lows += low.reshape(-1).tolist()
        highs += high.reshape(-1).tolist()
    columns: list[KeyColumn | ValueColumn] = []
    mechanism = f"{found.strategy}, discrete {'gaussian' if found.gaussian else 'laplace'}"
    keys = key_columns(question, request.tables)
    for column in question.columns:
        if isinstance(column, ShownKey):
            columns.append(next(keys))
        else:
            own = tuple(values), tuple(lows), tuple(highs)
            columns.append(ValueColumn(column.name, "number", *own, mechanism, "always"))
    for grouping in request.groupings:
        columns.insert(grouping.place, grouping_column(grouping, request.sizes, request.tables))
    return Answer(
        tuple(columns), request.confidence, Cost.of(request.epsilon, loss), question.unit, question.neighbours,
        request.sql, (note_of(found.strategy),), test_noise,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RollupCall:
    """A text that asks for several tables, and how it is to be answered."""

    holdings: Holdings
    question: Question
    tables: tuple[tuple[int, ...], ...]
    groupings: tuple[Grouping, ...]
    sql: str
    confidence: float
    account: str = AUTO

    def plan(self, epsilon: object, within: Within | None) -> Plan:
        if within is not None:
            raise ParameterError("within= is for a text of one table; give epsilon= for ROLLUP, CUBE and GROUPING SETS")
        policy = self.holdings.policy
        whole = policy.budget.epsilon / 10 if epsilon is None else exact_epsilon(epsilon)
        request = self._request(whole)
        standing, accounts = self.holdings.standing(), self.holdings.accounts(self.account)
        chosen = accounts[0] if len(accounts) == 1 else self.holdings.preferred(standing, request.price, accounts)
        priced = request.price(standing.budget.under(chosen))
        expected = float(expected_rows(self.question, policy) or 0)
        mechanism = f"{priced.design.strategy}, discrete {priced.design.noise}"
        shown = [column for column in self.question.columns if isinstance(column, ShownValue)]
        columns: tuple[PlannedColumn, ...]
        if isinstance(priced, PricedNumbers):
            columns = tuple(
                PlannedColumn(
                    column.name, width, 0.0, mechanism, depends=("rows",) if isinstance(column.value, Mean) else ()
                )
                for column, width in zip(shown, priced.forecast(policy), strict=True)
            )
        else:
            columns = (PlannedColumn(shown[0].name, priced.worst(), expected, mechanism),)
        return Plan(
            columns=columns,
            epsilon=float(whole),
            cost=Cost.of(whole, priced.loss),
            confidence=request.confidence,
            groups=sum(cells_in(sizes_of(self.question), own) for own in self.tables),
            unit=self.question.unit,
            neighbours=self.question.neighbours,
            affordable=standing.holds(priced.loss),
            budget=budget_state(standing),
            notes=(
                f"{len(self.tables)} tables are measured together; the width is of the widest",
                note_of(priced.design.strategy),
            ),
            account=chosen,
            rooms=rooms(standing, whole),
            fitting=standing.room(priced.loss),
        )

    def answer(self, epsilon: object, within: Within | None, progress: Tell | None) -> Answer:
        if within is not None:
            raise ParameterError("within= is for a text of one table; give epsilon= for ROLLUP, CUBE and GROUPING SETS")
        with listening(progress):
            asked = self.holdings.ask(self._request(exact_epsilon(epsilon)), self.account)
        return asked.result.marked(asked.stored)

    def _request(self, epsilon: Fraction) -> RollupRequest | RolledNumbersRequest:
        """Counts alone are tabulated, and need no table of all keys."""
        own = self.question, self.tables, self.groupings, self.sql, epsilon, confidence_level(self.confidence)
        return RollupRequest(*own) if _counts_alone(self.question) else RolledNumbersRequest(*own)


def measured_together(question: Question) -> bool:
    """Whether several tables are measured as one: of one table of the policy, with plain keys, for counts and sums."""
    if not isinstance(question.summary.relation, Scan):
        return False
    if question.having is not None or question.order or question.limit is not None or question.offset:
        return False
    try:
        plain_keys(question)
        if not _counts_alone(question):
            check_numbers(question)
    except QueryError:
        return False
    return True


def rollup_call(
    holdings: Holdings, question: Question, several: GroupingSets, sql: str, confidence: float, account: str
) -> RollupCall:
    """The call of a bound text that is `measured_together`."""
    for own in several.tables:
        check_groups([key_size(question.keys[key]) or 0 for key in own])
    return RollupCall(holdings, question, several.tables, several.groupings, sql, confidence, account)


def _counts_alone(question: Question) -> bool:
    """Whether all that is asked for is the number of rows."""
    cells = question.summary.cells
    plain = all(cell.kind == "rows" and cell.where == Always(True) for cell in cells)
    counts = [column for column in question.columns if isinstance(column, ShownValue)]
    single = all(
        isinstance(column.value, Measured)
        and [part for part, _ in question.measures[column.value.measure].terms] == [1]
        for column in counts
    )
    return plain and single and bool(counts) and not question.statistics and not question.summary.open_keys
