"""Sums and means in ROLLUP, CUBE and GROUPING SETS: one charge, parts that add up, intervals that hold."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide.testing
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, draw
from confide.mechanism.interval.many import laplace_pair_width
from confide.mechanism.noise.randomness import TestRandomness
from confide.policy import load
from confide.query import bind
from confide.release.block_noise import BlockNoise
from confide.release.workload.mean_intervals import ratio_ends
from confide.release.workload.noise import widths
from confide.release.workload.rolled_numbers import change_of
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine
from tests.release import samples

TEXT = (
    "SELECT region, sex, GROUPING(sex) AS g, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m, SUM(age) - 2 * COUNT(*) AS d "
    "FROM person WHERE age < 50 GROUP BY ROLLUP(region, sex)"
)
BUDGETS = pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])


def people(budget: dict[str, Any] = samples.APPROXIMATE, seed: int = 3) -> Any:
    return confide.testing.open(samples.policy(budget), data=samples.frames(), seed=seed)


def truth() -> dict[tuple[str | None, str | None], dict[str, float]]:
    young = samples.frames()["person"].filter(samples.pl.col("age") < 50)
    found: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for region in ("N", "E", "S", "W", None):
        for sex in ("F", "M", None) if region else (None,):
            rows = young if region is None else young.filter(samples.pl.col("region") == region)
            rows = rows if sex is None else rows.filter(samples.pl.col("sex") == sex)
            total = int(rows["age"].sum())
            own = {"n": rows.height, "s": total, "m": total / rows.height, "d": total - 2 * rows.height}
            found[region, sex] = own
    return found


@BUDGETS
def test_parts_add_up_at_one_charge(budget: dict[str, Any]) -> None:
    session = people(budget)
    answer = session.sql(TEXT, epsilon=1)
    assert session.budget.spent == pytest.approx(1)
    rows = {(row["region"], row["sex"]): row for row in answer.to_dicts()}
    assert set(rows) == set(truth())
    for name in "nsd":
        for region in "NESW":
            parts = rows[region, "F"][name] + rows[region, "M"][name]
            assert parts == pytest.approx(rows[region, None][name], abs=1e-4)
        assert sum(rows[region, None][name] for region in "NESW") == pytest.approx(rows[None, None][name], abs=1e-4)
    assert all(row["g"] == (sex is None) for (_, sex), row in rows.items())
    assert session.sql(TEXT, epsilon=1).stored
    assert not session.sql(TEXT.replace("50", "51"), epsilon=1).stored
    assert not session.sql(TEXT.replace("SUM(age) AS", "SUM(income) AS"), epsilon=1).stored


@BUDGETS
def test_means_of_many_rows_are_told(budget: dict[str, Any]) -> None:
    """What doubles lose of half a million rows is no reason to say nothing of their mean."""
    rows, columns = 500_000, {"g": {"values": ["a", "b"]}, "x": {"range": [0, 9]}}
    policy = {"budget": budget, "unit": "row", "tables": {"t": {"size": rows, "columns": columns}}}
    data = samples.pl.DataFrame({"g": ["a", "b"] * (rows // 2), "x": [0, 9, 5, 4, 3] * (rows // 5)})
    session = confide.testing.open(policy, data={"t": data}, seed=1)
    text = "SELECT g, AVG(x) AS m FROM t GROUP BY ROLLUP(g)"
    planned = session.plan(text, epsilon=1, confidence=0.9999).half_width["m"]
    for row in session.sql(text, epsilon=1, confidence=0.9999).to_dicts():
        assert 0 <= row["m_low"] <= 4.2 <= row["m_high"] <= 9
        assert (row["m_high"] - row["m_low"]) / 2 < 2 * planned < 0.01


@BUDGETS
def test_intervals_hold(budget: dict[str, Any]) -> None:
    """80 answers of 13 groups: more than 15 misses of one number at 5 % have a chance of 10⁻⁵; seeds are fixed."""
    session, exact = people(budget), truth()
    misses: dict[Any, int] = {}
    for number in range(80):
        for row in session.sql(TEXT, epsilon=Fraction(1) + Fraction(number, 10**9)).to_dicts():
            key = row["region"], row["sex"]
            for name, value in exact[key].items():
                misses[*key, name] = misses.get((*key, name), 0) + (
                    not row[f"{name}_low"] <= value <= row[f"{name}_high"]
                )
    assert max(misses.values()) <= 15
    assert sum(misses.values()) > 0


def test_grouping_says_which_keys_are_summed_over() -> None:
    text = "SELECT GROUPING(region, sex) AS g, region, sex, COUNT(*) AS n FROM person GROUP BY CUBE(region, sex)"
    for own in (text, text.replace("COUNT(*) AS n", "AVG(age) AS n"), text.replace("GROUPING(", "GROUPING_ID(")):
        for row in people().sql(own, epsilon=1).to_dicts():
            assert row["g"] == 2 * (row["region"] is None) + (row["sex"] is None)


@pytest.mark.parametrize("rows", ["private", "public"])
def test_no_unit_changes_more_than_is_paid_for(rows: str) -> None:
    """Brute force: every row that comes, goes or becomes another one, in every cell of a table, and both norms."""
    policy = load(samples.row_policy(samples.APPROXIMATE, rows))
    asked = {
        "COUNT(*)": (1, 1),
        "SUM(x)": (-10, 30),
        "SUM(ABS(x))": (0, 30),
        "SUM(LEAST(x, 0))": (-10, 0),
        "SUM(LEAST(x, 10))": (-10, 10),
    }
    replaced = rows == "public"
    for line in (IdentityLine(3), HelmertLine(3)):
        block = ProductBlock((0,), (line,))
        columns = block.measure(np.eye(3, dtype=np.int64)).reshape(-1, 3).T // block.fineness
        factors = np.ones(block.rows) if block.factors is None else block.factors.astype(float)
        for select, ends in asked.items():
            question: Any = bind(f"SELECT g, {select} n FROM t GROUP BY g", policy, None)  # type: ignore[arg-type]
            assert (question.neighbours == "replace-one") == replaced
            change = change_of(question.measures[0], replaced)
            moves = [value * own for value in ends for own in columns]
            if replaced:
                moves += [one - two for one in list(moves) for two in list(moves)]
            assert max(float(np.abs(move).sum()) for move in moves) <= change.l1(block.norms)
            most = max(float((move**2 / factors).sum()) for move in moves)
            assert most <= float(change.l2_squared(block.norms)) * (1 + 1e-12)


def test_sums_are_measured_exactly() -> None:
    """In parts that 64 bits hold: as in Python's integers, of any size and sign."""
    block = ProductBlock((0, 1), (IdentityLine(2), HelmertLine(3)))
    sums = np.array([[10**20, -(10**21), 7], [-1, 0, 2**100]], dtype=object)
    noise = BlockNoise(DiscreteGaussian(Fraction(1, 10**9)))  # so narrow that it is zero
    found = noise.measure_sums(block, sums, TestRandomness(1))
    fine = block.fineness
    assert found.tolist() == [
        own * fine for row in sums.tolist() for own in (row[0] - row[1], row[0] + row[1] - 2 * row[2])
    ]


