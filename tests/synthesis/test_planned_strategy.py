"""What `planned` measures follows from public facts, and its forecast is what linear answers are off by."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide
from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.policy import Policy
from confide.privacy.loss import ZCDP, PureDP
from confide.release.block_noise import noises_for
from confide.synthesis.merged_strategy import MergedStrategy
from confide.synthesis.planned_strategy import choose_planned, forecast, tables_of_order
from confide.workload import BoundWorkload, domain_of
from confide.workload.strategy.block import UnitChange


def workload(sizes: tuple[int, ...] = (2, 3, 2, 4), k: int = 3) -> BoundWorkload:
    columns = {f"c{place}": {"values": list(range(size))} for place, size in enumerate(sizes)}
    policy = Policy.parse(
        {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}
    )
    return confide.marginals(k).bound(domain_of(policy.tables["t"]))


def test_the_order_falls_with_the_budget() -> None:
    wanted = workload((2,) * 8)
    orders = [choose_planned(wanted, ZCDP(Fraction(rho)), 10_000, 1).order for rho in (1, "1/1000", "1/1000000")]
    assert orders == sorted(orders, reverse=True)
    assert orders[0] == 3
    assert orders[-1] == 1


def test_what_is_asked_for_is_taken() -> None:
    wanted, cost = workload(), ZCDP(Fraction(1, 100))
    assert choose_planned(wanted, cost, 10_000, 1, select="all").order == 3
    assert choose_planned(wanted, cost, 10_000, 1, select="closure").order == 2
    assert [table.columns for table in tables_of_order(wanted, 1)] == [(0,), (1,), (2,), (3,)]
    with pytest.raises(ParameterError, match="is not of method 'planned'"):
        choose_planned(wanted, cost, 10_000, 1, select="queries")
    assert isinstance(choose_planned(workload((2,) * 21, 1), cost, 10_000, 1), MergedStrategy)
    with pytest.raises(ParameterError, match="rows is for a relaxed table"):
        choose_planned(wanted, cost, 10_000, 1, rows=10)
    with pytest.raises(ParameterError, match="buys nothing"):
        choose_planned(wanted, ZCDP(Fraction(1, 10**12)), 100, 1)


@pytest.mark.parametrize("cost", [ZCDP(Fraction(1, 50)), PureDP(Fraction(1, 2))], ids=["zcdp", "pure"])
def test_a_forecast_is_the_error_of_linear_answers(cost: Any) -> None:
    """Noise alone, drawn 400 times: sums over blocks, as an answer is."""
    wanted = workload((2, 3, 4), 2)
    strategy = choose_planned(wanted, cost, 1_000, 2, select="all")
    design = strategy.designed(wanted)
    told = forecast(design, wanted, 2, cost, 1_000, 2)
    noises = noises_for(design, UnitChange(2, False), cost)
    randomness, errors = TestRandomness(1), []
    for _ in range(400):
        cells = [
            block.estimate(noise.noised(block, np.zeros(block.rows, dtype=object), randomness).astype(np.float64))
            for block, noise in zip(design.blocks, noises, strict=True)
        ]
        for table, numbers in zip(tables_of_order(wanted, 2), design.sources, strict=True):
            whole = np.zeros([wanted.domain.sizes[column] for column in table.columns])
            for number in numbers:
                own = design.blocks[number].columns
                gone = [wanted.domain.sizes[column] for column in table.columns if column not in own]
                shape = [wanted.domain.sizes[column] if column in own else 1 for column in table.columns]
                whole = whole + cells[number].sum(
                    axis=tuple(axis for axis, column in enumerate(own) if column not in table.columns)
                ).reshape(shape) / np.prod(gone)
            errors.append(np.abs(whole).sum() / 1_000)
    assert np.mean(errors) == pytest.approx(told, rel=0.08)
