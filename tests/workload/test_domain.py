"""Columns as lists of places, from the policy alone."""

from datetime import date

import pytest

from confide.errors import ParameterError
from confide.workload import Binned, Listed, domain_of
from tests.workload.samples import domain, table


def test_columns_with_declared_values_are_taken_and_wide_ones_left_out() -> None:
    found = domain()
    assert found.names == ("sex", "ward", "age", "day")
    assert found.sizes == (2, 4, 6, 4)


def test_nulls_have_a_place_where_the_policy_says_so() -> None:
    ward = domain().attributes[1]
    assert isinstance(ward, Listed)
    assert ward.values == (1, 2, 3, None)


def test_bins_of_the_call_stand_before_those_of_the_policy() -> None:
    found = domain_of(table(), ["age", "income"], {"income": 100_000, "age": 50})
    assert found.sizes == (3, 6)


def test_the_last_bin_ends_with_the_range() -> None:
    age = domain().attributes[2]
    assert isinstance(age, Binned)
    assert [age.ends(place) for place in range(age.size)][-1] == (100, 115)
    assert age.label(0) == "0 to 19"
    assert domain().attributes[3].label(3) == str(date(2024, 1, 4))


@pytest.mark.parametrize(
    ("columns", "bins", "words"),
    [
        (["sx"], None, "did you mean sex"),
        (["income"], None, "bins={'income': 10000}"),
        (["name"], None, "no declared values"),
        (["id"], None, "no declared values"),
        (["sex", "sex"], None, "twice"),
        (["sex"], {"age": 10}, "not among the columns"),
        (["sex"], {"sex": 1}, "bins are for ranged columns"),
        (["age"], {"age": 0}, "positive multiple"),
        (["age"], {"age": "x"}, "positive multiple"),
        (["age"], {"aeg": 10}, "did you mean age"),
        ([], None, "no column of t has declared values"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(
    columns: list[str], bins: dict[str, object] | None, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        domain_of(table(), columns, bins)


def test_an_unknown_column_of_a_domain_is_named_with_its_nearest() -> None:
    with pytest.raises(ParameterError, match="did you mean ward"):
        domain().place_of("wart")
