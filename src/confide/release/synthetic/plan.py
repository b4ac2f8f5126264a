"""What a synthesis would measure, with what noise and at what cost, before anything is spent. Public facts only."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, assert_never

from confide.host.notebook import framed, lines
from confide.ledger.record.terms import Standing
from confide.mechanism import Additive
from confide.privacy.budget import Currency
from confide.privacy.loss import PureDP
from confide.release.answer.rendering import print_table
from confide.release.arguments import confidence_level
from confide.release.block_noise import forecast
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.synthetic.design_step import design_noises
from confide.release.synthetic.drawing import drawn_line, drawn_words, left_out, left_out_line
from confide.release.synthetic.steps import one_count, paid_share, step_noise
from confide.synthesis.curator import ChooseAmong, MeasureDesign, MeasureQueries, MeasureSets, SynthesisStep, UnitReach
from confide.synthesis.relaxed import cell_count
from confide.synthesis.selection import selection_epsilon

if TYPE_CHECKING:
    from confide.release.synthetic.request import SynthesisRequest


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One paid step, or one of `times` alike.

    Of a measurement: how many counts come out, the standard deviation of the noise of each, the half-width of the
    interval of one of them, and the width that holds for all of them at once. Of a choice: by how much at most the
    error of what is chosen falls short of the largest one, in rows, where it is chosen by rows.
    """

    kind: Literal["measure", "choose"]
    what: str
    times: int
    cost: float
    """In the currency of the budget: ε, or ρ."""
    answers: int
    mechanism: str
    deviation: float | None
    half_width: float | None
    largest: float | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "what": self.what,
            "times": self.times,
            "cost": self.cost,
            "answers": self.answers,
            "mechanism": self.mechanism,
            "deviation": self.deviation,
            "half_width": self.half_width,
            "largest": self.largest,
        }


@dataclass(frozen=True)
class SynthesisPlan:
    """The forecast of a synthesis. Nothing was read and nothing was charged.

    `settings` are the method's own: of `rap` how it selects, `rounds` T, `picks` K, and the `rows` of its table.
    `expected` is how many rows the policy says there are. A fitted table is off on what was measured by about the
    noise, or less, where it can explain the counts.
    """

    table: str
    columns: tuple[str, ...]
    workload: str
    queries: int
    method: str
    settings: Mapping[str, Any]
    steps: tuple[PlannedStep, ...]
    cost: Cost
    confidence: float
    unit: str
    neighbours: str
    expected: int | None
    affordable: bool
    budget: BudgetState
    drawn: Mapping[str, str] = field(default_factory=dict)
    """How records will come to their values, for each of their columns."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The columns of the table that records will not have, and why."""
    why: str = ""
    """Why the method was taken, where none was named."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count of the last thing that is measured."""
        return [step.deviation for step in self.steps if step.deviation is not None][-1]

    def share(self, width: float) -> float | None:
        """A number of rows as a share of those that the policy expects."""
        return None if self.expected is None else width / self.expected

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "columns": list(self.columns),
            "workload": self.workload,
            "queries": self.queries,
            "method": self.method,
            **self.settings,
            "steps": [step.to_dict() for step in self.steps],
            "cost": self.cost.to_dict(),
            "confidence": self.confidence,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "expected_rows": self.expected,
            "affordable": self.affordable,
            "drawn": dict(self.drawn),
            "left_out": dict(self.left_out),
            "why": self.why,
        }

    def table_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """As it is printed: one row for each step."""
        head = ("step", "cost", "counts", "noise σ", f"± at {self.confidence:.4g}", "all within ±", "of all rows")
        return head, [self._row(step) for step in self.steps]

    def lines(self) -> list[str]:
        """What is printed below the steps."""
        lines = [
            f"for {self.workload} over {_plural(len(self.columns), 'column')}",
            f"{self.method} · cost {self.cost} for all of it · protects one {self.unit}",
            "a fitted table is off on what was measured by about the noise, or less; what was not measured has no "
            "forecast: session.trust asks about it",
        ]
        lines += [self.why] if self.why else []
        if any(step.kind == "choose" and step.largest is not None for step in self.steps):
            lines.append("a choice finds an error that is at most so much below the largest one")
        lines += [*drawn_line(dict(self.drawn)), *left_out_line(dict(self.left_out))]
        if self.expected is None:
            lines.append(
                "the policy does not say how many rows there are, or there are several tables: shares are not told"
            )
        if not self.affordable:
            lines.append(f"the budget does not hold this: {self.budget}")
        return lines

    def __str__(self) -> str:
        from confide.release.answer.rendering import table_of  # noqa: PLC0415  loaded when printed

        return print_table(table_of(*self.table_rows())) + "\n".join(self.lines())

    def _repr_html_(self) -> str:
        from confide.release.answer.rendering import html_of  # noqa: PLC0415  loaded when printed

        return framed(html_of(*self.table_rows()), lines(self.lines()))

    def _row(self, step: PlannedStep) -> tuple[str, ...]:
        share = None if step.largest is None else self.share(step.largest)
        symbol = "ε" if self.cost.rho is None else "ρ"
        return (
            step.what if step.times == 1 else f"{step.times} × {step.what}",
            f"{symbol} = {step.cost:.3g}",
            f"{step.answers:,}" if step.kind == "measure" else "",
            "" if step.deviation is None else f"{step.deviation:,.1f}",
            "" if step.half_width is None else f"{step.half_width:,.0f}",
            "" if step.largest is None else f"{step.largest:,.0f}",
            f"{share:.2%}" if share is not None else "" if step.largest is None else "?",
        )


