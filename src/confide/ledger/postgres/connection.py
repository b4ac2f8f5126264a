"""A connection to the database of a ledger: durable commits, one schema, and an end to every wait.

The server bounds how long a statement runs, waits for a lock, or leaves a transaction idle. A server that is there and
says nothing, or a network that swallows packets, is ended by a watchdog on this side. A call has one deadline for
all of it: names that are looked up, addresses that are tried, locks that are waited for.
"""

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from confide.errors import LedgerError
from confide.host.fork import sever
from confide.host.watchdog import Watchdog, within
from confide.ledger.postgres.driver import driver, refused, silent, unreplicated
from confide.ledger.postgres.location import PostgresPlace
from confide.ledger.stored_rows import Cursor

if TYPE_CHECKING:
    import psycopg

COMMIT = "on"  # whatever the server, the database or the role have as their default
CONNECT = 10.0  # seconds to make a connection, whatever number of addresses there are to try
STATEMENT = 60.0  # seconds for one statement that has no deadline, or brings a stored answer
IDLE = 5.0  # seconds that a transaction may hold its lock while its client says nothing: others wait for longer
GRACE = 1.0  # seconds more until the watchdog ends a connection whose server kept none of these
BYTES = 2**20  # of an answer that is stored, for which a second more is given

_IDLE = 0  # libpq's word for a connection that is in no transaction

# What the driver warns of would go to standard error, which is the analyst's.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class _Nothing:
    """The rows of a statement that has none."""

    def fetchone(self) -> None:
        return None

    def fetchall(self) -> list[Any]:
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())


_NOTHING = _Nothing()


