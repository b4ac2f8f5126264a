"""Other ways to write a question are the same question, bound to the same tree."""

import duckdb
import polars as pl
import pytest

import confide
from confide.errors import QueryError
from confide.query import bind
from confide.query.parse import parse
from confide.query.rewrite import plain_form
from confide.query.rewrite.without_partner import without_partner
from tests.query.samples import CATALOG, POLICIES

VISITS = "SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id"
NONE = "NOT EXISTS (SELECT 1 FROM visit v WHERE p.person_id = v.person_id)"
SAME = [
    # rows without a partner
    ("SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.person_id = v.person_id WHERE v.person_id IS NULL",
     f"SELECT COUNT(*) AS n FROM person p WHERE {NONE}"),
    ("SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v USING (person_id) WHERE v.person_id IS NULL",
     f"SELECT COUNT(*) AS n FROM person p WHERE {NONE}"),
    ("SELECT p.region, COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.person_id = v.person_id AND v.kind = 'acute'"
     " WHERE v.person_id IS NULL AND p.age > 20 GROUP BY p.region",
     "SELECT p.region, COUNT(*) AS n FROM person p WHERE p.age > 20 AND NOT EXISTS (SELECT 1 FROM visit v "
     "WHERE p.person_id = v.person_id AND v.kind = 'acute') GROUP BY p.region"),
    # one row of each unit
    ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT person_id FROM visit WHERE cost > 9) d",
     "SELECT COUNT(*) AS n FROM (SELECT person_id FROM visit WHERE cost > 9 GROUP BY person_id) d"),
    ("SELECT COUNT(*) AS k FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id HAVING COUNT(*) > 1) t",
     f"SELECT COUNT(*) AS k FROM ({VISITS}) t WHERE t.n > 1"),
    ("SELECT COUNT(*) AS k FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id HAVING n > 1) WHERE n < 9",
     f"SELECT COUNT(*) AS k FROM ({VISITS}) t WHERE t.n < 9 AND t.n > 1"),
    ("SELECT COUNT(*) AS k FROM (SELECT person_id FROM visit GROUP BY person_id HAVING SUM(cost) > 5) t",
     "SELECT COUNT(*) AS k FROM (SELECT person_id, SUM(cost) AS s FROM visit GROUP BY person_id) t WHERE t.s > 5"),
    (f"WITH t AS ({VISITS} HAVING COUNT(*) > 1) SELECT n, COUNT(*) AS k FROM t GROUP BY n",
     f"SELECT n, COUNT(*) AS k FROM ({VISITS}) t WHERE t.n > 1 GROUP BY n"),
    (f"SELECT p.region, AVG(t.n) AS a FROM person p JOIN ({VISITS}) t ON t.person_id = p.person_id GROUP BY p.region",
     f"SELECT p.region, AVG(t.n) AS a FROM ({VISITS}) t JOIN person p ON t.person_id = p.person_id GROUP BY p.region"),
    ("SELECT COUNT(*) AS k FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY ALL HAVING COUNT(*) > 1) t",
     f"SELECT COUNT(*) AS k FROM ({VISITS}) t WHERE t.n > 1"),
    ("SELECT sex, AVG(n) AS m FROM (SELECT p.person_id, p.sex, COUNT(v.cost) AS n FROM person p JOIN visit v ON "
     "v.person_id = p.person_id GROUP BY p.person_id, p.sex) t GROUP BY sex",
     "SELECT p.sex, AVG(t.n) AS m FROM (SELECT q.person_id, COUNT(v.cost) AS n FROM person q JOIN visit v ON "
     "v.person_id = q.person_id GROUP BY q.person_id) t JOIN person p ON p.person_id = t.person_id GROUP BY p.sex"),
    ("SELECT AVG(n) AS m FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY 1) t",
     f"SELECT AVG(n) AS m FROM ({VISITS}) t"),
    ("SELECT COUNT(*) AS k FROM person WHERE age > 9 AND person_id IN (SELECT person_id FROM visit GROUP BY person_id "
     "HAVING COUNT(*) > 1)",
     f"SELECT COUNT(*) AS k FROM ({VISITS}) t JOIN person p ON t.person_id = p.person_id WHERE p.age > 9 AND t.n > 1"),
    # joins
    ("SELECT p.sex, COUNT(*) AS n FROM visit v RIGHT JOIN person p ON v.person_id = p.person_id GROUP BY p.sex",
     "SELECT p.sex, COUNT(*) AS n FROM person p LEFT JOIN visit v ON v.person_id = p.person_id GROUP BY p.sex"),
    ("SELECT COUNT(*) AS n FROM person p JOIN (visit v JOIN region_name r ON v.cost > 3) ON v.person_id = p.person_id "
     "AND p.region = r.region",
     "SELECT COUNT(*) AS n FROM person p, visit v, region_name r WHERE v.cost > 3 AND v.person_id = p.person_id "
     "AND p.region = r.region"),
    # conditions
    ("SELECT COUNT(*) AS n FROM person WHERE sex IS DISTINCT FROM 'F'",
     "SELECT COUNT(*) AS n FROM person WHERE NOT (sex IS NOT NULL AND sex = 'F')"),
    ("SELECT COUNT(*) AS n FROM person WHERE sex IS NOT DISTINCT FROM NULL",
     "SELECT COUNT(*) AS n FROM person WHERE sex IS NULL"),
    ("SELECT COUNT(*) AS n FROM person WHERE (age, sex) = (30, 'F')",
     "SELECT COUNT(*) AS n FROM person WHERE (age IS NOT DISTINCT FROM 30 AND sex IS NOT DISTINCT FROM 'F')"),
    ("SELECT COUNT(*) AS n FROM person WHERE (age, sex) IN ((30, 'F'), (31, 'M'))",
     "SELECT COUNT(*) AS n FROM person WHERE ((age IS NOT DISTINCT FROM 30 AND sex IS NOT DISTINCT FROM 'F') "
     "OR (age IS NOT DISTINCT FROM 31 AND sex IS NOT DISTINCT FROM 'M'))"),
    ("SELECT region, COUNT(*) AS n, sex FROM person GROUP BY ALL",
     "SELECT region, COUNT(*) AS n, sex FROM person GROUP BY region, sex"),
    ("SELECT region, MEAN(age) AS m, EVERY(age > 3) AS e, COUNT_DISTINCT(age) AS d, SUM_IF(age, age > 3) AS s, "
     "STATS_MODE(sex) AS o, COUNT_STAR() AS n FROM person GROUP BY ALL",
     "SELECT region, AVG(age) AS m, BOOL_AND(age > 3) AS e, COUNT(DISTINCT age) AS d, SUM(age) FILTER (WHERE age > 3) "
     "AS s, MODE(sex) AS o, COUNT(*) AS n FROM person GROUP BY region"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), SAME, ids=[one[:70] for one, _ in SAME])
