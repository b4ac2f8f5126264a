"""Threads that are kept for the next piece of work: what a database allocates in a new one costs milliseconds.

They are a module of their own: a thread that waits when the interpreter ends keeps the names of its module, and the
library complains on standard error if it is among them.
"""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

MOST_IDLE: Final = 8


class Worker:
    """A thread that does one piece of work after the other. It does not keep the interpreter from ending."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._loop, name="confide-apart", daemon=True).start()

    def do(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def end(self) -> None:
        self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # and with it what it found


_idle: list[Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # a child has none of these threads


def hired() -> Worker:
    """A thread that has nothing to do."""
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def dismissed(worker: Worker) -> None:
    """It has done its work, and may be needed again."""
    if len(_idle) < MOST_IDLE:
        _idle.append(worker)
    else:
        worker.end()
