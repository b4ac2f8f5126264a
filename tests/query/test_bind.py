"""Questions as wholes: equal ones are equal, what they fetch is public, and arguments are checked."""

from fractions import Fraction

import pytest

from confide.errors import ParameterError, QueryError
from confide.query import Question, bind
from confide.query.identity import question_name
from confide.query.tree import Among, DeclaredKey, Field, Join, Known, PerUnit, Scan, TextLike
from tests.query.samples import CATALOG, POLICIES


def ask(text: str, policy: str = "row", **arguments: object) -> Question:
    return bind(text, POLICIES[policy], CATALOG, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT COUNT(*) AS n FROM person", "select count( * )  as n\nfrom PERSON; -- again"),
        ("SELECT COUNT(*) AS n FROM person", 'SELECT COUNT(*) AS n FROM "person" AS p'),
        ("SELECT COUNT(p.age) AS n FROM person p", "SELECT COUNT(q.age) AS n FROM person q"),
        ("SELECT COUNT(*) AS n FROM person WHERE age > 3", "SELECT COUNT(*) AS n FROM person WHERE 3 < age"),
        ("SELECT COUNT(*) AS n FROM person WHERE NOT age > 3", "SELECT COUNT(*) AS n FROM person WHERE (age <= 3)"),
        (
            "SELECT COUNT(*) AS n FROM person WHERE NOT (age > 3 AND region = 'N')",
            "SELECT COUNT(*) AS n FROM person WHERE age <= 3 OR region IN ('S', 'E', 'W')",
        ),
        (
            "SELECT COUNT(*) AS n FROM person WHERE age BETWEEN 3 AND 5",
            "SELECT COUNT(*) AS n FROM person WHERE age >= 3 AND age <= 5",
        ),
        ("SELECT SUM(age * 2) AS s FROM person", "SELECT SUM(2 * age) AS s FROM person"),
        ("SELECT COUNT(*) AS n FROM person WHERE age > 3.5", "SELECT COUNT(*) AS n FROM person WHERE age >= 4"),
        ("SELECT COUNT(*) AS n FROM person WHERE TRUE", "SELECT COUNT(*) AS n FROM person WHERE 1 = 1 AND 2 > 1"),
    ],
)
def test_one_question_in_two_spellings_has_one_fingerprint(first: str, second: str) -> None:
    assert question_name(ask(first)) == question_name(ask(second))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT COUNT(*) AS m FROM person WHERE age > 3",
        "SELECT COUNT(*) AS n FROM person WHERE age > 4",
        "SELECT COUNT(*) AS n FROM person WHERE age >= 3",
        "SELECT COUNT(*) AS n FROM other WHERE age > 3",
        "SELECT COUNT(*) AS n FROM person WHERE income > 3",
        "SELECT COUNT(*) AS n FROM person WHERE age > 3 LIMIT 1",
        "SELECT COUNT(*) AS n FROM person WHERE age > 3 HAVING n > 0",
        "SELECT COUNT(age) AS n FROM person WHERE age > 3",
    ],
)
def test_another_question_has_another_fingerprint(other: str) -> None:
    assert question_name(ask(other)) != question_name(ask("SELECT COUNT(*) AS n FROM person WHERE age > 3"))


def test_no_word_of_the_analyst_is_in_the_tree_but_constants() -> None:
    question = ask('SELECT COUNT("my alias".age) AS n FROM person AS "my alias" WHERE "my alias".job = \'text\'')
    assert "my alias" not in repr(question.summary)
    assert "text" in repr(question.summary)


def test_not_like_is_not_like() -> None:
    for text, negated in (("job LIKE 'a'", False), ("job NOT LIKE 'a'", True), ("NOT job NOT LIKE 'a'", False)):
        where = ask(f"SELECT COUNT(*) AS n FROM person WHERE {text}").summary.where
        assert isinstance(where, TextLike)
        assert where.negated is negated


def test_is_not_null_in_every_dialect() -> None:
    for dialect in ("duckdb", "postgres"):
        where = ask("SELECT COUNT(*) AS n FROM person WHERE age IS NOT NULL", dialect=dialect).summary.where
        assert isinstance(where, Known)
        assert where.negated is False


