"""Public rows as places, as an engine would see them."""

from datetime import date

import pytest

from confide.errors import ParameterError
from confide.workload import places_of
from tests.workload.samples import domain

FRAME = {
    "sex": ["F", "M", "F", "X", "M"],
    "ward": [1, None, 3, 2, 2],
    "age": [0.4, 250, -3, 30, float("nan")],
    "day": [date(2024, 1, 1), date(2025, 1, 1), date(2020, 1, 1), date(2024, 1, 2), date(2024, 1, 3)],
}


def test_values_are_clamped_and_what_has_no_place_is_left_out() -> None:
    assert places_of(FRAME, domain()).tolist() == [[0, 0, 0, 0], [1, 3, 5, 3], [0, 2, 0, 0]]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ParameterError, match="no column day"):
        places_of({name: values for name, values in FRAME.items() if name != "day"}, domain())
