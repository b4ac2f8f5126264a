"""Work in a thread of its own: what it gives, and how it ends when the one who waits is stopped."""

import signal
import threading
import time
from contextvars import ContextVar

import pytest

from confide.host.apart import TooLong, apart

_said: ContextVar[str] = ContextVar("said", default="")


def test_what_is_done_and_what_is_raised_come_back() -> None:
    assert apart(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0)


def test_the_context_of_the_caller_is_seen() -> None:
    token = _said.set("here")
    try:
        assert apart(_said.get) == "here"
    finally:
        _said.reset(token)


def interrupt_soon(times: int = 1) -> None:
    waiting = threading.get_ident()

    def press() -> None:
        for _ in range(times):
            time.sleep(0.1)
            signal.pthread_kill(waiting, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


def test_who_is_interrupted_waits_for_the_end_of_the_work() -> None:
    ended: list[str] = []

    def work() -> None:
        time.sleep(0.5)
        ended.append("in its own time")

    interrupt_soon(times=3)
    with pytest.raises(KeyboardInterrupt):
        apart(work)
    assert ended == ["in its own time"]


def test_work_that_can_be_stopped_is() -> None:
    enough = threading.Event()
    interrupt_soon()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        apart(lambda: enough.wait(60), enough.set)
    assert time.monotonic() - begun < 30


def test_a_limit_stops_it_too() -> None:
    enough = threading.Event()
    with pytest.raises(TooLong):
        apart(lambda: enough.wait(60), enough.set, 0.05)
