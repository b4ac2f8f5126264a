"""Splits add up to what is charged, and never to more."""

from dataclasses import replace
from fractions import Fraction

import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise
from confide.policy import load
from confide.privacy.amount import root
from confide.privacy.budget import Budget, in_currency
from confide.privacy.loss import ZCDP, ApproxDP, PureDP
from confide.query import Question, bind
from confide.release.sql.allocation import Allocation, _laplace_threshold, allocate
from confide.release.sql.statistics import plan_within
from tests.release.samples import APPROXIMATE, PURE, policy, row_policy


class NoTables:
    """A catalog without public tables."""

    def columns(self, table: str) -> dict[str, object]:
        raise KeyError(table)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        raise KeyError(table)

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        raise KeyError(table)


def ask(sql: str, rules: dict[str, object] | None = None) -> Question:
    return bind(sql, load(rules or policy(APPROXIMATE)), NoTables())  # type: ignore[arg-type]


QUESTIONS = [
    "SELECT COUNT(*) AS n FROM person",
    "SELECT region, COUNT(*) AS n, SUM(age) AS s, AVG(income) AS a, STDDEV(age) AS d FROM person GROUP BY region",
    "SELECT SUM(cost) / COUNT(*) AS r, COUNT(DISTINCT person_id) AS people FROM visit",
    "SELECT region FROM person GROUP BY region HAVING COUNT(*) > 5".replace(
        "region FROM", "region, AVG(age) AS a FROM"
    ),
]


def spent(question: Question, allocation: Allocation, budget: Budget) -> tuple[Fraction, Fraction]:
    """The loss of the mechanisms themselves, recomputed from their noise and the sensitivities."""
    epsilon = rho = Fraction(0)
    for place, (measure, mechanism) in enumerate(zip(question.measures, allocation.mechanisms, strict=True)):
        if place == allocation.counted:
            continue  # the number that keys are shown by
        match mechanism.law:
            case DiscreteLaplace(scale):
                epsilon += measure.l1 / scale
                rho += (measure.l1 / scale) ** 2 / 2
            case DiscreteGaussian(variance):
                rho += Fraction(measure.l2_squared) / (2 * variance)
                epsilon = Fraction(10**9)
            case NoNoise():
                assert measure.l1 == 0
    if allocation.keys is not None:
        assert question.threshold is not None
        match allocation.keys.law:
            case DiscreteLaplace(scale):
                rho += (question.threshold.l1 / scale) ** 2 / 2
            case DiscreteGaussian(variance):
                rho += Fraction(question.threshold.l1) / (2 * variance)
    return epsilon, rho


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_pure_call_spends_what_it_says(sql: str) -> None:
    question, budget = ask(sql, policy(PURE)), Budget.of(10)
    allocation = allocate(question, budget, Fraction(1, 3), 0.95)
    assert allocation.loss == PureDP(Fraction(1, 3))
    assert all(isinstance(mechanism.loss, PureDP) for mechanism in allocation.mechanisms)
    epsilon, _ = spent(question, allocation, budget)
    assert epsilon <= Fraction(1, 3)
    assert epsilon > Fraction(1, 3) * (1 - Fraction(1, 10**9)), "nothing is wasted"


