from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from confide.policy import Category, Contribution, Date, Identifier, KeyUnit, Number, RowUnit, Text, Unbounded, load
from confide.policy.node import from_python
from confide.policy.smartnoise import float_grain, is_smartnoise
from tests.policy.samples import METADATA, PEOPLE, only_problem, people, problems_of

BUDGET = {"budget": {"epsilon": 1}}


def table(**content: Any) -> dict[str, Any]:
    return {"db": {"schema": {"t": content}}} | BUDGET


def test_a_file_of_their_format_with_our_keys_beside_it() -> None:
    policy = load(METADATA)
    person = policy.tables["Person"]
    assert policy.unit == KeyUnit("Person", "person_id")
    assert policy.source == {"Person": "person.csv"}
    assert (policy.budget.epsilon, policy.budget.delta) == (2, Fraction(1, 10**8))
    assert (person.size, person.at_most, person.rows) == (1000, Contribution(1, 1), "private")
    assert dict(person.columns) == {
        "age": Number("age", Fraction(0), Fraction(100)),
        "sex": Text("sex"),
        "income": Number("income", Fraction(1, 2), Fraction(5000003, 10), Fraction(1, 10)),
        "height": Number("height", Fraction(0), Fraction(100), Fraction(1, 10_000)),
        "married": Category("married", (False, True), nulls=True),
        "seen": Date("seen", date(2020, 1, 1), date(2024, 12, 31)),
        "score": Unbounded("score", Fraction(1)),
        "weight": Unbounded("weight", Fraction(1, 1000)),
        "person_id": Identifier("person_id"),
    }
    notes = "\n".join(policy.notes)
    for word in (
        "Census.Person.sex: no list of values",
        "Census.Person.income: a float, rounded to 0.1",
        "Census.Person.income: the bounds are widened to 0.5 and 500000.3",
        "Census.Person.born: left out",
        "Census.Person.weight: no bounds, so it cannot be summed; rounded to 0.001",
    ):
        assert word in notes
    assert load(policy.to_yaml()) == policy


def test_a_dict_of_their_format() -> None:
    metadata = {
        "": {
            "MySchema": {
                "MyTable": {
                    "max_ids": 4,
                    "row_privacy": False,
                    "user_id": {"name": "user_id", "type": "int", "private_id": True},
                    "age": {"name": "age", "type": "int", "upper": 100.0, "lower": 0.0},
                }
            }
        }
    }
    policy = load(metadata, also=BUDGET)
    assert policy.tables["MyTable"].at_most == Contribution(4, 4)
    assert policy.tables["MyTable"].columns["age"] == Number("age", Fraction(0), Fraction(100))


def test_the_budget_is_missing_like_any_other_key() -> None:
    text = METADATA.replace("budget: {epsilon: 2, delta: 1e-8}\n", "")
    assert only_problem(lambda: load(text)).what == "the key 'budget' is missing"
    assert load(text, also=BUDGET).budget.pure


def test_rows_are_protected_when_it_says_so() -> None:
    policy = load(table(row_privacy=True, max_ids=3, age={"type": "int", "lower": 0, "upper": 9}))
    assert policy.unit == RowUnit()
    assert policy.tables["t"].at_most == Contribution(1, 1)


def test_several_tables_with_one_key() -> None:
    key = {"type": "int", "private_id": True}
    metadata = {
        "db": {"s": {"visit": {"max_ids": 3, "pid": key}, "person": {"max_ids": 1, "pid": key}, "more": {"pid": key}}}
    }
    policy = load(metadata | BUDGET)
    assert policy.unit == KeyUnit("person", "pid")
    assert policy.tables["visit"].references == {"pid": ("person", "pid")}
    assert policy.tables["visit"].at_most == Contribution(3, 3)
    assert policy.tables["more"].at_most == Contribution(1, 1)
    assert any("the unit is person.pid" in note for note in policy.notes)


def test_the_unit_may_be_said_beside_it() -> None:
    key = {"type": "int", "private_id": True}
    metadata = {"db": {"s": {"visit": {"max_ids": 3, "patient": key}, "person": {"pid": key}}}} | BUDGET
    assert "different names" in only_problem(lambda: load(metadata)).what
    policy = load(metadata, also={"unit": "person.pid"})
    assert policy.tables["visit"].references == {"patient": ("person", "pid")}


def test_values_may_be_added_to_it() -> None:
    policy = load(table(row_privacy=True, sex={"type": "string", "values": ["F", "M"]}))
    assert policy.tables["t"].columns["sex"] == Category("sex", ("F", "M"))


def test_its_old_words() -> None:
    columns = {"age": {"type": "int", "min": 0, "max": 9}, "id": {"type": "int", "is_key": True}}
    policy = load(table(rows=10, **columns))
    assert policy.unit == KeyUnit("t", "id")
    assert policy.tables["t"].columns["age"] == Number("age", Fraction(0), Fraction(9))


