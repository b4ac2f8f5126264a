"""What answering a workload would measure, cost and give, before anything is spent. Public facts only."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from confide.errors import ParameterError
from confide.ledger.record.terms import Standing
from confide.mechanism import DiscreteGaussian
from confide.privacy.amount import LARGEST, exact_number, show, shown_value
from confide.privacy.budget import Budget
from confide.release.answer.digits import half_width, with_interval
from confide.release.answer.rendering import html_of, print_table, table_of
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.holdings import Holdings
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import powers, widths
from confide.release.workload.partition_price import PARTITIONS, PricedPartition
from confide.release.workload.request import PricedWorkload, WorkloadOptions, WorkloadRequest, bind_answer
from confide.workload.asked import AskedTable
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers

MOST_LISTED: Final = 12
"""Tables that a plan lists one by one; more are put together by what they count."""
_TRIES: Final = 60

Priced = PricedWorkload | PricedPartition


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
            "mechanism": self.mechanism,
            "answers": self.answers,
            "measured": self.measured,
            "deviation": self.deviation,
            "worst": self.worst,
            "groups": [
                {
                    "title": own.title,
                    "tables": own.tables,
                    "answers": own.answers,
                    "typical": own.typical,
                    "worst": own.worst,
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
            (own.title, f"{own.answers:,}", f"±{half_width(own.typical)}", f"±{half_width(own.worst)}")
            for own in self.groups
        ]
        return ("in words", "answers", f"typical at {self.confidence:.4g}", "worst"), rows

    @property
    def _agreeing(self) -> str:
        return " · all answers agree with each other" if self.consistent else ""

    def lines(self) -> list[str]:
        said = [
            f"{self.strategy}: {self.measured:,} numbers are measured, {self.mechanism} noise{self._agreeing}",
            f"cost {self.cost} for all of it · protects one {self.unit} ({self.neighbours})",
        ]
        if self.looks:
            said.append(self.looks)
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
        own = request if wanted is None else _searched(request, budget, wanted)
        plans.append(_planned(standing, own.planned(budget), account))
    return min(
        plans, key=lambda plan: (not plan.affordable, plan.cost.epsilon if wanted is not None else plan.deviation)
    )


def _wanted(within: object) -> float:
    try:
        wanted = float(exact_number(within, "within"))
    except ParameterError:
        wanted = 0.0
    if not wanted > 0:
        raise ParameterError(f"within={shown_value(within)} is not a half-width of counts; write for example within=50")
    return wanted


def _searched(request: WorkloadRequest, budget: Budget, wanted: float) -> WorkloadRequest:
    """Widths fall as ε grows, about as 1/ε: a few steps find it, rounded up to three digits."""
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
    return WorkloadPlan(
        table=request.table.name,
        workload=request.linear.describe(),
        strategy=request.strategy if isinstance(priced, PricedPartition) else priced.design.strategy,
        mechanism=f"discrete {priced.design.noise}",
        measured=priced.design.numbers,
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
        consistent=priced.design.strategy == "residual" or len(priced.design.blocks) == 1,
    )


def _looked(priced: Priced) -> str:
    if not isinstance(priced, PricedPartition):
        return ""
    if len(priced.request.linear.domain) > 1:
        return (
            "parts are found first, at a third of ε: widths are those of trees of every column, and no bound, since "
            "they follow from the parts; of cells within a part only its count bounds them"
        )
    return (
        "parts are found first, at a quarter of ε: widths are at most these for whole parts; of cells within a part "
        "only its count bounds them"
    )


def _groups(priced: Priced) -> list[PlannedAnswers]:
    linear, measured = priced.request.linear, priced.measured()
    several = len(linear.tables) > MOST_LISTED
    found: dict[str, list[tuple[int, float, float]]] = {}
    known: dict[tuple[int, str], float] = {}
    for place, table in enumerate(linear.tables):
        title = _together(table) if several else linear.title(table)
        numbers = measured.sources[place]
        each = _uniform(measured, table, numbers, known, priced.request.confidence)
        if each is None:
            all_widths = measured.widths_alone(table, numbers, priced.request.confidence)
            mean, worst = float((all_widths**2).mean()), float(all_widths.max())
        else:
            mean, worst = each**2, each
        found.setdefault(title, []).append((linear.size_of(table), mean, worst))
    groups = []
    for title, own in found.items():
        answers = sum(size for size, _, _ in own)
        typical = float(np.sqrt(sum(size * mean for size, mean, _ in own) / answers))
        said = f"{len(own):,} {title}s" if several and len(own) > 1 else title
        groups.append(PlannedAnswers(said, len(own), answers, typical, max(worst for _, _, worst in own)))
    return groups


def _uniform(
    measured: MeasuredDesign,
    table: AskedTable,
    numbers: tuple[int, ...],
    known: dict[tuple[int, str], float],
    confidence: float,
) -> float | None:
    """The half-width of all answers of a marginal, where all are alike; None where they are not, or are Laplace."""
    if set(table.kinds) != {"each"}:
        return None
    second = 0.0
    for number in numbers:
        block, noise = measured.blocks[number], measured.noises[number]
        if not isinstance(noise.law, DiscreteGaussian):
            return None
        part = powers(noise, block.fineness)[0]
        for column, line in zip(block.columns, block.lines, strict=True):
            if not isinstance(line, HelmertLine | IdentityLine):
                return None
            inside = column in table.columns
            key = (line.size, line.name + ("" if inside else " total"))
            if key not in known:
                ends = (0, 1) if inside else (0, line.size)
                known[key] = float(line.spread(np.array([ends[0]]), np.array([ends[1]]), fourth=False)[0][0])
            part *= known[key]
        for column in table.columns:
            if column not in block.columns:
                part /= measured.sizes[column] ** 2
        second += part
    used = [measured.noises[number] for number in numbers]
    return float(widths(np.array([second]), np.zeros(1), used, confidence)[0])


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
    lines = [
        f"{answers.mechanism} noise · cost ε = {show(answers.cost.epsilon)} · protects one {answers.unit}",
        "intervals always hold; sql() answers any other count of these columns, free",
    ]
    if answers.test_noise:
        lines.append("TEST NOISE: this answer protects nobody")
    return "\n".join([print_table(table_of(head, rows)), *lines])
