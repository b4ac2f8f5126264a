"""Future error: exact tables have none, and what is known of other columns shows."""

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.synthesis.relaxed import RelaxedTable
from confide.workload import Threshold, Workload, future_error, geometric, present_errors, uniform
from tests.synthesis.fitting import uniform_table
from tests.workload.samples import domain, rows

SIZES = (2, 4, 6, 4)


def one_hot(codes: np.ndarray) -> RelaxedTable:  # type: ignore[type-arg]
    parts = [np.eye(size, dtype=np.float32)[codes[:, column]] for column, size in enumerate(SIZES)]
    return RelaxedTable(SIZES, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("need", [1, 2, 3])
def test_the_rows_themselves_have_no_error(need: int) -> None:
    codes = rows(SIZES)
    generator = np.random.default_rng(1)
    found = future_error(
        one_hot(codes), domain(), codes, uniform(domain().names), 3, need, count=10, generator=generator
    )
    assert found.mean < 1e-6
    assert found.low <= found.mean <= found.high
    workload = Workload((Threshold(("sex", "ward", "age"), need),)).bound(domain())
    assert present_errors(one_hot(codes), codes, workload)[0] < 1e-6


def test_knowing_nothing_costs_what_the_rows_hold() -> None:
    codes = rows(SIZES)
    interest = geometric(domain().names)
    found = future_error(
        uniform_table(SIZES), domain(), codes, interest, 2, count=20, generator=np.random.default_rng(2)
    )
    assert 0.05 < found.mean < 1
    assert "thresholds" in str(found)


def test_rows_of_another_shape_are_refused() -> None:
    with pytest.raises(ParameterError, match="4 columns"):
        future_error(
            uniform_table(SIZES), domain(), np.zeros((3, 2), np.int64), uniform(["sex"]), 1,
            generator=np.random.default_rng(0),
        )  # fmt: skip
