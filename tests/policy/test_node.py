import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from confide.policy.node import Block, Leaf, Listing, UnreadableError, from_python, line_at, plain_leaf, ratio


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-9", Fraction(1, 10**9)),
        ("1E-9", Fraction(1, 10**9)),
        ("0.01", Fraction(1, 100)),
        (".5", Fraction(1, 2)),
        ("1e6", 10**6),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("1.0", Fraction(1)),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("2024-02-29", date(2024, 2, 29)),
        ("2023-02-29", "2023-02-29"),
        ("01234", "01234"),
        ("00.5", Fraction(1, 2)),
        ("1_000", "1_000"),
        ("0x1f", "0x1f"),
        ("1:30", "1:30"),
        ("1/3", "1/3"),
    ],
)
def test_unquoted_words_are_read_exactly(text: str, value: object) -> None:
    read = plain_leaf(text, 1).value
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("word", ["N", "n", "Y", "y", "no", "NO", "No", "yes", "on", "off", "On", "nan", "inf"])
def test_words_that_older_yaml_takes_for_truth_stay_words(word: str) -> None:
    assert plain_leaf(word, 1).value == word


@pytest.mark.parametrize("text", [".nan", ".inf", "-.inf", ".NaN", "1e999", "1e-999", "9" * 61, "1e999999999999"])
def test_numbers_that_cannot_be_used_are_marked_not_built(text: str) -> None:
    value = plain_leaf(text, 1).value
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(("text", "blank"), [("____", True), ("___", True), ("__", False), ("?", False)])
def test_blanks(text: str, blank: bool) -> None:
    assert plain_leaf(text, 1).blank is blank


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (0.1, Fraction(1, 10)),
        (1e-9, Fraction(1, 10**9)),
        (1e22, 10**22),
        (5.0, Fraction(5)),
        (np.float64(0.25), Fraction(1, 4)),
        (np.int64(7), 7),
        (Decimal("0.3"), Fraction(3, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (True, True),
        (None, None),
        ("no", "no"),
        ("12", "12"),
        (date(2020, 1, 1), date(2020, 1, 1)),
    ],
)
def test_python_values_are_read_exactly(value: object, read: object) -> None:
    leaf = from_python(value)
    assert isinstance(leaf, Leaf)
    assert leaf.value == read
    assert type(leaf.value) is type(read)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        Decimal("nan"),
        Decimal("inf"),
        pytest.param(10**5000, id="huge"),
        Decimal("1e9999"),
    ],
)
def test_python_numbers_that_cannot_be_used(value: object) -> None:
    leaf = from_python(value)
    assert isinstance(leaf, Leaf)
    assert isinstance(leaf.value, float)


def test_a_moment_is_not_a_day() -> None:
    leaf = from_python(datetime(2020, 1, 1, 12))  # noqa: DTZ001
    assert isinstance(leaf, Leaf)
    assert isinstance(leaf.value, str)


def test_a_string_in_a_dict_is_never_a_blank() -> None:
    leaf = from_python("____")
    assert isinstance(leaf, Leaf)
    assert not leaf.blank


@pytest.mark.parametrize("value", [{1.5: 2}, {1, 2}, object(), {"a": b"x"}, {1: 2, "1": 3}, "\ud800"])
def test_what_no_policy_holds_is_refused(value: object) -> None:
    with pytest.raises(UnreadableError):
        from_python(value)


def test_a_dict_that_holds_itself_is_refused() -> None:
    loop: dict[str, object] = {}
    loop["loop"] = loop
    with pytest.raises(UnreadableError, match="deep"):
        from_python(loop)


def test_ratios() -> None:
    assert ratio("1/3") == Fraction(1, 3)
    assert ratio("1/0") is None
    assert ratio("a/b") is None
    assert ratio("1/" + "9" * 99) is None


def test_the_line_of_a_place_is_that_of_the_deepest_node_that_exists() -> None:
    item = Leaf(1, "1", 7)
    root = Block({"a": Block({"b": Listing((item,), 6)}, 5, {"b": 6})}, 3, {"a": 4})
    assert line_at(root, ()) == 3
    assert line_at(root, ("a",)) == 4
    assert line_at(root, ("a", "b")) == 6
    assert line_at(root, ("a", "b", 0)) == 7
    assert line_at(root, ("a", "b", 9)) == 6
    assert line_at(root, ("a", "missing", "deeper")) == 4
    assert line_at(None, ("a",)) is None
