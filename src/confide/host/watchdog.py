"""An end to waits that a library does not end by itself: names that are looked up, hosts and servers that say nothing.

libpq has no time-out for a connection that is established. One thread looks after all connections of a process; it is
there while any of them is.
"""

import contextlib
import math
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from confide.host.fork import close_with

_LOOK: Final = 0.25

Result = TypeVar("Result")


class Watchdog:
    """Cuts a connection whose server did not answer in time; the one who waits for it then gets an error."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._deadline = math.inf
        self.cut = False
        self._closing = close_with(self, self._socket.close)
        _patrol.add(self)

    @contextlib.contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Inside, the connection is cut when the monotonic clock passes `deadline`."""
        before, self._deadline = self._deadline, min(self._deadline, deadline)
        try:
            yield
        finally:
            self._deadline = before

    def look(self, now: float) -> None:
        if now > self._deadline:
            self.cut = True
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        _patrol.remove(self)
        self._closing()

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()


class _Patrol:
    """The one thread."""

    def __init__(self) -> None:
        self._dogs: weakref.WeakSet[Watchdog] = weakref.WeakSet()
        self._lock = threading.RLock()  # what is collected while it is held may close a connection
        self._thread: threading.Thread | None = None

    def add(self, dog: Watchdog) -> None:
        with self._lock:
            self._dogs.add(dog)
            if self._thread is None:
                self._thread = threading.Thread(target=self._walk, name="confide-watchdog", daemon=True)
                self._thread.start()

    def remove(self, dog: Watchdog) -> None:
        with self._lock:
            self._dogs.discard(dog)

    def forget(self) -> None:
        """In the child of a fork, which has neither the thread nor the connections."""
        self.__init__()  # type: ignore[misc]

    def _walk(self) -> None:
        while True:
            time.sleep(_LOOK)
            with self._lock:
                if not self._looked():
                    self._thread = None
                    return

    def _looked(self) -> bool:
        """In a call of its own, so that no dog is held between two looks."""
        dogs = list(self._dogs)
        now = time.monotonic()
        for dog in dogs:
            dog.look(now)
        return bool(dogs)


_patrol = _Patrol()
os.register_at_fork(after_in_child=_patrol.forget)


def within(seconds: float, work: Callable[[], Result], late: Callable[[Result], Any]) -> Result:
    """What `work` gives, or raises, in so many seconds; else `TimeoutError`, and `late` is given what comes later."""
    results: list[Result] = []
    errors: list[BaseException] = []
    over = threading.Event()
    judged = threading.Lock()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
            return
        with judged:
            if not over.is_set():
                results.append(result)
                return
        late(result)

    worker = threading.Thread(target=run, name="confide-connect", daemon=True)
    worker.start()
    try:
        worker.join(max(0.0, seconds))
    finally:
        with judged:
            over.set()
            found = list(results)
    if found:
        return found[0]
    if errors:
        raise errors[0]
    raise TimeoutError
