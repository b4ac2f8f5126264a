"""Every mistake that the keys of a policy outside its columns can hold."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from confide.policy import Contribution, KeyUnit, Policy, RowUnit, load
from confide.privacy.budget import Budget
from tests.policy.samples import PEOPLE, only_problem, people, problems_of, rows

Spoil = Callable[[dict[str, Any]], object]


def put(*path: str) -> Callable[[object], Spoil]:
    """put("a", "b")(1) is a change that sets policy["a"]["b"] = 1."""

    def with_value(value: object) -> Spoil:
        def spoil(policy: dict[str, Any]) -> None:
            for key in path[:-1]:
                policy = policy.setdefault(key, {})
            policy[path[-1]] = value

        return spoil

    return with_value


def drop(*path: str) -> Spoil:
    def spoil(policy: dict[str, Any]) -> None:
        for key in path[:-1]:
            policy = policy[key]
        del policy[path[-1]]

    return spoil


BAD: list[tuple[Spoil, str, str, str]] = [
    # change, where, what, advice
    (put("tabels")({}), "tabels", "'tabels' is not known", "did you mean 'tables'?"),
    (put("privacy_unit")(1), "privacy_unit", "not known", "did you mean 'unit'?"),
    (put("zzzz")(1), "zzzz", "not known", "allowed: confide, source, budget"),
    (put("confide")(2), "confide", "format 2 is not known", "confide: 1"),
    (put("confide")("1"), "confide", "format the text '1'", "confide: 1"),
    (put("confide")(True), "confide", "format True", "confide: 1"),
    (drop("budget"), "the policy", "'budget' is missing", "epsilon"),
    (put("budget")(3), "budget", "expected a mapping, found 3", "epsilon"),
    (put("budget")({"delta": 1e-9}), "budget", "epsilon is missing", "epsilon: 1"),
    (put("budget", "epsilon")(0), "budget.epsilon", "epsilon is 0", "above 0"),
    (put("budget", "epsilon")(-1), "budget.epsilon", "epsilon is -1", "above 0"),
    (put("budget", "epsilon")(float("nan")), "budget.epsilon", "nan is not a number", "finite"),
    (put("budget", "epsilon")(float("inf")), "budget.epsilon", "inf is not a number", "finite"),
    (put("budget", "epsilon")("abc"), "budget.epsilon", "expected a number, found the text 'abc'", ""),
    (put("budget", "epsilon")(True), "budget.epsilon", "expected a number, found True", ""),
    (put("budget", "epsilon")(None), "budget.epsilon", "expected a number, found nothing", ""),
    (put("budget", "epsilon")([1]), "budget.epsilon", "expected a number, found a list", ""),
    (put("budget", "epsilon")(1e300), "budget.epsilon", "epsilon is 1e+300", "1e6"),
    (put("budget", "epsilon")(10**80), "budget.epsilon", "more than 60 digits", "finite"),
    (put("budget", "delta")(1), "budget.delta", "delta is 1", "far below"),
    (put("budget", "delta")(-1e-9), "budget.delta", "delta is -1e-09", "far below"),
    (put("budget", "delta")("1e-9"), "budget.delta", "found the text '1e-9'", ""),
    (put("budget", "epsilom")(1), "budget.epsilom", "not known", "did you mean 'epsilon'?"),
    (put("analysts")(["ann"]), "analysts", "expected a mapping, found a list", "ann"),
    (put("analysts")({"ann": -1, "*": 1}), "analysts.ann", "ann is -1", "above 0"),
    (put("analysts")({"ann": 1, "*": -1}), "analysts.*", "* is -1", "above 0"),
    (put("analysts")({"ann": "x", "*": 1}), "analysts.ann", "found the text 'x'", ""),
    (put("analysts", "ann")(1.5), "analysts", "whoever is not named has no cap", '"*": 0 to let nobody else ask'),
    (put("analysts")({"ann": 1, "Ann": 1, "*": 1}), "analysts.Ann", "'Ann' reads like 'ann'", "one name"),
    (put("analysts")({" ": 1, "*": 1}), "analysts. ", "' ' is not the name of an analyst", "at most 200"),
    (drop("unit"), "the policy", "'unit' is missing", "unit: row"),
    (put("unit")("rows"), "unit", "the unit 'rows' is not known", "did you mean 'row'?"),
    (put("unit")("person"), "unit", "the unit 'person' is not known", "table.column"),
    (put("unit")("person."), "unit", "the unit 'person.' is not known", "table.column"),
    (put("unit")(3), "unit", "found 3", "person.person_id"),
    (put("unit")("persn.person_id"), "unit", "no table 'persn'", "did you mean 'person.person_id'?"),
    (put("unit")("person.persn_id"), "unit", "no column 'persn_id'", "did you mean 'person_id'?"),
    (put("unit")("person.age"), "unit", "person.age is not an id", "age: {type: id}"),
    (put("unit")("region_name.code"), "unit", "is public", "must be private"),
    (put("source")(3), "source", "expected files or a database, found 3", "postgresql"),
    (put("source")([]), "source", "found an empty list", "postgresql"),
    (put("source")("all.csv"), "source", "one file cannot hold 3 tables", "table: file"),
    (put("source", "persn")("a.csv"), "source.persn", "'persn' is not known", "did you mean 'person'?"),
    (put("source", "person")(""), "source.person", "expected a file", "person.parquet"),
    (put("ledger")(["a"]), "ledger", "expected a word, found a list", ""),
    (put("version")({}), "version", "expected a word, found an empty mapping", ""),
    (put("tables", "visit", "colums")({}), "tables.visit.colums", "not known", "did you mean 'columns'?"),
    (put("tables", "extra")(None), "tables.extra", "expected a mapping, found nothing", "public: true"),
    (put("tables", "visit", "size")(0), "tables.visit.size", "0 is not allowed", "from 1 to"),
    (put("tables", "visit", "size")(1.5), "tables.visit.size", "1.5 is not allowed", "whole"),
    (put("tables", "visit", "size")(2**44 + 1), "tables.visit.size", "is not allowed", "17,592,186,044,416"),
    (put("tables", "visit", "rows")(100), "tables.visit.rows", "found 100", "size"),
    (
        put("tables", "visit", "rows")("Public"),
        "tables.visit.rows",
        "found the text 'Public'",
        "did you mean 'public'?",
    ),
    (put("tables", "visit", "public")("yes"), "tables.visit.public", "expected true or false", ""),
    (drop("tables", "visit", "at_most"), "tables.visit", "most rows that one unit may have here is missing", "at_most"),
    (put("tables", "visit", "at_most")(5), "tables.visit.at_most", "expected a mapping, found 5", "rows: 20"),
    (put("tables", "visit", "at_most")({"groups": 5}), "tables.visit.at_most", "rows is missing", "rows: 20"),
    (put("tables", "visit", "at_most", "rows")(0), "tables.visit.at_most.rows", "0 is not allowed", "from 1"),
    (put("tables", "visit", "at_most", "row")(1), "tables.visit.at_most.row", "not known", "did you mean 'rows'?"),
    (
        put("tables", "visit", "at_most", "groups")(21),
        "tables.visit.at_most.groups",
        "21 groups cannot come",
        "at most 20",
    ),
    (put("tables", "visit", "references")("person"), "tables.visit.references", "expected a mapping", "table.column"),
    (
        put("tables", "visit", "references")({"person_id": "person"}),
        "tables.visit.references.person_id",
        "expected table.column, found the text 'person'",
        "person.person_id",
    ),
    (drop("tables", "visit", "columns"), "tables.visit", "the columns are missing", "public: true"),
    (put("tables", "visit", "columns")([]), "tables.visit.columns", "expected a mapping of columns", "range"),
    (put("tables", "region_name", "rows")("public"), "tables.region_name.rows", "no meaning on a public", "leave"),
    (put("tables", "region_name", "at_most")({}), "tables.region_name.at_most", "no meaning on a public", "leave"),
]


@pytest.mark.parametrize(("spoil", "where", "what", "advice"), BAD)
def test_a_mistake_is_named(spoil: Spoil, where: str, what: str, advice: str) -> None:
    policy = people()
    spoil(policy)
    found = problems_of(lambda: load(policy))
    matching = [problem for problem in found if problem.where == where and what in problem.what]
    assert matching, [str(problem) for problem in found]
    assert advice in matching[0].advice
    assert all(problem.line is None for problem in found)


RENAMED = [
    ("budget", ()),
    ("unit", ()),
    ("tables", ()),
    ("epsilon", ("budget",)),
    ("columns", ("tables", "person")),
    ("references", ("tables", "visit")),
    ("at_most", ("tables", "visit")),
    ("rows", ("tables", "visit", "at_most")),
    ("public", ("tables", "region_name")),
    ("range", ("tables", "person", "columns", "age")),
    ("values", ("tables", "person", "columns", "sex")),
    ("type", ("tables", "person", "columns", "person_id")),
]


@pytest.mark.parametrize(("key", "place"), RENAMED)
def test_a_misspelled_key_is_not_missing_too(key: str, place: tuple[str, ...]) -> None:
    policy = people()
    if key == "tables":
        del policy["source"]  # else its tables would not be known either
    block = policy
    for step in place:
        block = block[step]
    block[f"{key}x"] = block.pop(key)
    problem = only_problem(lambda: load(policy))
    assert problem.where == ".".join((*place, f"{key}x"))
    assert f"did you mean {key!r}?" in problem.advice


def test_what_stands_under_a_misspelled_key_is_checked_too() -> None:
    text = PEOPLE.replace("tables:", "tabels:").replace("[0, 115]", "[115, 0]").replace("columns:", "colums:")
    found = problems_of(lambda: load(text))
    assert [(problem.line, problem.where) for problem in found] == [
        (5, "tabels"),
        (7, "tabels.person.colums"),
        (11, "tabels.person.colums.age.range"),
        (17, "tabels.visit.colums"),
    ]


ALONE = [spoil for spoil, where, what, _ in BAD if "is public" not in what]


@pytest.mark.parametrize("spoil", ALONE)
def test_one_mistake_is_one_problem(spoil: Spoil) -> None:
    """No mistake drags others after it (but when the unit is another table altogether)."""
    policy = people()
    spoil(policy)
    only_problem(lambda: load(policy))


def test_nothing_at_all() -> None:
    assert {problem.what for problem in problems_of(lambda: load({}))} == {
        "the key 'budget' is missing",
        "the key 'unit' is missing",
        "the key 'tables' is missing",
    }


@pytest.mark.parametrize("text", ["\n\n", "# nothing here\n# at all\n", "---\n...\n"])
def test_an_empty_text(text: str) -> None:
    assert only_problem(lambda: load(text)).what == "a policy is a mapping of keys, found nothing"


@pytest.mark.parametrize(
    ("text", "found"), [("- a\n- b\n", "a list"), ("name,ssn\nAlice,123\n", "other text"), ("\n3\n", "other text")]
)
def test_a_text_that_is_no_mapping(text: str, found: str) -> None:
    problem = only_problem(lambda: load(text))
    assert problem.what == f"a policy is a mapping of keys, found {found}"
    assert problem.line == (2 if text.startswith("\n") else 1)


def test_the_example_of_the_product_is_read() -> None:
    policy = load(PEOPLE)
    assert policy == load(people())
    assert policy.unit == KeyUnit("person", "person_id")
    assert policy.budget == Budget(Fraction(3), Fraction(1, 10**9))
    assert policy.source == {"person": "person.parquet", "visit": "visit.csv"}
    assert policy.tables["person"].at_most == Contribution(1, 1)
    assert policy.tables["visit"].at_most == Contribution(20, 5)
    assert policy.tables["region_name"].public
    assert policy.analysts == {}
    assert (policy.ledger, policy.version, policy.path) == (None, None, None)


def test_ten_mistakes_are_told_at_once_with_their_lines() -> None:
    text = """\
