"""Views: a join declared once, its stability, and questions about it."""

import pytest

import confide
from confide.errors import ParameterError, QueryError
from tests.release.test_joins import KEY, ROW, exact, key_data, row_data

BUYS = "SELECT p.g AS kind, o.x, o.item AS what FROM p JOIN o ON p.id = o.pid WHERE o.x > 1"


@pytest.fixture
def keys():
    with confide.testing.open(KEY, key_data(), seed=1) as session:
        yield session


def test_a_view_is_asked_like_a_table(keys):
    view = keys.view("buys", BUYS, at_most={"rows": 40, "groups": 2})
    assert view.stability == 40
    assert view.columns == ("kind", "x", "what")
    assert "at most 40 rows" in str(view)
    answer = keys.sql(
        "SELECT kind, COUNT(*) AS n, SUM(x) AS s FROM buys AS b WHERE b.x < 9 GROUP BY kind", epsilon=9_000
    )
    truth = {
        kind: (n, s)
        for kind, n, s in exact(
            key_data(),
            "SELECT p.g, COUNT(*), SUM(o.x) FROM p JOIN o ON p.id = o.pid WHERE o.x > 1 AND o.x < 9 GROUP BY p.g",
        )
    }
    for row in answer.to_dicts():
        assert abs(row["n"] - truth[row["kind"]][0]) <= 3
        assert abs(row["s"] - float(truth[row["kind"]][1])) <= 30


def test_its_bound_is_enforced_and_priced(keys):
    keys.view("few", BUYS, at_most={"rows": 2})
    keys.view("many", BUYS, at_most={"rows": 30})
    few, many = (keys.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=9_000).to_dicts()[0] for name in ("few", "many"))
    assert few["n"] <= 2 * 800 < many["n"]
    plans = [keys.plan(f"SELECT COUNT(*) AS n FROM {name}", epsilon=1).half_width["n"] for name in ("few", "many")]
    assert plans[1] > 10 * plans[0]


def test_a_query_of_with_is_not_taken_for_a_view(keys):
    keys.view("buys", BUYS, at_most={"rows": 40})
    with pytest.raises(QueryError, match="give the query of WITH another name"):
        keys.sql("WITH buys AS (SELECT * FROM o WHERE x > 3) SELECT COUNT(*) AS n FROM buys", epsilon=1)
    assert keys.budget.spent == 0


def test_a_view_costs_nothing_and_may_be_declared_again(keys):
    keys.view("buys", BUYS)
    assert keys.view("buys", BUYS).stability == 9
    assert keys.budget.spent == 0
    with pytest.raises(ParameterError, match="declared already"):
        keys.view("buys", "SELECT x FROM o")


def test_a_view_of_rows_is_answered_by_residuals():
    with confide.testing.open(ROW, row_data(), seed=1) as session:
        view = session.view("pairs", "SELECT r.x, t.y, r.g FROM r JOIN t ON r.b = t.b")
        assert view.stability is None
        answer = session.sql("SELECT g, COUNT(*) AS n FROM pairs WHERE x > 2 GROUP BY g", epsilon=3_000)
        assert answer.mechanism == {"n": "residual"}
        truth = dict(exact(row_data(), "SELECT g, COUNT(*) FROM r JOIN t ON r.b = t.b WHERE x > 2 GROUP BY g"))
        assert all(abs(row["n"] - truth[row["g"]]) <= 5 for row in answer.to_dicts())
        assert session.view("one", "SELECT x FROM r").stability == 1