def test_is_true_of_a_comparison_is_not_the_column() -> None:
    with pytest.raises(QueryError, match="IS is answered"):
        ask("SELECT COUNT(*) AS n FROM person WHERE (member = FALSE) IS TRUE")
    where = ask("SELECT COUNT(*) AS n FROM person WHERE member IS FALSE").summary.where
    assert where == Among(Field("s0", POLICIES["row"].tables["person"].columns["member"]), (False,))


def test_what_is_not_listed_is_in_neither_half() -> None:
    is_n = ask("SELECT COUNT(*) AS n FROM person WHERE region = 'N'").summary.where
    is_not = ask("SELECT COUNT(*) AS n FROM person WHERE region <> 'N'").summary.where
    assert isinstance(is_n, Among)
    assert isinstance(is_not, Among)
    assert set(is_n.values) | set(is_not.values) == {"N", "E", "S", "W"}


def test_a_chain_of_references_is_joined_to_the_unit() -> None:
    relation = ask("SELECT COUNT(*) AS n FROM part", "key").summary.relation
    tables = []
    while isinstance(relation, Join):
        tables.append(relation.right.table)
        relation = relation.left
    assert isinstance(relation, Scan)
    assert [relation.table, *reversed(tables)] == ["part", "item", "visit"]


def test_a_left_join_does_not_ask_the_unit_of_a_table_that_may_be_absent() -> None:
    visits = "SELECT COUNT(*) AS n FROM person LEFT JOIN visit USING (person_id)"
    text = f"{visits} LEFT JOIN claim ON claim.who = person.person_id"
    relation = ask(text, "key").summary.relation
    assert isinstance(relation, Join)
    assert {left.source for left, _ in relation.on} == {"s0"}


def test_two_private_tables_agree_on_the_unit() -> None:
    text = "SELECT COUNT(*) AS n FROM claim a JOIN claim b ON a.who = b.who JOIN visit v ON v.person_id = b.who"
    summary = ask(text, "key").summary
    assert isinstance(summary.relation, Join)
    assert ("s0", "who", "s2", "person_id") in {(a.source, a.name, b.source, b.name) for a, b in summary.relation.on}


def test_every_column_takes_part_in_the_order_of_a_units_rows() -> None:
    summary = ask("SELECT COUNT(*) AS n FROM visit JOIN person USING (person_id)", "key").summary
    named = {(field.source, field.name) for field in summary.order_by}
    assert {("s0", "cost"), ("s0", "ward"), ("s1", "age"), ("s1", "person_id")} <= named


def test_declared_keys_hold_null_only_if_the_policy_says_so() -> None:
    region, sex = ask("SELECT COUNT(*) AS n FROM person GROUP BY region, sex").keys
    assert isinstance(region, DeclaredKey)
    assert isinstance(sex, DeclaredKey)
    assert None not in region.values
    assert None in sex.values


INNER = "SELECT AVG(total) AS m FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)"


def test_bounds_narrow_a_computed_column() -> None:
    question = ask(INNER, "key", bounds={"total": (Fraction(0), Fraction(500))})
    assert question.measures[0].l1 == 25_000
    relation = question.summary.relation
    assert isinstance(relation, PerUnit)
    assert (relation.columns[0][2].low, relation.columns[0][2].high) == (0, 50_000)


def test_bounds_never_widen_what_the_policy_allows() -> None:
    question = ask(INNER, "key", bounds={"total": (Fraction(-(10**12)), Fraction(10**12))})
    assert question.measures[0].l1 == ask(INNER, "key").measures[0].l1


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"total": (Fraction(5), Fraction(5))}, "low first"),
        ({"total": (Fraction(9), Fraction(5))}, "low first"),
        ({"total": (Fraction(0), Fraction(1, 1000))}, "multiples of 1/100"),
        ({"total": (Fraction(10**9), Fraction(10**10))}, "leave nothing"),
        ({"nothing": (Fraction(0), Fraction(5))}, "does not compute"),
    ],
)
def test_wrong_bounds_are_a_wrong_argument(bounds: dict[str, tuple[Fraction, Fraction]], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        ask(INNER, "key", bounds=bounds)


def test_bounds_without_an_inner_query_are_a_wrong_argument() -> None:
    with pytest.raises(ParameterError, match="no inner query"):
        ask("SELECT AVG(age) AS m FROM person", bounds={"m": (Fraction(0), Fraction(5))})
