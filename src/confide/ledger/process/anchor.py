"""The anchor: a second file that remembers how far the ledger has gone; and how bytes are forced to disk.

The anchor holds (ledger, sequence, hash) of the last entry that was acknowledged, and is forced to disk before anybody
hears of a charge. A ledger that ends before its anchor has lost charges. Two slots are written in turn, each a line
with its own checksum in its own 4096-byte sector, so that a crash in the middle of a write leaves the other. The file
is also the lock that writers hold, which is what keeps the anchor from ever going back.
"""

import contextlib
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from confide.errors import LedgerDamaged, LedgerError

EXIT_CODE = 74  # EX_IOERR of sysexits

_SLOT = 4096
_LABEL = "confide-anchor-1"


def sync(descriptor: int, what: str) -> None:
    """Force a file to disk; the process ends if that fails."""
    try:
        # fdatasync also writes the size when it changed, which is all that reading the bytes back needs.
        getattr(os, "fdatasync", os.fsync)(descriptor)
    except OSError as error:
        end_process(f"{what} could not be forced to disk ({error.strerror})")


def sync_path(path: Path) -> None:
    """Force a file or folder to disk by its name; a file that is not there needs nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        sync(descriptor, str(path))
    finally:
        os.close(descriptor)


def end_process(reason: str) -> NoReturn:
    """End at once. After a failed fsync the kernel may drop the pages and report success the next time, so that nothing
    which this process believes about its files can be trusted any more; a new process reads what is really there."""
    sys.stderr.write(
        f"confide: {reason}. The process ends here, because what it wrote may or may not be on disk. No answer was "
        "given for the charge under way. Check the disk, then start again: the ledger is checked when it is opened.\n"
    )
    sys.stderr.flush()
    os._exit(EXIT_CODE)


@dataclass(frozen=True, slots=True)
class Mark:
    """The entry up to which a ledger was acknowledged."""

    ledger: str
    sequence: int
    hash: str

    def line(self) -> bytes:
        text = f"{_LABEL} {self.ledger} {self.sequence} {self.hash}"
        return f"{text} {hashlib.sha256(text.encode()).hexdigest()}\n".encode()

    @classmethod
    def parse(cls, line: bytes) -> Self | None:
        """The mark in a slot; None if the slot is empty, torn or damaged."""
        text, _, check = line.rstrip().rstrip(b" \0\n").rpartition(b" ")  # the first is quick on a slot of spaces
        if hashlib.sha256(text).hexdigest().encode() != check:
            return None
        _, ledger, sequence, digest = text.decode().split(" ")
        return cls(ledger, int(sequence), digest)


class Anchor:
    """An anchor file, held open. Reading needs no lock: at most one slot is being written at any time."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        self._descriptor = -1
        self._known: tuple[bytes, Mark | None] = (b"", None)  # the slots that were last read, and what they say
        try:
            flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
            self._descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            raise missing(path) from None
        except OSError as error:
            raise LedgerError(f"the anchor {path} cannot be opened for writing: {error.strerror}") from error
        if create:
            sync_path(path.parent)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the writers' lock for a while; yields False, at once, if somebody else has it."""
        try:
            yield self._lock()
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LedgerError(f"the anchor {self.path} cannot be locked: {error.strerror}") from error
        try:
            here, there = os.fstat(self._descriptor), self.path.stat()
        except FileNotFoundError:
            raise missing(self.path) from None
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise LedgerDamaged(f"the anchor {self.path} was replaced while the ledger was in use: open it again")
        return True

    def read(self) -> Mark | None:
        """The newest whole mark; None if nothing was ever written."""
        return self._read()[1]

    def _read(self) -> tuple[bytes, Mark | None]:
        """Both slots as they are now, and the newest mark in them, which is parsed only when they have changed."""
        slots = os.pread(self._descriptor, 2 * _SLOT, 0)
        if slots != self._known[0]:
            self._known = (slots, _newest(slots, self.path))
        return self._known

    def write(self, mark: Mark) -> None:
        """Move the anchor forward, durably. The caller holds the lock."""
        slots, newest = self._read()
        if newest is not None and newest.sequence >= mark.sequence:
            return
        line = mark.line().ljust(_SLOT)
        try:
            if newest is None:
                os.pwrite(self._descriptor, line.ljust(2 * _SLOT), 0)  # both slots get their place on the disk now
            else:
                os.pwrite(self._descriptor, line, _SLOT if Mark.parse(slots[:_SLOT]) == newest else 0)
        except OSError as error:
            raise LedgerError(
                f"entry {mark.sequence} is in the ledger, but its anchor {self.path} cannot be written "
                f"({error.strerror}): mend that"
            ) from error
        sync(self._descriptor, f"the anchor {self.path}")


def read_mark(path: Path) -> Mark | None:
    """The mark of the anchor at `path`; None if there is no such file or nothing was ever written to it."""
    try:
        return _newest(path.read_bytes()[: 2 * _SLOT], path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"the anchor {path} cannot be read: {error.strerror}") from error


def set_aside(path: Path) -> None:
    """Move a damaged anchor out of the way; one that can be read stays."""
    try:
        old = Anchor(path)
        try:
            readable = old.read() is not None
        finally:
            old.close()
    except LedgerError:
        readable = False
    if readable:
        raise LedgerError(f"the anchor {path} is there and can be read: there is nothing to restore")
    path.rename(f"{path}.damaged")


def missing(path: Path) -> LedgerDamaged:
    return LedgerDamaged(
        f"the anchor {path} is missing, so nobody can tell whether the ledger is complete. Put the file back; if it is "
        "lost, and you are sure that the ledger is the newest, make it again: confide ledger restore-anchor"
    )


def _newest(slots: bytes, path: Path) -> Mark | None:
    marks = [Mark.parse(slots[:_SLOT]), Mark.parse(slots[_SLOT:])]
    whole = [mark for mark in marks if mark is not None]
    if not whole and slots.strip(b" \0\n"):
        raise LedgerDamaged(
            f"the anchor {path} is damaged, so nobody can tell whether the ledger is complete. Put a whole copy back; "
            "if there is none, and you are sure that the ledger is the newest, make it again: "
            "confide ledger restore-anchor"
        )
    return max(whole, key=lambda mark: mark.sequence, default=None)
