"""What takes too long is given up, and what it brings later is closed."""

import threading
import time

import pytest

from confide.host.patience import within


def test_what_is_in_time_is_given() -> None:
    assert within(10, lambda: 7, lambda _: pytest.fail("it was in time")) == 7
    with pytest.raises(KeyError):
        within(10, lambda: {}[7], lambda _: None)


def test_what_is_late_is_handed_over() -> None:
    go, closed = threading.Event(), threading.Event()
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        within(0.05, lambda: go.wait(10), lambda _: closed.set())
    assert time.monotonic() - started < 5
    go.set()
    assert closed.wait(10)
