"""What people ask most and is not answered: each refusal says so in words of SQL, and what to write instead."""

import re
from inspect import isclass

import pytest
from sqlglot import exp

from confide.errors import QueryError
from confide.query import bind
from tests.query.samples import CATALOG, POLICIES

GROWING = "REPLACE(" * 20 + "region" + ", 'N', 'NNNNNNNNNN')" * 20
"""With 10²⁰ letters."""
REFUSALS = [
    ("SELECT * FROM person", "write COUNT(*) or"),
    ("SELECT age FROM person", "inside an aggregate"),
    ("SELECT DISTINCT region FROM person", "GROUP BY a declared column"),
    ("SELECT age, COUNT(*) AS n FROM person GROUP BY income", "possible values; group by BIN(income, width)"),
    ("SELECT region, COUNT(*) AS n FROM person", "neither in GROUP BY nor inside an aggregate"),
    ("SELECT COUNT(*) AS n FROM persn", "did you mean person"),
    ("SELECT SUM(incme) AS s FROM person", "did you mean income"),
    ("SELECT SUM(job) AS s FROM person", "job is text, not a number; count it"),
    ("SELECT SUM(region) AS s FROM person", "CASE WHEN region = ... THEN 1 ELSE 0 END"),
    ("SELECT MIN(job) AS s FROM person", "ask COUNT(*) of the same rows"),
    ("SELECT MIN(born) + 1 AS s FROM person", "move the column inside"),
    ("SELECT AVG(born) AS s FROM person", "days between two dates are `a - b`"),
    ("SELECT SUM(income / age) AS s FROM person", "write x / NULLIF(y, 0)"),
    ("SELECT AVG(LN(income)) AS s FROM person", "write CASE WHEN x > 0 THEN LN(income) END"),
    ("SELECT AVG(SQRT(balance)) AS s FROM person", "GREATEST(x, 1)"),
    ("SELECT SUM(CAST(job AS INT)) AS s FROM person", "the policy gives every column its type"),
    ("SELECT SUM(CAST(height AS INT)) AS s FROM person", "write ROUND(x), FLOOR(x) or TRUNC(x)"),
    ("SELECT COUNT(*) AS n FROM person WHERE REGEXP_MATCHES(job, 'a.*')", "write LIKE, STARTS_WITH"),
    ("SELECT COUNT(*) AS n FROM person WHERE job ~ 'a'", "write LIKE, STARTS_WITH"),
    ("SELECT COUNT(*) AS n FROM person WHERE job SIMILAR TO 'a'", "write LIKE, STARTS_WITH"),
    ("SELECT COUNT(*) AS n FROM person WHERE born < NOW()", "write the date itself"),
    ("SELECT COUNT(*) AS n FROM person WHERE RANDOM() < 0.5", "is not answered in a row expression"),
    ("SELECT COUNT(*) AS n FROM person WHERE HOUR(born) = 3", "of a date there are YEAR"),
    ("SELECT COUNT(*) AS n FROM person WHERE job = NULL", "write job IS NULL"),
    ("SELECT COUNT(*) AS n FROM person WHERE age", "write a comparison"),
    ("SELECT COUNT(*) AS n FROM person WHERE age = 'x'", "write the number without quotes"),
    ("SELECT COUNT(*) AS n FROM person WHERE region = 'X'", "region has no value 'X'"),
    ("SELECT COUNT(*) AS n FROM person WHERE born = '2024-13-01'", "write DATE '2024-01-31'"),
    ("SELECT MEDIAN(age > 30) AS s FROM person", "write CASE WHEN age > 30 THEN 1 ELSE 0 END"),
    ("SELECT COUNT(*) AS n FROM person, other", "write ON a.key = b.key"),
    ("SELECT COUNT(*) AS n FROM person JOIN other USING (age)", "declare a key as the unit"),
    ("SELECT COUNT(*) AS n FROM person FULL JOIN region_name USING (region)", "write JOIN or LEFT JOIN"),
    ("SELECT COUNT(*) AS n FROM person WHERE age IN (SELECT age FROM other)", "answered of public tables"),
    ("SELECT SUM(SUM(age)) AS s FROM person", "SUM"),
    ("SELECT STRING_AGG(job, ',') AS s FROM person", "the aggregates are COUNT"),
    ("SELECT LIST(job) AS s FROM person", "the aggregates are COUNT"),
    ("SELECT COUNT(*) AS n FROM person TABLESAMPLE 10 PERCENT", "ask the whole table"),
    ("SELECT COUNT(*) AS n FROM person GROUP BY ROLLUP (region)", "group by a declared column"),
    ("SELECT region, COUNT(*) AS n FROM person GROUP BY region LIMIT 1 + 1", "LIMIT 10"),
    ("SELECT region, COUNT(*) AS n FROM person GROUP BY region LIMIT 0", "LIMIT 1 or more"),
    ("SELECT region, COUNT(*) AS n FROM person GROUP BY region FETCH FIRST 0 ROWS ONLY", "LIMIT 1 or more"),
    ("WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) AS n FROM t", "recursive"),
    ("SELECT COUNT(*) AS n FROM read_csv('x.csv')", "tables the policy names"),
    ("SELECT COUNT(*) AS n FROM person; SELECT 1", "one SELECT at a time"),
    ("INSERT INTO person VALUES (1)", "only SELECT is answered"),
    ("SELECT COUNT(*) FROM person WHERE job LIKE note", "LIKE takes a constant pattern"),
    ("SELECT LOWER(job) AS j, COUNT(*) AS n FROM person GROUP BY j", "group by a declared column"),
    (f"SELECT {GROWING} AS g, COUNT(*) AS n FROM person GROUP BY g", "more than 1,000 letters"),
    (f"SELECT {GROWING} || sex AS g, COUNT(*) AS n FROM person GROUP BY g", "more than 1,000 letters"),
    (f"SELECT COUNT(*) AS n FROM person WHERE {GROWING} = 'a'", "more than 1,000 letters"),
    (f"SELECT COUNT(*) AS n FROM person WHERE region || '{'a' * 1_000}' = 'a'", "more than 1,000 letters"),
    ("SELECT COUNT(*) AS n FROM person WHERE REPLACE(job, 'a', 'b') = 'c'", "LEFT, RIGHT, SUBSTRING and LENGTH"),
    ("SELECT COUNT(*) AS n FROM", "does not parse"),
    ("SELECT COUNT(*) AS n FORM person", "a question is SELECT ... FROM"),
    ("SELECT COUNT(*) AS n FROM person WHERE job = 'nurse", "a quote is opened and not closed"),
    ("SELECT SUM(*) AS s FROM person", "write COUNT(*) for the number of rows"),
    ("SELECT COUNT(age, sex) AS n FROM person", "write COUNT(*), COUNT(x) or COUNT(DISTINCT x)"),
    ("SELECT COUNT(*) AS n FROM person WHERE AVG(age) > 3", "stands in HAVING, after GROUP BY"),
    ("SELECT COUNT(*) AS n FROM person WHERE age > ?", "write the value itself"),
    ("SELECT RANK() OVER (ORDER BY age) AS r FROM person", "GROUP BY first, and put them over aggregates"),
    ("SELECT region, COUNT(*) AS n FROM person GROUP BY 3", "the SELECT has 2 columns; write one of their names"),
    ("SELECT region, COUNT(*) AS n FROM person GROUP BY region ORDER BY 0", "2 columns; write one of their names"),
    ("", "write SELECT COUNT(*) FROM a_table"),
]
CLASSES = {
    kind.__name__
    for kind in vars(exp).values()
    if isclass(kind) and issubclass(kind, exp.Expr) and re.search("[a-z][A-Z]", kind.__name__)
}
"""Names of the parser that no person writes: two words in one."""


def message(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        bind(text, POLICIES["row"], CATALOG)
    return str(caught.value)


@pytest.mark.parametrize(("text", "words"), REFUSALS, ids=[text[:60] for text, _ in REFUSALS])
def test_a_refusal_says_what_to_write(text: str, words: str) -> None:
    said = message(text)
    assert words in said, said
    spoken = set(re.findall(r"\w+", said))
    names = {name for name in CLASSES if name in spoken or name.upper() in spoken}
    assert not names - set(re.findall(r"\w+", text.upper())), said
    assert "sqlglot" not in said
    assert "<" not in said or "<" in text or "= or <>" in said, said


def test_there_are_more_than_forty() -> None:
    assert len(REFUSALS) > 40
