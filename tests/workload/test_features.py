"""Distributions over columns, drawing and drift (Definition 5.2)."""

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.workload import Threshold, Workload, draw, drifted, geometric, padded, uniform, zipf

COLUMNS = [f"c{place}" for place in range(14)]


@pytest.mark.parametrize("make", [uniform, zipf, geometric])
def test_shares_add_up_and_fall(make: object) -> None:
    interest = make(COLUMNS)  # type: ignore[operator]
    assert sum(interest.shares) == pytest.approx(1)
    assert list(interest.shares) == sorted(interest.shares, reverse=True)


def test_columns_are_drawn_as_often_as_their_shares_say() -> None:
    # One column a time: 3,000 draws, each share within five standard deviations (false alarm below 1e-5).
    interest = geometric(COLUMNS[:4], 0.6)
    drawn = draw(interest, 3_000, 1, generator=np.random.default_rng(1))
    for column, share in zip(interest.columns, interest.shares, strict=True):
        seen = sum(part == Threshold((column,), 1) for part in drawn.parts) / 3_000
        assert abs(seen - share) < 5 * np.sqrt(share * (1 - share) / 3_000)


def test_no_drift_changes_nothing_and_full_drift_reverses() -> None:
    generator = np.random.default_rng(2)
    interest = geometric(COLUMNS)
    assert drifted(interest, 0, generator).shares == interest.shares
    assert drifted(interest, 1, generator).shares == interest.shares[::-1]


def test_drift_keeps_the_shares_and_moves_them_further_as_it_grows() -> None:
    generator = np.random.default_rng(3)
    interest = geometric(COLUMNS)
    distances = []
    for gamma in (0.0, 0.05, 0.2, 0.5, 1.0):
        moved = [drifted(interest, gamma, generator) for _ in range(200)]
        assert all(sorted(one.shares) == sorted(interest.shares) for one in moved)
        distances.append(np.mean([interest.distance(one) for one in moved]))
    assert distances == sorted(distances)
    assert distances[0] == 0


def test_drift_follows_the_shares_and_not_the_order_of_the_columns() -> None:
    interest = geometric(COLUMNS)
    turned = type(interest)(interest.columns, interest.shares[::-1])
    assert drifted(turned, 0, np.random.default_rng(4)).shares == turned.shares


def test_a_short_history_is_padded_and_a_long_one_is_not() -> None:
    history = Workload((Threshold(("c0", "c1"), 2),))
    longer = padded(history, COLUMNS, 10, 2, 2, generator=np.random.default_rng(5))
    assert len(longer.parts) == 10
    assert longer.parts[0] == history.parts[0]
    assert padded(longer, COLUMNS, 10, 2, 2, generator=np.random.default_rng(5)) is longer


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: drifted(uniform(COLUMNS), 1.5, g), "gamma = 1.5"),
        (lambda g: draw(uniform(COLUMNS), 0, 2, generator=g), "count = 0"),
        (lambda g: draw(uniform(COLUMNS), 1, 15, generator=g), "k = 15 columns are to be drawn from 14"),
        (lambda g: draw(uniform(COLUMNS), 1, 2, 3, generator=g), "r = 3 of k = 2"),
        (lambda _: geometric(COLUMNS, 1.0), "ratio = 1.0"),
    ],
)
def test_bad_arguments_are_refused(call: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        call(np.random.default_rng(0))  # type: ignore[operator]