class PostgresConnection:
    """One connection, used by one thread at a time. Statements are those of `storage`, with ? for a parameter.

    To spare journeys to the server while others wait for the lock, a transaction begins with its first statement, and
    what inserts rows travels with the commit.
    """

    def __init__(self, place: PostgresPlace, deadline: float | None = None) -> None:
        self._place = place
        self._deadline: float | None = None
        self._opening = ""
        self._inserts: list[tuple[str, Sequence[Any]]] = []
        self._connection = _connect(place, CONNECT if deadline is None else deadline - time.monotonic())
        self._watchdog = Watchdog(self._connection.fileno())
        self._warnings = _Warnings()
        self._connection.add_notice_handler(self._warnings.note)

    def begin(self, *, write: bool, deadline: float | None = None) -> None:
        """Begin a transaction. A writer sees what was committed before each of its statements, a reader one state.

        What it does must be done by the deadline, on the monotonic clock; without one, each statement has its time.
        """
        self._deadline = deadline
        wait = CONNECT if deadline is None else deadline - time.monotonic()
        quoted = self._place.schema.replace('"', '""')
        settings = {
            "synchronous_commit": COMMIT,
            "client_min_messages": "warning",  # or a commit that was not waited for would be told to nobody
            "statement_timeout": f"'{math.ceil(1000 * STATEMENT)}ms'",
            "lock_timeout": f"'{max(1, math.ceil(1000 * wait))}ms'",
            "idle_in_transaction_session_timeout": f"'{math.ceil(1000 * IDLE)}ms'",
            "search_path": f'"{quoted}", pg_temp',  # temporary tables last: by default they would hide ours
        }
        if not write:
            settings["quote_all_identifiers"] = "off"  # tables are compared as the server describes them
        mode = "READ COMMITTED READ WRITE" if write else "REPEATABLE READ READ ONLY"
        parts = [f"BEGIN ISOLATION LEVEL {mode}", *(f"SET LOCAL {name} = {value}" for name, value in settings.items())]
        self._opening = "; ".join(parts)

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        if statement.startswith("INSERT "):
            self._inserts.append((statement, parameters))
            return _NOTHING
        self._flush()
        return self._send(statement, parameters)

    def together(self, *statements: str) -> list[list[Any]]:
        """The rows of several statements without parameters, in one journey."""
        self._flush()
        opening, self._opening = self._opening, ""
        with self._watched():
            done = self._connection.execute("; ".join(filter(None, (opening, *statements))))
            rows = [done.fetchall()] if done.description else []
            while done.nextset():
                if done.description:
                    rows.append(done.fetchall())
            return rows

    def change(self, statement: str) -> int:
        """Run a statement that changes rows, and return how many."""
        return self._send(statement).rowcount

    def commit(self) -> None:
        """Make the transaction durable, or raise: then nobody knows whether it is."""
        self._warnings.seen = False
        size = sum(len(value) for _, values in self._inserts for value in values if isinstance(value, bytes))
        # A pipeline only here: after one, the server does not count how long the transaction is idle.
        with self._watched(size / BYTES), self._connection.pipeline():
            self._flush()
            done = self._connection.execute("COMMIT")
        if done.statusmessage != "COMMIT" or self._warnings.seen:
            # A warning says that a wait for a synchronous standby was cut short.
            raise unreplicated(self._place.name)

    def rollback(self) -> None:
        """End the transaction, if there is one; a connection that cannot even do that is closed."""
        self._opening, self._inserts = "", []
        if self._connection.closed or self._connection.info.transaction_status == _IDLE:
            return
        try:
            self._send("ROLLBACK")
        except driver().Error:
            self.close()

    def _flush(self) -> None:
        inserts, self._inserts = self._inserts, []
        for statement, parameters in inserts:
            self._send(statement, parameters)

    def _send(self, statement: str, parameters: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        opening, self._opening = self._opening, ""
        with self._watched(STATEMENT if " answer " in statement else 0.0):
            if opening:
                self._connection.execute(opening)
            if parameters:
                return self._connection.execute(statement.replace("?", "%s"), parameters, binary=True)
            # Without parameters the driver reads nothing into the text, which may name a schema.
            return self._connection.execute(statement)

    def _watched(self, more: float = 0.0) -> contextlib.AbstractContextManager[None]:
        """Until the deadline, and so many seconds more for something large."""
        deadline = self._deadline if self._deadline is not None else time.monotonic() + STATEMENT
        return self._watchdog.until(deadline + more + GRACE)

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    @property
    def cut(self) -> bool:
        """Whether the server did not answer in time."""
        return self._watchdog.cut

    def abandon(self) -> None:
        """In the child of a fork: both sockets are the parent's."""
        if not self.closed:
            sever(self._connection.fileno())
            sever(self._watchdog.descriptor)

    def close(self) -> None:
        self._watchdog.close()
        with contextlib.suppress(driver().Error):
            self._connection.close()


class _Warnings:
    """Whether the server warned of anything. An object of its own: a method of the connection would keep that alive."""

    def __init__(self) -> None:
        self.seen = False

    def note(self, notice: "psycopg.errors.Diagnostic") -> None:
        self.seen = self.seen or notice.severity_nonlocalized == "WARNING"


def _connect(place: PostgresPlace, seconds: float) -> "psycopg.Connection[Any]":
    errors = driver()
    fixed = {
        "connect_timeout": f"{max(2, math.ceil(seconds))}",
        "application_name": "confide ledger",
        "keepalives_idle": "5",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "20000",
    }
    parameters = {**fixed, **place.parameters, "client_encoding": "utf8"}

    def connect() -> "psycopg.Connection[Any]":
        # Prepared statements would not survive a pooler that changes servers between transactions.
        made: psycopg.Connection[Any] = driver().connect(**parameters, autocommit=True, prepare_threshold=None)
        return made

    try:
        return within(seconds, connect, errors.Connection.close)
    except TimeoutError as error:
        raise silent(place.name) from error
    except errors.OperationalError as error:
        raise refused(error, place.name) from error
    except errors.Error as error:
        raise LedgerError(f"the ledger {place.name} cannot be opened: an option of its address is not known") from error
