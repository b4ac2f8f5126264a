"""Tallies read in passes: the same through their windows as in one pass, and far fewer numbers."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
import confide.release.sql.measuring
from confide.engine.read import multipass
from confide.engine.read.multipass import FEW, ChangedError, most_numbers, passes, refined
from confide.engine.sql.stretches import MOST, ByGroup, Wanted, inside, united
from confide.policy import Number
from confide.query.grid import EvenGrid, FloatingGrid
from confide.query.tree import Field, Reading, Span, Tallied
from tests.conformance.engine import assert_seen_alike


def tally(low: int, high: int, grid: Any = None, sums: bool = False) -> Tallied:
    column = Number("x", low=Fraction(low), high=Fraction(high), grain=Fraction(1))
    return Tallied(Reading(Field("s0", column), Span(low, high)), grid=grid, sums=sums)


def read_in_passes(read: Any, wanted: Tallied, groups: int, windows: Any, numbered: bool = False) -> Any:
    first, *finer = passes(wanted, groups)
    return refined(read, read(first, None), first, finer, windows, numbered)


def reader(groups: Sequence[np.ndarray]) -> Any:
    """Counts values on a grid as an engine does; of stretches some values more come along."""
    asked = []

    def read(asked_for: Tallied, stretches: Wanted | None) -> Any:
        asked.append(asked_for)
        found = []
        for group, every in enumerate(groups):
            if isinstance(stretches, ByGroup):
                wanted = [stretch for number, stretch in stretches.parts if number == group] or [(1, 0)]
            else:
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
    assert 2 <= len(found) <= (3 if groups * (high - low) < 10**9 else 5)
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


@pytest.mark.parametrize("width", [10**9, 2**62 - 1])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_no_pass_has_more_numbers_than_public_facts_say(count, width, monkeypatch):
    """Groups that lie apart, crowded where windows end: of each group only its own cells are read."""
    monkeypatch.setattr(multipass, "ROOM", 4_000)
    random, sizes = np.random.default_rng(count), []
    groups = [
        np.sort(np.concatenate([place * (width // count) + random.integers(0, 3_000 * (place + 1), 600), [width - 1]]))
        for place in range(count)
    ]
    wanted = tally(0, width)

    def one(rows: int) -> tuple[int, int]:
        return rows // 2 - 20, rows // 2 + 20

    read, asked = reader(groups)

    def counted(*arguments: Any) -> Any:
        found = read(*arguments)
        sizes.append(sum(len(values) for values, _ in found))
        return found

    found = read_in_passes(counted, wanted, count, [one], numbered=True)
    assert max(sizes) <= most_numbers(wanted, count, [one])
    assert len(asked) <= 9
    for exact, own in zip(read(wanted, None), found, strict=True):
        assert_seen_alike(exact, own, *one(int(exact[1].sum())))
    if count == 60:
        assert max(sizes) < sum(len(values) for values, _ in read(wanted, None))


def test_each_group_is_read_near_its_own_quantile(monkeypatch):
    """Keys of every kind whose values are known, in one statement; the answers of one reading, draw for draw."""
    random = np.random.default_rng(6)
    place = random.integers(0, 300, 3_000)
    frame = pl.DataFrame(
        {
            "g": [None if place % 3 == 2 else "ab"[place % 3] for place in place.tolist()],
            "h": place,
            "b": place % 7,
            "x": place * 10**6 + random.integers(0, 10**6, 3_000),
        }
    )
    columns = {"g": {"values": ["a", "b"], "nulls": True}, "h": {"values": list(range(300))}, "b": {"range": [0, 6]}}
    columns["x"] = {"range": [0, 4 * 10**8]}
    rules = {"budget": {"epsilon": 1e6}, "unit": "row", "tables": {"t": {"columns": columns}}}
    monkeypatch.setattr(multipass, "ROOM", 1)
    for keys in ("g", "h", "g, b", "b, g, BIN(x, 200000000)"):
        sql, told = f"SELECT {keys}, MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q FROM t GROUP BY {keys}", []
        for few in (True, False):
            with confide.testing.open(rules, {"t": frame}, seed=11) as session:
                statements = _watched(session._holdings.engine, monkeypatch)
                monkeypatch.setattr(confide.release.sql.measuring, "few_rows", lambda *_, few=few: few)
                told.append(session.sql(sql, epsilon=400, mechanism="svt").to_dicts())
                assert any("VALUES" in text for text in statements) == (not few)
        assert told[0] == told[1]


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
            monkeypatch.setattr(confide.release.sql.measuring, "few_rows", lambda *_, few=few: few)
            answers.append(session.sql(sql, epsilon=4, mechanism=mechanism).to_json())
            assert (len(statements) > 1) == (not few)
    assert answers[0] == answers[1]
