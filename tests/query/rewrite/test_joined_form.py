"""Questions that are written in other ways are the same questions."""

import time

import duckdb
import numpy as np
import pandas as pd
import pytest

from confide.errors import QueryError
from confide.query import bind
from confide.query.conjunction import bind_conjunction
from confide.query.identity import question_name
from confide.query.parse import parse
from confide.query.rewrite import plain_form
from tests.query.samples import CATALOG, POLICIES

SAME = [
    # commas, and conditions in any place
    (
        "row",
        "SELECT name, COUNT(*) AS n FROM person, region_name WHERE person.region = region_name.region GROUP BY name",
        "SELECT name, COUNT(*) AS n FROM person JOIN region_name ON person.region = region_name.region GROUP BY name",
    ),
    (
        "row",
        "SELECT COUNT(*) AS n FROM region_name r, person p WHERE (age > 30 AND p.region = r.region) AND r.people > 5",
        "SELECT COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region WHERE age > 30 AND r.people > 5",
    ),
    (
        "row",
        "SELECT COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region AND r.people > 5 AND age > 30",
        "SELECT COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region WHERE r.people > 5 AND age > 30",
    ),
    (
        "row",
        "SELECT COUNT(*) AS n FROM person p CROSS JOIN region_name r WHERE p.region = r.region",
        "SELECT COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region",
    ),
    (
        "row",
        "SELECT name, COUNT(*) AS n FROM person NATURAL JOIN region_name GROUP BY name",
        "SELECT name, COUNT(*) AS n FROM person JOIN region_name USING (region) GROUP BY name",
    ),
    (
        "row",
        """SELECT COUNT(*) AS n FROM person p, region_name r
           WHERE (p.region = r.region AND age > 30) OR (p.region = r.region AND r.people > 5)""",
        """SELECT COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region
           WHERE (p.region = r.region AND age > 30) OR (p.region = r.region AND r.people > 5)""",
    ),
    (
        "key",
        "SELECT region, COUNT(*) AS n FROM item i, visit v, person p WHERE p.person_id = v.person_id AND v.visit_id = i.visit_id GROUP BY 1",
        "SELECT region, COUNT(*) AS n FROM item i JOIN visit v ON v.visit_id = i.visit_id JOIN person p ON p.person_id = v.person_id GROUP BY 1",
    ),
    # tables come when something connects them with those before
    (
        "key",
        "SELECT COUNT(*) AS n FROM item i, person p, visit v WHERE p.person_id = v.person_id AND v.visit_id = i.visit_id",
        "SELECT COUNT(*) AS n FROM item i JOIN visit v ON v.visit_id = i.visit_id JOIN person p ON p.person_id = v.person_id",
    ),
    # inner queries that filter, project or rename
    (
        "row",
        "SELECT region, COUNT(*) AS n FROM (SELECT region, age AS years FROM person WHERE kids > 1) t WHERE years > 30 GROUP BY region",
        "SELECT region, COUNT(*) AS n FROM person WHERE kids > 1 AND age > 30 GROUP BY region",
    ),
    (
        "row",
        "WITH grown AS (SELECT * FROM person WHERE age >= 18) SELECT region, AVG(age) AS m FROM grown GROUP BY region ORDER BY m",
        "SELECT region, AVG(age) AS m FROM person WHERE age >= 18 GROUP BY region ORDER BY m",
    ),
    (
        "row",
        """WITH grown AS (SELECT region, age, kids FROM person WHERE age >= 18),
                parents(place, years) AS (SELECT region, age FROM grown WHERE kids > 0)
           SELECT place, COUNT(*) AS n FROM parents AS p WHERE years < 60 GROUP BY place HAVING n > 5 ORDER BY n DESC LIMIT 3""",
        """SELECT region AS place, COUNT(*) AS n FROM person WHERE age >= 18 AND kids > 0 AND age < 60
           GROUP BY region HAVING n > 5 ORDER BY n DESC LIMIT 3""",
    ),
    (
        "row",
        "SELECT SUM(double) AS s FROM (SELECT age * 2 AS double FROM person) AS t",
        "SELECT SUM(age * 2) AS s FROM person",
    ),
    (
        "row",
        "SELECT name, COUNT(*) AS n FROM (SELECT * FROM person WHERE age > 30) p JOIN (SELECT region, name FROM region_name WHERE people > 5) r USING (region) GROUP BY name",
        "SELECT name, COUNT(*) AS n FROM person p JOIN region_name r USING (region) WHERE age > 30 AND people > 5 GROUP BY name",
    ),
    (
        "row",
        "SELECT name, COUNT(*) AS n FROM person p LEFT JOIN (SELECT region AS place, name FROM region_name) r ON r.place = p.region GROUP BY name",
        "SELECT name, COUNT(*) AS n FROM person p LEFT JOIN region_name r ON p.region = r.region GROUP BY name",
    ),
    (
        "key",
        """WITH spent AS (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id),
                much AS (SELECT total FROM spent WHERE total > 100)
           SELECT COUNT(*) AS n FROM much""",
        "SELECT COUNT(*) AS n FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) WHERE total > 100",
    ),
    (
        "key",
        "SELECT AVG(b) AS m FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) AS t(a, b)",
        "SELECT AVG(b) AS m FROM (SELECT person_id AS a, SUM(cost) AS b FROM visit GROUP BY person_id) AS t",
    ),
    # one name inside and outside
    (
        "row",
        "SELECT p.region, COUNT(*) AS n FROM (SELECT p.region, p.age FROM person p) p, region_name r WHERE p.region = r.region GROUP BY p.region",
        "SELECT p.region, COUNT(*) AS n FROM person p JOIN region_name r ON p.region = r.region GROUP BY p.region",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "written", "plain"), SAME)
