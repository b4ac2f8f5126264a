"""Other dialects: what they say in their own way means what it means there, or is refused."""

import pytest

from confide.errors import QueryError
from confide.policy import load
from confide.query import bind
from confide.query.identity import question_name
from tests.query.samples import CATALOG, POLICIES


def name(text: str, dialect: str = "duckdb") -> str:
    return question_name(bind(text, POLICIES["row"], CATALOG, dialect=dialect))


SAME = [
    ("tsql", "SELECT TOP 3 [region], COUNT(*) AS n FROM [person] GROUP BY [region]",
     "SELECT region, COUNT(*) AS n FROM person GROUP BY region LIMIT 3"),
    ("mysql", "SELECT `region`, COUNT(*) AS n FROM `person` GROUP BY `region`",
     "SELECT region, COUNT(*) AS n FROM person GROUP BY region"),
    ("tsql", "SELECT SUM(ISNULL(age, 0)) AS s FROM person", "SELECT SUM(COALESCE(age, 0)) AS s FROM person"),
    ("sqlite", "SELECT COUNT(*) AS n FROM person WHERE age ISNULL",
     "SELECT COUNT(*) AS n FROM person WHERE age IS NULL"),
    ("postgres", "SELECT SUM(age::float8) AS s FROM person", "SELECT SUM(age) AS s FROM person"),
    ("oracle", "SELECT SUM(NVL(age, 0)) AS s FROM person", "SELECT SUM(COALESCE(age, 0)) AS s FROM person"),
    ("oracle", "SELECT SUM(NVL2(age, 1, 0)) AS s FROM person",
     "SELECT SUM(CASE WHEN age IS NOT NULL THEN 1 ELSE 0 END) AS s FROM person"),
    ("oracle", "SELECT SUM(DECODE(sex, 'F', 1, NULL, 2, 0)) AS s FROM person",
     "SELECT SUM(CASE WHEN sex = 'F' THEN 1 WHEN sex IS NULL THEN 2 ELSE 0 END) AS s FROM person"),
    ("duckdb", "SELECT SUM(DECODE(sex, 'F', 1)) AS s FROM person",
     "SELECT SUM(CASE WHEN sex = 'F' THEN 1 END) AS s FROM person"),
    ("snowflake", "SELECT SUM(IFF(age > 30, 1, 0)) AS s FROM person",
     "SELECT SUM(IF(age > 30, 1, 0)) AS s FROM person"),
    ("tsql", "SELECT SUM(CONVERT(INT, age)) AS s FROM person", "SELECT SUM(age) AS s FROM person"),
    ("tsql", "SELECT AVG(DATEDIFF(month, born, [left])) AS s FROM person",
     "SELECT AVG(DATE_DIFF('month', born, \"left\")) AS s FROM person"),
    ("mysql", "SELECT AVG(DATEDIFF(`left`, born)) AS s FROM person", "SELECT AVG(\"left\" - born) AS s FROM person"),
    ("mysql", "SELECT COUNT(*) AS n FROM person WHERE DAYOFWEEK(born) = 1",
     "SELECT COUNT(*) AS n FROM person WHERE DAYOFWEEK(born) + 1 = 1"),
    ("trino", "SELECT COUNT(*) AS n FROM person WHERE DAY_OF_WEEK(born) = 1",
     "SELECT COUNT(*) AS n FROM person WHERE ISODOW(born) = 1"),
    ("postgres", "SELECT COUNT(*) AS n FROM person WHERE EXTRACT(dow FROM born) = 1",
     "SELECT COUNT(*) AS n FROM person WHERE DAYOFWEEK(born) = 1"),
    ("tsql", "SELECT COUNT(*) AS n FROM person WHERE DATEADD(day, 3, born) < '2000-01-01'",
     "SELECT COUNT(*) AS n FROM person WHERE born + INTERVAL 3 DAY < '2000-01-01'"),
    ("mysql", "SELECT AVG(TIMESTAMPDIFF(DAY, '2000-01-01', born)) AS s FROM person",
     "SELECT AVG(born - DATE '2000-01-01') AS s FROM person"),
    ("oracle", "SELECT TRUNC(born, 'MM') AS m, COUNT(*) AS n FROM person GROUP BY TRUNC(born, 'MM')",
     "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM person GROUP BY m"),
    ("spark", "SELECT trunc(born, 'YY') AS m, COUNT(*) AS n FROM person GROUP BY m",
     "SELECT DATE_TRUNC('year', born) AS m, COUNT(*) AS n FROM person GROUP BY m"),
    *(
        (dialect, f"SELECT COUNT(*) AS n FROM person WHERE born < {day}",
         "SELECT COUNT(*) AS n FROM person WHERE born < '2003-02-01'")
        for dialect, day in (
            ("oracle", "DATE '2003-02-01'"), ("oracle", "TO_DATE('01.02.2003', 'DD.MM.YYYY')"),
            ("postgres", "to_date('2003-02-01', 'YYYY-MM-DD')"), ("snowflake", "TO_DATE('2003/02/01', 'YYYY/MM/DD')"),
            ("mysql", "STR_TO_DATE('2003-02-01', '%Y-%m-%d')"), ("spark", "to_date('20030201', 'yyyyMMdd')"),
            ("bigquery", "PARSE_DATE('%Y-%m-%d', '2003-02-01')"), ("spark", "to_date('2003-01-02', 'yyyy-dd-MM')"),
        )
    ),
    ("duckdb", "SELECT SUM(member) AS s, AVG(member) AS a FROM person",
     "SELECT SUM(CASE WHEN member THEN 1 WHEN NOT (member) THEN 0 END) AS s, "
     "AVG(CASE WHEN member THEN 1 WHEN NOT (member) THEN 0 END) AS a FROM person"),
    ("clickhouse", "SELECT intDiv(age, 10) AS m, COUNT(*) AS n FROM person GROUP BY m",
     "SELECT age // 10 AS m, COUNT(*) AS n FROM person GROUP BY m"),
    ("sqlite", "SELECT TOTAL(age) AS s FROM person", "SELECT SUM(age) AS s FROM person"),
    # `/` cuts the quotient of two whole numbers in some dialects, towards zero
    ("postgres", "SELECT SUM(age / 2) AS s FROM person", "SELECT SUM(FLOOR(age / 2)) AS s FROM person"),
    ("sqlite", "SELECT SUM(balance / 3) AS s FROM person", "SELECT SUM(TRUNC(balance / 3)) AS s FROM person"),
    ("tsql", "SELECT SUM((age + 1) / 10) AS s FROM person", "SELECT SUM(FLOOR((age + 1) / 10)) AS s FROM person"),
    ("postgres", "SELECT COUNT(*) AS n FROM person WHERE age / 2 = 7",
     "SELECT COUNT(*) AS n FROM person WHERE FLOOR(age / 2) = 7"),
    ("postgres", "SELECT SUM(height / 2) AS s FROM person", "SELECT SUM(height / 2) AS s FROM person"),
    ("postgres", "SELECT SUM(age / 2.0) AS s FROM person", "SELECT SUM(age / 2) AS s FROM person"),
    ("postgres", "SELECT SUM(CAST(age AS DOUBLE PRECISION) / 2) AS s FROM person",
     "SELECT SUM(age / 2) AS s FROM person"),
    ("mysql", "SELECT SUM(age / 2) AS s FROM person", "SELECT SUM(age / 2) AS s FROM person"),
    ("spark", "SELECT SUM(age / 2) AS s FROM person", "SELECT SUM(age / 2) AS s FROM person"),
    ("mysql", "SELECT SUM(age DIV 2) AS s FROM person", "SELECT SUM(age // 2) AS s FROM person"),
    ("postgres", "SELECT 100.0 * SUM(age) / COUNT(*) AS s FROM person",
     "SELECT 100.0 * SUM(age) / COUNT(*) AS s FROM person"),
    ("postgres", "SELECT AVG(age) / 2 AS s FROM person", "SELECT AVG(age) / 2 AS s FROM person"),
    ("postgres", "SELECT SUM(height) / COUNT(*) AS s FROM person", "SELECT SUM(height) / COUNT(*) AS s FROM person"),
    ("postgres", "SELECT age / 10 * 10 AS age, COUNT(*) AS n FROM person GROUP BY age / 10 * 10 ORDER BY age / 10 * 10",
     "SELECT FLOOR(age / 10) * 10 AS age, COUNT(*) AS n FROM person GROUP BY FLOOR(age / 10) * 10 "
     "ORDER BY FLOOR(age / 10) * 10"),
    ("snowflake", "SELECT DATE_TRUNC('MONTH', born) AS m, COUNT_IF(age > 3) AS n FROM person GROUP BY m",
     "SELECT DATE_TRUNC('month', born) AS m, COUNT_IF(age > 3) AS n FROM person GROUP BY m"),
    # days as texts
    ("tsql", "SELECT COUNT(*) AS n FROM person WHERE born >= DATEADD(month, -6, '2004-12-31')",
     "SELECT COUNT(*) AS n FROM person WHERE born >= DATE '2004-06-30'"),
    ("redshift", "SELECT AVG(DATEDIFF(month, '2004-01-01', born)) AS n FROM person",
     "SELECT AVG(DATE_DIFF('month', DATE '2004-01-01', born)) AS n FROM person"),
    ("duckdb", "SELECT COUNT(*) AS n FROM person WHERE born >= TIMESTAMP '2004-04-01 00:00:00'",
     "SELECT COUNT(*) AS n FROM person WHERE born >= DATE '2004-04-01'"),
    # names
    ("spark", "SELECT any(age > 90) AS a, count(1) AS n FROM person",
     "SELECT BOOL_OR(age > 90) AS a, COUNT(*) AS n FROM person"),
    ("clickhouse", "SELECT toYear(born) AS y, count() AS n FROM person GROUP BY y",
     "SELECT YEAR(born) AS y, COUNT(*) AS n FROM person GROUP BY y"),
    ("mysql", "SELECT SUM(age > 50) AS s, AVG(age > 50) AS m FROM person",
     "SELECT SUM(CASE WHEN age > 50 THEN 1 WHEN NOT age > 50 THEN 0 END) AS s, "
     "AVG(CASE WHEN age > 50 THEN 1 WHEN NOT age > 50 THEN 0 END) AS m FROM person"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "plain"), SAME)
