"""Why a server of PostgreSQL was not connected to, in our own words: the driver's may hold an address and its password.

libpq gives no code for a connection that was not made, so its text is searched. What a server said of itself comes
before what was found on the way to it: of several addresses one may be up and another down.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the server does, and whether that passes by itself."""

    words: str
    passing: bool = False


UNREACHABLE: Final = Refusal("cannot be reached; check host, port and that it runs")
SILENT: Final = Refusal("cannot be reached: it did not answer in time; check host, port and that it runs")
UNWILLING: Final = Refusal("lets nobody in; its log says why")
_OWN_WORDS: Final = "FATAL:"

_SIGNS: Final = (
    (
        r"too many clients|remaining connection slots|too many connections",
        Refusal("takes no more connections now; ask again later", passing=True),
    ),
    (
        r"starting up|shutting down|in recovery mode|not (yet )?accepting connections",
        Refusal("is starting up or shutting down; ask again in a moment", passing=True),
    ),
    (r"password authentication failed", Refusal("refused the user or the password")),
    (
        r"no password supplied",
        Refusal("asks for a password: set PGPASSWORD, or write a line in ~/.pgpass"),
    ),
    (r"no pg_hba\.conf entry|pg_hba\.conf rejects", Refusal("lets nobody in by that name from here (pg_hba.conf)")),
    (r"not currently accepting connections", Refusal("has closed this database: ALTER DATABASE ... ALLOW_CONNECTIONS")),
    (r"permission denied for database", Refusal("does not let this user connect: GRANT CONNECT ON DATABASE")),
    (r"not permitted to log in", Refusal("does not let this user log in: ALTER ROLE ... LOGIN")),
    (r'database "[^"]*" does not exist', Refusal("has no such database; its administrator makes one: CREATE DATABASE")),
    (r'role "[^"]*" does not exist', Refusal("has no such user; its administrator makes one: CREATE ROLE")),
    (r"authentication failed", Refusal("refused the user or the password")),
    (r"\bSSL\b|certificate", Refusal("makes no secure connection of the kind asked for (TLS); check sslmode and keys")),
    (
        r"resolve host|translate host name|Name or service",
        Refusal("cannot be reached: the name of its host is not known here"),
    ),
    (r"timeout expired|timed out", SILENT),
)


def refusal(text: str) -> Refusal:
    """What a text of libpq says. A server that says anything at all was reached."""
    known = next((found for sign, found in _SIGNS if re.search(sign, text)), None)
    return known or (UNWILLING if _OWN_WORDS in text else UNREACHABLE)
