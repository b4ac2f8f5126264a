"""Shares for the widest answer: certified, equal to what a solver finds, and never above the cost."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.workload.asked import AskedTable
from confide.workload.strategy.design import Design, designs
from confide.workload.strategy.line import NoiseKind, noise_norm
from confide.workload.strategy.worst import ENOUGH, WorstCoefficients, worst_coefficients, worst_shares

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def every(columns: int, orders: range) -> tuple[AskedTable, ...]:
    return tuple(
        AskedTable(chosen, ("each",) * order) for order in orders for chosen in combinations(range(columns), order)
    )


def coefficients(design: Design, sizes: tuple[int, ...], tables: tuple[AskedTable, ...]) -> WorstCoefficients:
    return worst_coefficients(design.blocks, design.sources, sizes, tables)


def norms(design: Design) -> np.ndarray:
    return np.array([noise_norm([line.norms for line in block.lines], design.noise) for block in design.blocks])


def worst(design: Design, sizes: tuple[int, ...], tables: tuple[AskedTable, ...]) -> float:
    power = 1 if design.noise == "gaussian" else 2
    shares = np.array([float(share) for share in design.shares])
    return float(coefficients(design, sizes, tables).worst(norms(design) / shares**power).max()) ** 0.5


def test_the_widest_marginal_of_adult() -> None:
    """At ρ = ½: the shares that are best on average leave a marginal at 18.15; none can do better than 15.92."""
    tables = every(14, range(1, 4))
    (mean,) = designs(ADULT, tables, "residual", "gaussian")
    (best,) = designs(ADULT, tables, "residual", "gaussian", "worst")
    assert worst(mean, ADULT, tables) == pytest.approx(18.153, abs=2e-3)
    assert worst(best, ADULT, tables) == pytest.approx(15.920, abs=2e-3)
    assert best.error() > mean.error()


SCHEMAS: list[tuple[tuple[int, ...], tuple[AskedTable, ...]]] = [
    ((3, 4, 2), every(3, range(1, 3))),
    ((2, 9, 3, 2), tuple(AskedTable(own, ("each",) * len(own)) for own in ((0, 1), (1, 2, 3), (3,)))),
    ((5, 1, 3), every(3, range(2, 3))),
]  # fmt: skip


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(("sizes", "tables"), SCHEMAS)
def test_no_solver_does_better(sizes: tuple[int, ...], tables: tuple[AskedTable, ...], noise: NoiseKind) -> None:
    (design,) = designs(sizes, tables, "residual", noise)
    parts, own, power = coefficients(design, sizes, tables), norms(design), 1 if noise == "gaussian" else 2
    found = worst_shares(parts, own, noise)
    assert found.bound <= found.worst <= found.bound * (1 + ENOUGH)

    # Least t with every V at most t², in t and logarithms of shares, whose sum of exponentials is 1.
    def variances(point: np.ndarray) -> np.ndarray:
        return parts.worst(own / np.exp(point[:-1]) ** power)

    start = np.append(np.full(len(own), -np.log(len(own))), 0.0)
    start[-1] = np.sqrt(variances(start).max())
    solved = minimize(
        lambda point: point[-1] / start[-1],
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda point: 1 - np.sqrt(variances(point)) / point[-1]},
            {"type": "ineq", "fun": lambda point: 1 - np.exp(point[:-1]).sum()},
        ],
        options={"maxiter": 2_000, "ftol": 1e-12},
    )
    assert found.worst**0.5 == pytest.approx(solved.x[-1], rel=1e-3)


def test_what_it_says_of_a_table_is_its_widest_answer() -> None:
    """Ranges: the largest over answers of a sum is at most the sum of the largest; of marginals they are the same."""
    sizes, tables = (6, 3), (AskedTable((0,), ("range",)), AskedTable((0, 1), ("each", "each")))
    (typical,) = designs(sizes, tables, "hierarchy", "gaussian")
    (found,) = designs(sizes, tables, "hierarchy", "gaussian", "worst")
    assert sum(found.shares) <= 1
    assert worst(found, sizes, tables) < worst(typical, sizes, tables)
    parts = coefficients(found, sizes, tables)
    line = found.blocks[0].lines[0]
    starts, stops = np.triu_indices(6)
    assert parts.amounts[0] == pytest.approx(line.spread(starts, stops + 1, fourth=False)[0].max())
