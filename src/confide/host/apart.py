"""Work in a thread of its own: a Ctrl-C comes to the thread that waits, and never into the middle of a library.

A library that is interrupted in the middle of its own code may never answer, lose the interrupt, or leave behind what
crashes the interpreter when it ends. So whatever is long and not ours runs here: the caller's thread waits, and when it
is stopped it has the work stopped first, and waits for its end.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Final, TypeVar

from confide.host.fork import whole_beginning
from confide.host.workers import dismissed, hired

Done = TypeVar("Done")

_PATIENCE: Final = 0.05


class TooLong(Exception):  # noqa: N818
    """The work did not end in time, and was stopped."""


def apart(work: Callable[[], Done], stop: Callable[[], None] | None = None, limit_seconds: float | None = None) -> Done:
    """What `work` gives, or raises. It sees what the caller's context says: in a release no warning is shown.

    `stop` has it end early, and is called until it does, should one call come too soon; work without a `stop` is short
    enough to be waited for.
    """
    results: list[Done] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            with whole_beginning():
                results.append(work())
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
        finally:
            done.set()

    context = copy_context()
    worker = hired()
    begun = finished = False
    try:
        worker.do(lambda: context.run(run))
        begun = True
        finished = done.wait(limit_seconds)
    finally:
        if begun:
            if not finished:
                _end(stop, done)
            dismissed(worker)
        else:
            worker.end()  # what never began never ends
    if not finished:
        raise TooLong
    if errors:
        raise errors[0]
    return results[0]


def _end(stop: Callable[[], None] | None, done: threading.Event) -> None:
    while not done.is_set():
        try:
            if stop is not None:
                stop()
            done.wait(_PATIENCE)
        except KeyboardInterrupt:  # a second one, from a hurried hand: it is stopping already
            continue
