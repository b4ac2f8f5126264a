"""An end to waits for a server that is there and says nothing, or a network that swallows packets.

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
from collections.abc import Iterator
from typing import Final

from confide.host.fork import close_with

_LOOK: Final = 0.25


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
