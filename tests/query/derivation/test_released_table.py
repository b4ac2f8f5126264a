"""Texts over released rows are bound or refused in short time, however they are written, and say what is too much."""

from contextlib import suppress
from time import process_time

import pytest

from confide.errors import QueryError
from confide.privacy.limits import LONGEST_QUERY
from confide.query.bind import bind
from confide.query.derivation.derivation import Derivation
from confide.query.derivation.released_table import bind_derivation
from confide.query.derivation.shape import Shapes
from confide.query.parse import Select, parse_query
from confide.query.rewrite import plain_form
from tests.query.samples import CATALOG, POLICIES

N = "(SELECT region, COUNT(*) AS n FROM person GROUP BY region)"
KEY = POLICIES["key"]
L = range(1, 14)


def derived(sql: str) -> Derivation:
    def ask(select: Select) -> object:
        return bind(plain_form(select, KEY, CATALOG), KEY, CATALOG)

    return bind_derivation(parse_query(sql), KEY, CATALOG, ask)  # type: ignore[arg-type]


def filled(head: str, piece: str, tail: str, between: str) -> str:
    many = (LONGEST_QUERY - len(head) - len(tail)) // (len(piece) + len(between))
    return head + between.join([piece] * many) + tail


LONG = {
    "columns": filled("SELECT ", "SQRT(COUNT(*))", " FROM person", ","),
    "conditions": filled(f"SELECT n FROM {N} WHERE ", "n>1", "", " AND "),
    "a list": filled(f"SELECT n FROM {N} WHERE n IN (", "1", ")", ","),
    "cases": filled("SELECT CASE ", "WHEN n>1 THEN 2", f" END AS x FROM {N}", " "),
    "unions": filled("", "SELECT COUNT(*) FROM person", "", " UNION ALL "),
    "windows": filled("SELECT region,", "SUM(COUNT(*)) OVER (ORDER BY region)", " FROM person GROUP BY region", ","),
    "orders": filled("SELECT region, COUNT(*) AS n FROM person GROUP BY region ORDER BY ", "SQRT(n)", "", ","),
    "keys": filled(f"SELECT COUNT(*) AS k FROM {N} GROUP BY ", "n", "", ","),
    "names": "SELECT COUNT(*) AS a0, " + ", ".join(f"a{i}+a{i} AS a{i + 1}" for i in range(150)) + " FROM person",
    "levels": f"WITH a0 AS {N}, "
    + ", ".join(f"a{i} AS (SELECT x.region, x.n+y.n AS n FROM a{i - 1} x JOIN a{i - 1} y USING (region))" for i in L)
    + " SELECT SUM(n) AS s FROM a13",
    "tables": "SELECT a0.n FROM " + ", ".join(f"{N} a{i}" for i in range(15)),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_texts_are_bound_or_refused_in_short_time(name: str) -> None:
    begin = process_time()
    with suppress(QueryError):
        derived(LONG[name])
    assert process_time() - begin < 3  # less than one, on a machine that has nothing else to do


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(*) AS n FROM person", False),
        ("SELECT region, ROUND(AVG(income), 2) AS m FROM person GROUP BY region HAVING m > 3 ORDER BY -m", False),
        ("SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM person GROUP BY d ORDER BY d", False),
        ("SELECT AVG(k) AS m FROM (SELECT person_id, COUNT(*) AS k FROM visit GROUP BY person_id)", False),
        ("SELECT AVG(k) AS m FROM (SELECT p, COUNT(*) AS k FROM (SELECT person_id AS p FROM visit) GROUP BY p)", False),
        ("WITH a AS (SELECT * FROM person) SELECT COUNT(*) AS n FROM a", False),
        ("WITH a AS (SELECT region, COUNT(*) AS n FROM person GROUP BY region) SELECT n FROM a", True),
        ("SELECT SQRT(COUNT(*)) AS n FROM person", True),
        ("SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING region > 'E'", True),
        ("SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS r FROM person GROUP BY region", True),
        ("SELECT COUNT(*) AS n, n + 1 AS m FROM person", True),
    ],
)
def test_what_a_question_says_by_itself_stays_one(sql: str, wanted: bool) -> None:
    query = parse_query(sql)
    assert Shapes(KEY).derived(query) == wanted


def test_equal_inner_questions_are_asked_once() -> None:
    found = derived(f"SELECT a.n - b.n AS d FROM {N} a JOIN {N} b USING (region)")
    assert len(found.questions) == 1


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT COUNT(*) AS k FROM (SELECT DISTINCT n FROM {N})", "stands outermost"),
        (" UNION ALL ".join(f"SELECT COUNT(*) FROM person WHERE age > {i}" for i in range(60)), "inner questions"),
        ("SELECT a.n FROM (SELECT job, COUNT(*) AS n FROM person GROUP BY job) a, "
         "(SELECT note, COUNT(*) AS n FROM person GROUP BY note) b", "is private here"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        derived(sql)