def plan_synthesis(standing: Standing, request: "SynthesisRequest", confidence: object) -> SynthesisPlan:
    level = confidence_level(confidence)
    strategy, workload = request.strategy, request.workload
    return SynthesisPlan(
        table=request.table.name,
        columns=workload.domain.names,
        workload=workload.describe(),
        queries=workload.size,
        method=strategy.words,
        settings=strategy.facts,
        steps=(*_of_values(request, level), *(_step_of(request, step, level) for step in strategy.steps(workload))),
        cost=Cost.of(request.epsilon, request.cost),
        confidence=level,
        unit=request.unit,
        neighbours=request.neighbours,
        expected=request.expected,
        affordable=standing.holds(request.cost),
        budget=budget_state(standing),
        drawn=drawn_words(request.table, workload.domain, () if request.values is None else request.values.columns),
        left_out=left_out(request.table, workload.domain),
        why=request.why,
    )


def _step_of(request: "SynthesisRequest", step: SynthesisStep, level: float) -> PlannedStep:
    match step:
        case MeasureSets(what, sets, share, times):
            noise = step_noise(paid_share(request.modelled, share), len(sets), request.tables)
            answers = sum(cell_count(request.workload.domain.sizes, columns) for columns in sets)
            return _measured(what, noise, _amount(request.modelled, share), answers, level, times)
        case MeasureQueries(what, count, share, times):
            noise = step_noise(paid_share(request.modelled, share), count, one_count(request.rows))
            return _measured(what, noise, _amount(request.modelled, share), count, level, times)
        case MeasureDesign():
            return _designed(request, step, level)
        case ChooseAmong():
            return _chosen(request, step, level)
    assert_never(step)


def _of_values(request: "SynthesisRequest", level: float) -> Iterator[PlannedStep]:
    step = request.values
    if step is not None:
        noise = step_noise(paid_share(request.cost, step.share), len(step.columns), request.tables)
        answers = sum(own.size for own in step.attributes)
        words = "every value of 1 column" if len(step.columns) == 1 else f"every value of {len(step.columns)} columns"
        yield _measured(f"{words} in bins", noise, _amount(request.cost, step.share), answers, level, 1)


def _measured(what: str, noise: Additive, cost: float, answers: int, level: float, times: int) -> PlannedStep:
    every = 1 - (1 - level) / max(1, answers)  # all of them at once, by the union bound
    return PlannedStep(
        "measure",
        f"measure {what}",
        times,
        cost,
        answers,
        noise.name,
        math.sqrt(noise.law.variance),
        float(noise.law.half_width(level)),
        float(noise.law.half_width(min(every, 1 - 1e-12))),
    )


def _designed(request: "SynthesisRequest", step: MeasureDesign, level: float) -> PlannedStep:
    """Of the counts that follow, as sums: the root of their mean variance, and widths by the law of one number, which
    has the heavier tails.
    """
    loss = paid_share(request.modelled, step.share)
    noises = design_noises(step.design, loss, UnitReach(request.rows, request.tables.l1))
    deviation = math.sqrt(forecast(step.design, noises) / step.tables)
    law = max((noise.law for noise in noises), key=lambda law: law.variance)
    every = min(1 - (1 - level) / max(1, step.answers), 1 - 1e-12)
    half, widest = (float(law.half_width(own)) / math.sqrt(law.variance) * deviation for own in (level, every))
    kind = "discrete Gaussian" if step.design.noise == "gaussian" else "discrete Laplace"
    amount = _amount(request.modelled, step.share)
    return PlannedStep("measure", f"measure {step.what}", 1, amount, step.answers, kind, deviation, half, widest)


def _chosen(request: "SynthesisRequest", step: ChooseAmong, level: float) -> PlannedStep:
    """An exponential mechanism misses the largest score by more than t with probability at most m·exp(-εt / 2Δ)."""
    epsilon = selection_epsilon(paid_share(request.modelled, step.share), step.picks)
    reach = {"cells": request.rows, "tables": request.tables.l1, "other": None}[step.errors]
    odds = 2 * math.log(step.among / (1 - level)) / float(epsilon)
    short = None if reach is None else float(math.ceil(reach * odds))
    cost = _amount(request.modelled, step.share)
    return PlannedStep("choose", f"choose {step.what}", step.times, cost, 0, "exponential", None, None, short)


def _amount(cost: Currency, share: Fraction) -> float:
    loss = paid_share(cost, share)
    return float(loss.epsilon if isinstance(loss, PureDP) else loss.rho)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
