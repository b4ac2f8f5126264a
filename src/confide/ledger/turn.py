"""Waiting for one's turn at a ledger that many use."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from confide.errors import LedgerBusy
from confide.ledger.interrupt import InterruptsDeferred

Result = TypeVar("Result")


class Turns:
    """One thread at a time. A Ctrl-C takes effect between two tries, never within one."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._mutex = threading.RLock()

    def take(self, attempt: Callable[[float], tuple[Result] | None]) -> Result:
        """Try until `attempt` gives a result instead of None, which says that others are at it, or the time is up.

        An attempt is told the moment, on the monotonic clock, at which the time is up.
        """
        deadline = time.monotonic() + self._timeout
        pause = 0.0002
        while True:
            with InterruptsDeferred():
                if self._mutex.acquire(timeout=0.05):
                    try:
                        result = attempt(deadline)
                        if result is not None:
                            return result[0]
                    finally:
                        self._mutex.release()
            if time.monotonic() >= deadline:
                raise LedgerBusy(
                    f"the ledger {self._name} was in use by others for {self._timeout:g} s; nothing was charged. "
                    "Ask again under the same key"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.005)

    def hold(self) -> None:
        self._mutex.acquire()

    def release(self) -> None:
        self._mutex.release()

    def forget(self) -> None:
        """On the far side of a fork: whoever held this is not here."""
        self._mutex = threading.RLock()
