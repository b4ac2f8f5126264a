"""A connection to the database of a ledger: durable commits, one schema, and an end to every wait.

The server bounds how long a statement runs, waits for a lock, or leaves a transaction idle. A server that is there and
says nothing, or a network that swallows packets, is ended by a watchdog on this side.
"""

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from confide.errors import LedgerError
from confide.ledger.postgres_address import PostgresPlace
from confide.ledger.postgres_driver import driver, lost, refused
from confide.ledger.storage import Cursor

if TYPE_CHECKING:
    import psycopg

COMMIT = "on"  # whatever the server, the database or the role have as their default
CONNECT = 10  # seconds to make a connection
STATEMENT = 60.0  # seconds for one statement: an answer may be large
IDLE = 30.0  # seconds that a transaction may hold its lock while its client says nothing
GRACE = 5.0  # seconds more until the watchdog ends a connection whose server kept none of these

_IDLE = 0  # libpq's word for a connection that is in no transaction


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

    def __init__(self, place: PostgresPlace, statement: float = STATEMENT) -> None:
        self._place = place
        self._statement = statement
        self._warned = False
        self._opening = ""
        self._inserts: list[tuple[str, Sequence[Any]]] = []
        self._connection = _connect(place)
        self._watchdog = Watchdog(self._connection.fileno())
        self._connection.add_notice_handler(self._note)

    def begin(self, *, write: bool, wait: float = 0.0) -> None:
        """Begin a transaction. A writer sees what was committed before each of its statements, a reader one state."""
        quoted = self._place.schema.replace('"', '""')
        settings = {
            "synchronous_commit": COMMIT,
            "statement_timeout": f"'{math.ceil(1000 * self._statement)}ms'",
            "lock_timeout": f"'{max(1, math.ceil(1000 * wait))}ms'",
            "idle_in_transaction_session_timeout": f"'{math.ceil(1000 * IDLE)}ms'",
            "search_path": f'"{quoted}", pg_temp',  # temporary tables last: by default they would hide ours
        }
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
        with self._watching():
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
        self._warned = False
        # A pipeline only here: after one, the server does not count how long the transaction is idle.
        with self._watching(), self._connection.pipeline():
            self._flush()
            done = self._connection.execute("COMMIT")
        if done.statusmessage != "COMMIT" or self._warned:
            # A warning says that a wait for a synchronous standby was cut short.
            raise lost(self._place.name)

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
        with self._watching():
            if opening:
                self._connection.execute(opening)
            if parameters:
                return self._connection.execute(statement.replace("?", "%s"), parameters, binary=True)
            # Without parameters the driver reads nothing into the text, which may name a schema.
            return self._connection.execute(statement)

    def _watching(self) -> contextlib.AbstractContextManager[None]:
        return self._watchdog.watching(self._statement + GRACE)

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    def close(self) -> None:
        self._watchdog.close()
        with contextlib.suppress(driver().Error):
            self._connection.close()

    def _note(self, notice: "psycopg.errors.Diagnostic") -> None:
        self._warned = self._warned or notice.severity_nonlocalized == "WARNING"


class Watchdog:
    """Cuts a connection whose server did not answer in time; the one who waits for it then gets an error."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._deadline = math.inf
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="confide ledger watchdog", daemon=True).start()

    @contextlib.contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        before, self._deadline = self._deadline, min(self._deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._deadline = before

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            if time.monotonic() > self._deadline:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                return

    def close(self) -> None:
        self._ended.set()
        self._socket.close()


def _connect(place: PostgresPlace) -> "psycopg.Connection[Any]":
    errors = driver()
    fixed = {
        "connect_timeout": str(CONNECT),
        "application_name": "confide ledger",
        "keepalives_idle": "5",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "20000",
    }
    parameters = {**fixed, **place.parameters, "client_encoding": "utf8"}
    try:
        # Prepared statements would not survive a pooler that changes servers between transactions.
        made: psycopg.Connection[Any] = driver().connect(**parameters, autocommit=True, prepare_threshold=None)
    except errors.OperationalError as error:
        raise refused(error, place.name) from error
    except errors.Error as error:
        raise LedgerError(f"the ledger {place.name} cannot be opened: an option of its address is not known") from error
    return made
