"""What a call on a ledger that failed has left behind: said with every error, because only the call knows."""

from types import TracebackType
from typing import Final

from confide.errors import LedgerError, LedgerMissing

NOTHING: Final = "Nothing was charged"
MAYBE: Final = "It may have been charged, and no answer was given; the same call again finds out, and is charged once"
STANDS: Final = "The charge stands, and no answer was given; the same call again costs nothing more"


class Saying:
    """Inside, an error of the ledger also says what was charged: `sure`, or `unsure` if a commit was not confirmed."""

    __slots__ = ("_sure", "_unsure")

    def __init__(self, sure: str = NOTHING, unsure: str = MAYBE) -> None:
        self._sure = sure
        self._unsure = unsure

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LedgerError):
            told = type(error)(f"{error}. {self._unsure if error.unconfirmed else self._sure}")
            told.unconfirmed = error.unconfirmed
            raise told from error.__cause__


def never_made(name: str) -> LedgerMissing:
    """No ledger, and no sign of one. One that was made here without a word would give the budget a second time."""
    return LedgerMissing(
        f"there is no ledger at {name}. If the policy was used before, say where its ledger is: ledger: in the policy, "
        "--ledger, or ledger=. If it never was, make one, with its whole budget unspent: "
        "confide ledger create POLICY, or confide.open(..., create=True)"
    )