@pytest.mark.parametrize("confidence", [0.3, 0.95, 0.999])
@pytest.mark.parametrize(
    "sql",
    [
        *QUESTIONS,
        "SELECT town, COUNT(*) AS n, AVG(age) AS a FROM person GROUP BY town",
        "SELECT town, COUNT(*) AS n, SUM(age) AS a FROM person GROUP BY town",
        "SELECT town, COUNT(*) AS n FROM person GROUP BY town",
        "SELECT town, SUM(age) AS s FROM person GROUP BY town",
    ],
)
def test_an_approximate_call_spends_what_it_says(sql: str, confidence: float) -> None:
    question, budget = ask(sql), Budget.of(3, "1e-9")
    allocation = allocate(question, budget, Fraction(1, 2), confidence)
    assert isinstance(allocation.loss, ZCDP)
    _, rho = spent(question, allocation, budget)
    assert rho <= allocation.loss.rho
    assert rho > allocation.loss.rho * (1 - Fraction(1, 10**6))
    own = [m for place, m in enumerate(allocation.mechanisms) if place != allocation.counted]
    declared = [in_currency(m.loss, budget.cap) for m in own]
    total = sum((loss.rho for loss in declared if isinstance(loss, ZCDP)), Fraction(0))
    if allocation.keys is not None:
        assert isinstance(allocation.keys.loss, ZCDP)
        assert allocation.keys.loss.delta <= allocation.loss.delta <= budget.delta / 2
        total += allocation.keys.loss.rho
    assert total <= allocation.loss.rho * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rules", [policy(PURE), policy(APPROXIMATE)], ids=["pure", "approximate"])
def test_statistics_cost_no_more_than_the_call(rules: dict[str, object]) -> None:
    question = ask("SELECT MEDIAN(cost) AS m, MAX(cost) AS x, QUANTILE(cost, 0.9) AS q FROM visit", rules)
    allocation = allocate(question, load(rules).budget, Fraction(1), 0.95)
    spent_on_them = sum(
        plan.loss.epsilon if isinstance(allocation.loss, PureDP) else plan.zcdp.rho for plan in allocation.plans
    )
    whole = allocation.loss.epsilon if isinstance(allocation.loss, PureDP) else allocation.loss.rho
    assert len(allocation.plans) == 3
    assert whole * Fraction(99, 100) < spent_on_them <= whole


def test_keys_under_replace_one_pay_for_both_units() -> None:
    rules = row_policy(APPROXIMATE, rows="public")
    rules["tables"]["t"]["columns"]["name"] = {"type": "text"}
    question, budget = ask("SELECT name, COUNT(*) AS n FROM t GROUP BY name", rules), Budget.of(3, "1e-9")
    allocation = allocate(question, budget, Fraction(1), 0.95)
    assert allocation.keys is not None
    assert isinstance(allocation.loss, ZCDP)
    rho = allocation.loss.rho
    assert isinstance(allocation.keys.law, DiscreteGaussian)
    assert allocation.keys.law.variance >= Fraction(2) / (2 * rho)
    assert allocation.keys.law.variance < Fraction(2) / (2 * rho) * (1 + Fraction(1, 10**6))
    assert allocation.keys.loss == ZCDP(rho, allocation.loss.delta)
    half = _laplace_threshold(question, root(2 * rho), allocation.loss.delta).loss
    assert isinstance(half, ApproxDP)
    assert (2 * half.epsilon) ** 2 / 2 <= rho
    assert half.delta * 2 < allocation.loss.delta


@pytest.mark.parametrize(
    ("sql", "counted"),
    [
        ("SELECT town, COUNT(*) AS n FROM person GROUP BY town", True),
        ("SELECT town, COUNT(DISTINCT person_id) AS n, SUM(age) AS s FROM person GROUP BY town", True),
        ("SELECT town, COUNT(*) AS n FROM person GROUP BY town HAVING n > 100 ORDER BY n DESC LIMIT 3", True),
        ("SELECT town, COUNT(*) AS n, SUM(age) AS s FROM person GROUP BY town", True),
        ("SELECT town, COUNT(*) * 2 AS n FROM person GROUP BY town", False),  # of more than the number itself
        ("SELECT town, SUM(age) / COUNT(*) AS a, COUNT(*) AS n FROM person GROUP BY town", False),
        ("SELECT town, COUNT(*) FILTER (WHERE age > 3) AS n FROM person GROUP BY town", False),
        ("SELECT town, SUM(age) AS s FROM person GROUP BY town", False),
        ("SELECT town, COUNT(*) AS n FROM visit JOIN person USING (person_id) GROUP BY town", False),  # rows, not units
        (
            "SELECT town, COUNT(DISTINCT visit.person_id) AS n FROM visit JOIN person USING (person_id) GROUP BY town",
            True,
        ),
    ],
)
def test_the_number_that_keys_are_shown_by_is_paid_for_once(sql: str, counted: bool) -> None:
    question, budget = ask(sql), Budget.of(3, "1e-9")
    allocation = allocate(question, budget, Fraction(1), 0.95)
    assert (allocation.counted is not None) == counted
    assert allocation.keys is not None
    if allocation.counted is not None:
        mechanism = allocation.mechanisms[allocation.counted]
        assert (mechanism.name, mechanism.law) == ("discrete gaussian with threshold", allocation.keys.law)
    numbers = len(question.measures) + len(question.statistics) - counted
    if not numbers:
        assert allocation.keys.loss == allocation.loss


