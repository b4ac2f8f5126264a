import time
from typing import Any

import pytest

from confide.policy import ReferenceStep, load
from tests.policy.samples import PEOPLE, only_problem, people, problems_of, rows


def test_the_way_to_the_unit() -> None:
    policy = people()
    policy["tables"]["visit"]["columns"]["visit_id"] = {"type": "id"}
    policy["tables"]["line"] = {
        "references": {"visit": "visit.visit_id"},
        "at_most": {"rows": 100},
        "columns": {"amount": {"range": [0, 9]}},
    }
    read = load(policy)
    assert read.unit_path("person") == ()
    assert read.unit_path("visit") == (ReferenceStep("visit", "person_id", "person", "person_id"),)
    assert read.unit_path("line") == (
        ReferenceStep("line", "visit", "visit", "visit_id"),
        ReferenceStep("visit", "person_id", "person", "person_id"),
    )
    with pytest.raises(ValueError, match="public"):
        read.unit_path("region_name")
    with pytest.raises(KeyError):
        read.unit_path("nobody")


def test_a_row_has_no_way_to_go() -> None:
    assert load(rows(a={"type": "id"})).unit_path("t") == ()


def test_private_rows_must_belong_to_somebody() -> None:
    policy = people()
    del policy["tables"]["visit"]["references"]
    problem = only_problem(lambda: load(policy))
    assert problem.where == "tables.visit"
    assert "nothing says whose rows" in problem.what
    assert "public: true" in problem.advice


def test_a_reference_that_leads_elsewhere_does_not_help() -> None:
    policy = people()
    policy["tables"]["region_name"]["columns"] = {"code": {"values": ["N"]}}
    policy["tables"]["visit"]["references"] = {"region": "region_name.code"}
    assert "nothing says whose rows" in only_problem(lambda: load(policy)).what


def test_a_reference_to_another_id_of_the_units_table_does_not_help() -> None:
    policy = people()
    policy["tables"]["person"]["columns"]["email"] = {"type": "id"}
    policy["tables"]["visit"]["references"] = {"email": "person.email"}
    assert "nothing says whose rows" in only_problem(lambda: load(policy)).what


def test_a_row_of_two_people_is_refused() -> None:
    """Whoever sends and whoever receives would have to be protected; one path would protect only one of them."""
    policy = people()
    policy["tables"]["visit"]["references"]["doctor_id"] = "person.person_id"
    problem = only_problem(lambda: load(policy))
    assert problem.where == "tables.visit.references"
    assert "more than one unit (by person_id and doctor_id" in problem.what


def test_a_diamond_is_refused() -> None:
    policy = people()
    policy["tables"]["visit"]["columns"]["visit_id"] = {"type": "id"}
    policy["tables"]["line"] = {
        "references": {"visit": "visit.visit_id", "person_id": "person.person_id"},
        "at_most": {"rows": 100},
        "columns": {"amount": {"range": [0, 9]}},
    }
    assert only_problem(lambda: load(policy)).where == "tables.line.references"


def circle(*names: str) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for name, following in zip(names, (*names[1:], names[0]), strict=True):
        tables[name] = {"references": {"next": f"{following}.id"}, "columns": {"id": {"type": "id"}}}
    return tables


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
def test_circles_of_references_are_refused(names: tuple[str, ...]) -> None:
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": circle(*names)}
    problem = only_problem(lambda: load(policy))
    assert problem.where == "tables.a.references"
    assert " → ".join((*names, "a")) in problem.what


def test_every_circle_is_told() -> None:
    tables = circle("a", "b") | circle("c", "d")
    tables["e"] = {"references": {"x": "a.id"}, "columns": {"id": {"type": "id"}}}
    found = problems_of(lambda: load({"budget": {"epsilon": 1}, "unit": "row", "tables": tables}))
    assert [problem.where for problem in found] == ["tables.a.references", "tables.c.references"]


def test_circles_under_a_key_do_not_hang() -> None:
    policy = people()
    policy["tables"] |= circle("a", "b")
    for name in "ab":
        policy["tables"][name]["at_most"] = {"rows": 1}
    assert "circle" in only_problem(lambda: load(policy)).what


