"""An inner query with a row for each unit and key says what plain aggregates of the table say."""

import duckdb
import polars as pl
import pytest

import confide
from confide.errors import QueryError
from confide.query import bind
from confide.query.identity import question_name
from tests.query.samples import CATALOG, POLICIES

INNER = "(SELECT person_id, kind, COUNT(*) AS c, SUM(cost) AS s FROM visit WHERE cost > 1 GROUP BY person_id, kind)"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"SELECT kind, COUNT(*) AS n FROM {INNER} GROUP BY kind", "COUNT(DISTINCT person_id) AS n"),
        (f"SELECT kind, COUNT(person_id) AS n FROM {INNER} GROUP BY kind", "COUNT(DISTINCT person_id) AS n"),
        (f"SELECT kind, SUM(c) AS n FROM {INNER} AS t GROUP BY t.kind", "COUNT(*) AS n"),
        (f"SELECT kind, AVG(t.c) AS n FROM {INNER} AS t GROUP BY kind", "COUNT(*) / COUNT(DISTINCT person_id) AS n"),
        (f"WITH t AS {INNER} SELECT kind, SUM(s) AS n FROM t GROUP BY kind", "SUM(cost) AS n"),
        (
            f"SELECT kind, AVG(s) AS n FROM {INNER} GROUP BY kind",
            "SUM(cost) / COUNT(DISTINCT person_id) FILTER (WHERE cost IS NOT NULL) AS n",
        ),
    ],
)
def test_the_same_question(written: str, meant: str) -> None:
    plain = f"SELECT kind, {meant} FROM visit WHERE cost > 1 GROUP BY kind"
    one, two = (bind(sql, POLICIES["key"], CATALOG) for sql in (written, plain))
    assert question_name(one) == question_name(two)


def test_conditions_on_keys_go_inside_and_orders_stay() -> None:
    sql = f"SELECT kind, AVG(c) AS m FROM {INNER} WHERE kind = 'acute' GROUP BY kind HAVING SUM(c) > 3 ORDER BY AVG(c)"
    plain = """SELECT kind, COUNT(*) / COUNT(DISTINCT person_id) AS m FROM visit WHERE cost > 1 AND kind = 'acute'
               GROUP BY kind HAVING COUNT(*) > 3 ORDER BY COUNT(*) / COUNT(DISTINCT person_id)"""
    one, two = (bind(text, POLICIES["key"], CATALOG) for text in (sql, plain))
    assert question_name(one) == question_name(two)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT kind, MAX(c) AS m FROM {INNER} GROUP BY kind",
        f"SELECT kind, AVG(c + 1) AS m FROM {INNER} GROUP BY kind",
        f"SELECT kind, COUNT(*) AS m FROM {INNER} WHERE c > 2 GROUP BY kind",
        f"SELECT kind, COUNT(*) FILTER (WHERE c > 2) AS m FROM {INNER} GROUP BY kind",
        f"SELECT AVG(c) AS m FROM {INNER}",
        "SELECT kind, AVG(c) AS m FROM (SELECT person_id, kind, day, COUNT(*) AS c FROM visit "
        "GROUP BY person_id, kind, day) GROUP BY kind",
        "SELECT kind, AVG(c) AS m FROM (SELECT person_id, kind, MAX(cost) AS c FROM visit GROUP BY person_id, kind) "
        "GROUP BY kind",
    ],
)
def test_everything_else_is_refused_with_words(sql: str) -> None:
    with pytest.raises(QueryError, match="make one row of each unit"):
        bind(sql, POLICIES["key"], CATALOG)


def test_a_long_inner_column_that_is_used_often_is_refused_quickly() -> None:
    long = " + ".join(f"({' + '.join(['cost'] * 60)})" for _ in range(12))
    uses = ", ".join(f"AVG(c) AS a{place}" for place in range(150))
    sql = f"SELECT kind, {uses} FROM (SELECT person_id, kind, SUM({long}) AS c FROM visit GROUP BY person_id, kind) GROUP BY kind"
    with pytest.raises(QueryError, match="things"):
        bind(sql, POLICIES["key"], CATALOG)


def test_the_numbers_are_those_of_a_database() -> None:
    rules = {
        "confide": 1,
        "budget": {"epsilon": 10**6},
        "unit": "person.id",
        "tables": {
            "person": {"columns": {"id": {"type": "id"}}},
            "visit": {
                "references": {"id": "person.id"},
                "at_most": {"rows": 9, "groups": 2},
                "columns": {"cost": {"range": [0, 9]}, "ward": {"values": ["a", "b"]}},
            },
        },
    }
    visit = pl.DataFrame(
        {
            "id": [place % 7 for place in range(60)],
            "cost": [None if place % 7 == 3 else place % 10 for place in range(60)],
            "ward": ["a" if place % 3 else "b" for place in range(60)],
        }
    )
    sql = """SELECT ward, COUNT(*) AS n, AVG(c) AS m, AVG(s) AS t FROM
             (SELECT id, ward, COUNT(*) AS c, SUM(cost) AS s FROM visit GROUP BY id, ward) GROUP BY ward ORDER BY ward"""
    with confide.testing.open(rules, {"person": pl.DataFrame({"id": range(7)}), "visit": visit}, seed=1) as session:
        found = session.sql(sql, epsilon=10**5).to_dicts()
    for row, exact in zip(found, duckdb.sql(sql).fetchall(), strict=True):
        assert [row["ward"], row["n"]] == list(exact[:2])
        assert [row["m"], row["t"]] == pytest.approx([float(value) for value in exact[2:]], rel=1e-3)