def test_the_threshold_is_a_quarter_of_what_laplace_noise_needs() -> None:
    question, budget = ask("SELECT town, COUNT(*) AS n FROM person GROUP BY town"), Budget.of(100, "1e-9")
    allocation = allocate(question, budget, Fraction(1), 0.95)
    assert allocation.keys is not None
    assert isinstance(allocation.loss, ZCDP)
    both = _laplace_threshold(question, root(allocation.loss.rho), allocation.loss.delta).threshold
    assert allocation.keys.threshold <= 61 <= 241 * 0.26
    assert allocation.keys.threshold < both / 4


def test_the_delta_of_keys_lasts_as_long_as_rho() -> None:
    question, budget = ask("SELECT town, COUNT(*) AS n FROM person GROUP BY town"), Budget.of(3, "1e-9")
    whole = allocate(question, budget, Fraction(3), 0.95).loss
    assert isinstance(whole, ZCDP)
    assert whole.rho == budget.cap.rho  # type: ignore[union-attr]
    assert whole.delta == budget.delta / 2


# --- statistics under a budget with δ ---------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", ["", "town, "])
def test_smooth_quantiles_pay_with_delta_beside_the_keys(keys: str) -> None:
    """The parts of δ add up to what the call takes; without such a quantile all of it is for the keys."""
    budget = Budget.of(3, 1e-6)
    sql = f"SELECT {keys}MEDIAN(age) AS m, QUANTILE(income, 0.9) AS q FROM person" + " GROUP BY town" * bool(keys)
    cost = budget.cost(Fraction(1))
    assert isinstance(cost, ZCDP)
    for mechanism, paying in (("smooth", True), ("pair", False)):
        question = bind(sql, load(policy(APPROXIMATE)), NoTables(), mechanisms=mechanism)  # type: ignore[arg-type]
        paid = allocate(question, budget, Fraction(1), 0.9)
        assert isinstance(paid.loss, ZCDP)
        parts = [plan.zcdp.delta for plan in paid.plans] + ([paid.keys.loss.delta] if paid.keys else [])
        assert sum(parts) == paid.loss.delta == (budget.explicit_delta(cost) if paying or keys else 0)
        assert all(part > 0 for part in parts) == bool(paying or not parts)
        assert sum(plan.zcdp.rho for plan in paid.plans) <= paid.loss.rho


def test_auto_takes_what_is_narrowest_at_rho_and_not_at_epsilon() -> None:
    """Two exponential mechanisms cost a quarter of ε²/2, so at the same ρ they may have twice the ε."""
    budget, rows = Budget.of(10, 1e-9), 45_000
    question = ask("SELECT MEDIAN(income) AS m FROM person", policy(APPROXIMATE))
    (plan,) = allocate(question, budget, Fraction(1), 0.9, rows=rows).plans
    cost = budget.cost(Fraction(1))
    assert isinstance(cost, ZCDP)
    delta = budget.explicit_delta(cost)
    named = [replace(question.statistics[0], mechanism=name) for name in ("pair", "svt", "smooth", "em")]
    widths = {one.mechanism: plan_within(one, cost.rho, delta, 0.9, rows).forecast.half_width for one in named}
    assert plan.forecast.half_width == min(widths.values())
    assert plan.name == min(widths, key=lambda name: widths[name]) == "pair"