def test_it_is_the_same_question(one: str, two: str) -> None:
    policy = POLICIES["key"]
    first, second = (bind(plain_form(parse(own), policy, CATALOG), policy, CATALOG) for own in (one, two))
    assert first == second


def test_rows_are_compared_part_by_part_where_a_null_in_one_leaves_it_unknown() -> None:
    rows = "SELECT COUNT(*) AS n FROM person WHERE (age, sex) IN ((30, 'F'), (31, 'M'))"
    parts = "SELECT COUNT(*) AS n FROM person WHERE ((age = 30 AND sex = 'F') OR (age = 31 AND sex = 'M'))"
    first, second = (bind(parse(own, "postgres"), POLICIES["key"], CATALOG) for own in (rows, parts))
    assert first == second


RULES = {
    "confide": 1,
    "budget": {"epsilon": 10**6},
    "unit": "person.id",
    "tables": {
        "person": {
            "columns": {
                "id": {"type": "id"},
                "age": {"range": [0, 9]},
                "kind": {"values": ["x", "y"], "nulls": True},
            }
        },
        "visit": {
            "references": {"id": "person.id"},
            "at_most": {"rows": 9, "groups": 2},
            "columns": {"cost": {"range": [0, 9]}, "kind": {"values": ["x", "y"], "nulls": True}},
        },
    },
}
COUNTED = "(SELECT id AS u, COUNT(*) AS cost FROM visit GROUP BY id) t"
ASKED = [
    "SELECT COUNT(*) AS n FROM person WHERE (kind, age) NOT IN (('x', 1), ('y', 2))",
    "SELECT COUNT(*) AS n FROM person WHERE NOT ((kind, age) = ('x', 1))",
    "SELECT COUNT(*) AS n FROM person WHERE (kind, 1) = (NULL, 1)",
    f"SELECT COUNT(*) AS n FROM person p NATURAL JOIN visit v JOIN {COUNTED} ON t.u = p.id",
    f"SELECT COUNT(*) AS n FROM person p JOIN visit v USING (id) JOIN {COUNTED} ON t.u = p.id",
    "SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.id = v.id AND p.kind = v.kind WHERE v.kind IS NULL",
    "SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.id = v.id AND cost > 3 WHERE v.id IS NULL",
    "WITH v AS (SELECT id, kind FROM visit) SELECT COUNT(*) AS n FROM person p LEFT JOIN v ON p.id = v.id "
    "AND p.kind = v.kind WHERE v.kind IS NULL",
    "SELECT COUNT(*) AS n FROM (SELECT id, MIN(cost) AS age FROM visit GROUP BY id HAVING age > 2) t "
    "JOIN person p ON p.id = t.id",
    "SELECT k, COUNT(*) AS n FROM (SELECT id, kind AS k, COUNT(*) AS c FROM visit GROUP BY id, kind HAVING kind = 'x')"
    " GROUP BY k",
]


