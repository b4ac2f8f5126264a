"""Files that commands write: never over another, and never by halves."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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


def occupied(path: Path, what: str, advice: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"{what} and is not overwritten; {advice}", str(path))