AGE = {"type": "int", "lower": 0, "upper": 9}


@pytest.mark.parametrize(
    ("content", "where", "what", "advice"),
    [
        ({"age": AGE}, "schema.t", "nothing says who is protected", "row_privacy"),
        ({"row_privacy": True, "max_id": 1, "age": AGE}, "schema.t.max_id", "'max_id' is not known", "'max_ids'"),
        ({"row_privacy": True, "age": AGE | {"lowr": 1}}, "schema.t.age.lowr", "'lowr' is not known", "'lower'"),
        (
            {"row_privacy": True, "a": AGE, "b": {"type": "integer"}},
            "schema.t.b",
            "found the text 'integer'",
            "int, float",
        ),
        ({"row_privacy": True, "a": AGE, "b": {"lower": 1}}, "schema.t.b", "the type is missing", "int, float"),
        ({"row_privacy": True, "a": {"type": "int", "lower": 1}}, "schema.t.a", "there is no upper", "add upper"),
        ({"row_privacy": True, "a": {"type": "float", "upper": 1}}, "schema.t.a", "there is no lower", "add lower"),
        ({"row_privacy": True, "a": AGE | {"lower": 10}}, "schema.t.a", "reversed", "[9, 10]"),
        ({"row_privacy": True, "a": AGE | {"lower": "x"}}, "schema.t.a", "found the text 'x'", ""),
        ({"row_privacy": True, "a": AGE | {"lower": float("nan")}}, "schema.t.a", "nan", "finite"),
        ({"row_privacy": True, "rows": "many", "a": AGE}, "schema.t.rows", "found the text 'many'", ""),
        (
            {"max_ids": 0, "a": AGE, "id": {"type": "int", "private_id": True}},
            "schema.t.max_ids",
            "0 is not allowed",
            "",
        ),
    ],
)
def test_mistakes_in_their_words(content: dict[str, Any], where: str, what: str, advice: str) -> None:
    found = [problem for problem in problems_of(lambda: load(table(**content))) if problem.where == where]
    assert len(found) == 1
    assert what in found[0].what
    assert advice in found[0].advice


def test_mistakes_have_the_lines_of_the_file() -> None:
    text = (
        METADATA.replace("upper: 100\n", "upper: -1\n")
        .replace("type: string", "type: strin")
        .replace("max_ids: 1", "max_ids: 0")
    )
    found = problems_of(lambda: load(text))
    assert [(problem.line, problem.where) for problem in found] == [
        (4, "Census.Person.max_ids"),
        (6, "Census.Person.age"),
        (10, "Census.Person.sex"),
    ]


def test_one_database_and_different_tables() -> None:
    metadata = table(row_privacy=True, age=AGE) | {"other": {"schema": {"t": {"age": AGE}}}}
    assert "more than one database" in only_problem(lambda: load(metadata)).what
    metadata = {"db": {"one": {"t": {"row_privacy": True, "age": AGE}}, "two": {"t": {"age": AGE}}}} | BUDGET
    assert "the table 't' is in 'one' too" in only_problem(lambda: load(metadata)).what


def test_rows_here_and_keys_there() -> None:
    metadata = {"db": {"s": {"a": {"row_privacy": True, "x": AGE}, "b": {"id": {"type": "int", "private_id": True}}}}}
    assert any("not in every table" in problem.what for problem in problems_of(lambda: load(metadata | BUDGET)))


def test_what_is_not_followed_is_noted() -> None:
    column = AGE | {"sensitivity": 3, "missing_value": 0}
    options = {
        "sample_max_ids": False,
        "clamp_columns": False,
        "censor_dims": False,
        "clamp_counts": True,
        "rows_exact": 5,
    }
    notes = "\n".join(load(table(row_privacy=True, age=column, **options)).notes)
    for word in ("sensitivity", "missing_value", *options):
        assert word in notes


@pytest.mark.parametrize(
    ("document", "is_theirs"),
    [
        (table(age=AGE), True),
        ({"engine": "csv"} | table(age=AGE), True),
        (people(), False),
        ({"tabels": people()["tables"]}, False),
        ({}, False),
        ({"a": {"b": {"c": 3}}}, False),
    ],
)
def test_the_format_is_recognised(document: dict[str, Any], is_theirs: bool) -> None:
    assert is_smartnoise(from_python(document)) is is_theirs


def test_our_own_format_is_not_theirs() -> None:
    assert load(PEOPLE).notes == ()


@pytest.mark.parametrize(
    "width", [Fraction(1, 10**9), Fraction(1), Fraction(999_999), Fraction(10**6), Fraction(7 * 10**12)]
)
def test_the_grain_of_a_float_makes_about_a_million_steps(width: Fraction) -> None:
    assert 10**6 <= width / float_grain(width) < 10**7
