"""GROUP BY ROLLUP, CUBE and GROUPING SETS: several tables of one question, measured together so that parts add up."""

import math
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
from confide.query.identity import SPELLING
from confide.query.key_value import key_kind, spelled
from confide.query.question import Measured, ShownKey, ShownValue
from confide.query.tabulation import Tabulation
from confide.query.tree import Always, BinnedKey, Both, Bound, DeclaredKey, Known, Predicate, Reading, Scan
from confide.release.account import AUTO
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.answer.plan import Plan, PlannedColumn, Within
from confide.release.answer.size import require_room
from confide.release.arguments import confidence_level, exact_epsilon
from confide.release.cost import Cost, budget_state, rooms
from confide.release.expected import expected_rows
from confide.release.guard import listening
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.workload.answers import whole_ends
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import BlockNoise, best_design, read_blocks
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import Kind

_ROW_BYTES = 200


@dataclass(frozen=True, slots=True)
class RollupRequest:
    """Counts by several sets of keys of one question, at ε. Public facts only."""

    question: Question
    tables: tuple[tuple[int, ...], ...]
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
        keys = _plain_keys(self.question)
        known = [_known(key) for key in keys]
        parts = (*(() if summary.where == Always(True) else (summary.where,)), *known)
        where: Predicate = Always(True) if not parts else parts[0] if len(parts) == 1 else Both(parts)
        rows = 1 if summary.bound is None else summary.bound.rows
        bound = None if summary.bound is None else Bound(summary.bound.unit, rows, rows)
        sets = tuple(own for own in self.tables if own)
        return Tabulation(summary.relation, where, bound, keys, sets, summary.order_by)

    def identity(self) -> str:
        names = tuple(column.name for column in self.question.columns)
        shown = tuple(column.key if isinstance(column, ShownKey) else -1 for column in self.question.columns)
        parts = (self.tabulation, self.tables, names, shown, self.epsilon, Fraction(self.confidence))
        return written("grouping sets", *parts, spelling=SPELLING)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(key_size(key) or 0 for key in self.question.keys)

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
        require_room(_ROW_BYTES * sum(_cells(self.sizes, own) for own in self.tables), "these tables", "use wider bins")
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
    keys: list[list[object]] = [[] for _ in question.keys]
    values, lows, highs = [], [], []
    for place, asked in enumerate(request.asked):
        estimates, below, above = found.answers(asked, place, request.confidence)
        low, high = whole_ends(below, above)
        flat = estimates.reshape(-1)
        places = np.unravel_index(np.arange(flat.size), estimates.shape) if asked.columns else ()
        for number, key in enumerate(question.keys):
            if number in asked.columns:
                axis = places[asked.columns.index(number)]
                labels = [spelled(key, own) for own in range(request.sizes[number])]
                keys[number] += [labels[own] for own in axis.tolist()]
            else:
                keys[number] += [None] * flat.size
        values += flat.tolist()
        lows += low.reshape(-1).tolist()
        highs += high.reshape(-1).tolist()
    columns: list[KeyColumn | ValueColumn] = []
    mechanism = f"{found.strategy}, discrete {'gaussian' if found.gaussian else 'laplace'}"
    for column in question.columns:
        if isinstance(column, ShownKey):
            columns.append(KeyColumn(column.name, key_kind(question.keys[column.key]), tuple(keys[column.key])))
        else:
            own = tuple(values), tuple(lows), tuple(highs)
            columns.append(ValueColumn(column.name, "number", *own, mechanism, "always"))
    return Answer(
        tuple(columns), request.confidence, Cost.of(request.epsilon, loss), question.unit, question.neighbours,
        request.sql, (_note(found.strategy),), test_noise,
    )  # fmt: skip


def _note(strategy: str) -> str:
    agree = (
        "parts add up to totals, so a count may be below its interval; " if strategy in ("residual", "identity") else ""
    )
    return f"{agree}NULL is a key that is summed over; rows without a value in some key are in no table"


@dataclass(frozen=True, slots=True)
class RollupCall:
    """A text that asks for several tables, and how it is to be answered."""

    holdings: Holdings
    question: Question
    tables: tuple[tuple[int, ...], ...]
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
        worst = priced.worst()
        name = next(column.name for column in self.question.columns if isinstance(column, ShownValue))
        expected = float(expected_rows(self.question, policy) or 0)
        mechanism = f"{priced.design.strategy}, discrete {priced.design.noise}"
        return Plan(
            columns=(PlannedColumn(name, worst, expected, mechanism),),
            epsilon=float(whole),
            cost=Cost.of(whole, priced.loss),
            confidence=request.confidence,
            groups=sum(_cells(request.sizes, own) for own in self.tables),
            unit=self.question.unit,
            neighbours=self.question.neighbours,
            affordable=standing.holds(priced.loss),
            budget=budget_state(standing),
            notes=(
                f"{len(self.tables)} tables are measured together; the width is of the widest",
                _note(priced.design.strategy),
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

    def _request(self, epsilon: Fraction) -> RollupRequest:
        return RollupRequest(self.question, self.tables, self.sql, epsilon, confidence_level(self.confidence))


def rollup_call(
    holdings: Holdings, question: object, tables: tuple[tuple[int, ...], ...], sql: str, confidence: float, account: str
) -> RollupCall:
    """The call of a bound text, or a refusal that says what several tables are answered for."""
    if not isinstance(question, Question) or not isinstance(question.summary.relation, Scan):
        raise QueryError("ROLLUP, CUBE and GROUPING SETS count rows of one table, without joins and inner queries")
    cells = question.summary.cells
    plain = all(cell.kind == "rows" and cell.where == Always(True) for cell in cells)
    counts = [column for column in question.columns if isinstance(column, ShownValue)]
    single = all(
        isinstance(column.value, Measured)
        and [part for part, _ in question.measures[column.value.measure].terms] == [1]
        for column in counts
    )
    if not plain or not single or not counts or question.statistics or question.summary.open_keys:
        raise QueryError(
            "ROLLUP, CUBE and GROUPING SETS are answered for COUNT(*) by declared columns and bins; ask other "
            "aggregates with one GROUP BY each"
        )
    if question.having is not None or question.order or question.limit is not None or question.offset:
        raise QueryError("HAVING, ORDER BY and LIMIT are for one table; leave them out, and sort what comes out")
    _plain_keys(question)
    for own in tables:
        check_groups([key_size(question.keys[key]) or 0 for key in own])
    return RollupCall(holdings, question, tables, sql, confidence, account)


def _plain_keys(question: Question) -> tuple[DeclaredKey | BinnedKey, ...]:
    keys = []
    for key in question.keys:
        binned = isinstance(key, BinnedKey) and isinstance(key.number, Reading) and not key.nulls
        if not (isinstance(key, DeclaredKey) or binned):
            raise QueryError("keys of ROLLUP, CUBE and GROUPING SETS are declared columns and BIN(column, width)")
        assert isinstance(key, DeclaredKey | BinnedKey)
        if isinstance(key, DeclaredKey) and None in key.values:
            raise QueryError(f"{key.name} has NULL among its groups, which is not told from a key that is summed over")
        keys.append(key)
    return tuple(keys)


def _known(key: DeclaredKey | BinnedKey) -> Predicate:
    """That a row holds a value of the key."""
    return Known(key.field if isinstance(key, DeclaredKey) else key.number, negated=False)


def _cells(sizes: tuple[int, ...], keys: tuple[int, ...]) -> int:
    return math.prod(sizes[key] for key in keys)
