"""Counts that follow from what was measured: their intervals hold, whoever picks the question."""

import dataclasses
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.errors import QueryError
from confide.mechanism import DiscreteGaussian, NoNoise, TestRandomness
from confide.mechanism.noise.sampler import draw
from confide.policy import load
from confide.privacy.loss import ZCDP
from confide.query import Question
from confide.release.count_questions import count_question
from confide.release.synthetic.design_step import cells_of, design_noises, released, told
from confide.release.synthetic.implied import implied_ends
from confide.release.synthetic.kept import KeptMarginal, KeptMeasurements, kept_bytes, kept_facts, kept_marginals
from confide.release.synthetic.kept_effects import effects_of
from confide.release.synthetic.synthetic import _NoCatalog
from confide.synthesis.curator import UnitReach
from confide.workload import AskedTable, Domain, domain_of
from confide.workload.strategy.design import designs

POLICY = load(
    {
        "budget": {"epsilon": 1},
        "unit": "row",
        "tables": {
            "t": {
                "columns": {
                    "a": {"values": ["x", "y", "z"]},
                    "b": {"range": [0, 59], "bins": 10},
                    "c": {"values": [0, 1]},
                }
            }
        },
    }
)
LAW = DiscreteGaussian(Fraction(25))
SIZES = (3, 6, 2)
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE a = 'x'",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a",
    "SELECT COUNT(*) AS n FROM t WHERE b >= 20 AND b < 50",
    "SELECT a, COUNT(*) AS n FROM t WHERE b >= 30 GROUP BY a",
    "SELECT BIN(b, 20) AS k, COUNT(*) AS n FROM t WHERE a <> 'z' GROUP BY k",
    "SELECT a, COUNT(*) FILTER (WHERE b < 30) - COUNT(*) FILTER (WHERE b >= 30) AS n FROM t GROUP BY a",
    "SELECT COUNT(*) AS n FROM t WHERE a = 'x' OR b < 10",
    "SELECT c, COUNT(*) AS n FROM t GROUP BY c",
]


@pytest.fixture
def domain() -> Domain:
    return domain_of(POLICY.tables["t"])


def question(text: str, domain: Domain) -> Question:
    return count_question(text, POLICY, _NoCatalog(), domain)


def marginal(columns: tuple[int, ...], table: Any, noise: Any = 0, turn: int = 0, law: Any = LAW) -> KeptMarginal:
    others = tuple(axis for axis in range(3) if axis not in columns)
    counts = np.asarray(table.sum(axis=others) + noise, dtype=np.int64)
    return KeptMarginal(columns, counts, law, (None,) * len(columns), turn)


def of(*kept: KeptMarginal) -> KeptMeasurements:
    return KeptMeasurements(kept)


def exact(text: str, domain: Domain, table: Any) -> list[Any]:
    """Where there is no noise at all."""
    lows, highs = implied_ends(question(text, domain), domain, of(marginal((0, 1, 2), table, law=NoNoise())), 0.9)["n"]
    assert lows == highs
    return lows


@pytest.fixture(params=range(3))
def table(request: pytest.FixtureRequest) -> Any:
    generator = np.random.default_rng(request.param)
    return generator.integers(200, 400, SIZES)


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_follows_is_what_there_is(text: str, domain: Domain, table: Any) -> None:
    """Every way to add up cells, against a plain reading of rows."""
    import duckdb  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    rows = [
        {"a": "xyz"[a], "b": 10 * b + 3, "c": c} for (a, b, c), count in np.ndenumerate(table) for _ in range(count)
    ]
    connection = duckdb.connect()
    connection.register("t", pl.DataFrame(rows))
    found = connection.execute(text.replace("BIN(b, 20)", "b // 20 * 20")).fetchall()
    assert sorted(row[-1] for row in found) == sorted(exact(text, domain, table))


@pytest.mark.parametrize("text", QUESTIONS)
def test_intervals_hold_as_often_as_they_say(text: str, domain: Domain) -> None:
    source, table = TestRandomness(7), np.random.default_rng(1).integers(0, 30, SIZES)
    asked, truth = question(text, domain), exact(text, domain, table)
    inside = runs = 0
    for _ in range(300):
        kept = [
            marginal(columns, table, draw(LAW, tuple(SIZES[column] for column in columns), source))
            for columns in ((0, 1), (2,), (0,))
        ]
        lows, highs = implied_ends(asked, domain, of(*kept), 0.8)["n"]
        for low, high, own in zip(lows, highs, truth, strict=True):
            assert low is not None
            assert high is not None
            assert low < high
            inside += low <= own <= high
            runs += 1
    assert inside / runs > 0.8 - 3 * (0.16 / runs) ** 0.5


