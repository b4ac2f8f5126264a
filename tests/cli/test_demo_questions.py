"""The truths of the demo, against sums written another way."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from confide.cli.census import MOST_VISITS, Census, make_census
from confide.cli.demo_questions import HIGHEST_INCOME, HIGHEST_TOTAL, QUESTIONS

EXACT = (
    "SELECT COUNT(*) AS people FROM person WHERE age >= 65",
    "SELECT education, sex, COUNT(*) AS people FROM person GROUP BY education, sex",
    f"SELECT education, AVG(LEAST(income, {HIGHEST_INCOME})) AS average, "
    f"STDDEV_SAMP(LEAST(income, {HIGHEST_INCOME})) AS spread FROM person WHERE age >= 18 GROUP BY education",
    f"SELECT name, SUM(LEAST(n, {MOST_VISITS})) AS visits FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY 1) "
    "JOIN person USING (person_id) JOIN region_name USING (region) GROUP BY name",
    f"SELECT AVG(LEAST(t, {HIGHEST_TOTAL})) AS average, 100 * AVG(CASE WHEN t > 1000 THEN 1 ELSE 0 END) AS "
    "percent_over_1000 FROM (SELECT person_id, SUM(ROUND(cost, 2)::DECIMAL(18, 2)) AS t FROM visit GROUP BY 1)",
    "SELECT job, COUNT(*) AS people FROM person WHERE age >= 18 GROUP BY job",
)


@pytest.fixture(scope="module")
def census() -> Census:
    return make_census(5_000)


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_truths_are_what_a_plain_database_says(census: Census, place: int) -> None:
    truth = QUESTIONS[place].truth(census)
    connection = duckdb.connect()
    for name in ("person", "visit", "region_name"):
        columns = {key: pa.array(values, from_pandas=True) for key, values in getattr(census, name).items()}
        connection.register(name, pa.table(columns))
    rows = connection.sql(EXACT[place]).to_arrow_table().to_pylist()
    connection.close()
    columns = list(next(iter(truth.values())))
    exact = {tuple(v for k, v in row.items() if k not in columns): {c: float(row[c]) for c in columns} for row in rows}
    assert exact.keys() == truth.keys()
    for keys, values in exact.items():
        assert truth[keys] == pytest.approx(values, rel=1e-9)


def test_remarks_state_numbers_of_this_country(census: Census) -> None:
    remarks = [question.remark(census) for question in QUESTIONS]
    counts = np.bincount(census.visit["person_id"])
    assert f"{(counts > MOST_VISITS).sum():,} people have more than {MOST_VISITS} visits" in remarks[3]
    assert remarks[0] == ""


def test_questions_go_from_one_number_to_undeclared_groups() -> None:
    assert len(QUESTIONS) == 6
    assert "GROUP BY" not in QUESTIONS[0].sql
    assert "JOIN" in QUESTIONS[3].sql
    assert "FROM (SELECT" in QUESTIONS[4].sql
    assert "GROUP BY job" in QUESTIONS[5].sql
