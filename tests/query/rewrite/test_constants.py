"""Days that are computed of constants are what databases compute."""

import random
from datetime import date, timedelta

import duckdb
import pytest

from confide.errors import QueryError
from confide.query import bind
from confide.query.identity import question_name
from confide.query.parse import parse
from confide.query.rewrite.constants import computed_days
from tests.query.samples import CATALOG, POLICIES


@pytest.mark.parametrize(
    ("written", "day", "dialect"),
    [
        ("DATE '1998-12-01' - INTERVAL '90' DAY", "1998-09-02", "duckdb"),
        ("DATE '1998-12-01' - INTERVAL 90 DAYS", "1998-09-02", "duckdb"),
        ("INTERVAL 1 YEAR + DATE '1996-02-29'", "1997-02-28", "duckdb"),
        ("CAST('2024-01-31' AS DATE) + INTERVAL '1 month' - INTERVAL 1 DAY", "2024-02-28", "duckdb"),
        ("(DATE '2024-03-31' - INTERVAL 1 MONTH)", "2024-02-29", "postgres"),
        ("DATE_ADD('2024-01-31', INTERVAL 1 QUARTER)", "2024-04-30", "mysql"),
        ("DATE_ADD(DATE '2024-01-31', INTERVAL 1 QUARTER)", "2024-04-30", "mysql"),
        ("DATE '2024-01-31' + INTERVAL 2 WEEK", "2024-02-14", "duckdb"),
    ],
)
def test_the_day(written: str, day: str | None, dialect: str) -> None:
    sql = "SELECT COUNT(*) AS n FROM person WHERE born < {}"
    if day is None:
        with pytest.raises(QueryError):
            bind(sql.format(written), POLICIES["row"], CATALOG, dialect=dialect)
        return
    one, two = bind(sql.format(written), POLICIES["row"], CATALOG, dialect=dialect), f"DATE '{day}'"
    assert question_name(one) == question_name(bind(sql.format(two), POLICIES["row"], CATALOG))


def test_a_database_computes_the_same() -> None:
    chance = random.Random(5)
    for _ in range(200):
        day = date(1900, 1, 1) + timedelta(days=chance.randrange(60_000))
        unit, many = chance.choice(("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")), chance.randrange(-50, 50)
        sign = chance.choice("+-")
        written = f"DATE '{day}' {sign} INTERVAL ({many}) {unit}"
        computed = computed_days(parse(f"SELECT DATE '{day}' {sign} INTERVAL '{many}' {unit} AS d FROM t")).expressions[
            0
        ]
        assert computed.this.this.name == str(duckdb.sql(f"SELECT CAST({written} AS DATE)").fetchall()[0][0])


@pytest.mark.parametrize("written", ["DATE '9999-12-31' + INTERVAL 1 DAY", "DATE '0001-01-31' - INTERVAL 1 MONTH"])
def test_days_that_no_calendar_has(written: str) -> None:
    with pytest.raises(QueryError, match="no day between the years 1 and 9999"):
        bind(f"SELECT COUNT(*) FROM person WHERE born < {written}", POLICIES["row"], CATALOG)
