"""An answer for the population: the same question, paid for once, with other intervals and a label."""

import json

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import ParameterError, QueryError
from confide.release.answer.answer import Answer

ROWS = 3_000
MEAN = "SELECT AVG(x) AS m FROM t"
SHARES = """SELECT g, 100.0 * COUNT(*) FILTER (WHERE x > 5) / COUNT(*) AS percent, ROUND(AVG(x) FILTER (WHERE f)
            - AVG(x) FILTER (WHERE NOT f), 2) AS apart FROM t GROUP BY g"""


def frame(seed: int = 1) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "x": generator.integers(0, 11, ROWS),
            "f": generator.random(ROWS) < 0.4,
            "g": generator.choice(["a", "b"], ROWS),
            "job": generator.choice(["nurse", "cook"], ROWS),
        }
    )


def policy() -> dict[str, object]:
    columns = {
        "x": {"range": [0, 10]},
        "f": {"values": [True, False]},
        "g": {"values": ["a", "b", "c"]},
        "job": {"type": "text"},
    }
    return {
        "confide": 1,
        "budget": {"epsilon": 50, "delta": 1e-6},
        "unit": "row",
        "tables": {"t": {"size": ROWS, "columns": columns}},
    }


def session(seed: int = 1) -> confide.Session:
    return confide.testing.open(policy(), {"t": frame(seed)}, seed=seed)


def test_it_is_the_same_question_read_another_way() -> None:
    with session() as own:
        plain = own.sql(SHARES, epsilon=1)
        spent = own.budget.spent
        read = own.sql(SHARES, epsilon=1, population=True)
        assert read.stored
        assert own.budget.spent == spent
        assert own.sql(SHARES, epsilon=1).columns == plain.columns
    assert set(read.assumes.values()) == {"random sample"}
    assert any("population" in note for note in read.notes)
    assert "random sample" in str(read)
    assert "random sample" in json.dumps(read.plot().to_dict())
    for one, two in zip(plain.values, read.values, strict=True):
        assert one.values == two.values
        assert all(low <= less for low, less in zip(two.low, one.low, strict=True))
        assert all(high >= more for high, more in zip(two.high, one.high, strict=True))


def test_what_is_kept_reads_the_same_again() -> None:
    with session() as own:
        answer = own.sql(SHARES, epsilon=1)
    again = Answer.from_bytes(answer.to_bytes())
    assert again == answer
    assert again.for_population().columns == answer.for_population().columns


def test_an_answer_without_what_was_measured_says_so() -> None:
    with session() as own:
        answer = own.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    with pytest.raises(QueryError, match="not kept beside it"):
        answer.for_population()


def test_differences_hold_for_the_population() -> None:
    """Two halves of one population: the difference is 0, in all of 40 samples (each misses at most once in 20)."""
    held = 0
    for seed in range(40):
        with session(seed) as own:
            (row,) = own.sql(
                "SELECT AVG(x) FILTER (WHERE f) - AVG(x) FILTER (WHERE NOT f) AS d FROM t", epsilon=1, population=True
            ).to_dicts()
        held += row["d_low"] <= 0 <= row["d_high"]
    assert held >= 36


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) AS n FROM t", "means, shares"),
        ("SELECT SUM(x) AS s FROM t", "means, shares"),
        ("SELECT AVG(x) AS m, MEDIAN(x) AS q FROM t", "q: population"),
        ("SELECT STDDEV(x) AS s FROM t", "means, shares"),
        ("SELECT AVG(x) * AVG(x) AS s FROM t", "means, shares"),
        ("SELECT COUNT(DISTINCT g) / COUNT(*) AS s FROM t", "distinct"),
        ("SELECT job, AVG(x) AS s FROM t GROUP BY job", "policy declares"),
    ],
)
def test_everything_else_is_refused_before_it_costs(sql: str, words: str) -> None:
    with session() as own:
        for call in (own.sql, own.plan):
            with pytest.raises(QueryError, match=words):
                call(sql, epsilon=1, population=True)
        assert own.budget.spent == 0


def test_rows_of_one_unit_are_no_independent_draws() -> None:
    rules = {
        "confide": 1,
        "budget": {"epsilon": 9},
        "unit": "person.id",
        "tables": {
            "person": {"columns": {"id": {"type": "id"}}},
            "visit": {
                "references": {"id": "person.id"},
                "at_most": {"rows": 3},
                "columns": {"cost": {"range": [0, 9]}},
            },
        },
    }
    data = {"person": pl.DataFrame({"id": [1, 2]}), "visit": pl.DataFrame({"id": [1, 1, 2], "cost": [3, 4, 5]})}
    with confide.testing.open(rules, data, seed=1) as own:
        with pytest.raises(QueryError, match="inner query"):
            own.sql("SELECT AVG(cost) AS m FROM visit", epsilon=1, population=True)
        own.sql("SELECT AVG(c) AS m FROM (SELECT id, COUNT(*) AS c FROM visit GROUP BY id)", epsilon=1, population=True)


def test_a_plan_says_what_an_answer_has() -> None:
    with session() as own:
        plan, plain = own.plan(MEAN, epsilon=1, population=True), own.plan(MEAN, epsilon=1)
        answer = own.sql(MEAN, epsilon=1, population=True)
    assert plan.columns[0].assumes == "random sample"
    assert plan.half_width["m"] > plain.half_width["m"]
    (row,) = answer.to_dicts()
    assert plan.half_width["m"] == pytest.approx((row["m_high"] - row["m_low"]) / 2, rel=0.3)


def test_a_width_that_sampling_forbids_is_not_reached() -> None:
    with session() as own, pytest.raises(ParameterError, match="not reached"):
        own.sql(MEAN, within=0.001, population=True)


def test_population_is_a_truth() -> None:
    with session() as own, pytest.raises(ParameterError, match="True or False"):
        own.sql(MEAN, epsilon=1, population="yes")  # type: ignore[arg-type]
