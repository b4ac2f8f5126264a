"""Every other name of an aggregate is the same question as its own."""

import pytest

from confide.errors import QueryError
from confide.query import bind
from confide.query.identity import question_name
from tests.query.samples import CATALOG, POLICIES


@pytest.mark.parametrize(
    ("written", "meant", "dialect"),
    [
        ("VAR(age)", "VARIANCE(age)", "duckdb"),
        ("VARP(age)", "VAR_POP(age)", "tsql"),
        ("varPop(age)", "VAR_POP(age)", "clickhouse"),
        ("STD(age)", "STDDEV(age)", "duckdb"),
        ("STDEV(age)", "STDDEV(age)", "tsql"),
        ("STDEVP(age)", "STDDEV_POP(age)", "tsql"),
        ("stddevSamp(age)", "STDDEV_SAMP(age)", "clickhouse"),
        ("MEAN(age)", "AVG(age)", "duckdb"),
        ("FSUM(age)", "SUM(age)", "duckdb"),
        ("SUM_IF(income, age > 30)", "SUM(income) FILTER (WHERE age > 30)", "duckdb"),
        ("SUMIF(income, age > 30)", "SUM(income) FILTER (WHERE age > 30)", "duckdb"),
        ("AVG_IF(income, age > 30)", "AVG(income) FILTER (WHERE age > 30)", "duckdb"),
        ("COUNTIF(age > 30)", "COUNT_IF(age > 30)", "bigquery"),
        ("COUNT_STAR()", "COUNT(*)", "duckdb"),
        ("APPROX_COUNT_DISTINCT(kids)", "COUNT(DISTINCT kids)", "duckdb"),
        ("APPROX_DISTINCT(kids)", "COUNT(DISTINCT kids)", "presto"),
        ("NDV(kids)", "COUNT(DISTINCT kids)", "duckdb"),
        ("uniq(kids)", "COUNT(DISTINCT kids)", "clickhouse"),
        ("APPROX_MEDIAN(age)", "MEDIAN(age)", "duckdb"),
        ("APPROX_QUANTILE(age, 0.9)", "QUANTILE(age, 0.9)", "duckdb"),
        ("APPROX_PERCENTILE(age, 0.9)", "QUANTILE(age, 0.9)", "duckdb"),
        ("PERCENTILE_APPROX(age, 0.9)", "QUANTILE(age, 0.9)", "spark"),
        ("EVERY(age > 30)", "BOOL_AND(age > 30)", "duckdb"),
        ("LOGICAL_OR(age > 30)", "BOOL_OR(age > 30)", "bigquery"),
        ("BOOLOR_AGG(age > 30)", "BOOL_OR(age > 30)", "snowflake"),
        ("SAFE_DIVIDE(SUM(income), COUNT(*))", "SUM(income) / COUNT(*)", "bigquery"),
        ("2 * VAR(age + 1) / MEAN(kids)", "2 * VARIANCE(age + 1) / AVG(kids)", "duckdb"),
    ],
)
def test_the_same_question(written: str, meant: str, dialect: str) -> None:
    sql = "SELECT {} AS x FROM person"
    one = bind(sql.format(written), POLICIES["row"], CATALOG, dialect=dialect)
    assert question_name(one) == question_name(bind(sql.format(meant), POLICIES["row"], CATALOG))


def test_inside_an_inner_query_too() -> None:
    sql = "SELECT AVG(n) AS m FROM (SELECT person_id, {} AS n FROM visit GROUP BY person_id)"
    names = {
        question_name(bind(sql.format(own), POLICIES["key"], CATALOG))
        for own in ("COUNT_IF(cost > 3)", "COUNTIF(cost > 3)")
    }
    assert len(names) == 1


@pytest.mark.parametrize("written", ["VAR(age, kids)", "SUM_IF(income)", "APPROX_PERCENTILE(age)"])
def test_a_wrong_number_of_arguments_is_refused(written: str) -> None:
    with pytest.raises(QueryError, match=r"takes . argument"):
        bind(f"SELECT {written} AS x FROM person", POLICIES["row"], CATALOG)
