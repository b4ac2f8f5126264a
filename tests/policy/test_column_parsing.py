from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from confide.errors import PolicyError
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded, load
from tests.policy.samples import only_problem, problems_of, rows


def column(declared: object) -> Column:
    return load(rows(x=declared)).tables["t"].columns["x"]


def column_text(declared: str) -> Column:
    return (
        load(f"budget: {{epsilon: 1}}\nunit: row\ntables:\n  t:\n    columns:\n      x: {declared}\n")
        .tables["t"]
        .columns["x"]
    )


@pytest.mark.parametrize(
    ("declared", "read"),
    [
        ("{type: id}", Identifier("x")),
        ("{type: text}", Text("x")),
        ("{values: [N, E, S, W]}", Category("x", ("N", "E", "S", "W"))),
        ("{values: [NO, SE, DK]}", Category("x", ("NO", "SE", "DK"))),
        ("{values: [yes, no]}", Category("x", ("yes", "no"))),
        ("{values: [Y, N], nulls: true}", Category("x", ("Y", "N"), nulls=True)),
        ("{values: [on, off], nulls: false}", Category("x", ("on", "off"))),
        ("{values: [true, false]}", Category("x", (True, False))),
        ("{values: [1, 2, 9]}", Category("x", (1, 2, 9))),
        ("{values: [01067, 01069]}", Category("x", ("01067", "01069"))),
        ("{values: ['1', '2']}", Category("x", ("1", "2"))),
        ("{values: ['2020-01-01']}", Category("x", ("2020-01-01",))),
        ("{values: ['____', '?']}", Category("x", ("____", "?"))),
        ("{values: [only]}", Category("x", ("only",))),
        ("{range: [0, 115]}", Number("x", Fraction(0), Fraction(115))),
        ("{range: [0, 115], nulls: true}", Number("x", Fraction(0), Fraction(115), nulls=True)),
        ("{type: text, nulls: true}", Text("x", nulls=True)),
        ("{range: [-5, 1e6]}", Number("x", Fraction(-5), Fraction(10**6))),
        ("{range: [0, 10000], grain: 0.01}", Number("x", Fraction(0), Fraction(10000), Fraction(1, 100))),
        ("{range: [0, 1], grain: 1/3}", Number("x", Fraction(0), Fraction(1), Fraction(1, 3))),
        ("{range: [0.5, 2.5], grain: 0.5}", Number("x", Fraction(1, 2), Fraction(5, 2), Fraction(1, 2))),
        ("{range: [0, 500000], grain: 1000}", Number("x", Fraction(0), Fraction(500000), Fraction(1000))),
        ("{range: [0, 100], bins: 10}", Number("x", Fraction(0), Fraction(100), Fraction(1), Fraction(10))),
        ("{range: [2020-01-01, 2024-12-31]}", Date("x", date(2020, 1, 1), date(2024, 12, 31))),
        (
            "{range: ['2020-01-01', '2024-12-31'], bins: 7}",
            Date("x", date(2020, 1, 1), date(2024, 12, 31), Fraction(7)),
        ),
        ("{range: unbounded, grain: 0.1}", Unbounded("x", Fraction(1, 10))),
        ("{range: [0, 9], typical: [1, 2.5]}", Number("x", 0, 9, typical=(Fraction(1), Fraction(5, 2)))),
        ("{range: unbounded, grain: 1, typical: [-1, 9]}", Unbounded("x", Fraction(1), (Fraction(-1), Fraction(9)))),
    ],
)
def test_columns(declared: str, read: Column) -> None:
    assert column_text(declared) == read


def test_the_grain_of_decimals_must_be_said() -> None:
    assert column({"range": [0, 1.5], "grain": 0.5}) == Number("x", Fraction(0), Fraction(3, 2), Fraction(1, 2))
    assert "grain is missing" in only_problem(lambda: load(rows(x={"range": [0.0, 1.0]}))).what


