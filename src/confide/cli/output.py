"""Files that commands write: never over another, and never by halves; and what is said where one cannot be written."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from confide.errors import LedgerError

KEPT: Final = "what was paid for is kept, and the same command again costs nothing more"


@contextmanager
def new_bytes(path: Path, advice: str) -> Iterator[IO[bytes]]:
    """A file of bytes that was not there before; gone again if writing it fails."""
    try:
        stream = path.open("xb")
    except FileExistsError:
        raise occupied(path, "it is there already", advice) from None
    try:
        with stream:
            yield stream
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def new_file(path: Path, advice: str) -> Iterator[IO[str]]:
    """A text file that was not there before; gone again if writing it fails."""
    try:
        stream = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise occupied(path, "it is there already", advice) from None
    except FileNotFoundError:
        what = f"there is no folder {path.parent}; make it first, or write elsewhere"
        raise FileNotFoundError(errno.ENOENT, what, str(path)) from None
    try:
        with stream:
            yield stream
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def require_free(path: Path, option: str) -> None:
    """Refuse, before anything is spent, a place that holds something: a link that leads nowhere, too."""
    if os.path.lexists(path):
        raise occupied(path, "it is there already", f"choose another {option}")


@contextmanager
def once_paid() -> Iterator[None]:
    """Inside, what was paid for is written and shown: where that fails, the words say that it is kept."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except LedgerError as error:
        raise type(error)(f"{error}; {KEPT}") from error.__cause__
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise OSError(error.errno or errno.EIO, f"{reason}; {KEPT}", error.filename) from None


def occupied(path: Path, what: str, advice: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"{what} and is not overwritten; {advice}", str(path))