def test_a_marginal_that_was_measured_again_because_it_looked_wrong_is_not_picked(domain: Domain) -> None:
    """Whoever measures again where noise was large, and keeps what looked right, has intervals that fail; the first is
    taken, whatever came after.
    """
    source, table = TestRandomness(3), np.full(SIZES, 100)
    asked, truth = question("SELECT a, COUNT(*) AS n FROM t WHERE a = 'x' GROUP BY a", domain), 1200
    narrow = DiscreteGaussian(Fraction(16))
    first = last = 0
    for _ in range(1500):
        one = marginal((0,), table, draw(LAW, (3,), source), turn=2)
        kept = [one]
        if one.counts[0] - truth < -4:  # looked wrong
            kept.append(marginal((0,), table, draw(narrow, (3,), source), turn=4, law=narrow))
        for place, picked in enumerate((kept, kept[-1:])):
            low, high = (ends[0] for ends in implied_ends(asked, domain, of(*picked), 0.5)["n"])
            assert low is not None
            assert high is not None
            held = low <= truth <= high
            first, last = first + (held and place == 0), last + (held and place == 1)
    assert first / 1500 > 0.5 - 3 * (0.25 / 1500) ** 0.5
    assert first != last


def test_of_what_was_certain_the_narrowest_is_taken(domain: Domain) -> None:
    table = np.full(SIZES, 100)
    wide, narrow = DiscreteGaussian(Fraction(100)), DiscreteGaussian(Fraction(4))
    asked = question("SELECT COUNT(*) AS n FROM t WHERE a = 'x'", domain)

    def width(*kept: KeptMarginal) -> int:
        lows, highs = implied_ends(asked, domain, of(*kept), 0.95)["n"]
        return highs[0] - lows[0]  # type: ignore[operator]

    one, two = marginal((0,), table, law=wide), marginal((0, 1), table, law=narrow)
    assert width(one, two) == width(two, one) == width(two) < width(one)
    later = dataclasses.replace(two, turn=3)
    assert width(one, later) == width(one)
    assert width(later) == width(two)


def test_places_that_were_measured_as_one(domain: Domain) -> None:
    table = np.arange(36).reshape(SIZES) + 500
    merging = np.array([0, 0, 1, 1, 2, 2])
    merged = KeptMarginal((1,), np.add.reduceat(table.sum(axis=(0, 2)), [0, 2, 4]), LAW, (merging,))

    def middle(text: str) -> int | None:
        lows, highs = implied_ends(question(text, domain), domain, of(merged), 0.9)["n"]
        return None if lows[0] is None or highs[0] is None else (lows[0] + highs[0]) // 2

    assert middle("SELECT COUNT(*) AS n FROM t WHERE b < 20") == table[:, :2].sum()
    assert middle("SELECT COUNT(*) AS n FROM t") == table.sum()
    assert middle("SELECT COUNT(*) AS n FROM t WHERE b < 10") is None
    assert middle("SELECT BIN(b, 30) AS k, COUNT(*) AS n FROM t GROUP BY k") is None
    assert middle("SELECT BIN(b, 20) AS k, COUNT(*) AS n FROM t GROUP BY k") == table[:, :2].sum()
    again = kept_marginals(kept_facts([merged]), kept_bytes([merged]), SIZES)
    assert np.array_equal(again[0].counts, merged.counts)
    assert np.array_equal(again[0].merged[0], merging)
    assert np.array_equal(merged.counts_of(table.sum(axis=(0, 2))), merged.counts)


def test_where_nothing_follows(domain: Domain) -> None:
    kept = [marginal((0,), np.full(SIZES, 9)), marginal((1,), np.full(SIZES, 9))]
    ends = implied_ends(
        question("SELECT a, COUNT(*) AS n FROM t WHERE b < 10 GROUP BY a", domain), domain, of(*kept), 0.9
    )
    assert ends["n"] == ([None] * 3, [None] * 3)
    with pytest.raises(QueryError, match="added and subtracted"):
        implied_ends(question("SELECT COUNT(*) * COUNT(*) AS n FROM t", domain), domain, of(*kept), 0.9)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda facts, data: (facts, data[:-3]),
        lambda facts, data: ([{**facts[0], "shape": [2]}], data),
        lambda facts, data: ([{**facts[0], "columns": [1]}], data),
        lambda facts, data: ([{**facts[0], "merged": [[0, 0, 5]]}], data),
    ],
)
def test_what_does_not_fit_is_no_measurement(spoil: Any) -> None:
    kept = [marginal((0,), np.full(SIZES, 9))]
    facts, data = spoil(kept_facts(kept), kept_bytes(kept))
    with pytest.raises((ValueError, zlib.error)):
        kept_marginals(facts, data, SIZES)


