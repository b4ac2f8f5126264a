"""Signals wait for the end of a transaction."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final

_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGALRM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGPROF,
    signal.SIGVTALRM,
)


class InterruptsDeferred:
    """Inside, a Ctrl-C or another signal that has a handler is noted; the handler is called on the way out.

    A handler may raise, as Ctrl-C does and as time limits do, between any two steps: a lock that was just taken would
    then be held for ever, and a transaction stay open. It may also ask the ledger, or fork. Only the main thread ever
    calls one.
    """

    def __init__(self) -> None:
        self._previous: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._seen: dict[int, FrameType | None] = {}
        self._inside = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                previous = signal.getsignal(number)
                if callable(previous):  # otherwise it is ignored, or kills the process, and neither needs us
                    self._previous[number] = previous
                    signal.signal(number, self._note)
            self._inside = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = False
        try:
            for number, previous in self._previous.items():
                signal.signal(number, previous)
        finally:
            self._deliver()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._inside:
            self._seen[number] = frame
        else:  # on the way in or out
            self._previous[number](number, frame)

    def _deliver(self) -> None:
        """Call the handlers; whatever one of them raises, the others have their turn."""
        if self._seen:
            number, frame = self._seen.popitem()
            try:
                self._previous[number](number, frame)
            finally:
                self._deliver()