def test_the_numbers_are_those_of_duckdb() -> None:
    kinds = ["x", "y", None]
    ages = [place % 6 for place in range(30)]
    person = pl.DataFrame({"id": range(30), "age": ages, "kind": [kinds[place % 7 % 3] for place in range(30)]})
    ids = [place for place in range(30) for _ in range(place % 5)]
    costs = [None if place % 11 == 0 else place % 5 for place in range(len(ids))]
    visit = pl.DataFrame({"id": ids, "cost": costs, "kind": [kinds[place % 3] for place in range(len(ids))]})
    with confide.testing.open(RULES, {"person": person, "visit": visit}, seed=1) as session:
        for sql in ASKED:
            found = session.sql(sql, epsilon=10**4).to_dicts()
            shown = [{name: row[name] for name in ("k", "n") if name in row} for row in found]
            rows = duckdb.sql(sql)
            exact = [dict(zip(rows.columns, own, strict=True)) for own in rows.fetchall()]
            assert [row for row in shown if row["n"]] == exact, sql


KEPT = [
    "SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.person_id = v.person_id WHERE v.ward IS NULL",
    "SELECT COUNT(*) AS n FROM person p LEFT SEMI JOIN visit v ON p.person_id = v.person_id WHERE v.person_id IS NULL",
    "SELECT COUNT(v.cost) AS n FROM person p LEFT JOIN visit v ON p.person_id = v.person_id WHERE v.person_id IS NULL",
]


def test_more_tables_than_are_joined_are_left_as_they_are() -> None:
    """Each join is looked for in the whole text: hundreds of them would take seconds before they are refused."""
    joins = " ".join(f"LEFT JOIN visit v{place} ON p.person_id = v{place}.person_id" for place in range(20))
    select = parse(f"SELECT COUNT(*) AS n FROM person p {joins} WHERE v7.person_id IS NULL")
    assert without_partner(select) is select
    with pytest.raises(QueryError, match="names more than 16 tables"):
        bind(select.sql(), POLICIES["key"], CATALOG)


@pytest.mark.parametrize("text", KEPT)
def test_a_partner_that_may_be_there_stays_joined(text: str) -> None:
    assert "EXISTS" not in plain_form(parse(text), POLICIES["key"], CATALOG).sql()


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT person_id FROM visit GROUP BY person_id HAVING region = 'north'",
        "SELECT person_id FROM visit GROUP BY person_id HAVING COUNT(*) > 1 AND age > 40",
    ],
)
def test_having_names_what_the_inner_query_groups_by_and_not_tables_around_it(inner: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM ({inner}) t JOIN person p ON p.person_id = t.person_id"
    with pytest.raises(QueryError, match="the inner query does not group by it"):
        bind(sql, POLICIES["key"], CATALOG)


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(QueryError, match=r"write \(a, b\) = \(1, 2\)"):
        parse("SELECT COUNT(*) AS n FROM person WHERE (age, sex) = (30, 'F', 1)")


def nested(start: str, wrapped: str, levels: int) -> str:
    text = start
    for _ in range(levels):
        text = wrapped.format(text)
    return text


@pytest.mark.parametrize(
    ("condition", "dialect"),
    [
        (nested("sex", "({} IS DISTINCT FROM region)", 8), "duckdb"),  # seconds, were it written
        (nested("sex", "({} IS DISTINCT FROM region)", 12), "duckdb"),
        (nested("age", "DECODE({}, 1, 2, 3, 4, 5, 6, 7)", 10) + " > 3", "oracle"),
        (f"({'+'.join(['age'] * 90)}, sex) IN ({','.join(['(1, 2)'] * 900)})", "duckdb"),
        (f"DECODE({'+'.join(['age'] * 90)}, {','.join(['1, 1'] * 900)}) > 3", "oracle"),
    ],
)
def test_what_is_repeated_within_itself_is_refused_before_it_is_written(condition: str, dialect: str) -> None:
    with pytest.raises(QueryError, match="too large when IS DISTINCT FROM"):
        parse(f"SELECT COUNT(*) AS n FROM person WHERE {condition}", dialect)
