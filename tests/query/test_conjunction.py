"""Joins as questions: occurrences, owners, variables, and the sets that are left when some are taken away."""

from itertools import product

import pytest

from confide.errors import QueryError
from confide.policy import load
from confide.query.conjunction import bind_conjunction, filters_of, private_tables
from confide.query.hypergraph import hypergraph_of
from confide.query.identity import question_name
from confide.query.parse import parse
from tests.query.samples import CATALOG, POLICIES


def bound(policy, sql):
    return bind_conjunction(sql, POLICIES[policy], CATALOG)


def test_copies_of_a_table_go_together():
    question = bound(
        "row", "SELECT COUNT(*) AS n FROM person a JOIN other o USING (job) JOIN person b ON b.job = o.job"
    )
    assert question.copies == ((0, 2), (1,))
    assert question.private == (0, 1, 2)
    assert question.owners == ()


def test_public_tables_are_no_occurrences_that_change():
    question = bound(
        "row", "SELECT COUNT(*) AS n FROM region_name r JOIN person p USING (region) JOIN other o USING (job)"
    )
    assert question.private == (1, 2)


def test_owners_follow_references():
    question = bound("key", "SELECT COUNT(*) AS n FROM item a JOIN item b ON a.kind = b.kind")
    assert len(question.owners) == 2
    # The visits that say whose items these are have been joined to them.
    assert [scan.table for scan in question.occurrences] == ["item", "item", "visit", "visit"]
    named = bound("key", "SELECT COUNT(*) AS n FROM item a JOIN visit v ON a.visit_id = v.visit_id")
    assert len(set(named.owners)) == 1
    assert [scan.table for scan in named.occurrences] == ["item", "visit"]


@pytest.mark.parametrize(("policy", "neighbours"), [("key", "add-remove"), ("counted-key", "replace-one")])
@pytest.mark.parametrize(
    "tables",
    [
        "visit a JOIN visit b ON a.ward = b.ward",
        "item a JOIN item b ON a.kind = b.kind",
        "visit a JOIN visit b ON a.ward = b.ward JOIN person p ON p.person_id = a.person_id",
        "claim",
    ],
)
def test_units_are_replaced_where_their_number_is_public_whatever_is_joined(policy, neighbours, tables):
    """The table that counts the units need not be in the join: whoever is replaced takes their rows along."""
    assert bound(policy, f"SELECT COUNT(*) AS n FROM {tables}").neighbours == neighbours


def test_variables_reach_through_others():
    shape = hypergraph_of(
        bound("row", "SELECT COUNT(*) AS n FROM person a JOIN other b ON a.job = b.job JOIN person c ON b.job = c.job")
    )
    assert len(shape.variables) == 1
    assert shape.components(frozenset((0, 2))) == (frozenset((0, 2)),)
    assert [field.name for field in shape.boundary(frozenset((0, 2)))] == ["job"]
    assert len(shape.pairs()) == 3
    assert len(list(shape.residuals((0, 1, 2)))) == 7


def test_filters_of_one_occurrence_are_told_from_others():
    question = bound(
        "row",
        "SELECT COUNT(*) AS n FROM person a JOIN other b ON a.job = b.job "
        "WHERE a.age > 3 AND (a.age > 4 OR b.age > 4) AND b.sex = 'F' AND a.age < b.age",
    )
    found = filters_of(question.where)
    assert {source: len(parts) for source, parts in found.items()} == {"s0": 1, "s1": 1}


def test_a_sum_is_paid_for_once():
    question = bound(
        "row",
        "SELECT AVG(a.age) AS mean, COUNT(*) AS n, SUM(a.age) / 2 AS half, COUNT(*) + 1 AS more "
        "FROM person a JOIN other b ON a.job = b.job HAVING SUM(a.age) > 3 ORDER BY COUNT(*) DESC LIMIT 2 OFFSET 1",
    )
    assert [weight.name for weight in question.weights] == ["sum_age", "count_age", "n"]
    assert question.having is not None
    assert (question.limit, question.offset, len(question.order)) == (2, 1, 1)


def test_sums_inside_others_have_names_of_their_own():
    question = bound("row", "SELECT SUM(a.age) / SUM(b.age) AS sum_age FROM person a JOIN other b ON a.job = b.job")
    assert [weight.name for weight in question.weights] == ["sum_age", "sum_age_2"]


def test_equal_questions_have_equal_names():
    first = bound("row", "SELECT COUNT(*) AS n FROM person a JOIN other b ON a.job = b.job")
    second = bound("row", "select count(*) as n from person x join other y on y.job = x.job")
    assert question_name(first) == question_name(second)


def test_how_many_private_tables_are_named():
    policy = POLICIES["row"]
    count = {
        "SELECT 1": 0,
        "SELECT COUNT(*) FROM person": 1,
        "SELECT COUNT(*) FROM region_name JOIN person USING (region)": 1,
        "SELECT COUNT(*) FROM person a JOIN person b USING (job)": 2,
    }
    assert {sql: private_tables(parse(sql), policy) for sql in count} == count


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM person JOIN other USING (job) LIMIT all_of_them", "LIMIT takes a plain whole number"),
        ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM person JOIN other USING (job)", "WITH x is not used"),
        ("SELECT 1", "has no FROM"),
        ("SELECT COUNT(*) FROM region_name r JOIN tag USING (region)", "public tables only"),
        ("SELECT job, COUNT(*) FROM person JOIN other USING (job) GROUP BY job", "declared values"),
        ("SELECT MAX(a.age) FROM person a JOIN other b USING (job)", "COUNT, SUM and AVG are answered"),
        ("SELECT SUM(a.born) FROM person a JOIN other b USING (job)", "dates are not summed"),
        ("SELECT COUNT(*) FROM (SELECT 1) JOIN other b USING (job)", "the column must be in b and in one table"),
        (
            "SELECT BIN(a.age, 1), BIN(b.age, 1) AS h, COUNT(*) FROM person a JOIN other b USING (job) GROUP BY 1, 2",
            "at most 1,000",
        ),
    ],
)
def test_refused(sql, words):
    with pytest.raises(QueryError, match=words):
        bound("row", sql)


@pytest.mark.parametrize(("pairs", "answered"), [(50, True), (51, False)])
def test_joins_compare_a_bounded_number_of_columns(pairs, answered):
    """Of columns that are all equal, databases look at every three."""
    names = [f"k{place}" for place in range(9)]
    columns = {name: {"type": "id"} for name in names}
    policy = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}})
    chosen = [f"a.{one} = b.{two}" for one, two in product(names, names)][:pairs]
    sql = f"SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON {' AND '.join([*chosen, *chosen])}"
    if answered:
        assert len(bind_conjunction(sql, policy, CATALOG).pairs) == pairs
    else:
        with pytest.raises(QueryError, match="more than 50 pairs of columns"):
            bind_conjunction(sql, policy, CATALOG)
