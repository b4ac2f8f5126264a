"""A fork leaves no lock behind that nobody will ever release."""

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import confide.host.fork
from confide.host.apart import apart


def test_a_fork_waits_for_modules_that_other_threads_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python locks each module while it is loaded; a child that needs one that was being loaded would wait for ever."""
    (tmp_path / "slowly_loaded.py").write_text("import time\nimport begun\nbegun.event.set()\ntime.sleep(0.3)\nx = 7\n")
    (tmp_path / "begun.py").write_text("import threading\nevent = threading.Event()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = __import__("begun")
    thread = threading.Thread(target=__import__, args=("slowly_loaded",))
    thread.start()
    assert begun.event.wait(10)
    gc.collect()  # what loading has left is not for the child to find
    child = os.fork()
    if child == 0:
        code = 1
        try:
            import signal  # noqa: PLC0415

            signal.alarm(20)
            code = 0 if __import__("slowly_loaded").x == 7 else 2
        finally:
            os._exit(code)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for name in ("slowly_loaded", "begun"):
        sys.modules.pop(name)


def _forked(child: Callable[[], bool]) -> int:
    """0 if the child says yes."""
    number = os.fork()
    if number == 0:
        code = 1
        try:
            code = 0 if child() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def test_a_fork_does_not_fall_into_the_beginning_of_work() -> None:
    """Two threads do short work all the time; a child never finds any in the middle, and no fork waits for long."""
    inside: set[int] = set()
    over = threading.Event()

    def work(place: int) -> None:
        inside.add(place)
        time.sleep(0.02)
        inside.remove(place)

    def often(place: int) -> None:
        while not over.is_set():
            apart(lambda: work(place))

    threads = [threading.Thread(target=often, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    codes = [_forked(lambda: not inside) for _ in range(10)]
    took = time.monotonic() - begun
    over.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 10
    assert took < 10


def test_a_fork_does_not_wait_for_long_work() -> None:
    begun, over = threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        over.wait(30)

    thread = threading.Thread(target=lambda: apart(long))
    thread.start()
    assert begun.wait(10)
    clock = time.monotonic()
    assert _forked(lambda: not over.is_set()) == 0
    took = time.monotonic() - clock
    assert apart(lambda: 7) == 7  # work begins again
    over.set()
    thread.join()
    assert took < 5


def test_a_child_of_work_that_forks_works_on() -> None:
    assert apart(lambda: _forked(lambda: apart(lambda: 7) == 7)) == 0


def test_a_wait_that_is_interrupted_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C while a fork waits for work that has just begun: work that begins later would wait for ever."""
    beginnings = confide.host.fork._Beginnings()
    beginnings.begin("work")

    def interrupted(seconds: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(beginnings._changed, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        beginnings.hold()
    monkeypatch.undo()
    thread = threading.Thread(target=beginnings.begin, args=("more",), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert confide.host.fork._beginnings in confide.host.fork._others  # in a child whether it was held or not
