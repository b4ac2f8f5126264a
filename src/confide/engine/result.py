"""What a statement returns, whichever database ran it, and how it ends."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from numpy.typing import NDArray

Result = TypeVar("Result")
Rows = list[tuple[Any, ...]]
Columns = dict[str, NDArray[Any]]

BATCH: Final = 50_000
"""How many rows of a long result are held as Python's values at a time."""


class TimeLimitError(Exception):
    """The statement took longer than it may."""


@contextmanager
def ended(batches: Iterable[Result]) -> Iterator[Iterable[Result]]:
    """Batches that are ended here, whatever happens. What ends by being forgotten has nobody to raise to, and Python
    writes what went wrong to standard error."""
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):
            batches.close()
