"""Tallies read in passes: the same through their windows as in one pass, and far fewer numbers."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.release.sql.request
from confide.engine.read.multipass import FEW, ChangedError, passes, refined
from confide.engine.sql.stretches import MOST, Stretch, inside, united
from confide.policy import Number
from confide.query.grid import EvenGrid, FloatingGrid
from confide.query.tree import Field, Reading, Span, Tallied
from tests.conformance.engine import assert_seen_alike


def tally(low: int, high: int, grid: Any = None, sums: bool = False) -> Tallied:
    column = Number("x", low=Fraction(low), high=Fraction(high), grain=Fraction(1))
    return Tallied(Reading(Field("s0", column), Span(low, high)), grid=grid, sums=sums)


def read_in_passes(read: Any, wanted: Tallied, groups: int, windows: Any) -> Any:
    first, *finer = passes(wanted, groups)
    return refined(read, read(first, None), first, finer, windows)


def reader(groups: Sequence[np.ndarray]) -> Any:
    """Counts values on a grid as an engine does; of stretches some values more come along."""
    asked = []

    def read(asked_for: Tallied, stretches: Sequence[Stretch] | None) -> Any:
        asked.append(asked_for)
        found = []
        for every in groups:
            wanted = [(-(2**62), 2**62)] if stretches is None else united(stretches)
            values = every[np.any([(every >= low) & (every <= high) for low, high in wanted], axis=0)]
            grid = asked_for.grid
            points = values if grid is None else np.array([grid.point(int(value)) for value in values], dtype=np.int64)
            own, counts = np.unique(points, return_counts=True)
            found.append((own.astype(np.int64), counts.astype(np.int64)))
        return tuple(found)

    return read, asked


@pytest.mark.parametrize("groups", [1, 20, 1_000])
@pytest.mark.parametrize(("low", "high", "step"), [(0, 20_000, 1), (-7, 10**6, 1), (5, 10**9, 1_000), (0, 3_000, 2)])
def test_passes_are_nested_and_end_with_the_tally(low, high, step, groups):
    wanted = tally(low, high, EvenGrid(low, high, step) if step > 1 else None)
    found = passes(wanted, groups)
    assert found[-1] == wanted
    assert 2 <= len(found) <= 3
    steps = [own.grid.step for own in found[:-1]] + [step]
    assert all(coarse % fine == 0 and coarse > fine for coarse, fine in pairwise(steps))
    assert found[0].grid.cells < EvenGrid(low, high, step).cells / 10


@pytest.mark.parametrize(
    "wanted",
    [
        tally(0, FEW - 1),
        tally(-10, 10**6, FloatingGrid(-10, 10**6, 0, 3)),
        tally(0, 10**5, EvenGrid(0, 10**5, 1), True),
    ],
)
def test_what_is_small_or_summed_is_read_at_once(wanted):
    assert passes(wanted, 1) == (wanted,)
    values = np.array([3, 3, 500])
    read, asked = reader([values])
    read_in_passes(read, wanted, 1, [lambda rows: (0, rows)])
    assert asked == [wanted]


@pytest.mark.parametrize("seed", range(12))
def test_windows_show_what_one_pass_shows(seed):
    generator = np.random.default_rng(seed)
    groups = [
        np.sort(generator.choice([generator.integers(0, 10**6, 400), generator.integers(0, 900, 400)][kind], size))
        for kind, size in ((0, 3_000), (1, 500), (0, 0), (1, 1), (0, 40))
    ]
    grid = EvenGrid(0, 10**6, 50) if seed % 3 == 0 else None
    width = int(generator.integers(0, 60))
    share = float(generator.uniform(0, 1))

    def one(rows: int) -> tuple[int, int]:
        return int(share * rows) - width, int(share * rows) + 2

    def two(rows: int) -> tuple[int, int]:
        return rows // 2, rows // 2 + width

    wanted = tally(0, 10**6, grid)
    read, asked = reader(groups)
    found = read_in_passes(read, wanted, len(groups) * (1 if seed % 2 else 500), [one, two])
    whole = read(wanted, None)
    assert len(asked) > 2
    for exact, own in zip(whole, found, strict=True):
        rows = int(exact[1].sum())
        assert int(own[1].sum()) == rows
        for window in (one, two):
            assert_seen_alike(exact, own, *window(rows))


def test_far_fewer_numbers_are_read():
    values = np.arange(0, 10**6, 5)
    read, _ = reader([values])
    (found,) = read_in_passes(read, tally(0, 10**6), 1, [lambda rows: (rows // 2 - 10, rows // 2 + 10)])
    assert len(found[0]) < 2_000


def test_rows_that_change_between_passes_are_noticed():
    groups = [np.arange(0, 20_000)]
    read, asked = reader(groups)

    def changing(wanted: Tallied, stretches: Any) -> Any:
        if asked:
            groups[0] = groups[0][groups[0] != 10_000]
        return read(wanted, stretches)

    with pytest.raises(ChangedError):
        read_in_passes(changing, tally(0, 20_000), 1, [lambda rows: (9_990, 10_010)])


def test_intervals_that_touch_are_one_and_few_remain():
    assert united([(5, 9), (0, 4), (8, 20), (30, 31)]) == [(0, 20), (30, 31)]
    many = united([(10 * place, 10 * place + place) for place in range(9)])
    assert len(many) == MOST
    assert many[0][0] == 0
    assert many[-1][1] == 88
    assert inside("t", []) == "FALSE"
    assert inside("t", [(1, 2)]) == "(t BETWEEN (1)::BIGINT AND (2)::BIGINT)"


def _watched(engine: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    statements: list[str] = []
    whole = engine._columns
    monkeypatch.setattr(engine, "_columns", lambda text: statements.append(text) or whole(text))
    return statements


@pytest.mark.parametrize("mechanism", ["svt", "pair"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, MEDIAN(x) AS m, COUNT(*) AS n FROM t GROUP BY g",
        "SELECT QUANTILE(x, 0.25) AS a, QUANTILE(x, 0.75) AS b, MIN(x) AS c, MAX(x) AS d FROM t WHERE x > 100",
        "SELECT QUANTILE(x, 0.9) - QUANTILE(x, 0.1) AS spread, COUNT(x) AS s FROM t",
    ],
)
def test_answers_are_the_same_draw_for_draw(sql, mechanism, monkeypatch):
    """With the same noise: values outside of a window change nothing, so it does not matter how they were read."""
    generator = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "g": generator.choice(["a", "b", "z"], 4_000),
            "x": [
                None if place % 50 == 0 else int(value) for place, value in enumerate(generator.gamma(2, 5_000, 4_000))
            ],
        }
    )
    columns = {"g": {"values": ["a", "b", "c"]}, "x": {"range": [0, 60_000]}}
    policy = {"budget": {"epsilon": 100}, "unit": "row", "tables": {"t": {"columns": columns}}}
    answers = []
    for few in (True, False):
        with confide.testing.open(policy, {"t": frame}, seed=11) as session:
            statements = _watched(session._holdings.engine, monkeypatch)
            monkeypatch.setattr(confide.release.sql.request, "few_rows", lambda *_, few=few: few)
            answers.append(session.sql(sql, epsilon=4, mechanism=mechanism).to_json())
            assert (len(statements) > 1) == (not few)
    assert answers[0] == answers[1]
