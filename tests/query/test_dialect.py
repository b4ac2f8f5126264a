"""Other dialects: what they say in their own way means what it means there, or is refused."""

import pytest

from confide.errors import QueryError
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
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "plain"), SAME)
def test_a_dialect_says_the_same_in_its_own_way(dialect: str, text: str, plain: str) -> None:
    assert name(text, dialect) == name(plain)


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
    ("duckdb", "SELECT SUM(DECODE(sex)) AS s FROM person", "DECODE lacks a part"),
    ("oracle", "SELECT SUM(DECODE(sex)) AS s FROM person", "lacks an argument"),
    ("mysql", "SELECT SUM(LENGTH(job)) AS s FROM person", "BINARY"),
]


@pytest.mark.parametrize(("dialect", "text", "words"), REFUSED)
def test_what_means_something_else_there_is_refused(dialect: str, text: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(text, POLICIES["row"], CATALOG, dialect=dialect)
    assert words in str(caught.value)
