"""Wide columns on public grids: summaries below their cap, intervals that hold, plans that say so."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import PolicyError, QueryError
from confide.mechanism import TestRandomness
from confide.mechanism.tally import Tally, bucketed
from confide.mechanism.total.choice import mean_plan, total_plan
from confide.mechanism.total.race_sum import RacedSum
from confide.mechanism.total.summation import centre_of, shifted
from confide.mechanism.total.tail_sum import Tail
from confide.policy import load
from confide.query import bind
from confide.query.grid import LARGEST_SUMMARY, EvenGrid, FloatingGrid, floating_grid
from confide.query.identity import question_name
from confide.release.sql.grids import gridded, settled
from confide.release.sql.statistics import measure_statistic, plan_statistic

WIDE = {"range": [0, 10_000_000], "grain": 0.01}
GROUPS = [f"g{place}" for place in range(20)]


def policy(column: Any = WIDE, size: int | None = None, rows: str = "private", **more: Any) -> dict[str, Any]:
    columns = {"g": {"values": GROUPS}, "word": {"type": "text"}, "x": column}
    table: dict[str, Any] = {"rows": rows, "columns": columns} | ({} if size is None else {"size": size})
    return {"confide": 1, "budget": {"epsilon": 1e6}, "unit": "row", "tables": {"t": table}, **more}


def frame(rows: int = 4_000, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "g": random.choice(GROUPS, rows),
            "word": random.choice(["one", "two"], rows),
            "x": (random.lognormal(12, 1, rows)).round(2),
        }
    )


class Catalog:
    def columns(self, table: str) -> Any:
        raise AssertionError

    def multiplicity(self, table: str, columns: Any) -> int:
        raise AssertionError

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        raise KeyError(table)


def question(sql: str, rules: dict[str, Any], mechanism: str = "auto") -> Any:
    policy_ = load(rules)
    return gridded(bind(sql, policy_, Catalog(), mechanisms=mechanism), policy_)


# --- the choice of a grid ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", ["", " GROUP BY g", " GROUP BY g, BIN(x, 100000)"])
def test_no_summary_can_be_larger_than_the_cap(grouped: str) -> None:
    asked = question(f"SELECT MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q FROM t{grouped}", policy())
    groups = {"": 1, " GROUP BY g": 20}.get(grouped, 20 * 101)
    (tally,) = asked.summary.tallies
    assert isinstance(tally.grid, EvenGrid)
    assert not tally.sums
    assert groups * tally.grid.cells <= LARGEST_SUMMARY
    assert groups * tally.grid.cells * 10 >= LARGEST_SUMMARY, "coarser than it need be"


def test_narrow_columns_and_small_tables_need_no_grid() -> None:
    sql = "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g"
    assert question(sql, policy({"range": [0, 49_999]})).statistics[0].grid is None
    assert question(sql, policy({"range": [0, 50_000]})).statistics[0].grid is not None
    assert question(sql, policy(size=250_000)).statistics[0].grid is None
    assert question(sql, policy(size=250_001)).statistics[0].grid is not None
    assert question("SELECT g, SUM(x) AS s FROM t GROUP BY g", policy()).summary.tallies == ()


def test_the_grid_is_part_of_the_question() -> None:
    sql = "SELECT MEDIAN(x) AS m FROM t"
    assert question_name(question(sql, policy())) != question_name(question(sql, policy(size=100)))


def test_sums_without_a_range_are_read_by_floating_cells_with_their_sums() -> None:
    unbounded = {"range": "unbounded", "grain": 1}
    asked = question("SELECT SUM(x) AS s, AVG(x) AS m, MEDIAN(x) AS q FROM t", policy(unbounded))
    assert [tally.sums for tally in asked.summary.tallies] == [True, False]
    for tally in asked.summary.tallies:
        assert isinstance(tally.grid, FloatingGrid)
        assert tally.grid.cells <= LARGEST_SUMMARY
        assert tally.grid.digits >= 12
    with pytest.raises(QueryError, match="fewer groups"):
        question("SELECT word, SUM(x) AS s FROM t GROUP BY word, g, BIN(y, 1)", _many(unbounded))


def _many(column: Any) -> dict[str, Any]:
    rules = policy(column, budget={"epsilon": 1, "delta": 1e-9})
    rules["tables"]["t"]["columns"]["y"] = {"range": [0, 999]}
    rules["tables"]["t"]["columns"]["word"] = {"values": ["one", "two"]}
    return rules


# --- what is said and released ----------------------------------------------------------------------------------------


def test_plan_and_answer_say_so_before_and_after_paying() -> None:
    sql = "SELECT MEDIAN(x) AS m FROM t"
    with confide.testing.open(policy(), {"t": frame()}, seed=1) as session:
        (said,) = [note for note in session.plan(sql, epsilon=1, mechanism="smooth").notes if "steps of" in note]
        assert said.startswith("m is read in steps of 20:")
        assert said in session.sql(sql, epsilon=1, mechanism="smooth").notes
    with confide.testing.open(policy(size=4_000), {"t": frame()}, seed=1) as session:
        assert not [n for n in session.plan(sql, epsilon=1, mechanism="smooth").notes if "steps of" in n]
        assert not session.sql(sql, epsilon=1, mechanism="smooth").notes


def test_the_forecast_counts_the_grid() -> None:
    sql = "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g, BIN(x, 100000)"
    with confide.testing.open(policy(), {"t": frame()}, seed=1) as session:
        coarse = session.plan(sql, epsilon=1e4, rows=10**9, mechanism="smooth").half_width["m"]
    with confide.testing.open(policy(size=4_000), {"t": frame()}, seed=1) as session:
        assert coarse >= session.plan(sql, epsilon=1e4, rows=10**9, mechanism="smooth").half_width["m"] + 10_000
    assert coarse >= 10_000  # half of a step


# --- below the step ---------------------------------------------------------------------------------------------------

UNBOUNDED = {"range": "unbounded", "grain": 0.01}


@pytest.mark.parametrize("mechanism", ["svt", "pair"])
@pytest.mark.parametrize("rows", ["private", "public"])
@pytest.mark.parametrize("column", [WIDE, UNBOUNDED], ids=["range", "unbounded"])
def test_what_is_seen_through_a_window_needs_no_steps(column: Any, rows: str, mechanism: str) -> None:
    """The same draws give the same bytes, whether the policy says that there are few rows or nothing."""
    if mechanism == "pair" and column is UNBOUNDED:
        pytest.skip("pair needs a range")
    texts = ["SELECT MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q, MAX(x) AS h, COUNT(*) AS n FROM t"]
    texts += ["SELECT g, MEDIAN(x) AS m FROM t GROUP BY g", "SELECT MEDIAN(x) AS m FROM t WHERE g <> 'g3'"]
    told = []
    for size in (None, 4_000):
        with confide.testing.open(policy(column, size, rows), {"t": frame()}, seed=5) as session:
            answers = [session.sql(text, epsilon=3, mechanism=mechanism) for text in texts]
        assert not [note for answer in answers for note in answer.notes if "steps of" in note]
        told.append([answer.to_dicts() for answer in answers])
    assert told[0] == told[1]


def test_balances_need_no_size() -> None:
    """45,211 account balances between -8,019 and 102,127, of which ±5·10⁶ is known; the bar is 1.0, the paper 13.8."""
    random = np.random.default_rng(1)
    drawn = random.lognormal(6.1, 1.5, 45_211) * np.where(random.random(45_211) < 0.08, -0.3, 1)
    data = pl.DataFrame({"x": np.clip(drawn, -8_019, 102_127).round().astype(int)})
    widths = {}
    for size in (None, 45_211):
        rules = policy({"range": [-5_000_000, 5_000_000]}, size, "public")
        with confide.testing.open(
            rules, {"t": data.with_columns(g=pl.lit("g0"), word=pl.lit("one"))}, seed=3
        ) as session:
            found = [
                session.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=f"1.{run:06d}", confidence=0.9) for run in range(20)
            ]
        widths[size] = [(row["m_high"] - row["m_low"]) / 2 for answer in found for row in answer.to_dicts()]
    assert widths[None] == widths[45_211]
    assert np.mean(widths[None]) <= 1.0


def test_what_looks_at_all_values_keeps_its_steps() -> None:
    sql = "SELECT MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q FROM t"
    asked = question(sql, policy())
    plans = [plan_statistic(asked.statistics[0], Fraction(1), 0.95, None, name) for name in ("svt", "em")]
    read = settled(asked, plans, load(policy()), steady=True)
    assert [statistic.grid is None for statistic in read.statistics] == [True, False]
    assert [tally.grid is None for tally in read.summary.tallies] == [True, False]
    assert settled(asked, plans, load(policy()), steady=False) == asked


def test_steps_stay_where_a_window_has_more_ranks_than_a_summary_rows() -> None:
    asked, rules = question("SELECT g, MEDIAN(x) AS m FROM t GROUP BY g", policy()), load(policy())
    plans = {e: [plan_statistic(asked.statistics[0], Fraction(1, e), 0.95, None, "svt")] for e in (1, 10**4)}
    assert settled(asked, plans[1], rules, True).statistics[0].grid is None
    assert settled(asked, plans[10**4], rules, True) == asked
    undeclared = question(
        "SELECT word, MEDIAN(x) AS m FROM t GROUP BY word", policy(budget={"epsilon": 1, "delta": 1e-9})
    )
    assert settled(undeclared, plans[1], rules, True) == undeclared


@pytest.mark.parametrize("q", [0, Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), 1])
@pytest.mark.parametrize("column", [WIDE, {"range": "unbounded", "grain": 0.01}], ids=["range", "unbounded"])
def test_intervals_of_exact_mechanisms_hold_every_quantile(q: Fraction, column: Any) -> None:
    """With next to no noise the interval is the cell alone: every definition of the quantile must lie in it."""
    sql = f"SELECT QUANTILE(x, {float(q)}) AS m FROM t"
    asked = question(sql, policy(column))
    (statistic,) = asked.statistics
    values = [round(value * 100) for value in frame()["x"].to_list()]
    points, counts = np.unique([statistic.grid.point(value) for value in values], return_counts=True)
    plan = plan_statistic(statistic, Fraction(10**6), 0.95, None)
    for seed in range(5):
        estimate = measure_statistic(plan, statistic, [(points, counts)], TestRandomness(seed))
        low, high = float(estimate.low[0]) * 100, float(estimate.high[0]) * 100
        ordered = sorted(values)
        position = q * (len(values) - 1)
        ends = (
            ordered[int(position)],
            ordered[-int(-position)] if position == int(position) else ordered[int(position) + 1],
        )
        if q not in (0, 1):
            assert low - 1e-6 <= min(ends)
            assert max(ends) <= high + 1e-6
        assert estimate.low[0] <= estimate.values[0] <= estimate.high[0]


# --- sums on cells ----------------------------------------------------------------------------------------------------


def cells_of(values: list[int], grid: FloatingGrid) -> Tally:
    points = np.array([grid.point(value) for value in values], dtype=np.int64)
    distinct, places, counts = np.unique(points, return_inverse=True, return_counts=True)
    sums = np.zeros(len(distinct), dtype=object)
    np.add.at(sums, places, np.array(values, dtype=object))
    return Tally(distinct, counts.astype(np.int64), sums, grid)


@pytest.mark.parametrize("domain", [(0, 10**9), (-(10**6), 10**9), (500, 10**9), (-(10**9), -500)])
@pytest.mark.parametrize("mechanism", ["r2t", "tail"])
def test_buckets_of_cells_are_those_of_values(domain: tuple[int, int], mechanism: str) -> None:
    random = np.random.default_rng(3)
    values = np.clip(random.lognormal(9, 4, 500) * random.choice([-1, 1], 500), *domain).astype(int).tolist()
    for make, centred in ((total_plan, False), (mean_plan, True)):
        plan = make(domain, Fraction(1), 0.95, "add-remove", mechanism=mechanism)
        assert isinstance(plan.summer, RacedSum | Tail)
        centre, edges = centre_of(domain, centred), plan.summer.edges(centred)
        grid = floating_grid(*domain, centre, 400)
        assert grid is not None
        found = bucketed(shifted(cells_of(values, grid), centre), edges)
        wanted = bucketed(shifted(Tally.of(values), centre), edges)
        assert (found.counts == wanted.counts).all()
        assert (found.sums == wanted.sums).all()
        assert plan.measure(cells_of(values, grid), TestRandomness(2)) == plan.measure(
            Tally.of(values), TestRandomness(2)
        )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_row_changes_a_clipped_sum_of_cells_by_no_more_than_is_paid_for(neighbours: Any) -> None:
    """By brute force: whatever range is found, it is cut at ends of cells, where every row is cut by itself."""
    grid = FloatingGrid(-200, 200, 0, 1)
    random = np.random.default_rng(4)
    for _ in range(200):
        values = random.integers(-200, 201, 6).tolist()
        low, high = sorted(random.integers(-200, 201, 2).tolist())
        tally = cells_of(values, grid)
        cut = tally.covered(low, high)
        assert cut[0] <= low
        assert high <= cut[1]
        assert tally.clipped(*cut).total() == sum(min(max(value, cut[0]), cut[1]) for value in values)


@pytest.mark.parametrize(("kind", "cells"), [("total", 10_000), ("mean", 10_000), ("total", 300), ("mean", 300)])
def test_found_ranges_of_cells_are_as_good_as_those_of_values(kind: str, cells: int) -> None:
    random = np.random.default_rng(5)
    values = (random.normal(40_000, 9_000, 3_000)).astype(int).tolist()
    most = 2**62 - 1
    grid = floating_grid(-most, most, 0, cells)
    assert grid is not None
    make = total_plan if kind == "total" else mean_plan
    plan = make(None, Fraction(1), 0.95, "add-remove", mechanism="svt")
    truth = sum(values) / (1 if kind == "total" else len(values))
    widths: dict[str, list[float]] = {"cells": [], "values": []}
    held = {"cells": 0, "values": 0}
    for name, tally in (("cells", cells_of(values, grid)), ("values", Tally.of(values))):
        for seed in range(30):
            result = plan.measure(tally, TestRandomness(seed))
            held[name] += result.interval.low <= truth <= result.interval.high
            widths[name].append(result.interval.high - result.interval.low)
    assert min(held.values()) >= 26  # of 30, at 95 %
    assert np.median(widths["cells"]) <= 2.1 * np.median(widths["values"])


@pytest.mark.parametrize(
    "sql", ["SELECT SUM(x) AS v FROM t", "SELECT AVG(x) AS v FROM t", "SELECT MEDIAN(x) AS v FROM t"]
)
@pytest.mark.parametrize("rows", ["private", "public"])
def test_unbounded_columns_through_a_session(sql: str, rows: str) -> None:
    data = frame().with_columns(x=pl.Series(np.random.default_rng(6).uniform(200, 90_000, 4_000).round(2)))
    truth = {"SUM": data["x"].sum(), "AVG": data["x"].mean(), "MEDIAN": data["x"].median()}[sql[7:].partition("(")[0]]
    rules = policy({"range": "unbounded", "grain": 0.01}, rows=rows)
    with confide.testing.open(rules, {"t": data}, seed=3) as session:
        (row,) = session.sql(sql, epsilon=50).to_dicts()
    assert row["v_low"] - 0.01 <= truth <= row["v_high"] + 0.01
    assert row["v"] == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("mechanism", ["pair", "svt"])
def test_intervals_cover_on_a_coarse_grid_and_would_not_without_its_cells(mechanism: str) -> None:
    """400 runs at 90 %, a false alarm in less than one of 10^6 machines; values crowd in one cell of 50."""
    grid = EvenGrid(0, 10**6 - 1, 20_000)
    asked = question("SELECT MEDIAN(x) AS m FROM t", policy({"range": [0, 10**6 - 1]}), mechanism)
    statistic = replace(asked.statistics[0], grid=grid)
    plan = plan_statistic(statistic, Fraction(2), 0.9, None)
    random = np.random.default_rng(8)
    held = bare = 0
    for seed in range(400):
        values = random.integers(400_000, 420_000, 401)
        points, counts = np.unique([grid.point(int(value)) for value in values], return_counts=True)
        truth = float(np.median(values))
        covered = measure_statistic(plan, statistic, [(points, counts)], TestRandomness(seed))
        held += covered.low[0] <= truth <= covered.high[0]
        alone = measure_statistic(plan, replace(statistic, grid=None), [(points, counts)], TestRandomness(seed))
        bare += alone.low[0] <= truth <= alone.high[0]
    assert held >= 330
    assert bare < 200


def test_the_policy_may_say_how_many_rows_a_summary_has() -> None:
    sql = "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g"
    steps = {rows: question(sql, policy(summary_rows=rows)).statistics[0].grid.step for rows in (10_000, 10**6, 10**8)}
    assert steps == {10_000: 5_000_000, 10**6: 50_000, 10**8: 500}
    with confide.testing.open(policy(summary_rows=20_000), {"t": frame()}, seed=1) as session:
        assert any("20,000 rows" in note for note in session.plan(sql, epsilon=1).notes)


@pytest.mark.parametrize("rows", [0, 9_999, 100_000_001, 1.5, "many"])
def test_numbers_of_rows_that_a_summary_cannot_have(rows: Any) -> None:
    with pytest.raises(PolicyError, match="summary_rows"):
        load(policy(summary_rows=rows))
