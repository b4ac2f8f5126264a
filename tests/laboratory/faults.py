"""Faults between a charge and its outcome, at any step: a tracer counts what our code does there, and raises at one.

Every call of a function, or every line, is a step. So no list of steps can be out of date, and what is written tomorrow
is tried tomorrow.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import pytest

from confide.errors import EngineError, LedgerFull, ParameterError
from confide.mechanism import Randomness
from confide.release import Session, holdings

Event = Literal["call", "line"]


class OddError(BaseException):
    """Not even an Exception."""


FAULTS: tuple[Callable[[], BaseException], ...] = (
    lambda: OverflowError("int 12345 too large to convert to float"),
    lambda: IndexError("index 12345 is out of bounds for axis 0 with size 17"),
    lambda: ValueError("12345"),
    lambda: TypeError("12345"),
    lambda: KeyError("12345"),
    ZeroDivisionError,
    lambda: FloatingPointError("underflow at 12345"),
    MemoryError,
    lambda: RecursionError("12345"),
    lambda: AssertionError("12345"),
    lambda: RuntimeError("generator raised StopIteration 12345"),  # a bare one only ends the `map` it is raised under
    lambda: RuntimeWarning("12345"),
    lambda: UnicodeEncodeError("utf-8", "12345", 0, 1, "12345"),
    lambda: OSError(28, "12345"),
    EngineError,
    lambda: LedgerFull("12345; nothing was charged"),
    lambda: ParameterError("12345"),
    lambda: OddError("12345"),
)


@cache
def _tries(path: str) -> tuple[tuple[range, frozenset[str]], ...]:
    """Of every `try` of a file the lines that it guards, and the errors that it names."""
    found = []
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
        if isinstance(node, ast.Try):
            named = [name for handler in node.handlers if handler.type is not None for name in ast.walk(handler.type)]
            names = frozenset(
                name.id if isinstance(name, ast.Name) else name.attr
                for name in named
                if isinstance(name, ast.Name | ast.Attribute)
            )
            found.append((range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1), names))
    return tuple(found)


def caught_at(path: str, line: int) -> frozenset[str]:
    """Errors that a line is there to meet: a `try` around it names them. To raise one there is no fault."""
    return frozenset().union(*(names for lines, names in _tries(path) if line in lines))


@dataclass
class Tracer:
    """Counts events of our own code inside of a guard, and raises at the one that is told. At a line within a `try`
    whose own `except` names the type of the fault nothing is raised: there it is met, not a fault.
    """

    event: Event = "call"
    place: int = -1
    fault: Callable[[], BaseException] = FAULTS[0]
    seen: int = 0
    where: str = ""

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith("confide.") or name == "confide.release.guard":
            return None
        if event == self.event:
            self.seen += 1
            if self.seen - 1 == self.place:
                fault = self.fault()
                if event == "line" and type(fault).__name__ in caught_at(frame.f_code.co_filename, frame.f_lineno):
                    return self
                self.where = f"{name}:{frame.f_lineno}"
                raise fault
        frame.f_trace_lines = self.event == "line"
        return self

    def watching(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any) -> Any:
            before = sys.gettrace()
            sys.settrace(self)
            try:
                return work(*given)
            finally:
                sys.settrace(before)

        return watched


@contextmanager
def traced(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is guarded, under a tracer. A fault in a generator that is being forgotten, where nothing runs, is none."""
    guarded = holdings.guarded

    def forgotten(unraisable: Any) -> None:
        assert "<genexpr>" in repr(unraisable.object), "written to standard error, where it may tell of the data"
        tracer.where = ""

    with monkeypatch.context() as patch:
        patch.setattr(sys, "unraisablehook", forgotten)
        patch.setattr(
            holdings, "guarded", lambda release, read: guarded(tracer.watching(release), tracer.watching(read))
        )
        yield


@dataclass
class Counting:
    """A source of noise that counts its draws."""

    inner: Randomness
    draws: int = 0
    kernel: bool = field(init=False)

    def __post_init__(self) -> None:
        self.kernel = self.inner.kernel

    def bytes(self, count: int) -> bytes:
        self.draws += 1
        return self.inner.bytes(count)

    def uint64(self, count: int) -> Any:
        self.draws += 1
        return self.inner.uint64(count)


def entries(session: Session) -> list[str]:
    return [entry.kind for entry in session._holdings.ledger.entries() if entry.kind in ("charge", "answer")]


def what_leaves(call: Callable[[], Any]) -> tuple[Any, ...]:
    """An answer as bytes, or an error with everything that hangs on it."""
    try:
        found = call()
    except BaseException as error:
        hidden = (error.__cause__, error.__context__, tuple(getattr(error, "__notes__", ())))
        return type(error), str(error), error.args, hidden
    return ("answered", getattr(found, "to_bytes", lambda: repr(found))())


FAILURE = (EngineError, str(EngineError()), EngineError().args, (None, None, ()))