@pytest.mark.parametrize(
    ("name", "sql", "words"),
    [
        ("p", BUYS, "is a table of the policy"),
        ("a b", BUYS, "no name for a view"),
        ("v", "SELECT COUNT(*) FROM p", "names columns of its tables"),
        ("v", "SELECT * FROM p", "names columns of its tables"),
        ("v", "SELECT x + 1 AS y FROM o", "compute in the questions"),
        ("v", "SELECT x FROM o ORDER BY x", "is for the questions"),
        ("v", "SELECT x, z AS x FROM o", "one name"),
        ("v", "SELECT x FROM nothing", "there is no table"),
        ("v", "SELECT p.g FROM p, o", "cross join"),
        ("v", "SELECT x FROM o; DROP TABLE o", "more than one statement"),
    ],
)
def test_views_that_are_refused(keys, name, sql, words):
    with pytest.raises(QueryError, match=words):
        keys.view(name, sql)
    assert not keys._questions.views


@pytest.mark.parametrize("at_most", [{"rows": 0}, {"row": 3}, {"rows": 2, "groups": 3}, {"rows": True}, {}])
def test_bounds_that_are_none(keys, at_most):
    with pytest.raises(ParameterError, match="at_most"):
        keys.view("v", BUYS, at_most=at_most)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM buys JOIN p ON buys.what = p.id", "asked by itself"),
        ("SELECT SUM(z) FROM buys", "there is no column z"),
        ("SELECT SUM(o.x) FROM buys", "the view is called buys"),
        ("SELECT what, COUNT(*) FROM buys GROUP BY what", "is an id"),
    ],
)
def test_questions_about_a_view_that_are_refused(keys, sql, words):
    keys.view("buys", BUYS)
    with pytest.raises(QueryError, match=words):
        keys.sql(sql, epsilon=1)
    assert keys.budget.spent == 0


def test_at_most_has_no_meaning_for_rows():
    with confide.testing.open(ROW, row_data(), seed=1) as session, pytest.raises(QueryError, match="leave it out"):
        session.view("v", "SELECT x FROM r", at_most={"rows": 3})


def test_sampling_keeps_the_declared_rows_of_each_unit(keys):
    sql = "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid"
    assert keys.sql(sql, epsilon=3, mechanism="sample") == keys.sql(sql, epsilon=3)
    with (
        confide.testing.open(ROW, row_data(), seed=1) as session,
        pytest.raises(QueryError, match="sample keeps some rows"),
    ):
        session.sql("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b", epsilon=1, mechanism="sample")


SWAPPED = "SELECT o.x AS z, p.g AS x FROM p JOIN o ON p.id = o.pid"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS item FROM swapped WHERE item = item",
        "SELECT COUNT(*) AS oid FROM swapped WHERE oid IS NULL",
        "SELECT SUM(z) AS q, COUNT(*) FILTER (WHERE g = 'u') AS g FROM swapped",
        "SELECT COUNT(*) AS g FROM swapped GROUP BY g",
        "SELECT x, COUNT(*) AS n FROM swapped GROUP BY x HAVING z = 'u'",
        "SELECT x, COUNT(*) AS n FROM swapped GROUP BY x ORDER BY z",
    ],
)
def test_an_alias_is_no_way_to_columns_that_a_view_does_not_name(keys, sql):
    keys.view("swapped", SWAPPED)
    with pytest.raises(QueryError):
        keys.plan(sql, epsilon=1)


def test_names_of_a_result_stay_its_own(keys):
    """An alias may be called as a column of the view, or of its tables: it is the column of the result."""
    keys.view("swapped", SWAPPED)
    for sql in (
        "SELECT x, COUNT(*) AS z FROM swapped GROUP BY x HAVING z > 0 AND SUM(z) > 0 ORDER BY z DESC",
        "SELECT x AS item, COUNT(*) AS n FROM swapped GROUP BY item ORDER BY n DESC",
        "SELECT x AS g, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY z) AS z, COUNT(*) AS n FROM swapped GROUP BY g "
        "ORDER BY n DESC",
    ):
        rows = keys.sql(sql, epsilon=5_000).to_dicts()
        counts = [row.get("n", row.get("z")) for row in rows]
        assert len(rows) == 2
        assert counts[0] >= counts[1] > 0