BAD: list[tuple[Any, str, str, str]] = [
    # declared, part, what, advice
    (None, "", "nothing is said", "values"),
    ({}, "", "nothing is said", "values"),
    ("int", "", "found the text 'int'", "{range: [low, high]}"),
    ([0, 1], "", "found a list", "values"),
    ({"nulls": True}, "", "kind of the column is missing", "values"),
    ({"grain": 1}, "", "bounds are missing", "range"),
    ({"type": "id", "values": ["a"]}, "", "type and values exclude each other", "one of"),
    ({"values": ["a"], "range": [0, 1]}, "", "values and range exclude each other", "one of"),
    ({"type": "int"}, "type", "found the text 'int'", "range"),
    ({"type": "txt"}, "type", "found the text 'txt'", "did you mean 'text'?"),
    ({"type": "ID"}, "type", "found the text 'ID'", "did you mean 'id'?"),
    ({"type": 3}, "type", "found 3", "range"),
    ({"type": "id", "nulls": True}, "nulls", "no meaning beside type", "leave it out"),
    ({"range": "unbounded", "grain": 1, "nulls": True}, "nulls", "no meaning beside range", "leave it out"),
    ({"range": [0, 9], "nulls": 1}, "nulls", "expected true or false", ""),
    ({"values": ["a"], "grain": 1}, "grain", "no meaning beside values", "leave it out"),
    ({"range": "unbounded", "grain": 1, "bins": 5}, "bins", "no meaning beside range", "leave it out"),
    ({"range": "unbounded"}, "", "grain is missing", "grain: 1"),
    ({"range": "unbounded", "grain": 0}, "grain", "grain is 0", "above 0"),
    ({"range": "unbound"}, "range", "found the text 'unbound'", "unbounded"),
    ({"range": [3, 1]}, "range", "reversed: 3 is above 1", "[1, 3]"),
    ({"range": [1, 1]}, "range", "single value", "below"),
    ({"range": [0]}, "range", "a bound is missing", "[low, high]"),
    ({"range": []}, "range", "found 0 bounds", "[low, high]"),
    ({"range": [0, 1, 2]}, "range", "found 3 bounds", "[low, high]"),
    ({"range": 5}, "range", "found 5", "[low, high]"),
    ({"range": {"low": 0}}, "range", "found a mapping", "[low, high]"),
    ({"range": [None, 5]}, "range[1]", "a bound is missing", "[low, high]"),
    ({"range": [0, None]}, "range[2]", "a bound is missing", "[low, high]"),
    ({"range": [0, float("nan")]}, "range[2]", "nan is not a number", "finite"),
    ({"range": [float("-inf"), 0]}, "range[1]", "-inf is not a number", "finite"),
    ({"range": [0, 10**61]}, "range[2]", "more than 60 digits", "finite"),
    ({"range": [0, "5"]}, "range[2]", "found the text '5'", ""),
    ({"range": [True, 5]}, "range[1]", "found True", ""),
    ({"range": [0, 2**62]}, "range", "2^62", "narrow"),
    ({"range": [0, 2**40], "grain": 1e-9}, "range", "2^62", "coarser"),
    ({"range": [0, 1], "grain": 0.3}, "range", "1 is not a multiple of the grain 0.3", "0.9 or 1.2"),
    ({"range": [0, 1], "grain": -1}, "grain", "grain is -1", "above 0"),
    ({"range": [0, 1], "grain": "fine"}, "grain", "found the text 'fine'", ""),
    ({"range": [0.5, 1]}, "", "grain is missing", "0.01"),
    ({"range": [0, "1/2"]}, "", "grain is missing", "0.01"),
    ({"range": [0, 9], "bins": 0}, "bins", "not a positive multiple", "multiple of 1"),
    ({"range": [0, 9], "bins": 10}, "bins", "wider", "at most 9"),
    ({"range": [0, 9], "bins": "x"}, "bins", "found the text 'x'", ""),
    ({"range": [0, 9], "bin": 2}, "bin", "not known", "did you mean 'bins'?"),
    ({"range": [date(2020, 1, 2), date(2020, 1, 1)]}, "range", "2020-01-02 is after", "[2020-01-01, 2020-01-02]"),
    ({"range": [date(2020, 1, 1), 5]}, "range", "one end is a date", "one kind"),
    ({"range": ["2020-02-30", "2020-03-01"]}, "range[1]", "not a day of the calendar", "2024-01-31"),
    ({"range": [date(2020, 1, 1), date(2021, 1, 1)], "grain": 1}, "grain", "no grain", "one day"),
    ({"range": [0, 9], "typical": [0, 10]}, "typical", "[0, 10] is not within the range", "clamped to [0, 9]"),
    ({"range": [0, 9], "typical": [3, 3]}, "typical", "3 is not below 3", "most values lie"),
    ({"range": [0, 9], "typical": 3}, "typical", "expected two numbers, found 3", "[low, high]"),
    ({"range": [0, 9], "typical": [1, "x"]}, "typical[2]", "found the text 'x'", ""),
    ({"range": "unbounded", "grain": 1, "typical": [0, 2**62]}, "typical", "not within the range", "clamped"),
    ({"range": [date(2020, 1, 1), date(2021, 1, 1)], "typical": [1, 2]}, "typical", "columns of numbers", "leave"),
    ({"values": ["a"], "typical": [1, 2]}, "typical", "columns of numbers", "leave it out"),
    ({"values": []}, "values", "empty", "text"),
    ({"values": "abc"}, "values", "expected a list", "[F, M]"),
    ({"values": {"a": 1}}, "values", "expected a list", "[F, M]"),
    ({"values": ["a", "b", "a"]}, "values[3]", "'a' is listed twice", "value 1"),
    ({"values": [1, 2, 1]}, "values[3]", "1 is listed twice", "value 1"),
    ({"values": ["a", 1]}, "values", "mix whole numbers and strings", "quotes"),
    ({"values": [1, True]}, "values", "mix true/false and whole numbers", "one kind"),
    ({"values": ["a", None]}, "values[2]", "NULL is not a value", "nulls: true"),
    ({"values": [0.5]}, "values[1]", "0.5 is not a whole number", "range"),
    ({"values": [float("nan")]}, "values[1]", "nan is not a whole number", "range"),
    ({"values": [date(2020, 1, 1)]}, "values[1]", "is a date", "range"),
    ({"values": [["a"]]}, "values[1]", "found a list", "strings"),
    ({"values": [2**62]}, "values", "too large", "2^62"),
    ({"values": ["a"], "nulls": "yes"}, "nulls", "expected true or false", ""),
    ({"values": [str(i) for i in range(100_001)]}, "values", "100,001 values", "text"),
    ({"lower": 0, "type": "id"}, "lower", "not known", "did you mean 'range'?"),
]


@pytest.mark.parametrize(("declared", "part", "what", "advice"), BAD)
def test_a_mistake_is_named_and_is_the_only_one(declared: Any, part: str, what: str, advice: str) -> None:
    problem = only_problem(lambda: load(rows(x=declared)))
    assert problem.where == "tables.t.columns.x" + (f".{part}" if part else "")
    assert what in problem.what
    assert advice in problem.advice


@pytest.mark.parametrize(
    "declared",
    ["{range: [____, ____]}", "{range: [0, ____]}", "{values: [____]}", "{range: [0, 1], grain: ____}", "{type: ____}"],
)
def test_blanks_are_told_in_plain_words(declared: str) -> None:
    with pytest.raises(PolicyError) as caught:
        column_text(declared)
    (problem,) = caught.value.problems
    assert "left to fill in" in problem.what
    assert problem.line == 6


def test_a_list_of_thousands_of_mistakes_is_told_shortly() -> None:
    found = problems_of(lambda: load(rows(x={"values": [0.5] * 10_000})))
    assert len(found) == 20