confide: 2
budgit: {epsilon: 1}
budget: {epsilon: 0}
unit: persn.person_id
source: {person: p.csv, vist: v.csv}
tables:
  person:
    columns:
      person_id: {type: id}
      region: {values: [N, E,
                        S, N]}
      age: {range: [115, 0]}
      income: {range: [0]}
      weight: {range: [0.5, 300]}
      person_id: {type: text}
  visit:
    rows: 20
    columns:
      cost: {rnge: [0, 10]}
"""
    found = problems_of(lambda: load(text))
    assert [(problem.line, problem.where) for problem in found] == [
        (1, "confide"),
        (2, "budgit"),
        (3, "budget.epsilon"),
        (4, "unit"),
        (5, "source.vist"),
        (11, "tables.person.columns.region.values[4]"),
        (12, "tables.person.columns.age.range"),
        (13, "tables.person.columns.income.range"),
        (14, "tables.person.columns.weight"),
        (15, "tables.person.columns.person_id"),
        (16, "tables.visit"),
        (16, "tables.visit"),
        (17, "tables.visit.rows"),
        (19, "tables.visit.columns.cost.rnge"),
    ]


def test_optional_keys() -> None:
    policy = people() | {"analysts": {"ann": 1, "*": 0}, "ledger": "spent.db", "version": "1.10"}
    policy["tables"]["person"]["size"] = 100_000
    read = load(policy)
    assert read.analysts == {"ann": Fraction(1), "*": Fraction(0)}
    assert (read.ledger, read.version, read.tables["person"].size) == ("spent.db", "1.10", 100_000)


@pytest.mark.parametrize(
    ("written", "version"), [("1.10", "1.10"), ("2024-06-01", "2024-06-01"), ("3", "3"), ("'a b'", "a b")]
)
def test_a_version_is_what_was_written(written: str, version: str) -> None:
    assert load(f"{PEOPLE}version: {written}\n").version == version


def test_amounts_are_exact() -> None:
    assert load(PEOPLE.replace("epsilon: 3", "epsilon: 1/3")).budget.epsilon == Fraction(1, 3)
    assert load(PEOPLE.replace("epsilon: 3", "epsilon: 0.1")).budget.epsilon == Fraction(1, 10)
    assert load(rows(a={"type": "id"}) | {"budget": {"epsilon": 0.1}}).budget.epsilon == Fraction(1, 10)


@pytest.mark.parametrize("delta", [0, 0.0, None])
def test_no_delta_is_a_pure_budget(delta: object) -> None:
    budget = {"epsilon": 1} if delta is None else {"epsilon": 1, "delta": delta}
    assert load(rows(a={"type": "id"}) | {"budget": budget}).budget.pure


def test_the_format_may_be_left_out() -> None:
    policy = people()
    del policy["confide"]
    assert load(policy) == load(people())


@pytest.mark.parametrize("source", ["people.duckdb", "postgresql://db/people", "spark"])
def test_one_source_for_all(source: str) -> None:
    assert load(people() | {"source": source}).source == source


def test_one_file_for_one_table() -> None:
    assert load(rows(a={"type": "id"}) | {"source": "t.csv"}).source == {"t": "t.csv"}


def test_frames_need_no_source() -> None:
    policy = people()
    del policy["source"]
    assert load(policy).source is None


def test_bounds_have_defaults() -> None:
    policy = people()
    policy["tables"]["visit"]["at_most"] = {"rows": 7}
    policy["tables"]["person"]["at_most"] = {"rows": 2}
    read = load(policy)
    assert read.tables["visit"].at_most == Contribution(7, 7)
    assert read.tables["person"].at_most == Contribution(2, 2)


def test_a_row_needs_no_bounds() -> None:
    policy = rows(a={"range": [0, 9]})
    policy["tables"]["t"]["rows"] = "public"
    read = load(policy)
    assert read.unit == RowUnit()
    assert read.tables["t"].rows == "public"
    policy["tables"]["t"]["at_most"] = {"rows": 1}
    assert only_problem(lambda: load(policy)).where == "tables.t.at_most"


def test_a_public_table_may_describe_its_columns() -> None:
    policy = people()
    policy["tables"]["region_name"] = {"public": True, "size": 4, "columns": {"code": {"values": ["N", "E"]}}}
    assert list(load(policy).tables["region_name"].columns) == ["code"]


def test_a_column_that_refers_to_a_key_is_a_key() -> None:
    assert "person_id" in load(PEOPLE).tables["visit"].columns


def test_policies_cannot_be_changed() -> None:
    policy = load(PEOPLE)
    with pytest.raises(TypeError):
        policy.tables["x"] = policy.tables["person"]  # type: ignore[index]
    with pytest.raises(TypeError):
        policy.tables["person"].columns["x"] = policy.tables["person"].columns["age"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        policy.version = "2"  # type: ignore[misc]


def test_a_policy_built_by_hand_is_checked_too() -> None:
    good = load(PEOPLE)
    found = problems_of(lambda: Policy(good.tables, KeyUnit("person", "age"), good.budget))
    assert found[0].where == "unit"
