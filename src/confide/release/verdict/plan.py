"""What a verdict would be worth, before it is paid for: how often it is wrong, by how far the answers are apart."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan
from typing import Any, Final

from confide.errors import ParameterError
from confide.host.notebook import framed, grid, lines
from confide.ledger.record.terms import Standing
from confide.privacy.amount import exact_number, parse_amount, shown_value
from confide.privacy.budget import Budget
from confide.release.account import AUTO, accounts_for
from confide.release.answer.digits import number
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.verdict.request import VerdictGroup, VerdictRequest, allowance, worth
from confide.trust.choice import Chosen
from confide.trust.effectiveness import error_at, needed_epsilon, worst_error
from confide.trust.target import Target

_FARTHEST: Final = 2**126  # no sum is as large as this
_SHOWN: Final = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3))


@dataclass(frozen=True)
class TrustPlan:
    """The forecast of one verdict, from public facts. Nothing was read and nothing was charged."""

    query: str
    key: dict[str, Any]
    synthetic_answer: float
    interval: tuple[float, float]
    within: str
    mechanism: str
    why: str
    threshold: float
    effective: bool
    wrong_yes: float | None
    prefer: str
    assumes: str
    epsilon: float
    cost: Cost
    affordable: bool
    budget: BudgetState
    names: tuple[str, ...]
    """Every decider that takes this aggregate."""
    group: VerdictGroup
    grain: Fraction
    questions: int

    def error(self, gap: float, mechanism: str | None = None) -> float:
        """The probability of a wrong verdict if the private answer is the synthetic one plus `gap`.

        NaN where no data have such an answer: counts are not negative, and means lie in the range of their column.
        """
        return self.errors([gap], mechanism)[0]

    def errors(self, gaps: Sequence[float], mechanism: str | None = None) -> list[float]:
        decider = self.group.chooser.make(mechanism or self.mechanism, Fraction(self.epsilon))
        return [
            error_at(decider, self._target, self.group.chooser.imagine, steps) if self._possible(steps) else nan
            for steps in map(self._steps, gaps)
        ]

    def needed_epsilon(self, gap: float, error: float = 0.05) -> float:
        """What the whole call must cost for an error of at most this at that gap, to either side."""
        return float(needed(self.group, self.mechanism, self._steps(gap), error) * self.questions)

    def plot(self, *also: str, path: object = None) -> Any:
        """An Altair chart of the error by the private answer ([Patwa2023], Figure 4); `also` names more deciders.

        It is kept in a file too if a path is given: .html, .png or .svg.
        """
        from confide.release.verdict.chart import errors_by_answer  # noqa: PLC0415  heavy, and loaded when used

        return errors_by_answer(self, also, path)

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query, "key": self.key, "synthetic_answer": self.synthetic_answer,
            "interval": list(self.interval), "within": self.within, "mechanism": self.mechanism, "why": self.why,
            "threshold": None if self.threshold == inf else self.threshold, "effective": self.effective,
            "wrong_yes": self.wrong_yes, "prefer": self.prefer, "assumes": self.assumes, "epsilon": self.epsilon,
            "cost": self.cost.to_dict(), "affordable": self.affordable,
            "errors": [{"gap": gap, "error": error} for gap, error in self._shown()],
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, default=str)

    def __str__(self) -> str:
        low, high = (number(end) for end in self.interval)
        effect = "at no distance" if self.threshold == inf else f"from ±{number(self.threshold)} on"
        lines = [f"{name} = {value}" for name, value in self.key.items()]
        lines += [
            f"synthetic answer {number(self.synthetic_answer)}, trusted between {low} and {high}",
            f"{self.mechanism}: {self.why} · effective {effect} · cost {self.cost}",
            "a wrong verdict, by the gap between the answers:",
            *(f"  ±{number(gap):>12}   {error:.4f}" for gap, error in self._shown()),
        ]
        if self.wrong_yes is not None:
            lines.append(f"a wrong yes has probability {self.wrong_yes:.3g} at most")
        if self.assumes:
            lines.append(f"assumes that {self.assumes}")
        if not self.affordable:
            lines.append(f"the budget does not hold this: {self.budget}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        found = [(f"±{number(gap)}", f"{error:.4f}") for gap, error in self._shown()]
        said = [line for line in str(self).splitlines() if not line.startswith("  ±")]
        return framed(lines(said), grid(("gap between the answers", "wrong verdict"), found))

    def _shown(self) -> list[tuple[float, float]]:
        decider = self.group.chooser.make(self.mechanism, Fraction(self.epsilon))
        chooser, target = self.group.chooser, self._target
        gaps = [share * target.tau for share in _SHOWN]
        found = [worst_error(decider, chooser.facts, target, chooser.imagine, gap) for gap in gaps]
        return [(worth(gap, self.grain), error) for gap, error in zip(gaps, found, strict=True) if error is not None]

    @property
    def _target(self) -> Target:
        return self.group.target

    def _possible(self, gap: Fraction) -> bool:
        return self.group.chooser.facts.possible(self._target.answer + gap)

    def _steps(self, gap: float) -> Fraction:
        return Fraction(gap) / self.grain


def plan_trust(
    standing: Standing,
    request: VerdictRequest,
    epsilon: object,
    gap: object,
    error: object,
    account: object = AUTO,
) -> "TrustPlan | tuple[TrustPlan, ...]":
    """A plan for each verdict, at ε; or at the least ε for which all of them err at a gap at most so often."""
    count, accounts = len(request.questions), accounts_for(standing.budget.accounts, account)
    if epsilon is not None and gap is not None:
        raise ParameterError("give epsilon, or a gap (and an error) to find the epsilon for, and not both")
    if gap is not None:
        level, distance = _error(error), _gap(gap)
        shares = [_needed(request, group, distance, level) for group in request.groups]
        exact = _for_share(standing.budget.under(accounts[0]), max(shares), count)
    else:
        exact = parse_amount(epsilon, "epsilon") if epsilon is not None else standing.budget.epsilon / 10
    # Deciders are pure, and ε buys them more than ρ does: the pure account comes first, if it holds.
    holding = [name for name in accounts if standing.holds(standing.budget.under(name).cost(exact))]
    loss, share = allowance(standing.budget.under((holding or accounts)[0]), exact, count)
    cost, affordable = Cost.of(exact, loss), standing.holds(loss)
    budget = budget_state(standing)
    plans = tuple(
        _plan(request, group, group.chooser.choose(request.mechanism, share), share, cost, affordable, budget)
        for group in request.groups
    )
    return plans[0] if request.single else plans


def needed(group: VerdictGroup, mechanism: str, gap: Fraction, error: float) -> Fraction:
    chooser = group.chooser
    return needed_epsilon(
        lambda epsilon: chooser.make(chooser.resolve(mechanism, epsilon)[0], epsilon),
        chooser.facts,
        group.target,
        chooser.imagine,
        gap,
        error,
    )


def _needed(request: VerdictRequest, group: VerdictGroup, gap: Fraction, error: float) -> Fraction:
    return needed(group, request.mechanism, gap / request.questions[group.question].grain, error)


def _for_share(budget: Budget, share: Fraction, questions: int) -> Fraction:
    """The ε of a call that gives each question its share: under δ less than their sum."""
    if budget.pure:
        return share * questions
    low, high = Fraction(1, 10**6), 10 * share * questions
    while high / low > Fraction(1001, 1000):
        middle = Fraction(float(low * high) ** 0.5).limit_denominator(10**9)
        low, high = (low, middle) if allowance(budget, middle, questions)[1] >= share else (middle, high)
    return high


def _plan(
    request: VerdictRequest,
    group: VerdictGroup,
    chosen: Chosen,
    share: Fraction,
    cost: Cost,
    affordable: bool,
    budget: BudgetState,
) -> TrustPlan:
    question, target, decider = request.questions[group.question], group.target, chosen.decider
    grain = question.grain
    return TrustPlan(
        query=question.sql,
        key=group.key,
        synthetic_answer=worth(target.answer, grain),
        interval=(worth(target.low, grain), worth(target.high, grain)),
        within=str(request.within),
        mechanism=decider.name,
        why=chosen.why,
        threshold=chosen.threshold * float(grain),
        effective=target.tau >= chosen.threshold,
        wrong_yes=decider.wrong_yes,
        prefer=request.prefer,
        assumes=decider.assumes,
        epsilon=float(share),
        cost=cost,
        affordable=affordable,
        budget=budget,
        names=group.chooser.names,
        group=group,
        grain=grain,
        questions=len(request.questions),
    )


def _gap(gap: object) -> Fraction:
    try:
        exact = exact_number(gap, "gap")
    except ParameterError:
        exact = Fraction(-1)
    if not 0 <= exact <= _FARTHEST:
        raise ParameterError(f"gap={shown_value(gap)} is not a distance; write a number from 0 on, such as 30")
    return exact


def _error(error: object) -> float:
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 0.5:
        raise ParameterError(
            f"error={shown_value(error)} is not a probability of error; write one between 0 and 0.5, such as 0.05"
        )
    return float(error)
