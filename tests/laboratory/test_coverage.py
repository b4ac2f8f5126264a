"""The coverage laboratory: a few cells of every kind with fixed seeds, that it can fail, and all of it as an audit."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from confide.release import Session
from tests.laboratory import coverage, coverage_cells
from tests.laboratory.coverage import BEGIN, END, LEVEL, PAGE, Cell, Outcome, Seen, chance_of, outcomes, run, table
from tests.laboratory.coverage_cells import cells
from tests.laboratory.report import note

CHUNKS = 40
QUICK = (
    "table even, public rows, ε, ε = 2 auto 0",
    "table two points, public rows, ε, ε = 2 svt 0",
    "table heavy tail, private rows, ε, ε = 200 pair 0",
    "groups skewed groups, ε, ε = 5 g",
    "groups ties, δ, ε = 5 word",
    "columns ties 0.1",
    "join row COUNT residual one key, ε = 0.5",
    "join key COUNT along two references auto five each, ε = 0.5",
    "graph edge triangles smooth a clique, ε = 0.5",
    "graph edge edges laplace a star, ε = 0.5",
    "graph edge rectangles smooth a clique, ε = 0.5",
    "microdata even, ε, ε = 5",
    "verdict count even, gap 1 τ",
    "two even, ε, ε = 5 0",
    "derived skewed groups, ε, ε = 5 0",
    "workload ties, δ, ε = 1 6",
    "workload heavy tail, ε, ε = 0.1 12",
)


def of(name: str) -> Cell:
    return next(cell for cell in cells() if cell.name == name)


@pytest.mark.parametrize("name", QUICK, ids=lambda name: re.sub(r"[^A-Za-z0-9.]+", "-", name))
def test_a_few_cells_hold(name: str) -> None:
    """40 runs with fixed seeds: a false alarm in one of 10^5 machines at most."""
    found = run(of(name), 40)
    assert found
    assert [outcome.wrong for outcome in found if not outcome.held] == []


@pytest.mark.parametrize("name", ["table even, public rows, ε, ε = 2 auto 0", "groups skewed groups, ε, ε = 5 g"])
def test_intervals_that_are_too_narrow_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of each width."""
    whole = coverage_cells.shown

    def narrow(answer: Any, keys: int) -> Iterator[Any]:
        for key, column, value, low, high in whole(answer, keys):
            yield key, column, value, value - (value - low) / 3, value + (high - value) / 3

    monkeypatch.setattr(coverage_cells, "shown", narrow)
    assert not all(outcome.held for outcome in run(of(name), 60))


def _naive(largest: bool) -> Any:
    """Five equal counts with noise, each within its interval of 0.9: all of them, or the largest alone."""
    random = np.random.default_rng(1)

    def look(session: Session) -> Iterator[Seen]:
        drawn = random.normal(0, 1, 5)
        for place, value in enumerate([drawn.max()] if largest else drawn):
            yield Seen("naive", str(place), float(abs(value) > 1.645), 1.645)

    return look


@pytest.mark.parametrize("largest", [False, True])
def test_rows_that_are_picked_are_told_from_each_by_itself(largest: bool) -> None:
    cell = Cell("naive", "five equal", of(QUICK[0]).opened, _naive(largest), 0.1)
    (outcome,) = run(cell, 400)
    assert outcome.held == (not largest)


def test_widths_are_judged() -> None:
    seen = [Seen("n", "", 0.0, 3.0), Seen("n", "", 0.0, 3.0, flat=True)]
    for planned, flat, held in ((3.0, True, True), (10.0, True, False), (3.0, False, False)):
        cell = Cell("n", "", of(QUICK[0]).opened, lambda _: seen, 0.1, lambda _, width=planned: {"n": width}, flat)  # type: ignore[misc]
        (outcome,) = run(cell, 5)
        assert outcome.held == held
        assert bool(outcome.wrong) != held


def test_chances_are_exact_or_larger() -> None:
    for misses, runs, allowed in ((0, 50, 0.1), (9, 50, 0.1), (50, 50, 0.3)):
        exact = float(binom.sf(misses - 1, runs, allowed))
        assert chance_of([1.0] * misses + [0.0] * (runs - misses), allowed) == pytest.approx(exact)
        shares = [1.0] * misses + [0.0] * (runs - misses - 1) + ([1e-12] if misses < runs else [])
        assert chance_of(shares, allowed) >= exact * (1 - 1e-6)
    assert chance_of([0.5] * 40, 0.5) == 1.0
    assert chance_of([0.6] * 4_000, 0.5) < LEVEL
    assert math.isclose(chance_of([1.0], 0.25), 0.25)


def test_outcomes_are_kept_and_a_run_goes_on_where_it_stopped(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(
        coverage, "run", lambda cell: ran.append(cell.name) or [Outcome(cell.name, "k", "d", 9, 0.1, 0.0, 1.0, 1)]
    )
    some = [of(name) for name in QUICK[:3]]
    outcomes(some[:2], tmp_path, workers=0)
    assert ran == [cell.name for cell in some[:2]]
    found = outcomes(some, tmp_path, workers=0)
    assert ran == [cell.name for cell in some]
    assert "| k | 3 | 27 | 0.9 | 1.000 | d | 1 |" in table(found)
    assert all(json.loads(path.read_text()) for path in tmp_path.glob("*.json"))


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert "| kind of answer | cells | runs |" in page.split(BEGIN)[1].split(END)[0]


@pytest.mark.audit
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_cell_holds(chunk: int) -> None:
    """At 10^-7 a number: `python -m tests.laboratory.coverage` says with what chance all of it raises a false alarm."""
    found = outcomes(cells()[chunk::CHUNKS], workers=0)
    note("coverage", cells=len(found), intervals=sum(outcome.runs * outcome.keys for outcome in found))
    assert [f"{outcome.cell} | {outcome.kind}: {outcome.wrong}" for outcome in found if not outcome.held] == []
