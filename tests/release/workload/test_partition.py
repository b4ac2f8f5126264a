"""Strategies that look first: parts at a part of the cost, exact laws for whole parts, bounds for their cells."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.privacy.loss import ZCDP, PureDP
from confide.release.workload import partition_price
from confide.release.workload.partition_price import Split, price_partition, suits_parts, widest
from confide.release.workload.request import WorkloadOptions, bind_answer
from confide.workload.asked import AskedTable
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.partition import Partition
from tests.release import samples

CELLS = 256


def counts() -> np.ndarray:
    """A few dense cells, an even stretch, and nothing elsewhere."""
    made = np.zeros(CELLS, dtype=np.int64)
    made[10:14] = [900, 40, 700, 5]
    made[64:128] = 20
    return made


def session(budget: dict[str, Any], seed: int = 1, rows: str = "private") -> Any:
    columns = {"x": {"range": [0, CELLS - 1]}, "g": {"values": ["a"]}}
    table = {"rows": rows, "size": 3_000, "columns": columns}
    policy = {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": table}}
    own = np.repeat(np.arange(CELLS), counts())
    return confide.testing.open(policy, data={"t": pl.DataFrame({"x": own, "g": ["a"] * len(own)})}, seed=seed)


@pytest.mark.parametrize("strategy", ["privtree", "dawa"])
@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_intervals_hold_for_whole_parts_and_for_their_cells(strategy: str, budget: dict[str, Any]) -> None:
    """40 measurements of 256 prefixes: at least 95 % hold on average, and were binomial 3·10⁻⁵ for 90 %."""
    people = session(budget)
    sums = np.cumsum(counts())
    held = []
    for number in range(40):
        found = people.answer(
            confide.prefixes("x"), epsilon=Fraction(1, 2) + Fraction(number, 10**9), strategy=strategy
        )
        table = found.to_arrow()
        held.append(((table["count_low"].to_numpy() <= sums) & (sums <= table["count_high"].to_numpy())).mean())
    assert np.mean(held) >= 0.93
    assert people.budget.spent == pytest.approx(20, rel=0.2) or budget is samples.APPROXIMATE


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_cells_that_differ_by_more_than_their_noise_are_parts_of_their_own(budget: dict[str, Any]) -> None:
    """What a part costs is its noise in rows, not in the whole numbers that are measured; by chance below 10⁻⁹."""
    found = session(budget).answer(confide.prefixes("x"), epsilon=20, strategy="dawa")
    assert {10, 11, 12, 13, 14} <= set(found.measured.partition.edges)


def test_sql_of_parts_has_bounds() -> None:
    people = session(samples.APPROXIMATE)
    found = people.answer(confide.ranges("x"), epsilon=1, strategy="privtree")
    row = next(row for row in found.to_arrow().to_pylist() if (row["x_from"], row["x_to"]) == (12, 90))
    value = found.sql("SELECT COUNT(*) AS n FROM t WHERE x BETWEEN 12 AND 90").values[0]
    assert value.values[0] == pytest.approx(row["count"])
    assert (value.low[0], value.high[0]) == (row["count_low"], row["count_high"])
    apart = found.sql("SELECT COUNT(*) AS n FROM t WHERE x < 20 OR x >= 100").values[0]
    truth = int(counts()[:20].sum() + counts()[100:].sum())
    assert apart.low[0] <= truth <= apart.high[0]
    assert "privtree" in found.strategy
    again = people.answer(confide.ranges("x"), epsilon=1, strategy="privtree")
    assert again.stored
    assert again.to_arrow().equals(found.to_arrow())


def test_empty_stretches_are_one_part() -> None:
    found = session(samples.APPROXIMATE).answer(confide.prefixes("x"), epsilon=1, strategy="privtree")
    assert found.measured.partition.parts < CELLS / 2


def test_what_is_spent_on_finding_and_on_measuring_adds_up() -> None:
    pure = Split.of(PureDP(Fraction(1)))
    assert pure.measuring == PureDP(Fraction(4, 5))
    assert pure.finding == Fraction(1, 5)
    both = Split.of(ZCDP(Fraction(1, 10)))
    assert isinstance(both.measuring, ZCDP)
    assert both.finding**2 / 2 + both.measuring.rho == Fraction(1, 10)
    assert both.measuring.rho >= Fraction(74, 1_000)


def test_rows_that_are_replaced_change_two() -> None:
    plans = [session(samples.PURE, rows=rows).plan_answer(confide.prefixes("x"), epsilon=1, strategy="privtree")
             for rows in ("private", "public")]  # fmt: skip
    assert plans[1].worst > 1.9 * plans[0].worst
    assert "parts are found first" in str(plans[0])


def test_what_is_refused() -> None:
    people = session(samples.PURE)
    with pytest.raises(ParameterError, match="finds parts of one column"):
        people.answer(confide.ranges("x", by="g"), epsilon=1, strategy="dawa")
    with pytest.raises(ParameterError, match="follow from the"):
        people.plan_answer(confide.ranges("x", by="g"), within=100, strategy="privtree")
    with pytest.raises(ParameterError, match="not fitted to parts"):
        people.answer(confide.ranges("x"), epsilon=1, strategy="dawa").microdata()


def long_session(size: int | None, budget: dict[str, Any], cells: int = 512, rows: str = "private") -> Any:
    facts = {} if size is None else {"size": size}
    table = {"rows": rows, **facts, "columns": {"x": {"range": [0, cells - 1]}, "g": {"values": ["a", "b"]}}}
    policy = {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": table}}
    own = np.random.default_rng(2).geometric(0.1, 2_000) - 1
    own = own[own < cells]
    return confide.testing.open(policy, data={"t": pl.DataFrame({"x": own, "g": ["a"] * len(own)})}, seed=2)


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_auto_finds_parts_where_the_policy_says_that_rows_are_few(budget: dict[str, Any]) -> None:
    few = long_session(2_000 if budget is samples.PURE else 100, budget)
    asked = confide.prefixes("x")
    plan = few.plan_answer(asked, epsilon=1)
    assert plan.strategy == "privtree"
    assert "strategy='exact'" in str(plan)
    found = few.answer(asked, epsilon=1)
    assert "privtree" in found.strategy
    assert few.plan_answer(asked, epsilon=1, strategy="exact").strategy != "privtree"
    assert few.answer(asked, epsilon=1, strategy="exact").strategy != found.strategy
    for other, workload in (
        (long_session(200_000, budget), asked),  # many rows
        (long_session(None, budget), asked),  # nobody says how many
        (long_session(500, budget, cells=100), asked),  # a short column
        (few, confide.marginals(k=1, columns=["x"])),  # cells alone
        (few, confide.ranges("x", by="g")),  # two columns
    ):
        own = other.plan_answer(workload, epsilon=1)
        assert not own.looks
        assert not own.advice


def test_rows_of_which_a_unit_changes_several_are_fewer() -> None:
    cost, tables = PureDP(Fraction(1)), (AskedTable((0,), ("prefix",)),)
    assert not suits_parts((512,), tables, 20_000, cost)
    assert suits_parts((512,), tables, 20_000, cost, changes=2)
    assert suits_parts((512,), tables, 16_384, cost)
    both = ZCDP(Fraction(1, 2), Fraction(1, 10**9))
    assert suits_parts((512,), tables, 512, both)
    assert not suits_parts((512,), tables, 513, both)


def test_widths_that_are_promised_stay_with_strategies_that_do_not_look() -> None:
    few = long_session(2_000, samples.PURE)
    plan = few.plan_answer(confide.prefixes("x"), within=100)
    assert not plan.looks
    assert "strategy='exact': write it" in str(plan)
    found = few.answer(confide.prefixes("x"), epsilon=plan.cost.epsilon, strategy="exact")
    table = found.to_arrow()
    assert (table["count_high"].to_numpy() - table["count_low"].to_numpy()).max() <= 201


def test_no_sum_of_whole_parts_is_wider_than_planned() -> None:
    """For partitions of every sort, under both kinds of noise, and where the best strategy would pass the plan."""
    partitions = [Partition((0, CELLS)), Partition((0, 1, 2, 3, CELLS)), Partition((0, 100, 101, 200, CELLS))]
    partitions.append(Partition(tuple(range(CELLS + 1))))
    for budget in (PureDP(Fraction(1)), ZCDP(Fraction(1, 2), Fraction(1, 10**9))):
        for asked in (confide.prefixes("x"), confide.ranges("x")):
            people = session(samples.PURE)
            options = WorkloadOptions(asked, "privtree")
            request = bind_answer(people._holdings, options, Fraction(1))
            priced = price_partition(request, budget)
            (kind,) = request.linear.tables[0].kinds
            most = widest(priced.design.blocks[0], priced.noises[0], kind, 0.95)
            for partition in partitions:
                assert widest(*priced.measured_parts(partition), kind, 0.95) <= most * (1 + 1e-9)


def test_a_strategy_that_would_pass_the_plan_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    people = session(samples.PURE)
    request = bind_answer(people._holdings, WorkloadOptions(confide.prefixes("x"), "privtree"), Fraction(1))
    priced = price_partition(request, PureDP(Fraction(1)))
    poor = DenseLine("poor", np.vstack([1_000 * np.eye(4), np.ones((1, 4))]).astype(np.int32)[::-1].copy())
    weak = DenseLine("weak", np.vstack([np.eye(4), 10_000 * np.ones((1, 4))]).astype(np.int32))
    for line, taken in ((poor, "poor"), (weak, "hierarchy")):
        monkeypatch.setattr(partition_price, "line_for_parts", lambda *_, line=line: line)
        assert priced.measured_parts(Partition((0, 1, 2, 3, CELLS)))[0].lines[0].name == taken


def test_parts_within_and_parts_touched() -> None:
    partition = Partition((0, 4, 5, 8))
    inner = [
        tuple(int(end[0]) for end in partition.inner(np.array([a]), np.array([b]))) for a, b in ((0, 8), (1, 5), (2, 3))
    ]
    assert inner == [(0, 3), (1, 2), (1, 1)]
    outer = [
        tuple(int(end[0]) for end in partition.outer(np.array([a]), np.array([b]))) for a, b in ((0, 8), (1, 5), (2, 3))
    ]
    assert outer == [(0, 3), (0, 2), (0, 1)]
    least, mean, most = partition.of_query(np.array([1.0, 0, 0, 0, 1, 1, 1, 1]))
    assert (least.tolist(), mean.tolist(), most.tolist()) == ([0, 1, 1], [0.25, 1, 1], [1, 1, 1])


def grid_counts(sizes: tuple[int, ...]) -> np.ndarray:
    """A dense corner, an even box and nothing elsewhere."""
    made = np.zeros(sizes, dtype=np.int64)
    made[tuple(slice(1, 3) for _ in sizes)] = 60
    made[tuple(slice(size // 2, size - 1) for size in sizes)] = 4
    made[(0,) * len(sizes)] = 300
    return made


def grid_session(sizes: tuple[int, ...], budget: dict[str, Any]) -> Any:
    names = "abc"[: len(sizes)]
    columns = {name: {"range": [0, size - 1]} for name, size in zip(names, sizes, strict=True)}
    policy = {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": {"size": 3_000, "columns": columns}}}
    places = np.repeat(np.indices(sizes).reshape(len(sizes), -1), grid_counts(sizes).reshape(-1), axis=1)
    frame = pl.DataFrame(dict(zip(names, places, strict=True)))
    return confide.testing.open(policy, data={"t": frame}, seed=3)


@pytest.mark.parametrize("sizes", [(16, 16), (12, 5), (6, 4, 5)], ids=str)
@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_intervals_of_boxes_hold(sizes: tuple[int, ...], budget: dict[str, Any]) -> None:
    """20 measurements of all prefixes of two or three columns: at least 95 % hold in the mean."""
    people = grid_session(sizes, budget)
    truth = grid_counts(sizes)
    for axis in range(len(sizes)):
        truth = np.cumsum(truth, axis=axis)
    asked = confide.prefixes(*"abc"[: len(sizes)])
    held = []
    for number in range(20):
        found = people.answer(asked, epsilon=Fraction(1, 2) + Fraction(number, 10**9), strategy="privtree")
        (own,) = found.tables()
        assert own.values.shape == sizes
        held.append(((own.low <= truth) & (truth <= own.high)).mean())
    assert np.mean(held) >= 0.94


def test_boxes_are_the_same_in_sql_and_after_keeping() -> None:
    people = grid_session((12, 5), samples.APPROXIMATE)
    asked = confide.ranges("a", "b") + confide.prefixes("b")
    found = people.answer(asked, epsilon=1, strategy="privtree")
    rows = found.to_arrow().to_pylist()
    row = next(r for r in rows if (r["a_from"], r["a_to"], r["b_from"], r["b_to"]) == (1, 7, 0, 3))
    value = found.sql("SELECT COUNT(*) AS n FROM t WHERE a BETWEEN 1 AND 7 AND b <= 3").values[0]
    assert value.values[0] == pytest.approx(row["count"])
    assert (value.low[0], value.high[0]) == (row["count_low"], row["count_high"])
    alone = next(r for r in rows if r["a_from"] is None and r["b_to"] == 3)
    value = found.sql("SELECT COUNT(*) AS n FROM t WHERE b <= 3").values[0]
    assert (value.low[0], value.high[0]) == (alone["count_low"], alone["count_high"])
    again = people.answer(asked, epsilon=1, strategy="privtree")
    assert again.stored
    assert again.to_arrow().equals(found.to_arrow())


def test_a_plan_of_boxes_says_that_widths_follow_from_the_parts() -> None:
    plan = grid_session((12, 5), samples.PURE).plan_answer(confide.ranges("a", "b"), epsilon=1, strategy="privtree")
    assert "at a third of ε" in str(plan)
    assert "no bound" in str(plan)
