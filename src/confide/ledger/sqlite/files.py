"""Where a ledger lies: its file and its anchor, and what can be said of them before either is opened."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confide.errors import LedgerDamaged, LedgerError, LedgerMissing
from confide.ledger.process.effect import never_made

_MOMENT = 1.0  # seconds, for two links


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """The files of one ledger. An anchor on another disk also notices when a whole folder is set back."""

    path: Path
    anchor: Path

    @classmethod
    def of(cls, path: str | os.PathLike[str], anchor: str | os.PathLike[str] | None = None) -> Self:
        try:
            whole = Path(path).expanduser().resolve()
            beside = Path(f"{whole}.anchor") if anchor is None else Path(anchor).expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise LedgerError(f"{str(path)!r} is not a place for a ledger ({error})") from error
        return cls(whole, beside)

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def set_back(self) -> str:
        """How a ledger at this place can have become older than its anchor, and what to do."""
        return (
            f"an older copy was put back, or its write-ahead log ({self.log.name}) was lost or damaged. Put back the "
            "newest copy of the ledger together with its log"
        )

    @property
    def log(self) -> Path:
        return Path(f"{self.path}-wal")

    @property
    def empty(self) -> bool:
        """Whether none of its files is there: the only place where a ledger may be made."""
        return not any(map(os.path.lexists, (self.path, self.anchor, self.log)))

    def settle(self) -> None:
        """Wait a moment for a ledger that somebody is making: its anchor is there before it is."""
        until = time.monotonic() + _MOMENT
        while os.path.lexists(self.anchor) and not os.path.lexists(self.path) and time.monotonic() < until:
            time.sleep(0.005)

    def require_ledger(self) -> None:
        """Refuse, in words, what cannot be opened as a ledger."""
        if not self.path.exists():
            for trace, what in ((self.anchor, "anchor"), (self.log, "log")):
                if os.path.lexists(trace):
                    raise LedgerMissing(
                        f"the ledger {self.path} is gone, but its {what} {trace} shows that it existed. It is not made "
                        "again, because what was spent would be forgotten: put the file back"
                    )
            raise never_made(str(self.path))
        if not self.path.is_file():
            raise LedgerError(f"{self.path} is not a file, so it is not a ledger")
        if self.path.stat().st_size == 0:
            raise LedgerDamaged(f"{self.path} is empty: it is not a ledger, or was truncated")
        for place, what in ((self.path, "the ledger"), (self.path.parent, "the folder of the ledger")):
            if not os.access(place, os.W_OK):
                raise LedgerError(f"{what} {place} is read-only: a charge could not be written, so none can be made")

    def require_nothing(self) -> None:
        """Refuse a place that already holds something."""
        if os.path.lexists(self.path):
            raise LedgerError(f"there is already something at {self.path}: open it, or choose another place")
        if not self.empty:
            self.require_ledger()

    def require_folder(self) -> None:
        """Refuse, in words, a place where nothing can be written."""
        for folder in (self.path.parent, self.anchor.parent):
            if not folder.is_dir():
                raise LedgerError(f"the folder {folder} does not exist: make it, or keep the ledger elsewhere")
            if not os.access(folder, os.W_OK):
                raise LedgerError(f"the folder {folder} is read-only: a ledger cannot be made there")

    def index_inode(self) -> tuple[int, int] | None:
        """Which file is now the index of the log, which is there as long as anybody uses the ledger; None if none."""
        try:
            found = os.stat(f"{self.path}-shm")  # noqa: PTH116  quicker, and at every charge
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def inode(self) -> tuple[int, int]:
        """Which file the path leads to now."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise LedgerMissing(f"the ledger {self.path} was removed while it was in use: put it back") from None
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be reached: {error.strerror}") from error
        return found.st_dev, found.st_ino
