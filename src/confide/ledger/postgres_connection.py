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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confide.errors import LedgerError
from confide.ledger.postgres_address import PostgresPlace
from confide.ledger.postgres_driver import driver, lost, refused

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

COMMIT = "on"  # whatever the server, the database or the role have as their default
CONNECT = 10  # seconds to make a connection
STATEMENT = 30.0  # seconds for one statement: an answer may be large
IDLE = 30.0  # seconds that a transaction may hold its lock while its client says nothing
GRACE = 5.0  # seconds more until the watchdog ends a connection whose server kept none of these


class PostgresConnection:
    """One connection, used by one thread at a time. Statements are those of `storage`, with ? for a parameter."""

    def __init__(self, place: PostgresPlace, statement: float = STATEMENT) -> None:
        self._place = place
        self._statement = statement
        self._warned = False
        self._connection = _connect(place)
        self._watchdog = Watchdog(self._connection.fileno())
        self._connection.add_notice_handler(self._note)

    def begin(self, *, write: bool, wait: float = 0.0) -> None:
        """Begin a transaction. A writer sees what was committed before each of its statements, a reader one state."""
        settings = {
            "synchronous_commit": COMMIT,
            "statement_timeout": f"{math.ceil(1000 * self._statement)}ms",
            "lock_timeout": f"{max(1, math.ceil(1000 * wait))}ms",
            "idle_in_transaction_session_timeout": f"{math.ceil(1000 * IDLE)}ms",
        }
        mode = "READ COMMITTED READ WRITE" if write else "REPEATABLE READ READ ONLY"
        lines = [f"BEGIN ISOLATION LEVEL {mode}", *(f"SET LOCAL {name} = '{text}'" for name, text in settings.items())]
        sql = driver().sql
        # Temporary tables come last: by default they would hide ours.
        path = sql.SQL("SET LOCAL search_path = {}, pg_temp").format(sql.Identifier(self._place.schema))
        self._run(sql.SQL("; ").join([*map(sql.SQL, lines), path]))

    def commit(self) -> None:
        """Make the transaction durable, or raise: then nobody knows whether it is."""
        self._warned = False
        done = self._run("COMMIT")
        if done.statusmessage != "COMMIT" or self._warned:
            # A warning says that a wait for a synchronous standby was cut short.
            raise lost(self._place.name)

    def rollback(self) -> None:
        """End the transaction, if there is one; a connection that cannot even do that is closed."""
        if self._connection.closed or self._connection.info.transaction_status == 0:
            return
        try:
            self._run("ROLLBACK")
        except driver().Error:
            self.close()

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> "psycopg.Cursor[Any]":
        return self._run(statement.replace("?", "%s"), parameters)

    def compose(self, statement: "sql.Composable") -> "psycopg.Cursor[Any]":
        """Run a statement that names a schema."""
        return self._run(statement)

    def _run(self, statement: Any, parameters: Sequence[Any] | None = None) -> "psycopg.Cursor[Any]":
        with self._watchdog.watching(self._statement + GRACE):
            if parameters is None:
                return self._connection.execute(statement)
            return self._connection.execute(statement, parameters, binary=True)

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    @property
    def held(self) -> "psycopg.Connection[Any]":
        return self._connection

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
    def watching(self, seconds: float) -> Any:
        self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = math.inf

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
