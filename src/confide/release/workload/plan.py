"""What answering a workload would measure, cost and give, before anything is spent. Public facts only."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from confide.errors import ParameterError
from confide.ledger.record.terms import Standing
from confide.mechanism.interval.many import gaussian_factor
from confide.privacy.amount import LARGEST, exact_number, show, shown_value
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from confide.release.answer.digits import NO_INFORMATION, half_width, with_interval
from confide.release.answer.rendering import html_of, print_table, table_of
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.holdings import Holdings
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.net_price import NET, PricedNet
from confide.release.workload.partition_price import PARTITIONS, PricedPartition
from confide.release.workload.request import Priced, PricedWorkload, WorkloadOptions, WorkloadRequest, bind_answer
from confide.workload.asked import AskedTable
from confide.workload.strategy.design import AUTO, EXACT
from confide.workload.strategy.helmert import HelmertLine

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers

MOST_LISTED: Final = 12
"""Tables that a plan lists one by one; more are put together by what they count."""
_TRIES: Final = 60


@dataclass(frozen=True, slots=True)
class PlannedAnswers:
    """A table of answers, or several alike: how many there are, and the half-widths of their intervals.

    `typical` is the root of their mean square, `worst` the largest.
    """

    title: str
    tables: int
    answers: int
    typical: float
    worst: float


@dataclass(frozen=True)
class WorkloadPlan:
    """The forecast of an answer, which is exact: noise does not depend on data. Nothing was read or charged."""

    table: str
    workload: str
    strategy: str
    goal: str
    """What was made least: `typical`, the mean variance of answers, or `worst`, the largest."""
    mechanism: str
    measured: int
    groups: tuple[PlannedAnswers, ...]
    deviation: float
    """The root of the mean variance of answers, every table counted the same."""
    cost: Cost
    confidence: float
    unit: str
    neighbours: str
    affordable: bool
    budget: BudgetState
    account: str
    looks: str
    """Where parts are found by looking at the data, at a part of the cost, what widths then mean; else empty."""
    advice: str
    """What to write for these widths, or for widths that are known beforehand, where `auto` would look; else empty."""
    consistent: bool
    """Whether parts add up to totals in all tables, and not only within each."""

    @property
    def worst(self) -> float:
        """The largest half-width of all answers."""
        return max(group.worst for group in self.groups)

    @property
    def answers(self) -> int:
        return sum(group.answers for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "workload": self.workload,
            "strategy": self.strategy,
            "goal": self.goal,
            "mechanism": self.mechanism,
            "answers": self.answers,
            "measured": self.measured,
            "deviation": _known(self.deviation),
            "worst": _known(self.worst),
            "groups": [
                {
                    "title": own.title,
                    "tables": own.tables,
                    "answers": own.answers,
                    "typical": _known(own.typical),
                    "worst": _known(own.worst),
                }
                for own in self.groups
            ],
            "cost": self.cost.to_dict(),
            "confidence": self.confidence,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "affordable": self.affordable,
            "looks": bool(self.looks),
            "consistent": self.consistent,
        }

    def table_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """As it is printed."""
        rows: list[tuple[str, ...]] = [
            (own.title, f"{own.answers:,}", _shown(own.typical), _shown(own.worst)) for own in self.groups
        ]
        return ("in words", "answers", f"typical at {self.confidence:.4g}", "worst"), rows

    @property
    def _made(self) -> str:
        if self.strategy == NET:
            return f"those of a table that is chosen, {self.mechanism}"
        return f"measured, {self.mechanism} noise"

    @property
    def _agreeing(self) -> str:
        return " · all answers agree with each other" if self.consistent else ""

    def lines(self) -> list[str]:
        said = [
            f"{self.strategy}: {self.measured:,} numbers are {self._made}{self._agreeing}",
            f"cost {self.cost} for all of it · protects one {self.unit} ({self.neighbours})",
        ]
        if self.goal == "worst":
            said.append("shared so that the widest interval is as narrow as can be")
        if self.looks:
            said.append(self.looks)
        if self.advice:
            said.append(self.advice)
        if not self.affordable:
            said.append(f"the budget does not hold it: {self.budget}")
        return said

    def __str__(self) -> str:
        return "\n".join([print_table(table_of(*self.table_rows())), *self.lines()])

    def _repr_html_(self) -> str:
        return html_of(*self.table_rows()) + "".join(f"<p>{escape(line)}</p>" for line in self.lines())


def plan_answer(holdings: Holdings, options: WorkloadOptions, epsilon: Fraction | None, within: object) -> WorkloadPlan:
    """Free: nothing private is read. Of `within` the least ε whose widest interval is no wider."""
    standing, accounts = holdings.standing(), holdings.accounts(options.account)
    wanted = None if within is None else _wanted(within)
    request = bind_answer(holdings, options, Fraction(1) if epsilon is None else epsilon)
    plans = []
    for account in accounts:
        budget = standing.budget.under(account)
        own = request if wanted is None else _searched(_promised(request), budget, wanted)
        chosen = replace(request, epsilon=own.epsilon).finds_parts(budget.cost(own.epsilon))
        plans.append(replace(_planned(standing, own.planned(budget), account), advice=_advised(chosen, wanted)))

    def wide(plan: WorkloadPlan) -> object:
        if wanted is not None:
            return plan.cost.epsilon
        return plan.deviation if request.goal == "typical" else plan.worst

    return min(plans, key=lambda plan: (not plan.affordable, wide(plan)))


def _wanted(within: object) -> float:
    try:
        wanted = float(exact_number(within, "within"))
    except ParameterError:
        wanted = 0.0
    if not wanted > 0:
        raise ParameterError(f"within={shown_value(within)} is not a half-width of counts; write for example within=50")
    return wanted


def _promised(request: WorkloadRequest) -> WorkloadRequest:
    """With widths that are known beforehand: `auto` without those strategies that find parts first."""
    return replace(request, strategy=EXACT) if request.strategy == AUTO else request


def _advised(chosen: bool, wanted: float | None) -> str:
    if not chosen:
        return ""
    if wanted is None:
        return (
            "chosen by auto, since rows are few for so many cells: errors are smaller, and intervals of stretches that "
            "cut a part are wider; strategy='exact' has widths that are known beforehand for all"
        )
    return "these widths are those of strategy='exact': write it, since auto would find parts first at this ε"


def _searched(request: WorkloadRequest, budget: Budget, wanted: float) -> WorkloadRequest:
    """Widths fall as ε grows, about as 1/ε: a few steps find it, rounded up to three digits."""
    if request.strategy == NET:
        raise ParameterError(
            "within= is not for strategy='net', whose intervals follow from how many rows there are; give epsilon="
        )
    if request.strategy in PARTITIONS and len(request.linear.domain) > 1:
        raise ParameterError(
            f"within= is not known of strategy={request.strategy!r} for several columns, whose widths follow from the "
            "parts; give epsilon="
        )
    epsilon = Fraction(1)
    low, high = Fraction(0), None
    for _ in range(_TRIES):
        worst = _worst(replace(request, epsilon=epsilon).planned(budget))
        if worst <= wanted:
            high = epsilon
        else:
            low = epsilon
        if high is not None and low and high <= low * Fraction(1005, 1000):
            break
        guess = _short(epsilon * Fraction(worst / wanted * (1.0 if worst > wanted else 0.999)).limit_denominator(10**6))
        if high is not None and low and not low < guess < high:
            guess = _short((low + high) / 2)
            if not low < guess < high:
                break
        epsilon = min(max(guess, Fraction(1, 10**9)), LARGEST)
        if epsilon == high:
            break
    if high is None:
        raise ParameterError(f"within={wanted:g} cannot be reached; ask for fewer answers or wider bins")
    return replace(request, epsilon=high)


def _short(value: Fraction) -> Fraction:
    """Rounded up to four digits."""
    digits = Fraction(10) ** (len(str(int(value))) - 4 if value >= 1 else -4 - _zeros(value))
    return -(-value // digits) * digits


def _zeros(value: Fraction) -> int:
    count = 0
    while value < Fraction(1, 10):
        value *= 10
        count += 1
        if count > 30:
            break
    return count


def _worst(priced: Priced) -> float:
    return max(group.worst for group in _groups(priced))


def _planned(standing: Standing, priced: Priced, account: str) -> WorkloadPlan:
    request = priced.request
    if isinstance(priced, PricedNet):
        mechanism, measured, consistent = "exponential mechanism", priced.numbers, True
    else:
        mechanism, measured = f"discrete {priced.design.noise}", priced.design.numbers
        consistent = priced.design.strategy == "residual" or len(priced.design.blocks) == 1
    return WorkloadPlan(
        table=request.table.name,
        workload=request.linear.describe(),
        strategy=priced.design.strategy if isinstance(priced, PricedWorkload) else request.strategy,
        goal=request.goal,
        mechanism=mechanism,
        measured=measured,
        groups=tuple(_groups(priced)),
        deviation=priced.deviation,
        cost=Cost.of(request.epsilon, priced.loss),
        confidence=request.confidence,
        unit=request.counted.unit,
        neighbours=request.counted.neighbours,
        affordable=standing.holds(priced.loss),
        budget=budget_state(standing),
        account=account,
        looks=_looked(priced),
        advice="",
        consistent=consistent,
    )


def _looked(priced: Priced) -> str:
    if isinstance(priced, PricedNet):
        said = f"one of all {priced.tables:,} tables of at most {priced.most} rows is chosen"
        if not priced.rows_public:
            return f"{said}: as nobody knows how many rows there are, no count has an upper end"
        return f"{said}: widths are these if there are no more, else from none to all rows, whose number is public"
    if not isinstance(priced, PricedPartition):
        return ""
    if len(priced.request.linear.domain) > 1:
        return (
            f"parts are found first, {_finding(priced, 'a third', 'a ninth')}: widths are those of trees of every "
            "column, and no bound, since they follow from the parts; of cells within a part only its count bounds them"
        )
    return (
        f"parts are found first, {_finding(priced, 'a fifth', 'a quarter')}: widths are at most these for whole "
        "parts; of cells within a part only its count bounds them"
    )


def _finding(priced: PricedPartition, pure: str, rho: str) -> str:
    return f"at {pure} of ε" if isinstance(priced.loss, PureDP) else f"at {rho} of ρ"


def _groups(priced: Priced) -> list[PlannedAnswers]:
    linear = priced.request.linear
    several = len(linear.tables) > MOST_LISTED
    found: dict[str, list[tuple[int, float, float]]] = {}
    widths = _widths_of(priced)
    for place, table in enumerate(linear.tables):
        title = _together(table) if several else linear.title(table)
        found.setdefault(title, []).append((linear.size_of(table), *widths(place, table)))
    groups = []
    for title, own in found.items():
        answers = sum(size for size, _, _ in own)
        typical = float(np.sqrt(sum(size * mean for size, mean, _ in own) / answers))
        said = f"{len(own):,} {title}s" if several and len(own) > 1 else title
        groups.append(PlannedAnswers(said, len(own), answers, typical, max(worst for _, _, worst in own)))
    return groups


def _widths_of(priced: Priced) -> Callable[[int, AskedTable], tuple[float, float]]:
    """Of a table the mean square of half-widths, and the largest."""
    if isinstance(priced, PricedNet):
        bound = priced.deviation
        return lambda _, __: (bound**2, bound)
    measured, confidence = priced.measured(), priced.request.confidence
    uniform = _uniform(measured, priced.request.linear.tables, confidence)

    def widths(place: int, table: AskedTable) -> tuple[float, float]:
        if uniform is not None:
            return uniform[place] ** 2, uniform[place]
        found = measured.widths_alone(table, measured.sources[place], confidence)
        return float((found**2).mean()), float(found.max())

    return widths


def _known(width: float) -> float | None:
    """As JSON has it."""
    return width if math.isfinite(width) else None


def _shown(width: float) -> str:
    return f"±{half_width(width)}" if math.isfinite(width) else NO_INFORMATION


def _uniform(measured: MeasuredDesign, tables: tuple[AskedTable, ...], confidence: float) -> list[float] | None:
    """The half-widths of marginals measured by residuals, in each of which all answers are alike; None for others.

    In a cell of a marginal B a part A has Σ c²σ² = σ² · Π over A of (1 − 1/n) · Π over the rest of B of 1/n².
    """
    lines = {line for block in measured.blocks for line in block.lines}
    if measured.strategy != "residual" or not measured.gaussian:
        return None
    if not all(isinstance(line, HelmertLine) for line in lines) or any(set(own.kinds) != {"each"} for own in tables):
        return None
    sizes = measured.sizes
    variances = {id(noise): noise.variance for noise in measured.noises}
    laws = np.array([variances[id(noise)] for noise in measured.noises])
    grown = np.array([
        math.prod(sizes[column] * (sizes[column] - 1) for column in block.columns) / block.fineness**2
        for block in measured.blocks
    ])  # fmt: skip
    rows = np.sqrt([float(block.rows) for block in measured.blocks])
    places = np.fromiter(chain.from_iterable(measured.sources), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in measured.sources])[:-1]])
    shares = np.array([math.prod(sizes[column] for column in own.columns) for own in tables], dtype=np.float64)
    parts = (laws * grown)[places] / np.repeat(shares, np.diff([*starts, len(places)])) ** 2
    second = np.add.reduceat(parts, starts)
    coarse = np.add.reduceat(np.sqrt(parts) * rows[places], starts) * measured.coarse
    least = np.minimum.reduceat(laws[places], starts)
    factors = np.array([gaussian_factor(float(own), confidence) for own in least])
    return list((factors * np.sqrt(second) + coarse).tolist())


def _together(table: AskedTable) -> str:
    if set(table.kinds) == {"each"}:
        return f"{len(table.columns)}-way marginal"
    words: Mapping[str, str] = {"each": "by", "prefix": "prefixes", "range": "ranges", "total": "total"}
    return " × ".join(words[kind] for kind in table.kinds) + " table"


def answers_text(answers: "WorkloadAnswers") -> str:
    """The first answers of every table."""
    rows = []
    for own in answers.tables():
        flat = [array.reshape(-1) for array in (own.values, own.low, own.high)]
        places = np.unravel_index(np.arange(min(own.values.size, 5)), own.values.shape)
        for row in range(min(own.values.size, 5)):
            labels = [
                " to ".join(str(own_labels[int(place[row])]) for own_labels in answers.labels(column, kind).values())
                for column, kind, place in zip(own.asked.columns, own.asked.kinds, places, strict=True)
            ]
            value, low, high = (float(array[row]) for array in flat)
            rows.append((own.title, ", ".join(labels), *with_interval(value, low, high)))
        if own.values.size > 5:
            rows.append((own.title, f"... {own.values.size - 5:,} more", "", ""))
        if len(rows) > MOST_LISTED * 6:
            break
    head = ("in words", "of", "count", f"{answers.confidence:.4g} interval")
    made = f"{answers.mechanism} noise" if answers.measured.noises else answers.mechanism
    lines = [
        f"{made} · cost ε = {show(answers.cost.epsilon)} · protects one {answers.unit}",
        "intervals always hold; sql() answers any other count of these columns, free",
    ]
    if answers.test_noise:
        lines.append("TEST NOISE: this answer protects nobody")
    return "\n".join([print_table(table_of(head, rows)), *lines])
