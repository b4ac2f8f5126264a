"""What happens between a charge and its outcome: it is guarded, and what comes of it is one of two things.

Everything in between works on exact values, or on noisy ones that nobody has seen. Which exception it ends with, which
warning it gives and what it logs would all tell of them. So whatever goes wrong becomes one constant failure, which is
kept like an answer: the same call again finds it, and no second noise is drawn for the same charge.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from confide.errors import ConfideError, EngineError, ParameterError, tell_custodian
from confide.host.progress import Tell, heard_by
from confide.privacy.limits import LONGEST_ANSWER

Given = ParamSpec("Given")
Result = TypeVar("Result")

FAILURE: Final = b"confide failure 1\n"
"""What is kept in place of an answer. No answer begins like this: they are JSON, zlib's, or name what they are."""

_STOPS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
_LONGEST_CHAIN: Final = 100
GOES_ON: Final = "the charge stands, and nothing was given for it; the same call again costs nothing more"
NOT_CHARGED: Final = "nothing was charged"


def guarded(release: Callable[[], bytes], read: Callable[[bytes], Result]) -> tuple[bytes, Result | None]:
    """What `release` gives, and how it reads; the failure and None if anything goes wrong, whatever it is.

    It is read here already, so that what is kept is known to be readable. Somebody who stops the program is no failure
    but like a crash: nothing has left, so nothing need be kept.
    """
    stopped: BaseException | None = None
    failed: BaseException | None = None
    try:
        with quiet():
            given = release()
            if len(given) <= LONGEST_ANSWER and given != FAILURE:
                return given, read(given)
    except _STOPS as stop:
        stopped = _afresh(stop)
    except CallersError as stop:
        stopped = stop.error.with_traceback(None)
    except BaseException as error:
        behind = _stop_behind(error)
        if behind is None:
            failed = error
        else:
            stopped = _afresh(behind)
    # Outside of the handlers, so that nothing travels along as a context.
    if stopped is not None:
        raise stopped
    tell_custodian("a release failed after its charge", failed)
    return FAILURE, None


def settled(work: Callable[[], Result], paid: Callable[[], bool] = lambda: True) -> Result:
    """Arithmetic on what was released. Our own errors leave it as they are, and any other as the constant failure.

    Nothing is kept of it: it is computed from what is kept, and so ends in the same way each time. Where nothing was
    paid for yet, nothing was released either, and errors tell of public facts.
    """
    try:
        return work()
    except CallersError as stop:
        failed = stop.error
    except ConfideError:
        raise
    except Exception as error:
        if not paid():
            raise
        failed = EngineError()
        tell_custodian("arithmetic on what was released failed", error)
    raise failed


class CallersError(Exception):
    """What a function that the caller gave us raised: it is theirs, and stops the call as Ctrl-C does."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def callers(function: Callable[Given, None] | None) -> Callable[Given, None]:
    """A function that the caller gave us, or did not, to tell how far we are."""
    if function is not None and not callable(function):
        raise ParameterError(f"progress is a {type(function).__name__}; give a function that is told how far it is")

    def call(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            if function is not None:
                function(*given, **named)
        except _STOPS:
            raise
        except BaseException as error:  # a task that is cancelled is no Exception, and no failure of ours either
            raise CallersError(error) from None

    return call


@contextmanager
def listening(progress: Tell | None) -> Iterator[None]:
    """Inside, a function that the caller gave us, or did not, hears how far we are. It is told by guarded or settled
    work alone, which ends with what it raises."""
    with heard_by(None if progress is None else callers(progress)):
        yield


def _stop_behind(error: BaseException) -> BaseException | None:
    """The stop that a library, in the middle of loading, turned into an error of its own."""
    link: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if link is None or isinstance(link, _STOPS):
            break
        link = link.__cause__ or link.__context__
    return link if isinstance(link, _STOPS) else None


def was_charged(stop: BaseException) -> bool:
    """Whether a stop came after the charge of what it stopped, as its notes say."""
    return GOES_ON in getattr(stop, "__notes__", ())


def told(kept: bytes, read: Callable[[bytes], Result]) -> Result:
    """What is kept under a key, read: the answer, or the constant failure once more."""
    if kept == FAILURE:
        raise EngineError
    return read(kept)


def _afresh(stop: BaseException) -> BaseException:
    """The same stop without what it went through, whose frames hold exact values."""
    fresh: BaseException = KeyboardInterrupt()
    if isinstance(stop, SystemExit):
        fresh = SystemExit(stop.code)
    elif isinstance(stop, GeneratorExit):
        fresh = GeneratorExit()
    fresh.add_note(GOES_ON)
    return fresh


# --- warnings ---------------------------------------------------------------------------------------------------------

_inside: ContextVar[bool] = ContextVar("between a charge and its outcome", default=False)


class _Unsaid:
    """Stands where a filter of warnings has its pattern: it matches whatever is said inside of a guard.

    `warnings.catch_warnings` would do it for all threads of the process, and leave the filters of another thread behind
    where two of them overlap. This one is in place for good, and does nothing elsewhere.
    """

    def match(self, text: str) -> bool:
        return _inside.get()


_FILTER: Final[Any] = ("ignore", _Unsaid(), Warning, None, 0)


_placing: Final = Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, no warning is shown, kept or raised: whether there is one may depend on the data."""
    if not warnings.filters or warnings.filters[0] is not _FILTER:
        _place_first()
    token = _inside.set(True)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _inside.reset(token)


def _place_first() -> None:
    """Somebody put a filter before ours, or took ours away."""
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    with _placing:
        filters.insert(0, _FILTER)
        for place in range(len(filters) - 1, 0, -1):
            if filters[place] is _FILTER:
                del filters[place]
