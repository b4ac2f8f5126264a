"""An end to waits that a library does not end by itself: names that are looked up, hosts that say nothing."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


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
