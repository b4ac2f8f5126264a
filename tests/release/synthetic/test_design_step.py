"""A step that measures a design: what one unit can change, whether noise covers it, and what is told."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, TestRandomness
from confide.privacy.budget import Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.release.synthetic.design_step import design_noises, released, told
from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal, UnitReach
from confide.workload import tables_of
from confide.workload.asked import AskedTable
from confide.workload.strategy.design import Design, designs
from tests.conformance.audit import audit
from tests.release.samples import APPROXIMATE, PURE, frames, policy, row_policy
from tests.release.synthetic.test_curator import Steps

SIZES = (2, 3, 2)
TABLES = tuple(AskedTable(pair, ("each", "each")) for pair in combinations(range(3), 2))
ROWS = np.array([[0, 1, 1], [1, 2, 0], [1, 0, 1], [0, 0, 0]])
ONE, OTHER = UnitReach(1, 1), UnitReach(1, 2)
COSTS = [ZCDP(Fraction(1, 7)), PureDP(Fraction(1))]
WANTED = confide.marginals(2, ["region", "sex"])


def made(cost: Currency, strategy: str = "residual") -> Design:
    return designs(SIZES, TABLES, strategy, "laplace" if isinstance(cost, PureDP) else "gaussian")[0]


def exact(rows: np.ndarray) -> Any:
    return tables_of(rows, SIZES, ((0, 1, 2),))


def numbers(design: Design, rows: np.ndarray) -> list[np.ndarray]:
    found = exact(rows)
    return [
        block.measure(
            found.marginal(block.columns, 0, SIZES[block.columns[0]]) if block.columns else np.array(found.rows)
        )
        for block in design.blocks
    ]


@pytest.mark.parametrize("strategy", ["residual", "direct", "identity"])
@pytest.mark.parametrize("cost", COSTS, ids=["zcdp", "pure"])
@pytest.mark.parametrize("replaced", [False, True])
def test_no_neighbour_costs_more_than_is_paid(replaced: bool, cost: Currency, strategy: str) -> None:
    """Brute force: every record that may go, come or become another, and the loss of the noise summed over all."""
    design = made(cost, strategy)
    noises = design_noises(design, cost, OTHER if replaced else ONE)
    before, worst = numbers(design, ROWS), Fraction(0)
    others = [np.delete(ROWS, 0, axis=0)] if not replaced else []
    others += [np.vstack([ROWS[1:] if replaced else ROWS, record]) for record in product(*map(range, SIZES))]
    for other in others:
        loss = Fraction(0)
        for block, noise, one, two in zip(design.blocks, noises, before, numbers(design, other), strict=True):
            change = (np.asarray(one, dtype=object) - two).reshape(-1)
            factors = np.ones(len(change), dtype=np.int64) if block.factors is None else block.factors
            for moved, factor in zip(change.tolist(), factors.tolist(), strict=True):
                if isinstance(noise.law, DiscreteGaussian):
                    loss += Fraction(moved) ** 2 / (2 * noise.law.variance * factor)
                else:
                    assert isinstance(noise.law, DiscreteLaplace)
                    loss += abs(Fraction(moved)) / noise.law.scale
        worst = max(worst, loss)
    paid = cost.epsilon if isinstance(cost, PureDP) else cost.rho
    assert worst <= paid
    if strategy == "residual" and isinstance(cost, ZCDP) and not replaced:
        assert worst > paid * Fraction(999, 1_000)


def runs(rows: np.ndarray, design: Design, noise_for: Currency, seed: int, count: int = 4_000) -> np.ndarray:
    noises, randomness, found = design_noises(design, noise_for, OTHER), TestRandomness(seed), exact(rows)
    return np.array([released(design, noises, found, randomness) for _ in range(count)])


@pytest.mark.parametrize(
    ("cost", "wrong"), [(ZCDP(Fraction(1, 2)), ZCDP(Fraction(8))), (PureDP(Fraction(1)), PureDP(Fraction(6)))]
)
def test_an_audit_finds_no_more_than_is_paid_and_catches_too_little_noise(cost: Currency, wrong: Currency) -> None:
    design = designs(SIZES, (AskedTable((0,), ("each",)),), "residual", made(cost).noise)[0]
    other = np.vstack([ROWS[1:], [1, 2, 0]])
    one, two = (runs(rows, design, cost, seed) for seed, rows in enumerate((ROWS, other)))
    assert not audit(one, two, cost).violated
    one, two = (runs(rows, design, wrong, seed) for seed, rows in enumerate((ROWS, other)))
    assert audit(one, two, cost).violated


@pytest.mark.parametrize("strategy", ["residual", "direct"])
def test_what_is_told_is_what_is_there(strategy: str) -> None:
    cost = ZCDP(Fraction(10**12))
    design = made(cost, strategy)
    noises = design_noises(design, cost, ONE)
    parts = told(design, noises, released(design, noises, exact(ROWS), TestRandomness(1)))
    for part in parts:
        assert isinstance(part, MeasuredEffect if strategy == "residual" else MeasuredMarginal)
        first = SIZES[part.columns[0]] if part.columns else 0
        cells = np.asarray(exact(ROWS).marginal(part.columns, 0, first) if part.columns else 4, dtype=float)
        if strategy == "residual":
            for axis in range(cells.ndim):
                cells = cells - cells.mean(axis=axis, keepdims=True)
        assert part.counts == pytest.approx(cells.reshape(-1), abs=1e-3)


def test_the_variance_that_is_told_is_that_of_the_noise() -> None:
    for cost in COSTS:
        design = made(cost)
        noises = design_noises(design, cost, ONE)
        randomness, found = TestRandomness(3), exact(np.zeros((0, 3), dtype=np.int64))
        drawn = [told(design, noises, released(design, noises, found, randomness)) for _ in range(600)]
        for place, block in enumerate(design.blocks):
            counts = np.array([parts[place].counts for parts in drawn])
            free = np.prod([SIZES[column] - 1 for column in block.columns])
            assert (counts**2).sum(axis=1).mean() == pytest.approx(free * drawn[0][place].variance, rel=0.2)


def test_half_a_share_buys_half() -> None:
    """And is charged: what a step pays is what its noise is made for."""
    steps = Steps(["a", "a", "b"], "private", ZCDP(Fraction(1, 10)), 3)
    design = designs((3,), (AskedTable((0,), ("each",)),), "residual", "gaussian")[0]
    whole, half = (steps.curator(run).measure_design(design, Fraction(1, run)) for run in (1, 2))
    for one, two in zip(whole, half, strict=True):
        assert two.variance == pytest.approx(2 * one.variance, rel=1e-3)
    before = steps.holdings.ledger.spent()
    curator = steps.curator(3)
    curator.measure_design(design, Fraction(1, 2))
    after = steps.holdings.ledger.spent()
    assert isinstance(before, ZCDP)
    assert isinstance(after, ZCDP)
    assert float(after.rho - before.rho) == pytest.approx(0.05)
    assert curator.spent == ZCDP(after.rho - before.rho)


def test_noise_that_64_bits_would_not_hold_is_refused() -> None:
    for cost in (ZCDP(Fraction(1, 10**24)), PureDP(Fraction(1, 10**14))):
        with pytest.raises(ParameterError, match="buys no round"):
            design_noises(made(cost), cost, ONE)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_a_call_is_one_paid_step_kept_and_given_again(budget: dict[str, Any]) -> None:
    with confide.testing.open(policy(budget), frames(), seed=1) as session:
        plan = session.plan_synthesize(WANTED, 2, table="person", method="planned")
        assert session.budget.spent == 0
        assert plan.settings["order"] == 2
        assert [step.times for step in plan.steps] == [1]
        twin = session.synthesize(WANTED, 2, table="person", method="planned")
        assert session.budget.spent == pytest.approx(2)
        assert twin.method.startswith("planned: all 2-way marginals")
        again = session.synthesize(WANTED, 2, table="person", method="planned")
        assert again.stored
        assert again.to_bytes() == twin.to_bytes()
        assert session.budget.spent == pytest.approx(2)
        counts = twin.answer(WANTED)[0]  # type: ignore[index]
        truth = frames()["person"].group_by("region", "sex").len().sort("region", "sex")["len"].to_numpy()
        order = [1, 0, 2, 3]  # E, N, S, W as the policy has them: N, E, S, W
        assert np.abs(counts - truth.reshape(4, 2)[order]).max() < 10 * plan.deviation
        assert twin.sample(50).num_rows == 50


def test_rows_that_are_replaced_cost_what_the_call_says() -> None:

    data = {"t": pl.DataFrame({"g": ["a", "b", "c"] * 100, "x": [1] * 300, "y": [0.5] * 300})}
    deviations = []
    for rows in ("private", "public"):
        with confide.testing.open(row_policy(APPROXIMATE, rows), data, seed=1) as session:
            plan = session.plan_synthesize(confide.marginals(1, ["g"]), 1, method="planned")
            deviations.append(plan.deviation)
            assert session.synthesize(confide.marginals(1, ["g"]), 1, method="planned").total == pytest.approx(
                300, abs=100
            )
    assert deviations[1] > 1.2 * deviations[0]