def test_sums_of_many_cells_do_not_wrap() -> None:
    """CUBE of eight keys: a part of every cell whose sum counts with a plus is all ones, and of the others none."""
    block = ProductBlock(tuple(range(8)), (HelmertLine(4),) * 8)
    signs: Any = np.ones(1, dtype=object)
    for _ in range(8):
        signs = np.multiply.outer(signs, np.array([1, 1, 1, -3], dtype=object)).reshape(-1)
    sums = np.where(signs > 0, -1, 0).astype(object).reshape((4,) * 8)
    noise = BlockNoise(DiscreteGaussian(Fraction(1, 10**9)))  # so narrow that it is zero
    found = noise.measure_sums(block, sums, TestRandomness(1))
    assert found[-1] == block.fineness * int(signs @ sums.reshape(-1))


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(400)), DiscreteGaussian(Fraction(400**2))])
@pytest.mark.parametrize(
    ("count", "total"), [(0, 0), (3_000, 9_000), (5_000, -40_000), (40_000, 100_000), (40_000, 400_000)]
)
def test_ratios_of_sums_of_noises_hold(law: Any, count: int, total: int) -> None:
    """20,000 ratios of sums of 6 and of 2 noises: below 94.5 % would be chance once in 2,000."""
    many, source = 20_000, TestRandomness(5)
    top = total + draw(law, (6, many), source).sum(axis=0) * 3.0
    bottom = count + draw(law, (2, many), source).sum(axis=0) * 1.0
    scale = float(law.scale) if isinstance(law, DiscreteLaplace) else float(law.variance) ** 0.5
    fourth = scale**4 if isinstance(law, DiscreteLaplace) else 0.0
    moments = (np.array(6 * 9 * scale**2), np.array(6 * 81 * fourth)), (np.array(2 * scale**2), np.array(2 * fourth))
    ends, empty = ratio_ends((top, bottom), moments, (0.0, 0.0), (-10.0, 10.0), [BlockNoise(law)], 0.95)
    _, low, high = ends
    assert np.all(low <= high)
    if not count:
        assert empty.mean() >= 0.945
        return
    held = float(((low <= total / count) & (total / count <= high)).mean())
    assert held >= 0.945
    assert held < 0.999 or abs(total / count) == 10 or empty.mean() > 0.2


