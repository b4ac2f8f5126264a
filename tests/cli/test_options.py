"""How options are read."""

import pytest

from confide.cli.options import read_bounds, read_share, read_split, read_sql, read_whole, read_within
from confide.errors import ParameterError


def test_what_is_not_given_stays_so() -> None:
    assert read_within(None) is read_split(None) is read_bounds(None) is read_whole(None, "--rows") is None


def test_shares_and_numbers() -> None:
    assert read_share("0.9", "--confidence") == read_share("90%", "--confidence") == 0.9
    assert read_whole("1_000", "--rows") == read_whole("1,000", "--rows") == 1000


def test_widths_for_all_columns_or_each() -> None:
    assert read_within("5%") == "5%"
    assert read_within("n=50, avg = 2%") == {"n": "50", "avg": "2%"}


def test_pairs() -> None:
    assert read_split("n=1,avg=3") == {"n": "1", "avg": "3"}
    assert read_bounds("total=-1:5e2,n=0:20") == {"total": ["-1", "5e2"], "n": ["0", "20"]}


@pytest.mark.parametrize("text", ["", "n", "=1", "n=1,", "n=1,n=2", ","])
def test_pairs_that_are_none(text: str) -> None:
    with pytest.raises(ParameterError, match="write for example"):
        read_split(text)


def test_a_question_is_taken_as_it_is() -> None:
    assert read_sql("SELECT '@' AS x") == "SELECT '@' AS x"
    with pytest.raises(ParameterError, match="cannot be read"):
        read_sql("@/nothing/here.sql")
    with pytest.raises(ParameterError, match="cannot be read"):
        read_sql("@\0")
