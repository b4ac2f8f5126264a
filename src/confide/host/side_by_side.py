"""Several pieces of work at the same time, on as many processors as there are: for arithmetic that numpy does alone."""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

Done = TypeVar("Done")


def side_by_side(work: Sequence[Callable[[], Done]]) -> list[Done]:
    """What each piece gives, in their order: the first here, every other in a thread of its own.

    Threads see what the caller's context says, so that no warning is shown in one that is not shown here. The first
    error is raised when all have ended: none is left behind, neither at a fork nor when the caller is stopped.
    """
    if len(work) == 1:
        return [work[0]()]
    done: dict[int, Done] = {}
    failed: dict[int, BaseException] = {}

    def one(place: int) -> None:
        try:
            done[place] = work[place]()
        except BaseException as error:
            failed[place] = error

    threads = [
        threading.Thread(target=copy_context().run, args=(one, place), name="confide-part", daemon=True)
        for place in range(1, len(work))
    ]
    begun = []
    try:
        for thread in threads:
            thread.start()
            begun.append(thread)
        one(0)
    finally:
        for thread in begun:
            thread.join()
    if failed:
        raise failed[min(failed)]
    return [done[place] for place in range(len(work))]
