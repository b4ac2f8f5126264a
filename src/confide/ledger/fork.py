"""Ledgers across a fork: the child starts with a connection of its own.

A SQLite connection must not be used, nor even closed, on the other side of a fork. No ledger is in the middle of
anything while the process forks, because the fork waits for each of them; the child then abandons the connection and
opens another when it next needs one.
"""

import ctypes
import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    def hold(self) -> None: ...

    def release(self) -> None: ...

    def abandon(self) -> None: ...


_all: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_guard = threading.Lock()
_held: list[Forkable] = []


def keep_across_forks(one: Forkable) -> None:
    with _guard:
        _all.add(one)


def leave_open(resource: object) -> None:
    """Take a reference that nobody ever drops, so that the resource is never closed in this process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(resource))


def _before() -> None:
    _guard.acquire()
    for one in sorted(_all, key=id):
        one.hold()
        _held.append(one)


def _in_parent() -> None:
    while _held:
        _held.pop().release()
    _guard.release()


def _in_child() -> None:
    while _held:
        _held.pop().abandon()
    _guard.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
