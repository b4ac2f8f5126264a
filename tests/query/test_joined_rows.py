"""How many rows of a join one unit can have: by brute force, and what is refused."""

from collections import Counter
from contextlib import closing

import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import QueryError
from confide.policy import load
from confide.query import bind
from tests.engine import joins
from tests.engine.worlds import CHARGE, SECRET
from tests.query.samples import CATALOG

REACHED = {0, 1, 2, 3, 5, 6, 7, 10, 11, 12, 13}
"""Questions whose bound some data reach."""


@pytest.fixture(scope="module")
def engine():
    found = DuckDBEngine(joins.POLICY, joins.data_within(1))
    yield found
    found.close()


def _counts(text, rows):
    """Of each unit alone, how many joined rows and groups it has: none of these joins mixes units."""
    data = joins.tables_of(rows)
    found = joins.plain_counts(text, data)
    return sum(found), len(found)


@pytest.mark.parametrize("place", range(len(joins.QUESTIONS)))
def test_no_unit_within_at_most_has_more_rows_or_groups(place, engine):
    """Over 30 units that have what the policy allows, the most of it in half of them."""
    text = joins.QUESTIONS[place]
    bound = bind(text, joins.POLICY, engine).summary.bound
    found = [_counts(text, joins.drawn(seed, joins.MOST, least=2 * (seed % 2), units=1)) for seed in range(30)]
    assert max(rows for rows, _ in found) <= bound.rows
    if "GROUP BY" in text:
        assert max(groups for _, groups in found) <= bound.groups
    hurt = {
        "customer": [(0, "A")],
        "buy": [(0, code, 1) for code in range(3)],
        "tag": joins.drawn(0, joins.MOST)["tag"],
    }
    full = _counts(text, {**hurt, "line": [(0, "x")] * 4, "claim": [(0, 1)] * 2})[0]
    assert full <= bound.rows
    if place in REACHED:
        assert full == bound.rows


@pytest.mark.parametrize("text", joins.QUESTIONS[1::3])
def test_one_unit_changes_a_join_by_no_more_than_its_sensitivity(text):
    """Brute force, on data that break the policy as well: whoever comes or goes with all rows."""
    for seed, most in ((0, 1), (1, 3)):
        rows = joins.drawn(seed, {name: most * own for name, own in joins.MOST.items()}, units=3)
        found = []
        for gone in (None, 0, 1, 2):
            left = {
                name: [row for row in table if name in ("line", "tag") or row[0] != gone]
                for name, table in rows.items()
            }
            codes = {row[1] for row in left["buy"]}
            left["line"] = [row for row in left["line"] if row[0] in codes]
            with closing(DuckDBEngine(joins.POLICY, joins.tables_of(left))) as engine:
                question = bind(text, joins.POLICY, engine)
                exact = engine.evaluate(question.summary, CHARGE, SECRET)
                found.append([int(count) for count in exact.cells[0]])
        for other in found[1:]:
            assert sum(abs(a - b) for a, b in zip(found[0], other, strict=True)) <= question.measures[0].l1


def test_words_say_what_is_multiplied(engine):
    told = [bind(text, joins.POLICY, engine).counted for text in joins.QUESTIONS]
    assert told[0] == "at most 3 rows of each customer.id count, by at_most: 3 of buy"
    assert told[1] == "at most 9 rows of each customer.id count, by at_most: 3 of buy × 3 of buy"
    assert told[3] == "at most 9 rows of each customer.id count, by at_most: 3 of buy × 3 of tag"
    assert told[7] == "at most 6 rows of each customer.id count, by at_most: (3 of buy + 4 of line - 1)"
    assert (
        bind("SELECT COUNT(*) AS n FROM customer", joins.POLICY, engine).counted == "one row of each customer.id counts"
    )
    inner = bind("SELECT AVG(n) AS m FROM (SELECT who, COUNT(*) AS n FROM buy GROUP BY who)", joins.POLICY, engine)
    assert "cut at what 3 rows give" in inner.counted
    assert Counter(bool(words) for words in told) == {True: len(told)}


def test_a_bound_beyond_all_tables_is_refused():
    tables = {
        "p": {"columns": {"id": {"type": "id"}}},
        "v": {"references": {"id": "p.id"}, "at_most": {"rows": 10**9}, "columns": {"x": {"range": [0, 1]}}},
    }
    policy = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.id", "tables": tables})
    with pytest.raises(QueryError, match="mechanism='truncate', which learns how many it has"):
        bind("SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.id = b.id", policy, CATALOG)
