"""What belongs to one process: connections, threads and locks are never used on the far side of a fork.

A connection that two processes use gives each the other's answers. So whoever holds one says so here, and the child of
a fork abandons it, without a word to the other end, and opens another when it next needs one.

A ledger moreover is in the middle of nothing while the process forks, because the fork waits for it. An engine is not
waited for: a question may take an hour. But libraries make some of their own parts when these are first needed, under
locks that nobody can free in a child, which then waits for ever where it needs the same part. They do so when work
begins; so a fork waits until whatever has just begun is over, or has gone on for a while.
"""

import contextlib
import ctypes
import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol


class Abandoning(Protocol):
    def abandon(self) -> None:
        """In the child of a fork, before anything else runs there: forget what is the parent's."""


class Forkable(Abandoning, Protocol):
    def hold(self) -> None: ...

    def release(self) -> None: ...


_waited_for: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_others: "weakref.WeakSet[Abandoning]" = weakref.WeakSet()
_guard = threading.Lock()
_held: list[Forkable] = []
_inherited: set[str] = set()
_THREADED: Final = ("jax",)
_PATIENCE: Final = 5.0
_BEGINNING: Final = 0.5


def keep_across_forks(one: Forkable) -> None:
    """A fork waits until it holds `one`; the parent then releases it, the child abandons it."""
    with _guard:
        _waited_for.add(one)


@contextlib.contextmanager
def undivided() -> Iterator[None]:
    """Inside, no other thread forks: for what cannot be abandoned in the middle, and lasts for a moment."""
    passing = _Passing()
    keep_across_forks(passing)
    passing.hold()
    try:
        yield
    finally:
        passing.release()


class _Passing:
    """Held by one thread while it is in the middle of something."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def hold(self) -> None:
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def abandon(self) -> None:
        """Nobody here waits for it."""


class _Beginnings:
    """Work in libraries: none begins while a fork waits for what began less than half a second ago."""

    def __init__(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        self._changed = threading.Condition()
        self._open = True
        self._begun: dict[object, float] = {}

    def hold(self) -> None:
        with self._changed:
            self._open = False
            try:
                while self._begun and (left := max(self._begun.values()) + _BEGINNING - time.monotonic()) > 0:
                    self._changed.wait(left)
            except BaseException:  # as by Ctrl-C: the fork goes on all the same, and nobody would release this
                self.release()
                raise

    def release(self) -> None:
        with self._changed:
            self._open = True
            self._changed.notify_all()

    def begin(self, work: object) -> None:
        with self._changed:
            while not self._open:
                self._changed.wait()
            self._begun[work] = time.monotonic()

    def end(self, work: object) -> None:
        with self._changed:
            self._begun.pop(work, None)
            self._changed.notify_all()


_beginnings: Final = _Beginnings()
_waited_for.add(_beginnings)
_others.add(_beginnings)  # in a child also where the wait was interrupted


@contextlib.contextmanager
def whole_beginning() -> Iterator[None]:
    """Inside is work of a library that other threads may be doing as well: a fork does not fall into its beginning."""
    work = object()
    _beginnings.begin(work)
    try:
        yield
    finally:
        _beginnings.end(work)


def abandon_in_children(one: Abandoning) -> None:
    """A fork does not wait for `one`; the child abandons it."""
    with _guard:
        _others.add(one)


def leave_open(resource: object) -> None:
    """Take a reference that nobody ever drops, so that the resource is never closed in this process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(resource))


def sever(descriptor: int) -> None:
    """Point an inherited socket at nothing, without a word to its other end.

    A connection of the parent's then ends with the parent, and not with the last of its children; and whoever uses it
    here by mistake gets an error, and not somebody else's answer.
    """
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(nowhere, descriptor, inheritable=False)
    finally:
        os.close(nowhere)


def close_with(owner: object, close: Callable[..., object], *arguments: Any) -> "weakref.finalize[..., Any]":
    """Have `close(*arguments)` called when nobody holds `owner` any more, in the process that opened it only.

    The arguments must not lead back to the owner. Whoever closes in good time detaches what is returned here.
    """
    return weakref.finalize(owner, _close_here, os.getpid(), close, arguments)


def _close_here(process: int, close: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    if os.getpid() == process:
        # Nobody is there to be told: a server that is gone has closed its end already.
        with contextlib.suppress(Exception):
            close(*arguments)


def inherited(module: str) -> bool:
    """Whether a module was loaded before this process was forked: one with threads of its own is of no use here."""
    return module in _inherited


def _before() -> None:
    _wait_for_imports()
    _guard.acquire()
    for one in sorted(_waited_for, key=id):
        one.hold()
        _held.append(one)


def _wait_for_imports() -> None:
    """Until no other thread is loading a module, whose lock would be held in the child for ever; for some seconds."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and _others_load():
        time.sleep(0.001)


def _others_load() -> bool:
    # Python tells nobody who is loading what, but for the locks themselves; without them there is nothing to wait for.
    known: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    locks = [reference() for reference in list(known.values())]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in locks)


def _in_parent() -> None:
    while _held:
        _held.pop().release()
    _guard.release()


def _in_child() -> None:
    while _held:
        _held.pop().abandon()
    for one in list(_others):
        one.abandon()
    _inherited.update(name for name in _THREADED if name in sys.modules)
    _guard.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