def test_a_dialect_says_the_same_in_its_own_way(dialect: str, text: str, plain: str) -> None:
    assert name(text, dialect) == name(plain)


FORMATS = [
    ("spark", "date_format(day, 'yyyy-MM')", "%Y-%m"),
    ("hive", "date_format(day, 'MM/yyyy')", "%m/%Y"),
    ("postgres", "to_char(day, 'Mon YYYY')", "%b %Y"),
    ("postgres", "to_char(day, 'Dy')", "%a"),
    ("postgres", "to_char(day, 'YYYY-MM')", "%Y-%m"),
    ("oracle", "TO_CHAR(day, 'YYYY-MM')", "%Y-%m"),
    ("snowflake", "TO_CHAR(day, 'yyyy/mm')", "%Y/%m"),
    ("mysql", "DATE_FORMAT(day, '%M in %Y')", "%B in %Y"),
    ("tsql", "FORMAT(day, 'yyyy-MM')", "%Y-%m"),
    ("bigquery", "FORMAT_DATE('%Y-%m', day)", "%Y-%m"),
]


@pytest.mark.parametrize(("dialect", "text", "form"), FORMATS)
def test_formats_of_dates_mean_what_they_mean_there(dialect: str, text: str, form: str) -> None:
    days = {"t": {"columns": {"day": {"range": ["2023-01-01", "2024-12-31"]}}}}
    policy = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": days})
    found, plain = (
        question_name(bind(f"SELECT {own} AS m, COUNT(*) AS n FROM t GROUP BY {own}", policy, CATALOG, dialect=spoken))
        for own, spoken in ((text, dialect), (f"STRFTIME(day, '{form}')", "duckdb"))
    )
    assert found == plain


