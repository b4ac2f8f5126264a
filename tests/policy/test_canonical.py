"""The canonical text loads to an equal policy, and equal policies have equal texts, whatever is in them."""

from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.policy import (
    Category,
    Column,
    Contribution,
    Date,
    Identifier,
    KeyUnit,
    Number,
    Policy,
    RowUnit,
    Table,
    Unbounded,
    load,
)
from confide.policy import Text as TextColumn
from confide.policy.analyst import cap_faults
from confide.policy.canonical import quote
from confide.privacy.budget import Budget
from tests.policy.samples import PEOPLE, people

printable = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable() and text == text.strip())
column_names = st.lists(printable, min_size=1, max_size=5, unique_by=str.casefold)
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
grains = st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**6)


@st.composite
def numbers(draw: st.DrawFn, name: str) -> Number:
    grain = draw(grains)
    low, high = sorted(draw(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=2, unique=True)))
    bins = draw(st.none() | st.integers(1, high - low))
    typical = draw(st.sampled_from((None, (low * grain, (low + high) * grain / 2))))
    nulls = draw(st.booleans())
    return Number(name, low * grain, high * grain, grain, None if bins is None else bins * grain, nulls, typical)


@st.composite
def days(draw: st.DrawFn, name: str) -> Date:
    low, high = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2, unique=True)))
    bins = draw(st.none() | st.integers(1, (high - low).days))
    return Date(name, low, high, None if bins is None else Fraction(bins))


def categories(name: str) -> st.SearchStrategy[Category]:
    kinds: list[st.SearchStrategy[Any]] = [any_text, st.integers(1 - 2**62, 2**62 - 1), st.booleans()]
    values = st.one_of([st.lists(kind, min_size=1, max_size=6, unique=True) for kind in kinds])
    return st.builds(Category, st.just(name), values.map(tuple), st.booleans())


def columns(name: str) -> st.SearchStrategy[Column]:
    return st.one_of(
        numbers(name),
        days(name),
        categories(name),
        st.just(TextColumn(name)),
        st.just(Identifier(name)),
        st.builds(Unbounded, st.just(name), grains),
    )


@st.composite
def contributions(draw: st.DrawFn) -> Contribution:
    rows = draw(st.integers(1, 1000))
    return Contribution(rows, draw(st.integers(1, rows)))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    names = draw(
        st.lists(printable.filter(lambda name: "." not in name), min_size=1, max_size=4, unique_by=str.casefold)
    )
    keyed = draw(st.booleans())
    tables: dict[str, Table] = {}
    for position, name in enumerate(names):
        declared: dict[str, Column] = {column: draw(columns(column)) for column in draw(column_names)}
        size = draw(st.none() | st.integers(1, 2**44))
        if position > 0 and draw(st.booleans()):
            tables[name] = Table(name, public=True, columns=declared if draw(st.booleans()) else {}, size=size)
            continue
        if keyed:
            declared = {column: rule for column, rule in declared.items() if column.casefold() != "key"}
            declared["key"] = Identifier("key")
            references = {} if position == 0 else {"key": (names[0], "key")}
            tables[name] = Table(name, False, declared, references, draw(contributions()), "private", size)
        else:
            tables[name] = Table(name, columns=declared, rows=draw(st.sampled_from(("private", "public"))), size=size)
    amounts = st.fractions(min_value=Fraction(1, 10**9), max_value=100, max_denominator=10**9)
    words = st.none() | st.text(min_size=1, max_size=9).filter(lambda text: text.strip())
    files = st.fixed_dictionaries({name: st.text(min_size=1).filter(str.strip) for name in names})
    named = st.dictionaries(st.text(max_size=6), st.just(Fraction(0)) | amounts, max_size=3)
    caps = named.map(lambda found: found and {**found, "*": Fraction(1)}).filter(lambda found: not [*cap_faults(found)])
    return Policy(
        tables,
        KeyUnit(names[0], "key") if keyed else RowUnit(),
        Budget(draw(amounts), draw(st.sampled_from((Fraction(0), Fraction(1, 10**9), Fraction(1, 3 * 10**7))))),
        draw(caps),
        draw(st.sampled_from((None, "all.duckdb", "postgresql://h/d", "spark")) | files),
        draw(words),
        draw(words),
    )


