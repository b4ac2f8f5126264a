"""How far a long call is, for whoever waits for it: said where it is known, heard by whoever asked.

What is said of work between a charge and its outcome follows from public facts: how many levels, groups, columns or
rounds there are, never how long any of them took to solve. Of arithmetic on released numbers anything may be said.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

Tell = Callable[[str, float, int], None]
"""Is told what is being done, how many steps are done, and of how many."""

PATIENCE: Final = 0.5
_listener: ContextVar[Tell | None] = ContextVar("who hears how far a call is", default=None)


@contextmanager
def heard_by(listener: Tell | None) -> Iterator[None]:
    """Inside, `tell` tells this one, or nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: float, steps: int) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(what, done, steps)


@contextmanager
def part_of(what: str, done: int, steps: int) -> Iterator[None]:
    """Inside, what is told is told as part of this one step, and not more often than somebody can read.

    For arithmetic on released numbers alone: how often something is told depends on the time that it takes.
    """
    listener = _listener.get()
    last = time.monotonic()

    def passed_on(inner: str, share: float, parts: int) -> None:
        nonlocal last
        assert listener is not None
        if time.monotonic() - last >= PATIENCE:
            listener(f"{what}: {inner}", done + min(share / parts, 1.0), steps)
            last = time.monotonic()

    tell(what, done, steps)
    with heard_by(None if listener is None else passed_on):
        yield
