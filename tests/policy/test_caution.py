from typing import Any

import pytest

from confide.policy import load
from confide.policy.caution import cautions
from tests.policy.samples import people, rows


def told(policy: dict[str, Any]) -> list[str]:
    return list(cautions(load(policy)))


def calm() -> dict[str, Any]:
    policy = people()
    policy["source"]["region_name"] = "region.csv"
    for name in ("person", "visit"):
        policy["tables"][name]["size"] = 1000
    return policy


def test_a_careful_policy_needs_no_second_look() -> None:
    assert told(calm()) == []


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("budget", "epsilon"), 10.5, "ε = 10.5 is large"),
        (("budget", "delta"), 2e-5, "δ = 0.00002 is large"),
        (("analysts",), {"ann": 4, "*": 1}, "the cap of 'ann' is above the whole budget"),
        (("source",), "postgresql://ann:secret@host/db", "a password stands in the policy"),
        (("ledger",), "postgresql://host/db?password=x", "a password stands in the policy"),
        (("tables", "person", "size"), None, "person: without a size"),
        (("tables", "person", "size"), 2**40, "person's rows or more"),
        (("source", "region_name"), None, "region_name: no source is named"),
        (("tables", "visit", "at_most", "rows"), 1001, "visit: one unit may have 1,001 rows"),
        (
            ("tables", "person", "columns", "age", "range"),
            [0, 2**31 - 1],
            "person.age: the range up to 2147483647 is very",
        ),
        (("tables", "visit", "columns", "cost", "grain"), 1e-9, "visit.cost: the grain 0.000000001 is far finer"),
        (("tables", "person", "columns", "sex", "values"), ["F", "f"], "person.sex: the values 'F' and 'f' look alike"),
        (("tables", "person", "columns", "sex", "values"), ["F ", "F"], "look alike"),
        (("tables", "person", "columns", "sex", "values"), ["é", "e\u0301"], "look alike"),
        (("tables", "person", "columns", "sex", "values"), list(range(1001)), "1,001 groups"),
        (("tables", "person", "columns", "age", "range"), ["1700-01-01", "2020-01-01"], "longer than two centuries"),
    ],
)
def test_what_deserves_a_second_look(path: tuple[str, ...], value: object, word: str) -> None:
    policy = calm()
    place: dict[str, Any] = policy
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    found = told(policy)
    assert len(found) == 1, found
    assert word in found[0]


def test_text_needs_a_delta() -> None:
    policy = rows(name={"type": "text"})
    policy["tables"]["t"]["size"] = 10
    assert told(policy) == ["t.name: text groups need a threshold, and a threshold needs a δ in the budget"]
    policy["budget"]["delta"] = 1e-9
    assert told(policy) == []