def test_many_diamonds_are_quick() -> None:
    """2^60 chains lead from the last table to the unit; none of them is walked to find that there are two."""
    policy = people()
    before = "person.person_id"
    for i in range(60):
        policy["tables"][f"t{i}"] = {
            "references": {"left": before, "right": before},
            "at_most": {"rows": 1},
            "columns": {"id": {"type": "id"}},
        }
        before = f"t{i}.id"
    start = time.monotonic()
    found = problems_of(lambda: load(policy))
    assert time.monotonic() - start < 2
    assert len(found) == 60


@pytest.mark.parametrize(
    ("target", "what", "advice"),
    [
        ("persn.person_id", "no table 'persn'", "did you mean 'person'?"),
        ("person.personid", "no column 'personid'", "did you mean 'person_id'?"),
        ("person.age", "person.age is not an id", "type: id"),
    ],
)
def test_wrong_references(target: str, what: str, advice: str) -> None:
    policy = people()
    policy["tables"]["visit"]["references"] = {"person_id": target}
    found = [problem for problem in problems_of(lambda: load(policy)) if problem.where.endswith("references.person_id")]
    assert len(found) == 1
    assert what in found[0].what
    assert advice in found[0].advice


def test_a_reference_to_a_private_table_starts_at_an_id() -> None:
    policy = people()
    policy["tables"]["visit"]["columns"]["person_id"] = {"range": [0, 9]}
    assert "visit.person_id is not an id" in only_problem(lambda: load(policy)).what


def test_a_reference_to_a_public_table_may_start_anywhere() -> None:
    policy = people()
    policy["tables"]["person"]["references"] = {"region": "region_name.code"}
    assert load(policy).unit_path("visit") == (ReferenceStep("visit", "person_id", "person", "person_id"),)
    policy["tables"]["region_name"]["columns"] = {"cod": {"type": "id"}}
    assert "did you mean 'cod'?" in only_problem(lambda: load(policy)).advice


@pytest.mark.parametrize(
    ("table", "bounds", "allowed"), [("person", 1, True), ("person", 2, False), ("visit", 1, False)]
)
def test_where_the_number_of_rows_may_be_public(table: str, bounds: int, allowed: bool) -> None:
    policy = people()
    policy["tables"][table] |= {"rows": "public", "at_most": {"rows": bounds}}
    if allowed:
        assert load(policy).tables[table].rows == "public"
    else:
        assert only_problem(lambda: load(policy)).where == f"tables.{table}.rows"


@pytest.mark.parametrize(
    "name", ["order", "select", "group by", "größe", "名前", "petal length (cm)", "capital.gain", 'say "hi"', "😀"]
)
def test_any_printable_name_is_a_column(name: str) -> None:
    read = load(rows(**{name: {"range": [0, 9]}}))
    assert list(read.tables["t"].columns) == [name]
    assert load(read.to_yaml()) == read


@pytest.mark.parametrize("name", ["select", "table", "名前", "my table"])
def test_any_printable_name_without_a_dot_is_a_table(name: str) -> None:
    policy = {"budget": {"epsilon": 1}, "unit": f"{name}.id", "tables": {name: {"columns": {"id": {"type": "id"}}}}}
    read = load(policy)
    assert load(read.to_yaml()) == read


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "a\x00", "x" * 129, "a\u200b"])
def test_other_names_are_refused(name: str) -> None:
    assert "is no name for a column" in only_problem(lambda: load(rows(**{name: {"type": "id"}}))).what


def test_a_table_with_a_dot_is_refused() -> None:
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"a.b": {"columns": {"x": {"type": "id"}}}}}
    assert "holds a dot" in only_problem(lambda: load(policy)).what


def test_names_that_sql_cannot_tell_apart_are_refused() -> None:
    assert "the same column to SQL" in only_problem(lambda: load(rows(Age={"type": "id"}, age={"type": "id"}))).what
    policy = rows(x={"type": "id"})
    policy["tables"]["T"] = policy["tables"]["t"]
    assert "the same table to SQL" in only_problem(lambda: load(policy)).what


def test_something_must_be_private() -> None:
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"a": {"public": True}}}
    assert only_problem(lambda: load(policy)).what == "every table is public"


def test_lines_of_structure() -> None:
    text = PEOPLE.replace("{person_id: person.person_id}", "{person_id: persn.person_id}")
    assert 14 in [problem.line for problem in problems_of(lambda: load(text))]
