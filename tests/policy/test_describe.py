from fractions import Fraction

from confide.policy import load
from confide.policy.describe import describe
from tests.policy.samples import PEOPLE, people, rows


def test_what_is_public_and_who_is_protected() -> None:
    facts = describe(load(PEOPLE))
    assert facts.protected.startswith("whoever a value of person.person_id stands for")
    assert "visit" in facts.protected
    assert "added or removed" in facts.neighbours
    person, visit, region_name = facts.tables
    assert (person.at_most_rows, person.at_most_groups) == (1, 1)
    assert (visit.at_most_rows, visit.at_most_groups) == (20, 5)
    assert (visit.private, region_name.private) == (True, False)
    assert visit.belongs == "visit.person_id → person.person_id"
    known = {column.name: column.public for column in person.columns}
    assert known == {
        "person_id": "only that it exists",
        "region": "N, E, S, W",
        "sex": "F, M",
        "age": "0 to 115, rounded to 1",
        "income": "0 to 500000, rounded to 1",
    }


def test_how_the_budget_is_held() -> None:
    policy = people() | {"analysts": {"ann": 1, "*": 0.5}}
    budget = describe(load(policy)).budget
    assert (budget.epsilon, budget.delta) == (3, Fraction(1, 10**9))
    assert "ρ = 0.116" in budget.held
    assert budget.analysts == (("*", Fraction(1, 2)), ("ann", Fraction(1)))
    policy["budget"] = {"epsilon": 3}
    assert describe(load(policy)).budget.held.startswith("a pure budget")


def test_a_row() -> None:
    policy = rows(a={"range": [0, 9]}, long={"values": list(range(20))}, d={"range": ["2020-01-01", "2020-02-01"]})
    policy["tables"]["t"]["rows"] = "public"
    facts = describe(load(policy))
    assert "row by row only" in facts.protected
    assert "replaced by another" in facts.neighbours
    assert facts.tables[0].belongs == "each row is a unit of its own"
    assert facts.tables[0].columns[1].public == "0, 1, 2, 3, 4, 5, 6, 7, … (20 in all)"


def test_the_text_holds_all_of_it() -> None:
    policy = people() | {"analysts": {"*": 0.5}, "source": "postgresql://ann:secret@host/db"}
    text = str(describe(load(policy)))
    for word in (
        "ε = 3, δ = 1e-09 in all",
        "anybody else: at most ε = 0.5",
        "postgresql://ann:***@host/db",
        "Table visit (private: the number of rows is private)",
        "at most 20 rows in 5 groups",
        "Table region_name (public: everything in it is public)",
        "Worth a second look",
    ):
        assert word in text
    assert "secret" not in text


def test_every_kind_of_column_is_told() -> None:
    policy = rows(
        i={"type": "id"},
        t={"type": "text"},
        c={"values": [True, False], "nulls": True},
        n={"range": [0, 1], "grain": 0.5},
        d={"range": ["2020-01-01", "2020-02-01"]},
        u={"range": "unbounded", "grain": 2},
    )
    known = [(column.kind, column.public) for column in describe(load(policy)).tables[0].columns]
    assert known == [
        ("id", "only that it exists"),
        ("text", "only that it exists"),
        ("values", "true, false, or NULL"),
        ("number", "0 to 1, rounded to 0.5"),
        ("date", "2020-01-01 to 2020-02-01"),
        ("number", "no bounds, rounded to 2"),
    ]


def test_notes_of_reading_are_told() -> None:
    metadata = {"db": {"s": {"t": {"row_privacy": True, "x": {"type": "float", "lower": 0, "upper": 1}}}}}
    text = str(describe(load(metadata, also={"budget": {"epsilon": 1}})))
    assert "Chosen on reading\n  - s.t.x: a float, rounded to 0.000001" in text
