"""psycopg, imported when a ledger on PostgreSQL is used, and its errors turned into ours.

A text never holds a password: libpq's own messages about connections name hosts, users and databases only, and those
about addresses are not passed on.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull, LedgerMissing

if TYPE_CHECKING:
    import psycopg

_REFUSALS = (
    ("password authentication failed", "the user or the password is wrong"),
    ("no password supplied", "it asks for a password: set PGPASSWORD, or write a line in ~/.pgpass"),
    ("no pg_hba.conf entry", "the server lets nobody in by that name from here (pg_hba.conf)"),
    ("permission denied for database", "the user may not connect to the database: GRANT CONNECT ON DATABASE"),
)
_BUSY = {"55P03", "40001", "40P01", "53300", "57014"}
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
    """What is said whenever the server does not answer, for whatever reason."""
    return LedgerError(
        f"the ledger {name} cannot be reached. No answer was given; ask again under the same key when it can be: a key "
        "is charged once"
    )


def refused(error: "psycopg.Error", name: str) -> LedgerError:
    """A connection that was not made. libpq gives no code for the reason, so its text is searched for it."""
    text = str(error)
    for words, reason in _REFUSALS:
        if words in text:
            return LedgerError(f"the ledger {name} cannot be opened: {reason}")
    if "does not exist" in text and "FATAL" in text:
        what = "database" if "FATAL:  database" in text else "user"
        return LedgerError(
            f"the ledger {name} cannot be opened: there is no such {what} on that server. "
            f"A {what} is made by its administrator: CREATE {'DATABASE' if what == 'database' else 'ROLE'}"
        )
    if "too many clients" in text or "remaining connection slots" in text or "too many connections" in text:
        return LedgerBusy(f"the server of the ledger {name} takes no more connections; nothing was charged")
    return lost(name)


def is_busy(error: "psycopg.Error") -> bool:
    return error.sqlstate in _BUSY


def translated(error: "psycopg.Error", name: str) -> LedgerError:
    """PostgreSQL's error as ours."""
    code = error.sqlstate or ""
    if is_busy(error):
        return LedgerBusy(f"the ledger {name} is locked by another program; nothing was charged")
    if code.startswith("53"):
        return LedgerFull(
            f"the server of the ledger {name} has no room left; nothing was charged. Make room, then ask again"
        )
    if code == "42501":
        return LedgerError(
            f"the ledger {name} does not let this user do that; nothing was charged. docs/ledger.md shows the rights"
        )
    if code == "25006":
        return standby(name)
    if code in ("42P01", "3F000", "42703"):
        return LedgerMissing(f"the tables of the ledger {name} were removed while it was in use: put them back")
    if code in _DAMAGED:
        return LedgerDamaged(f"the ledger {name} is damaged, or another program writes to its tables ({code})")
    return lost(name)


def standby(name: str) -> LedgerError:
    return LedgerError(
        f"the server of the ledger {name} is a standby, or was made read-only: a charge could not be written there. "
        "Write the address of the primary server"
    )