def test_it_is_the_same_question(policy: str, written: str, plain: str) -> None:
    names = [question_name(bind(sql, POLICIES[policy], CATALOG)) for sql in (written, plain)]
    assert names[0] == names[1]


MORE = [
    "SELECT SUM(a) AS n FROM (SELECT age, kids FROM person) AS q(b, a)",
    "WITH u(a, b) AS (SELECT age, kids FROM person) SELECT SUM(a) AS n FROM u AS q(b, a)",
    "WITH u(a, b) AS (SELECT age, kids FROM person) SELECT SUM(b) AS n FROM u AS q(x)",
    "SELECT FLOOR(a / 10) AS age, COUNT(*) AS n FROM (SELECT age AS a FROM person) s GROUP BY age",
    "SELECT a AS kids, COUNT(*) AS n FROM (SELECT age < 50 AS a, region FROM person) s GROUP BY kids",
    "SELECT COUNT(*) AS n FROM person p CROSS JOIN tag t LEFT JOIN region_name r ON r.region = p.region WHERE p.kids = t.kids AND r.region = t.region",
    """SELECT t.label, COUNT(*) AS n FROM person p LEFT JOIN region_name r ON p.region = r.region, tag t
       WHERE t.region = p.region GROUP BY t.label""",
    "SELECT COUNT(*) AS n FROM person p LEFT JOIN region_name r USING (region), tag t WHERE t.region = r.region AND age > 9",
    "SELECT COUNT(*) AS n FROM (SELECT age + kids AS s FROM person) WHERE s > 40 AND s < 90",
    "SELECT COUNT(*) AS n FROM (SELECT p.age, r.name FROM person p LEFT JOIN region_name r ON p.region = r.region) WHERE name = 'north'",
    "SELECT COUNT(*) AS n FROM tag a, tag b, person WHERE person.kids = a.kids AND a.kids = b.kids",
    "SELECT COUNT(*) AS n FROM person p JOIN (SELECT t.* FROM tag t JOIN region_name USING (region)) x ON x.kids = p.kids",
]  # fmt: skip


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """Small tables with missing values, so that joins and conditions meet NULLs."""
    random, connection = np.random.default_rng(3), duckdb.connect()

    def some(values: list[object], rows: int) -> list[object]:
        return [values[place] if place < len(values) else None for place in random.integers(0, len(values) + 1, rows)]

    tables = {
        "person": {
            "region": some(["N", "E", "S", "W"], 200), "kids": some([0, 1, 2, 3], 200),
            "age": some(list(range(60)), 200), "job": some(["a", "b"], 200),
        },
        "region_name": {
            "region": some(["N", "E", "S"], 6), "name": some(["north", "east"], 6), "people": some(list(range(10)), 6),
        },
        "tag": {"region": some(["N", "E"], 20), "label": some(["l1", "l2"], 20), "kids": some([0, 1, 9], 20)},
        "item": {"visit_id": some(list(range(30)), 60)},
        "visit": {
            "visit_id": some(list(range(30)), 40), "person_id": some(list(range(20)), 40),
            "cost": some(list(range(99)), 40),
        },
    }  # fmt: skip
    frames = {name: pd.DataFrame(columns, dtype=object) for name, columns in tables.items()}
    frames["person"]["person_id"] = range(200)
    for name, frame in frames.items():
        connection.register(f"{name}_frame", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_frame")
    return connection


@pytest.mark.parametrize(
    ("policy", "sql"), [(policy, sql) for policy, written, _ in SAME for sql in (written,)] + [("row", m) for m in MORE]
)
def test_a_database_sees_no_difference(policy: str, sql: str, database: duckdb.DuckDBPyConnection) -> None:
    plain = plain_form(parse(sql), POLICIES[policy], CATALOG).sql(dialect="duckdb")
    assert plain != sql
    written, rewritten = (sorted(map(str, database.execute(text).fetchall())) for text in (sql, plain))
    assert written == rewritten
    assert written != ["(0,)"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM (SELECT age FROM person) t WHERE kids > 1", "there is no column kids"),
        ("SELECT COUNT(*) FROM (SELECT age FROM person) t WHERE u.age > 1", "there is no table u here"),
        ("SELECT COUNT(*) FROM person p, region_name r WHERE region = 'N' AND p.region = r.region", "could be p.region or r.region"),
        ("SELECT COUNT(*) FROM person p, region_name p", "two tables are called p"),
        ("SELECT COUNT(*) FROM person p, region_name r WHERE p.region = r.region OR p.age = 3", "a cross join is not answered"),
        ("SELECT COUNT(*) FROM person p LEFT JOIN (SELECT region FROM region_name WHERE people > 5) r ON p.region = r.region", "is not a table of the policy"),
        ("SELECT SUM(q) FROM person p LEFT JOIN (SELECT region, COALESCE(people, 1) AS q FROM region_name) r ON p.region = r.region", "is not a table of the policy"),
        ("SELECT COUNT(*) FROM person p LEFT JOIN region_name r ON p.region = r.region AND r.people > 5", "joins are on equal columns"),
        ("WITH a AS (SELECT age FROM person) SELECT COUNT(*) FROM person", "WITH a is not used"),
        ("SELECT COUNT(*) FROM (SELECT age, age FROM person)", "have one name"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT age FROM person)", "unit: row|DISTINCT"),
        ("SELECT COUNT(*) FROM (SELECT product(age) AS c FROM person)", "unit: row"),
        ("SELECT COUNT(*) FROM (SELECT UNNEST(GENERATE_SERIES(1, 3)) AS g, age FROM person)", "unit: row"),
        ("SELECT COUNT(*) FROM (SELECT my_agg(age) AS c FROM person)", "unit: row"),
        ("SELECT COUNT(*) FROM (SELECT zz + 1, age FROM person)", "there is no column zz"),
        ("SELECT COUNT(*) FROM (SELECT age FROM person ORDER BY zzz)", "there is no column zzz"),
        ("SELECT 1 AS age, COUNT(*) AS n FROM (SELECT kids FROM person) s GROUP BY age", "constant"),
        ("SELECT COUNT(*) FROM (SELECT age FROM person) s WHERE s.s.age > 1", "write table.column"),
        ("WITH c0 AS (SELECT * FROM person), " + ", ".join(f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, 500)) + " SELECT COUNT(*) FROM c499", "nested too deep"),
        ("SELECT COUNT(*) FROM person WHERE born > DATE '2024-01-31' + INTERVAL '²' DAY", "INTERVAL"),
        ("SELECT SUBSTRING(region) AS k, COUNT(*) AS n FROM person GROUP BY k", "lacks a part"),
        ("SELECT COUNT(*) FROM person NATURAL JOIN missing", "there is no table missing"),
    ],
)  # fmt: skip
def test_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        bind(sql, POLICIES["row"], CATALOG)