REFUSED = [
    ("postgres", "SELECT SUM(age) / COUNT(*) AS s FROM person", "`/` cuts the quotient"),
    ("tsql", "SELECT region, SUM(age) AS a, COUNT(*) AS n FROM person GROUP BY region HAVING a / n > 3", "`/` cuts"),
    ("trino", "SELECT COUNT(*) FILTER (WHERE age > 3) / COUNT(*) AS s FROM person", "`/` cuts the quotient"),
    ("postgres", "SELECT SUM(age) AS s FROM person ORDER BY SUM(age) / COUNT(*)", "`/` cuts the quotient"),
    ("postgres", "SELECT SUM(ROUND(age) / 2) AS s FROM person", "depends on types that are not known here"),
    ("tsql", "SELECT COUNT(*) AS n FROM person WHERE DATEPART(weekday, born) = 1", "not fixed in the dialect tsql"),
    ("mysql", "SELECT COUNT(*) AS n FROM person WHERE WEEK(born) = 1", "weeks are counted in another way"),
    ("spark", "SELECT AVG(DATEDIFF(MONTH, born, born)) AS s FROM person", "dialects differ in what months"),
    ("snowflake", "SELECT AVG(DATEDIFF(week, born, born)) AS s FROM person", "dialects differ in what weeks"),
    ("mysql", "SELECT AVG(TIMESTAMPDIFF(YEAR, born, '2024-01-01')) AS s FROM person", "those that have wholly passed"),
    (
        "oracle",
        "SELECT TRUNC(born, 'DAY') AS m, COUNT(*) AS n FROM person GROUP BY TRUNC(born, 'DAY')",
        "TRUNC(d, 'IW')",
    ),
    ("spark", "SELECT COUNT(*) AS n FROM person WHERE born < to_date('2003-13-02', 'yyyy-MM-dd')", "is no day in the"),
    ("oracle", "SELECT COUNT(*) AS n FROM person WHERE born < TO_DATE('1 MAY 2003', 'DD MON YYYY')", "of its own"),
    ("duckdb", "SELECT SUM(DECODE(sex)) AS s FROM person", "DECODE lacks a part"),
    ("oracle", "SELECT SUM(DECODE(sex)) AS s FROM person", "lacks an argument"),
    ("mysql", "SELECT SUM(LENGTH(job)) AS s FROM person", "BINARY"),
    ("postgres", "SELECT to_char(born, 'Q') AS q, COUNT(*) FROM person GROUP BY q", "write QUARTER(d)"),
    ("postgres", "SELECT to_char(born, 'Day') AS q, COUNT(*) FROM person GROUP BY q", "DAYNAME(d)"),
    ("postgres", "SELECT to_char(born, 'D') AS q, COUNT(*) FROM person GROUP BY q", "not answered in this dialect"),
    ("postgres", "SELECT to_char(born, 'FMMonth') AS q, COUNT(*) FROM person GROUP BY q", "MONTHNAME(d)"),
    ("spark", "SELECT date_format(born, 'Q') AS q, COUNT(*) FROM person GROUP BY q", "write QUARTER(d)"),
    ("postgres", "SELECT age / 10 AS d, COUNT(*) AS n FROM person GROUP BY d ORDER BY COUNT(*) / 2", "`/` cuts"),
    ("postgres", "SELECT COUNT(*) AS age, age / 2 AS d FROM person GROUP BY age / 2", "`/` cuts"),
]


@pytest.mark.parametrize(("dialect", "text", "words"), REFUSED)
def test_what_means_something_else_there_is_refused(dialect: str, text: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(text, POLICIES["row"], CATALOG, dialect=dialect)
    assert words in str(caught.value)
