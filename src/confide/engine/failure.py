"""A reading that fails: whatever the reason is, the words are the same."""

from collections.abc import Callable
from typing import TypeVar

from confide.errors import EngineError, tell_custodian

Result = TypeVar("Result")


def unless_failed(read: Callable[[], Result], unchanged: Callable[[], bool]) -> Result:
    """What is read of data that are still those that were opened; else, and whatever fails, an `EngineError`."""
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
