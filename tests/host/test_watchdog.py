"""What takes too long is given up, and what it brings later is closed.

One thread looks after all connections of a process, and none when there are none.
"""

import gc
import socket
import threading
import time
from pathlib import Path

import pytest

from confide.host.watchdog import Watchdog, within


def watchers() -> int:
    return sum(thread.name == "confide-watchdog" for thread in threading.enumerate())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_silent_connection_is_cut_in_time() -> None:
    here, there = socket.socketpair()
    dog = Watchdog(here.fileno())
    started = time.monotonic()
    with dog.until(started + 0.3):
        assert here.recv(1) == b""
    assert 0.3 <= time.monotonic() - started < 5
    assert dog.cut
    dog.close()
    here.close()
    there.close()


def test_what_nobody_holds_any_more_leaves_no_thread_and_no_descriptor() -> None:
    here, there = socket.socketpair()
    before = descriptors()
    for _ in range(50):
        Watchdog(here.fileno())
    gc.collect()
    assert descriptors() == before
    assert watchers() <= 1
    until = time.monotonic() + 10
    while watchers() and time.monotonic() < until:
        time.sleep(0.05)
    assert watchers() == 0
    kept = Watchdog(here.fileno())  # and it starts again
    assert watchers() == 1
    kept.close()
    here.close()
    there.close()


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
