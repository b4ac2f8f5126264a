import re

import pytest

from confide.policy import Category, Date, Identifier, Number, load
from confide.policy.draft import BLANK, StoredTable, draft, guess_references
from tests.policy.samples import problems_of

SCHEMA = [
    ("person_id", "BIGINT"),
    ("age", "INTEGER"),
    ("income", "DOUBLE"),
    ("cost", "DECIMAL(10,2)"),
    ("sex", "VARCHAR"),
    ("born", "DATE"),
    ("active", "BOOLEAN"),
    ("tags", "VARCHAR[]"),
    ("last seen", "TIMESTAMP WITH TIME ZONE"),
]


def drafted(name: str, schema: list[tuple[str, str]], source: str) -> str:
    return draft([StoredTable(name, tuple(schema), source)], f"{name}.ledger")


def test_a_draft_is_invalid_and_names_every_blank() -> None:
    text = drafted("person", SCHEMA, "data/person.csv")
    found = problems_of(lambda: load(text))
    assert all("left to fill in" in problem.what for problem in found), [str(problem) for problem in found]
    assert [problem.where.removeprefix("tables.person.columns.") for problem in found] == [
        "budget.epsilon",
        "unit",
        "age.range",
        "income.range",
        "income.grain",
        "cost.range",
        "sex.values[1]",
        "born.range",
        "last seen.range",
    ]
    lines = text.splitlines()
    assert all(BLANK in lines[(problem.line or 0) - 1] for problem in found)


def test_a_draft_filled_in_is_a_policy() -> None:
    text = drafted("person", SCHEMA, "data/person.csv")
    for line, filled in {
        "epsilon: ____": "epsilon: 1",
        "unit: ____": "unit: person.person_id",
        "age: {range: [____, ____]}": "age: {range: [0, 115]}",
        "income: {range: [____, ____], grain: ____}": "income: {range: [0, 1e6], grain: 10}",
        "cost: {range: [____, ____]": "cost: {range: [0, 100]",
        "values: [____]": "values: [F, M]",
        "born: {range: [____, ____]}": "born: {range: [1900-01-01, 2030-12-31]}",
        '"last seen": {range: [____, ____]}': '"last seen": {range: [2000-01-01, 2030-12-31]}',
    }.items():
        assert line in text
        text = text.replace(line, filled)
    policy = load(text)
    columns = policy.tables["person"].columns
    assert policy.source == {"person": "data/person.csv"}
    assert isinstance(columns["person_id"], Identifier)
    assert isinstance(columns["last seen"], Date)
    assert isinstance(columns["cost"], Number)
    assert columns["cost"].grain * 100 == 1
    assert columns["active"] == Category("active", (False, True))
    assert "tags" not in columns


def test_a_text_column_says_what_else_it_could_be() -> None:
    (line,) = [line for line in drafted("t", [("name", "VARCHAR")], "t.csv").splitlines() if "name:" in line]
    assert "type: text" in line
    assert "type: id" in line


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("TINYINT", "range: [____, ____]}"),
        ("UBIGINT", "range: [____, ____]}"),
        ("HUGEINT", "range: [____, ____]}"),
        ("int64", "range: [____, ____]}"),
        ("uint8", "range: [____, ____]}"),
        ("FLOAT", "grain: ____}"),
        ("double", "grain: ____}"),
        ("DECIMAL(18,3)", "grain: 0.001}"),
        ("decimal128(9, 0)", "grain: 1}"),
        ("bool", "values: [false, true]}"),
        ("string", "values: [____]}"),
        ("large_string", "values: [____]}"),
        ("ENUM('a', 'b')", "values: [____]}"),
        ("dictionary<values=string, indices=int32, ordered=0>", "values: [____]}"),
        ("VARCHAR(20)", "values: [____]}"),
        ("date32[day]", "range: [____, ____]}"),
        ("timestamp[us, tz=UTC]", "range: [____, ____]}"),
        ("TIMESTAMP_NS", "range: [____, ____]}"),
        ("UUID", "type: id}"),
    ],
)
def test_every_type_has_its_rule(kind: str, rule: str) -> None:
    assert f"x: {{{rule}" in re.sub(r"range: \[____, ____\], (?=grain)", "", drafted("t", [("x", kind)], "t.csv"))


@pytest.mark.parametrize(
    "kind", ["BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "TIME", "INTERVAL", "null", "JSON"]
)
def test_types_that_cannot_be_asked_about_are_left_out(kind: str) -> None:
    assert f"# x: left out, because nothing can be asked about the type {kind}" in drafted("t", [("x", kind)], "t.csv")


def test_no_list_of_values_is_taken_from_a_type() -> None:
    """The values of an enumeration are data: they were made from it."""
    assert "secret" not in drafted("t", [("x", "ENUM('secret', 'b')")], "t.csv")


@pytest.mark.parametrize("name", ["größe", 'say "hi"', "a: b", "# x", "- y", "line\nbreak", "null", "?"])
def test_names_are_quoted_as_needed(name: str) -> None:
    text = (
        drafted("t", [(name, "BOOLEAN")], 'C:\\data\\"t".csv')
        .replace("epsilon: ____", "epsilon: 1")
        .replace("unit: ____", "unit: row")
    )
    if name.isprintable():
        policy = load(text)
        assert list(policy.tables["t"].columns) == [name]
        assert policy.source == {"t": 'C:\\data\\"t".csv'}
    else:
        assert "no name for a column" in problems_of(lambda: load(text))[0].what


def test_a_table_is_named_without_dots() -> None:
    assert "  a_b:" in drafted("a.b", [("x", "BOOLEAN")], "a.b.csv")


def test_a_column_of_unknown_type_is_one_blank_with_every_choice() -> None:
    text = drafted("people", [("age", ""), ("person_id", "")], "people.csv")
    line = next(line for line in text.splitlines() if "age:" in line)
    assert line.strip().startswith("age: ____")
    assert all(choice in line for choice in ("range:", "values:", "type: text", "type: id"))
    assert "person_id: {type: id}" in text
    found = [problem for problem in problems_of(lambda: load(text)) if problem.where.endswith("columns.age")]
    assert len(found) == 1
    assert "nothing is said about the column" in found[0].what


def test_references_are_guessed_from_names_and_types() -> None:
    tables = [
        StoredTable("visits", (("visit_id", "BIGINT"), ("person_id", "BIGINT"), ("ward_id", "VARCHAR"))),
        StoredTable("persons", (("id", "INTEGER"), ("city_id", "BIGINT"))),
        StoredTable("ward", (("ward_id", "BIGINT"),)),
        StoredTable("cities", (("city_id", "BIGINT"), ("person_id", "BIGINT"))),
    ]
    assert guess_references(tables) == {
        "visits": {"person_id": ("persons", "id")},  # a ward is stored otherwise
        "persons": {"city_id": ("cities", "city_id")},  # and not back again: that would be a circle
    }
    text = draft(tables, "all.ledger", "office.duckdb")
    assert "references: {person_id: persons.id}" in text
    assert "such as persons.id," in text
    found = problems_of(lambda: load(text))
    assert all("left to fill in" in problem.what for problem in found), [str(problem) for problem in found]


def test_ids_are_not_taken_for_each_other() -> None:
    tables = [StoredTable(name, (("id", "BIGINT"), ("uuid", "UUID"))) for name in ("a", "b")]
    assert guess_references(tables) == {}
