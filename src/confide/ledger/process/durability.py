"""Making bytes durable, and what happens when that fails."""

import os
import sys
from pathlib import Path
from typing import NoReturn

EXIT_CODE = 74  # EX_IOERR of sysexits


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
