"""EXISTS and IN of a query: what they say row by row, and that no unit changes more than its own rows."""

from random import Random

import pytest

from confide.errors import QueryError
from confide.query import bind, semi_join
from tests.engine.reference import Reference
from tests.engine.test_neighbours import Findings, compare
from tests.engine.test_reference import as_groups, unbound
from tests.engine.worlds import (
    PARTNERS,
    WORLDS,
    Tables,
    engine,
    evaluate,
    neighbour,
    private_tables,
    public_tables,
    row_of,
    without,
)

FORMS = sorted({(alias, form) for (unit, alias), forms in PARTNERS.items() if unit != "row" for form in forms})
SEEDS = range(30)


def question(alias: str, form: str) -> str:
    return f"SELECT COUNT(*) AS n FROM {alias} WHERE {form}"


@pytest.mark.parametrize(("alias", "form"), FORMS)
@pytest.mark.parametrize("world", ["keys", "public keys"])
def test_no_unit_changes_more_than_its_sensitivity(world: str, alias: str, form: str) -> None:
    """By the plain reading of both data sets, over many tiny ones, in which keys repeat between units."""
    findings = violations(world, alias, form)
    assert not findings.violations, findings.violations[0]
    assert findings.asked > 10


def violations(name: str, alias: str, form: str) -> Findings:
    world, findings = WORLDS[name], Findings()
    for seed in SEEDS:
        rng = Random(seed)
        tables = {**private_tables(world, rng), **public_tables(rng)}
        other = neighbour(world, tables, rng)
        if other is None:
            continue
        source = engine(world, tables)
        try:
            asked = bind(question(alias, form), world.policy, source)
        finally:
            source.close()
        first, second = (Reference(data).evaluate(asked.summary) for data in (tables, {**tables, **other}))
        compare(asked, first, second, findings, f"seed {seed}: {form}")
        findings.asked += 1
    return findings


def two_units_with_one_key() -> tuple[Tables, Tables]:
    """Three items of a visit whose id two people have, and the same without the first of them: the items stay."""
    world, rng = WORLDS["keys"], Random(1)
    visits = [
        {**row_of(world, "visit", rng), "vid": "v1", "pid": pid, "cost": cost} for pid, cost in ((1, 50.0), (2, 0.0))
    ]
    items = [{**row_of(world, "item", rng), "vid": "v1"} for _ in range(3)]
    whole = {"person": [], "visit": visits, "item": items, "part": [], **public_tables(rng)}
    return whole, without(whole, 1)


def change(form: str) -> tuple[int, int]:
    """What one unit changes of a count of items, and what it may."""
    world, (whole, rest) = WORLDS["keys"], two_units_with_one_key()
    source = engine(world, whole)
    try:
        asked = bind(question("item", form), world.policy, source)
    finally:
        source.close()
    first, second = (Reference(data).evaluate(asked.summary)[()][0] for data in (whole, rest))
    return abs(first - second), asked.measures[0].l1


def test_partners_are_of_the_same_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the unit's key in the condition, a visit of one person answers for the items of another."""
    form = "item.vid IN (SELECT vid FROM visit WHERE cost > 20)"
    assert change(form) == (3, 3)
    monkeypatch.setattr(semi_join, "attach", lambda *_: [])
    changed, allowed = change(form)
    assert changed == 6 > allowed


@pytest.mark.parametrize(("alias", "form"), FORMS)
def test_the_engine_finds_the_partners_that_there_are(alias: str, form: str) -> None:
    world = WORLDS["keys"]
    for seed in (1, 2, 3):
        rng = Random(seed)
        tables = {**private_tables(world, rng), **public_tables(rng)}
        source = engine(world, tables)
        try:
            summary = unbound(bind(question(alias, form), world.policy, source).summary)
            assert as_groups(evaluate(source, summary), summary) == Reference(tables).evaluate(summary), seed
        finally:
            source.close()


REFUSED = [
    ("visit", "EXISTS (SELECT 1 FROM visit AS w WHERE w.ward = visit.ward)", "no reference of the policy connects"),
    ("person", "EXISTS (SELECT 1 FROM visit)", "no column that equals one of the query around it"),
    ("person", "EXISTS (SELECT 1 FROM visit AS w WHERE w.cost > person.age)", "no column that equals one"),
    ("person", "person.age > (SELECT AVG(age) FROM person)", "a subquery"),
    ("person", "person.pid IN (SELECT pid, kind FROM visit)", "a query of one column"),
    ("person", "person.age + 1 IN (SELECT kids FROM label)", "both sides are columns"),
    ("part", "EXISTS (SELECT 1 FROM item AS j WHERE j.iid = part.iid)", "joined already to what it refers to"),
]


@pytest.mark.parametrize(("alias", "form", "words"), REFUSED)
def test_what_could_depend_on_others_is_refused(alias: str, form: str, words: str) -> None:
    world, rng = WORLDS["keys"], Random(1)
    source = engine(world, {**private_tables(world, rng), **public_tables(rng)})
    try:
        with pytest.raises(QueryError) as caught:
            bind(question(alias, form), world.policy, source)
    finally:
        source.close()
    assert words in str(caught.value)