def test_commas_between_private_tables_are_a_join_that_is_bounded_privately() -> None:
    policy = POLICIES["row"]
    written = "SELECT COUNT(*) AS n FROM person a, other b WHERE a.job = b.job AND a.age > 3"
    plain = "SELECT COUNT(*) AS n FROM person a JOIN other b ON a.job = b.job WHERE a.age > 3"
    assert bind_conjunction(written, policy, CATALOG) == bind_conjunction(plain, policy, CATALOG)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH " + ", ".join(f"a{i} AS (SELECT x.age FROM {'person' if i == 0 else f'a{i - 1}'} x, "
                            f"{'person' if i == 0 else f'a{i - 1}'} y WHERE x.age = y.age)" for i in range(40))
        + " SELECT COUNT(*) FROM a39",
        "WITH " + ", ".join(f"a{i} AS (SELECT age + age AS age FROM {'person' if i == 0 else f'a{i - 1}'})"
                            for i in range(40)) + " SELECT SUM(age) FROM a39",
    ],
)  # fmt: skip
def test_what_doubles_with_every_inner_query_is_refused_at_once(sql: str) -> None:
    start = time.perf_counter()
    with pytest.raises(QueryError, match=r"more than 16 tables|too large|too deep|in a row"):
        bind(sql, POLICIES["row"], CATALOG)
    assert time.perf_counter() - start < 5
