"""Intervals of what is computed of released rows hold, also for one who chooses rows to make them miss.

Every run draws noise for fixed counts and carries out the same text; the exact answer is that without noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Law, Measurement, TestRandomness, draw
from confide.mechanism.noise.law import NoNoise
from confide.policy import load
from confide.query.bind import bind
from confide.query.derivation.derivation import Derivation
from confide.query.derivation.released_table import bind_derivation
from confide.query.grouping import group_count
from confide.query.parse import parse_query
from confide.release.answer.derived import building, derived_answer
from confide.release.answer.derived.answered_numbers import AnsweredNumbers
from confide.release.answer.derived.cell import PublicCell, SumCell, together
from confide.release.answer.derived.cell_evaluation import CellEvaluation
from confide.release.answer.derived.derived_answer import DerivedAnswer
from tests.query.samples import CATALOG

KEYS = 24
POLICY = load(
    {
        "confide": 1,
        "budget": {"epsilon": 3, "delta": 1e-9},
        "unit": "row",
        "tables": {"t": {"columns": {"k": {"values": [f"{own:02}" for own in range(KEYS)]}, "x": {"range": [0, 9]}}}},
    }
)
N = "(SELECT k, COUNT(*) AS n FROM t GROUP BY k)"
LAPLACE, NORMAL = DiscreteLaplace(Fraction(5)), DiscreteGaussian(Fraction(49))
ALIKE = np.full(KEYS, 60)
"""All groups alike: which of them is chosen is a matter of noise alone."""
SPREAD = np.array([3, 0, 1, 60, 55, 58, 40, 90, 91, 92, 20, 5, 7, 64, 33, 12, 88, 71, 49, 50, 51, 52, 2, 30])


@cache
def derivation(sql: str) -> Derivation:
    return bind_derivation(parse_query(sql), POLICY, CATALOG, lambda select: bind(select, POLICY, CATALOG))


def answered(sql: str, exact: Any, laws: Sequence[Law], seed: int | None) -> DerivedAnswer:
    made = derivation(sql)
    sources = []
    for place, question in enumerate(made.questions):
        values = exact if group_count(question) == KEYS else np.array([int(exact.sum())])
        noise: Any = (
            0 if seed is None else draw(laws[place % len(laws)], values.shape, TestRandomness(97 * seed + place))
        )
        law = NoNoise() if seed is None else laws[place % len(laws)]
        measured = [Measurement(values + noise, law) for _ in question.measures]
        sources.append(AnsweredNumbers(question, None, measured, [], 0.95, ["noise"] * len(measured)))
    return DerivedAnswer(made, sources, 0.95)


def keyed(answer: DerivedAnswer, rows: Any) -> dict[Any, Any]:
    return {tuple(own.value for own in row.cells if isinstance(own, PublicCell)): row for row in rows}


def misses(sql: str, exact: Any, law: Law, runs: int) -> np.ndarray:
    """In each run, for each released column, the share of the intervals shown that miss; 0 where none is shown."""
    truth = answered(sql, exact, [law], None)
    known = keyed(truth, truth.all_rows)
    shares = []
    for seed in range(runs):
        answer = answered(sql, exact, [law], seed)
        wrong: dict[int, list[bool]] = {}
        for key, row in keyed(answer, answer.rows).items():
            for place, cell in enumerate(row.cells):
                if isinstance(cell, PublicCell):
                    continue
                other = known.get(key)
                wanted = None if other is None else truth.evaluation.value(other.cells[place])
                found = answer.range(cell)
                if wanted is None:
                    missed = not found.missing
                elif isinstance(wanted, str):
                    missed = wanted not in found.options
                else:
                    missed = found.low is None or not found.low - 1e-9 <= wanted <= found.high + 1e-9
                wrong.setdefault(place, []).append(missed)
        shares.append([float(np.mean(own)) for own in wrong.values()] or [0.0])
    return (
        np.array([max(own) for own in shares])
        if len({len(own) for own in shares}) > 1
        else np.array(shares).mean(axis=0)
    )


def held(sql: str, exact: Any, law: Law, runs: int = 60) -> float:
    return float(np.max(misses(sql, exact, law, runs)))


WHOLE = [
    f"SELECT SUM(n) AS a, AVG(n) AS b, MAX(n) AS c, MIN(n) AS d, MEDIAN(n) AS e, STDDEV(n) AS f FROM {N}",
    f"SELECT COUNT(*) FILTER (WHERE n > 50) AS a, SUM(n) FILTER (WHERE n > 50) AS b, AVG(n) AS c FROM {N} WHERE n > 10",
    f"SELECT SUM(n) AS a, MIN(n) AS b FROM (SELECT k, n FROM {N} ORDER BY n DESC LIMIT 5)",
    f"SELECT n > 50 AS large, COUNT(*) AS c, SUM(n) AS s FROM {N} GROUP BY 1",
    f"SELECT k, SQRT(n) AS a, LN(n + 1) AS b, n > 50 AS c, CASE WHEN n > 50 THEN 'l' ELSE 's' END AS d FROM {N}",
    f"SELECT k, n / SUM(n) OVER () AS a, RANK() OVER (ORDER BY n DESC) AS b, SUM(n) OVER (ORDER BY k) AS c FROM {N}",
    f"SELECT k, SUM(n) OVER (ORDER BY n) AS a, NTILE(4) OVER (ORDER BY n) AS b, LAG(n) OVER (ORDER BY k) AS c FROM {N}",
    f"SELECT k, n % 7 AS a, n * n AS b, ROUND(n / 7, 1) AS c, ABS(n - 50) AS d FROM {N}",
    f"SELECT a.k, a.n / b.n AS q FROM {N} a JOIN {N} b ON a.k = b.k WHERE a.k > '02'",
    f"SELECT k, n / (SELECT COUNT(*) FROM t) AS share, n - (SELECT AVG(n) FROM {N}) AS off FROM {N}",
]
CHOSEN = [
    f"SELECT k, n FROM {N} WHERE n > 72",
    f"SELECT k, n, n * 2 + 1 AS m FROM {N} ORDER BY n DESC LIMIT 3",
    f"SELECT k, n FROM {N} QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 2",
    f"SELECT k, n FROM (SELECT k, n FROM {N} ORDER BY n LIMIT 8) WHERE n < 52",
    f"SELECT k, n, n / SUM(n) OVER () AS share, RANK() OVER (ORDER BY n) AS r FROM {N} ORDER BY share DESC LIMIT 2",
    f"SELECT k, n - AVG(n) OVER () AS off FROM {N} QUALIFY RANK() OVER (ORDER BY n DESC) = 1",
]


@pytest.mark.parametrize("place", range(len(WHOLE)))
def test_intervals_hold_as_often_as_they_say(place: int) -> None:
    """Sixty runs: by chance a true rate of 5 % passes 15 % about once in 2,000 columns of one row."""
    assert held(WHOLE[place], SPREAD, (LAPLACE, NORMAL)[place % 2]) <= 0.15


@pytest.mark.parametrize("sql", CHOSEN)
def test_intervals_of_chosen_rows_hold_for_what_is_shown(sql: str) -> None:
    assert held(sql, ALIKE, LAPLACE, runs=100) <= 0.11


def test_without_the_rule_the_chosen_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_answer, "level", lambda confidence, *_: confidence)
    assert held(f"SELECT k, n FROM {N} ORDER BY n DESC LIMIT 1", ALIKE, LAPLACE, runs=40) > 0.2


def test_without_sharing_the_miss_rate_extremes_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CellEvaluation, "share", lambda *_: 1)
    assert held(f"SELECT MAX(n) AS c FROM {N}", ALIKE, LAPLACE, runs=60) > 0.2


def test_shares_of_different_wholes_are_held_together() -> None:
    """What is beside a sum moves where the noise must be for the interval to hold, so that each has its miss rate."""
    one, two = "n / (SUM(n) OVER () + 1)", "n / (SUM(n) OVER () + 4000)"
    answer = answered(f"SELECT k, {one} AS a, {two} AS b, {one} + {two} AS c FROM {N}", SPREAD, [LAPLACE], 3)
    a, b, c, d = (
        [high - low for low, high in zip(own.low, own.high, strict=True)]
        for own in (
            *answer.columns()[1:],
            answered(f"SELECT k, {one} + {one} AS a FROM {N}", SPREAD, [LAPLACE], 3).columns()[1],
        )
    )
    assert all(both > 1.05 * (first + second) for first, second, both in zip(a, b, c, strict=True))
    assert d == pytest.approx([2 * own for own in a])


def test_rows_with_noise_of_their_own_have_the_false_coverage_rate() -> None:
    apart, together = (answered(sql, SPREAD, [LAPLACE], 1) for sql in (CHOSEN[1], CHOSEN[4]))
    assert not apart.jointly
    assert together.jointly
    assert apart.chosen == (3, KEYS)
    assert float(apart.level) == pytest.approx(1 - 0.05 * 3 / KEYS)
    assert float(together.level) == pytest.approx(1 - 0.05 / KEYS)


def test_a_sum_is_narrower_than_its_parts_added_up() -> None:
    answer = answered(f"SELECT SUM(n) AS s FROM {N}", ALIKE, [LAPLACE], 3)
    found = answer.range(answer.rows[0].cells[0])
    alone = LAPLACE.half_width(0.95)
    assert (found.high - found.low) / 2 < 1.3 * alone * KEYS**0.5


def test_a_piece_that_stands_twice_counts_once() -> None:
    answer = answered(f"SELECT k, CASE WHEN n > 10 THEN n ELSE 2 * n END AS a, n AS b FROM {N}", ALIKE, [LAPLACE], 3)
    one, two = (answer.range(answer.rows[0].cells[place]) for place in (1, 2))
    assert (one.low, one.high) == (two.low, two.high)


def test_extremes_are_wider_than_one_number() -> None:
    answer = answered(f"SELECT MAX(n) AS c FROM {N}", ALIKE, [LAPLACE], 3)
    found = answer.range(answer.rows[0].cells[0])
    assert found.high - found.value >= LAPLACE.half_width(1 - 0.05 / KEYS)


def test_a_row_that_may_be_there_counts_perhaps() -> None:
    answer = answered(f"SELECT COUNT(*) AS k, SUM(n) AS s FROM {N} WHERE n > 60", ALIKE, [LAPLACE], 3)
    count, total = (answer.range(cell) for cell in answer.rows[0].cells)
    assert (count.low, count.high) == (0, KEYS)
    assert total.low == 0
    assert total.high >= 60 * KEYS


HUGE = np.array([(-1) ** place * 2 ** (20 * place) for place in range(KEYS)], dtype=object)
ODD = [
    f"SELECT k, EXP(n) AS a, POWER(n, 3) AS b, POWER(n, -2) AS c, POWER(n, 0.5) AS d, LN(n) AS e FROM {N}",
    f"SELECT k, POWER(2, n) AS a, n / (n - 60) AS b, SQRT(-n) AS c, n % 7 AS d, ROUND(n / 7, 12) AS e FROM {N}",
    f"SELECT STDDEV(n) AS a, VAR_POP(n * n) AS b, MEDIAN(EXP(n)) AS c, AVG(LN(n)) AS d, SUM(1 / n) AS e FROM {N}",
    f"SELECT k, NULLIF(n, 60) AS a, COALESCE(LN(n), 0) AS b, CASE WHEN n > 3 THEN n END AS c, n * n * n AS d FROM {N}",
]


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(2**200)), DiscreteLaplace(Fraction(1, 10**9)), NORMAL])
@pytest.mark.parametrize(
    "exact", [HUGE, -HUGE, SPREAD, np.zeros(KEYS, dtype=np.int64)], ids=["huge", "less", "usual", "none"]
)
def test_nothing_raises_after_a_charge(exact: Any, law: Law) -> None:
    for sql in (*WHOLE, *CHOSEN, *ODD):
        answer = answered(sql, exact, [law], 5)
        for column in answer.columns():
            assert len(column.values) == len(answer.rows)


OF_ALL = [
    f"SELECT k, n - AVG(n) OVER () AS off, n > AVG(n) OVER () AS more, 100 * SUM(n) OVER () AS s FROM {N}",
    f"SELECT k, n - (SELECT AVG(n) FROM {N}) AS off FROM {N} WHERE n > 20 ORDER BY off DESC LIMIT 3",
]


@pytest.mark.parametrize("sql", OF_ALL)
def test_sums_over_all_rows_are_not_written_out_in_very_many(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory would grow with the square of the rows. Intervals of the parts hold as those of the whole do."""
    usual = answered(sql, SPREAD, [LAPLACE], 3)
    assert any(isinstance(cell, SumCell) and len(cell.terms) == KEYS for cell in usual.all_rows[0].cells)
    monkeypatch.setattr(building, "MOST_TERMS", KEYS)
    answer = answered(sql, SPREAD, [LAPLACE], 3)
    assert not any(isinstance(cell, SumCell) and len(cell.terms) == KEYS for cell in answer.all_rows[0].cells)
    assert held(sql, SPREAD, LAPLACE) <= 0.15


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT k, RANK() OVER (ORDER BY n) AS r FROM {N} QUALIFY RANK() OVER (ORDER BY n) < 9",
        f"SELECT k, n / SUM(n) OVER () AS s FROM {N} ORDER BY s LIMIT 4",
        f"SELECT k, SUM(n) OVER (ORDER BY n) AS s FROM {N}",
    ],
)
def test_rows_that_depend_on_all_groups_have_one_set_of_them(sql: str) -> None:
    answer = answered(sql, SPREAD, [LAPLACE], 3)
    sets = [answer.evaluation.touched(row.cells[1]) for row in answer.all_rows]
    sets += [row.chosen for row in answer.all_rows if row.chosen]
    assert {len(own) for own in sets} == {KEYS}
    assert len(set(map(id, sets))) <= 3


def test_sets_are_put_together() -> None:
    one, two, every = frozenset(((0, 1),)), frozenset(((0, 2),)), frozenset(((0, 1), (0, 2)))
    assert together((one, two)) == every
    assert together((one, every, two)) is every
    assert together(()) == frozenset()
