"""Waiting for one's turn at a ledger that many use."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from confide.errors import LedgerBusy, LedgerError
from confide.ledger.process.interrupt import InterruptsDeferred

_LONG = 0.1  # seconds until a server that takes no more connections is asked again

Result = TypeVar("Result")


class Turns:
    """One thread at a time. Handlers of signals, as of Ctrl-C, are called between two tries, never within one."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._mutex = threading.RLock()
        self._taken = False

    def take(self, attempt: Callable[[float], tuple[Result] | None]) -> Result:
        """Try until `attempt` gives a result instead of None, which says that others are at it, or the time is up.

        An attempt is told the moment, on the monotonic clock, at which the time is up. What stops it for another reason
        that may pass, it raises as `LedgerBusy`; if it does not pass, that is what is said.
        """
        deadline = time.monotonic() + self._timeout
        pause = 0.0002
        reason: LedgerBusy | None = None
        while True:
            with InterruptsDeferred():
                mutex = self._mutex  # a child that is forked within an attempt gets another
                if mutex.acquire(timeout=0.05):
                    try:
                        reason = None
                        result = self._alone(attempt, deadline)
                        if result is not None:
                            return result[0]
                    except LedgerBusy as error:
                        reason, pause = error, _LONG
                    finally:
                        mutex.release()
            if time.monotonic() >= deadline:
                raise reason or LedgerBusy(f"the ledger {self._name} was in use by others for {self._timeout:g} s")
            time.sleep(pause)
            pause = min(2 * pause, 0.005) if reason is None else _LONG

    def _alone(self, attempt: Callable[[float], tuple[Result] | None], deadline: float) -> tuple[Result] | None:
        """An attempt that is not within another one of the same thread, as a signal handler's would be."""
        if self._taken:
            raise LedgerError(f"the ledger {self._name} is in the middle of a call of this thread: ask when it is over")
        self._taken = True
        try:
            return attempt(deadline)
        finally:
            self._taken = False

    def hold(self) -> None:
        self._mutex.acquire()

    def release(self) -> None:
        self._mutex.release()

    def forget(self) -> None:
        """On the far side of a fork: whoever held this is not here."""
        self._mutex = threading.RLock()
        self._taken = False