@pytest.mark.parametrize("mean", [-1.5, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("lost", [(30.0, 0.0), (0.0, 30.0), (30.0, 30.0), (3.0, 500.0)])
def test_what_doubles_lose_is_in_the_ends_of_a_mean(mean: float, lost: tuple[float, float]) -> None:
    """Both numbers as far off as they may be, and noise as large as it may be beside that: the mean stays inside."""
    noise, count = BlockNoise(DiscreteGaussian(Fraction(10**4))), 5_000
    moments = np.array([100.0**2]), np.zeros(1)
    factor = float(widths(np.ones(1), np.zeros(1), [noise], 0.95)[0])
    reach = 0.999 * factor * math.hypot(100, mean * 100)
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        bottom = np.array([count + signs[1] * lost[1]])
        top = np.array([mean * count + signs[0] * (lost[0] + reach)])
        (_, low, high), empty = ratio_ends((top, bottom), (moments, moments), lost, (-9, 9), [noise] * 2, 0.95)
        assert not empty.any()
        assert low[0] <= mean <= high[0]


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("mean", [1.0, 0.9, 0.0])
def test_means_of_two_noises_are_missed_as_often_as_they_say(confidence: float, mean: float) -> None:
    """Where each number has one Laplace noise, the difference of both is wider than one of them at most confidences."""
    random, draws = np.random.default_rng(3), 60_000
    noise = BlockNoise(DiscreteLaplace(Fraction(1_000)))
    moments = np.full(draws, 1e6), np.full(draws, 1e12)
    top, bottom = (1e6 * own + random.laplace(0, 1_000, draws).round() for own in (mean, 1.0))
    (_, low, high), _ = ratio_ends((top, bottom), (moments, moments), (0, 0), (-2, 2), [noise] * 2, confidence)
    held = float(((low <= mean) & (mean <= high)).mean())
    assert confidence - 0.007 < held < confidence + 0.1


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_two_noises_of_any_shares_are_within_the_width_of_a_pair(confidence: float) -> None:
    width, miss = laplace_pair_width(1e9, confidence), 1 - confidence
    tails = [math.exp(-width), math.exp(-width * math.sqrt(2)) * (1 + width / math.sqrt(2))]
    for angle in np.linspace(0.05, 0.78, 200).tolist():
        a, d = math.cos(angle), math.sin(angle)
        tails.append((a * a * math.exp(-width / a) - d * d * math.exp(-width / d)) / (a * a - d * d))
    assert 0.95 * miss < max(tails) <= miss


def test_what_doubles_lose_widens_a_ratio_and_does_not_hide_it() -> None:
    """Both numbers are off by all that rounding allows, in the worst direction; there is no noise."""
    noise, one = BlockNoise(DiscreteGaussian(Fraction(1, 10**6))), np.array([1e-6])
    moments = (one, np.zeros(1)), (one, np.zeros(1))
    for sign in (1, -1):
        top, bottom = np.array([5e9 + sign * 4.0]), np.array([1e8 - sign * 0.5])
        (middle, low, high), empty = ratio_ends(
            (top, bottom), (moments[0], moments[1]), (4.0, 0.5), (0.0, 100.0), [noise] * 2, 0.95
        )
        assert not empty.any()
        assert low[0] <= 50 <= high[0]
        assert high[0] - low[0] < 1e-5
        assert low[0] <= middle[0] <= high[0]


@pytest.mark.parametrize("delta", [{}, {"delta": 1e-9}])
@pytest.mark.parametrize("epsilon", [1, 100, 10_000])
def test_means_are_told_however_little_the_noise_is(epsilon: int, delta: dict[str, float]) -> None:
    rules = {
        "confide": 1, "budget": {"epsilon": 10_000, **delta}, "unit": "row",
        "tables": {"t": {"columns": {"g": {"values": ["a", "b"]}, "x": {"range": [0, 0.7], "grain": 0.1}}}},
    }  # fmt: skip
    frame = samples.pl.DataFrame({"g": ["a"] * 3_000 + ["b"] * 1_000, "x": [0.1] * 3_000 + [0.7] * 1_000})
    with confide.testing.open(rules, {"t": frame}, seed=3) as session:
        answer = session.sql("SELECT g, AVG(x) AS m FROM t GROUP BY ROLLUP(g)", epsilon=epsilon)
    assert answer["m"].unknown == ()
    for true, low, high in zip((0.1, 0.7, 0.25), answer["m"].low, answer["m"].high, strict=True):
        assert 0 <= low <= true <= high <= 0.7
        assert high - low < 20 / epsilon
