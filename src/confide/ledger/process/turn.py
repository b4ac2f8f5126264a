"""Turns at a ledger that many use: one thread at a time, with signals put off, on a connection that is held open.

Signals wait for the end of a turn. The connection and the anchor are used within a turn, and never across a fork.
"""

import signal
import threading
import time
from collections.abc import Callable
from inspect import unwrap
from types import FrameType, TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import finalize

from confide.errors import LedgerBusy, LedgerError
from confide.host.fork import close_with, keep_across_forks, leave_open
from confide.ledger.process.anchor import Anchor

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

# Without the wrappers that look for a name of each handler, which takes longer than all the rest of a turn.
_handler: Final = unwrap(signal.getsignal)
_set_handler: Final = unwrap(signal.signal)

_LONG = 0.1  # seconds until a server that takes no more connections is asked again

Result = TypeVar("Result")


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
                previous = _handler(number)
                if callable(previous):  # otherwise it is ignored, or kills the process, and neither needs us
                    self._previous[number] = previous
                    _set_handler(number, self._note)
            self._inside = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = False
        try:
            for number, previous in self._previous.items():
                _set_handler(number, previous)
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


class Turns:
    """One thread at a time. Handlers of signals, as of Ctrl-C, are called between two tries, never within one."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._mutex = threading.RLock()
        self._taken = False

    def take(self, attempt: Callable[[float], tuple[Result] | None]) -> Result:
        """Try until `attempt` gives a result, or the time is up. It gives None while others use the ledger.

        An attempt is told when the time is up, on the monotonic clock. If something else is in its way that may pass,
        it raises `LedgerBusy`; that error is raised here if the time is up first.
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
        """One attempt. The same thread may not be within another one, as a signal handler could be."""
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
        """In the child of a fork: whoever held this is not in this process."""
        self._mutex = threading.RLock()
        self._taken = False


class _Closing(Protocol):
    def close(self) -> None: ...


Held = TypeVar("Held", bound=_Closing)


class Holding(Generic[Held]):
    """A connection and an anchor: opened when first needed, by whoever takes a turn, and closed once and for all."""

    def __init__(self, name: str, timeout: float, connection: Held | None = None) -> None:
        self._turns = Turns(name, timeout)
        self._name = name
        self._connection: Held | None = None
        self._closing: finalize[..., Any] | None = None
        if connection is not None:
            self._keep(connection)
        self._anchor: Anchor | None = None
        self._closed = False
        keep_across_forks(self)

    def require_open(self) -> None:
        if self._closed:
            raise LedgerError(f"the ledger {self._name} was closed")

    def close(self) -> None:
        self.hold()
        try:
            self._closed = True
            self._drop()
            if self._anchor is not None:
                self._anchor.close()
                self._anchor = None
        finally:
            self.release()

    def hold(self) -> None:
        self._turns.hold()

    def release(self) -> None:
        self._turns.release()

    def abandon(self) -> None:
        """In the child of a fork: forget the connection, and do not close it, which could disturb its owner."""
        leave_open(self._connection)
        self._connection = self._closing = None
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None
        self._turns.forget()

    def _keep(self, connection: Held) -> Held:
        """Hold a connection; if nobody closes it, it is closed when nobody holds the ledger any more."""
        self._connection = connection
        self._closing = close_with(self, connection.close)
        return connection

    def _drop(self) -> None:
        closing, self._connection, self._closing = self._closing, None, None
        if closing is not None:
            closing()
