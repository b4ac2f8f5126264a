"""psycopg, imported when a ledger on PostgreSQL is used, and its errors turned into ours.

A text never holds a password: libpq's own messages about connections name hosts, users and databases only, and those
about addresses are not passed on.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull, LedgerMissing
from confide.host.refusals import refusal

if TYPE_CHECKING:
    import psycopg

_BUSY = {"55P03", "40001", "40P01"}
_GONE = ("08", "57P")  # what a server says when it ends a connection: a commit may have come through before
_DAMAGED = {"XX001", "XX002", "23505", "22P02", "22003"}


def driver() -> ModuleType:
    """The driver, with the parts that are used here."""
    try:
        import psycopg  # noqa: PLC0415
        import psycopg.conninfo  # noqa: PLC0415
    except ImportError as error:
        raise LedgerError(
            "a ledger on PostgreSQL needs the driver psycopg, which is not installed: pip install 'confide[postgres]'"
        ) from error
    return psycopg


def lost(name: str) -> LedgerError:
    return LedgerError(f"the connection to the ledger {name} was lost: ask again when its server can be reached")


def silent(name: str) -> LedgerError:
    return LedgerError(f"the server of the ledger {name} did not answer in time: check host, port and that it runs")


def unreplicated(name: str) -> LedgerError:
    return LedgerError(f"the server of the ledger {name} did not wait until its standby had written the commit")


def refused(error: "psycopg.Error", name: str) -> LedgerError:
    """A connection that was not made, and why."""
    found = refusal(str(error))
    kind = LedgerBusy if found.passing else LedgerError
    return kind(f"the server of the ledger {name} {found.words}")


def is_busy(error: "psycopg.Error") -> bool:
    return error.sqlstate in _BUSY


def is_gone(error: "psycopg.Error") -> bool:
    """Whether the connection ended, so that nobody can tell what became of a commit."""
    return error.sqlstate is None or error.sqlstate.startswith(_GONE)


def translated(error: "psycopg.Error", name: str) -> LedgerError:
    """PostgreSQL's error as ours."""
    code = error.sqlstate or ""
    if is_busy(error):
        return LedgerBusy(f"the ledger {name} is locked by another program")
    if code == "53300":
        return LedgerBusy(f"the server of the ledger {name} takes no more connections now; ask again later")
    if code == "53200":
        return LedgerError(f"the server of the ledger {name} has not enough memory")
    if code.startswith("53"):
        return LedgerFull(f"the server of the ledger {name} has no room left: make room, then ask again")
    if code == "57014":
        return LedgerError(f"the server of the ledger {name} was too slow, or was told to cancel the statement")
    if code in ("25P03", "25P04"):
        return LedgerError(
            f"this process was stopped in the middle of a charge, and the ledger {name} went on without it"
        )
    if code == "42501":
        return LedgerError(f"the ledger {name} does not let this user do that: docs/ledger.md shows the rights")
    if code == "25006":
        return standby(name)
    if code in ("42P01", "3F000", "42703"):
        return LedgerMissing(f"the tables of the ledger {name} were removed while it was in use: put them back")
    if code in _DAMAGED:
        return LedgerDamaged(f"the ledger {name} is damaged, or another program writes to its tables ({code})")
    return lost(name) if is_gone(error) else LedgerError(f"the server of the ledger {name} fails (SQLSTATE {code})")


def standby(name: str) -> LedgerError:
    return LedgerError(
        f"the server of the ledger {name} is a standby, or was made read-only: a charge could not be written there. "
        "Write the address of the primary server"
    )
