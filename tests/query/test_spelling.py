"""The nearest known word: found among those next to it in the alphabet, in bounded time."""

import random
import time

import pytest

from confide.query.spelling import nearest


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("regoin", ["Region", "age", "income"], "did you mean Region?"),
        ("AGE", ["Age", "age"], "did you mean Age?"),
        ("zzz", ["b", "a"], "there are a, b"),
        ("zzz", [], "there are none"),
        ("place_00499x", [f"place_{number:05}" for number in range(10_000)], "did you mean place_00499?"),
    ],
)
def test_what_is_told(name, known, told):
    assert nearest(name, known, "there are") == told


def test_a_hundred_thousand_long_values_take_no_time():
    draw = random.Random(1)
    known = ["".join(draw.choices("abcdefgh", k=60)) for _ in range(100_000)]
    begun = time.perf_counter()
    nearest("abcdefgh" * 8, known, "the policy declares")
    assert time.perf_counter() - begun < 1
