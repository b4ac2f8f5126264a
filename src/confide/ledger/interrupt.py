"""Ctrl-C waits for the end of a transaction."""

import signal
import threading
from types import FrameType, TracebackType


class InterruptsDeferred:
    """Inside, a Ctrl-C is noted; it takes effect on the way out. Only the main thread ever sees one."""

    def __init__(self) -> None:
        self._previous: object = None
        self._pending: FrameType | None = None
        self._seen = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):  # otherwise it is ignored, or kills the process, and neither needs us
                self._previous = previous
                signal.signal(signal.SIGINT, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if callable(self._previous):
            signal.signal(signal.SIGINT, self._previous)
            if self._seen:
                self._previous(signal.SIGINT, self._pending)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._seen, self._pending = True, frame