# --- parts of marginals -----------------------------------------------------------------------------------------------

RHO = ZCDP(Fraction(1, 200))


@dataclasses.dataclass
class Tables:
    """Exact tables, as a curator reads them."""

    table: Any
    sizes: tuple[int, ...] = SIZES

    @property
    def rows(self) -> int:
        return int(self.table.sum())

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Any:
        others = tuple(axis for axis in range(3) if axis not in columns)
        return np.asarray(self.table.sum(axis=others)[start:stop], dtype=np.int64)


def parts(table: Any, source: TestRandomness, strategy: str = "residual") -> KeptMeasurements:
    """All pairs, as a design measures them."""
    tables = tuple(AskedTable(pair, ("each", "each")) for pair in ((0, 1), (0, 2), (1, 2)))
    design = designs(SIZES, tables, strategy, "gaussian")[0]
    noises = design_noises(design, RHO, UnitReach(1, 1))
    values = released(design, noises, Tables(table), source)  # type: ignore[arg-type]
    found = told(design, noises, values)
    return KeptMeasurements(
        tuple(cells_of(design, noises, values, SIZES)), effects_of(design.blocks, noises, found, SIZES)
    )


@pytest.mark.parametrize("strategy", ["residual", "direct"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_intervals_from_parts_hold_as_often_as_they_say(text: str, strategy: str, domain: Domain) -> None:
    source, table = TestRandomness(11), np.random.default_rng(2).integers(0, 30, SIZES)
    asked, truth = question(text, domain), exact(text, domain, table)
    inside = runs = 0
    for _ in range(200):
        kept = parts(table, source, strategy)
        lows, highs = implied_ends(asked, domain, kept, 0.8)["n"]
        for low, high, own in zip(lows, highs, truth, strict=True):
            assert low is not None
            assert high is not None
            inside += low <= own <= high
            runs += 1
    assert inside / runs > 0.8 - 3 * (0.16 / runs) ** 0.5


def test_parts_are_worth_more_than_the_cells_of_pairs(domain: Domain) -> None:
    """What is measured once for all pairs tells a single column better than adding up a pair of the same cost."""
    source, table = TestRandomness(5), np.full(SIZES, 40)
    asked = question("SELECT COUNT(*) AS n FROM t WHERE a = 'x'", domain)
    widths = {}
    for strategy in ("residual", "direct"):
        lows, highs = implied_ends(asked, domain, parts(table, source, strategy), 0.9)["n"]
        widths[strategy] = highs[0] - lows[0]  # type: ignore[operator]
    assert widths["residual"] < widths["direct"]


def test_marginals_of_parts_are_those_of_the_cells(domain: Domain) -> None:
    table = np.random.default_rng(3).integers(0, 90, SIZES) * 10**6  # noise is nothing beside it
    kept = parts(table, TestRandomness(1))
    found, variance = kept.effects.marginal((0, 2), SIZES)
    assert np.abs(found - table.sum(axis=1)).max() < 8 * variance**0.5
    assert sorted(kept.effects.largest) == [(0, 1), (0, 2), (1, 2)]
    assert kept.effects.parts((0, 1, 2)) is None
    again = KeptMeasurements.of(kept.facts(), kept.to_bytes(), SIZES)
    assert again.to_bytes() == kept.to_bytes()
    assert again.facts() == kept.facts()
    with pytest.raises((ValueError, zlib.error)):
        KeptMeasurements.of(kept.facts(), kept.to_bytes()[:-4], SIZES)


def test_the_variance_of_a_sum_of_parts_is_what_is_seen() -> None:
    source, table = TestRandomness(2), np.full(SIZES, 50)
    weights = np.random.default_rng(4).integers(-2, 3, (1, 3, 6)).astype(np.float64)
    seen = [parts(table, source).effects.sums((0, 1), weights) for _ in range(600)]
    assert all(own is not None for own in seen)
    values = np.array([own[0][0] for own in seen if own is not None])
    said = seen[0][1][0]  # type: ignore[index]
    assert abs(values.mean() - (weights[0] * table.sum(axis=2)).sum()) < 4 * (said / 600) ** 0.5
    assert 0.8 < values.var() / said < 1.25