@settings(max_examples=60, deadline=None)
@given(policies())
def test_round_trip(policy: Policy) -> None:
    again = load(policy.to_yaml())
    assert again == policy
    assert again.to_yaml() == policy.to_yaml()
    assert again.fingerprint == policy.fingerprint


@settings(deadline=None)
@given(any_text)
def test_quoted_strings_are_read_as_written(text: str) -> None:
    policy = load({"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": {"x": {"values": [text]}}}}})
    assert load(policy.to_yaml()).tables["t"].columns["x"] == Category("x", (text,))
    assert quote(text).isprintable()


def test_the_order_of_tables_and_columns_does_not_matter() -> None:
    policy = people()
    policy["tables"] = dict(reversed(policy["tables"].items()))
    policy["tables"]["person"]["columns"] = dict(reversed(policy["tables"]["person"]["columns"].items()))
    assert load(policy) == load(PEOPLE)
    assert load(policy).fingerprint == load(PEOPLE).fingerprint


def test_the_order_of_values_matters() -> None:
    turned = load(PEOPLE.replace("[N, E, S, W]", "[W, S, E, N]"))
    assert turned != load(PEOPLE)
    assert turned.facts_fingerprint != load(PEOPLE).facts_fingerprint


FREE = [
    ("epsilon: 3", "epsilon: 4"),
    (", delta: 1e-9", ""),
    ("person.parquet", "moved/person.parquet"),
    ("unit:", 'analysts: {ann: 1, "*": 0}\nunit:'),
    ("unit:", "ledger: spent.db\nunit:"),
    ("    at_most:", "    size: 10\n    at_most:"),
    ("[0, 115]", "[0, 115], typical: [18, 64.5]"),
]
BOUND = [
    ("[0, 115]", "[0, 116]"),
    ("rows: 20", "rows: 21"),
    ("groups: 5", "groups: 4"),
    ("grain: 0.01", "grain: 0.1"),
    ("unit:", "version: '2'\nunit:"),
    ("{public: true}", "{public: true, columns: {a: {type: id}}}"),
    ("[F, M]}", "[F, M], nulls: true}"),
    ("[0, 115]", "[0, 115], nulls: true"),
]


@pytest.mark.parametrize(("old", "new"), FREE + BOUND)
def test_the_fingerprint_names_the_whole_policy(old: str, new: str) -> None:
    assert old in PEOPLE
    assert load(PEOPLE.replace(old, new)).fingerprint != load(PEOPLE).fingerprint


@pytest.mark.parametrize(("old", "new"), FREE)
def test_what_answers_do_not_depend_on(old: str, new: str) -> None:
    assert load(PEOPLE.replace(old, new)).facts_fingerprint == load(PEOPLE).facts_fingerprint


@pytest.mark.parametrize(("old", "new"), BOUND)
def test_what_answers_depend_on(old: str, new: str) -> None:
    assert load(PEOPLE.replace(old, new)).facts_fingerprint != load(PEOPLE).facts_fingerprint


def test_a_fingerprint_never_changes() -> None:
    """A ledger holds fingerprints: a change of the canonical text must be noticed."""
    assert load(PEOPLE).to_yaml() == (
        "confide: 1\n"
        'source: {"person": "person.parquet", "visit": "visit.csv"}\n'
        "budget: {epsilon: 3, delta: 0.000000001}\n"
        'unit: "person.person_id"\n'
        "tables:\n"
        '  "person":\n'
        "    columns:\n"
        '      "age": {range: [0, 115], grain: 1}\n'
        '      "income": {range: [0, 500000], grain: 1}\n'
        '      "person_id": {type: id}\n'
        '      "region": {values: ["N", "E", "S", "W"]}\n'
        '      "sex": {values: ["F", "M"]}\n'
        '  "region_name":\n'
        "    public: true\n"
        '  "visit":\n'
        '    references: {"person_id": "person.person_id"}\n'
        "    at_most: {rows: 20, groups: 5}\n"
        "    columns:\n"
        '      "cost": {range: [0, 10000], grain: 0.01}\n'
        '      "person_id": {type: id}\n'
    )


def test_dates_before_the_year_1000() -> None:
    day = Date("x", date(1, 1, 1), date(9999, 12, 31))
    policy = Policy({"t": Table("t", columns={"x": day})}, RowUnit(), Budget(Fraction(1)))
    assert load(policy.to_yaml()) == policy
