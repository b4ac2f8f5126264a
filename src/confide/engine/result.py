"""What a statement returns, whichever database ran it, and how it ends: in one constant failure, if it fails."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from numpy.typing import NDArray

from confide.errors import EngineError, tell_custodian

Result = TypeVar("Result")
Rows = list[tuple[Any, ...]]
Columns = dict[str, NDArray[Any]]

BATCH: Final = 50_000
"""How many rows of a long result are held as Python's values at a time."""


class TimeLimitError(Exception):
    """The statement took longer than it may."""


@contextmanager
def ended(batches: Iterable[Result]) -> Iterator[Iterable[Result]]:
    """Batches that are closed here, whatever happens. A generator that is only forgotten has nobody to raise to, and
    Python would write what went wrong to standard error."""
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):
            batches.close()


def unless_failed(read: Callable[[], Result], unchanged: Callable[[], bool]) -> Result:
    """What `read` gives, if the data are still those that were opened. Whatever fails is an `EngineError`."""
    reason: Exception | None = None
    try:
        result = read()
        if unchanged():
            return result
    except Exception as error:
        reason = error
    # Raised outside of the handler, so that the database's words do not travel along as its context.
    tell_custodian("the data changed since they were opened" if reason is None else "a statement failed", reason)
    del reason  # it refers to this frame
    raise EngineError
