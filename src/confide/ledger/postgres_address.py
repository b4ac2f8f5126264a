"""Where a ledger on PostgreSQL is: postgresql://user@host:5432/database?schema=people.

Everything that libpq reads in an address may stand in it; `schema` and `anchor` are ours. A password may also come from
PGPASSWORD or ~/.pgpass, and is never shown.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Self
from urllib.parse import unquote

from confide.errors import LedgerError
from confide.ledger.postgres_driver import driver

EXAMPLE = "postgresql://confide@host:5432/database?schema=people"
LONGEST_SCHEMA = 63

_SCHEME = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_OURS = ("schema", "anchor")
_PORTS = re.compile(r"[0-9]*(,[0-9]*)*")


def is_postgres(place: object) -> bool:
    """Whether a place for a ledger is the address of a PostgreSQL server."""
    return isinstance(place, str) and _SCHEME.match(place) is not None


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """A schema in a database, which holds one ledger, and the file of this machine that anchors it."""

    schema: str
    anchor: Path
    name: str
    """The address as it is shown: without the password."""
    parameters: Mapping[str, str] = field(repr=False, hash=False)
    """What libpq is told."""

    @classmethod
    def of(cls, address: str, anchor: str | os.PathLike[str] | None = None, base: Path = Path()) -> Self:
        """The place in an address. Its anchor is that of the address, where a path starts at `base`, or `anchor`."""
        if not is_postgres(address):
            raise LedgerError(f"this is not an address of a ledger on PostgreSQL: write {EXAMPLE}")
        plain, own = _split(address)
        parameters = _read(plain)
        shown = _shown(parameters)
        if not parameters.get("dbname"):
            raise LedgerError(f"the ledger {shown} names no database: write {EXAMPLE}")
        if not own.get("schema"):
            raise LedgerError(
                f"the ledger {shown} names no schema, and a schema holds one ledger: write "
                f"{shown}{_joint(shown)}schema=people"
            )
        schema = own["schema"]
        if len(schema.encode()) > LONGEST_SCHEMA or "\0" in schema or schema.lower().startswith("pg_"):
            raise LedgerError(
                f"the ledger {shown} names a schema that PostgreSQL does not allow: write a name of at most "
                f"{LONGEST_SCHEMA} bytes that does not begin with pg_"
            )
        name = f"{shown}{_joint(shown)}schema={schema}"
        chosen = base / Path(own["anchor"]).expanduser() if own.get("anchor") else anchor
        if chosen is None:
            raise LedgerError(
                f"the ledger {name} has no anchor, the file in which this machine keeps how far the ledger has gone: "
                f"write {name}&anchor=/var/lib/confide/{schema}.anchor"
            )
        return cls(schema, Path(chosen).expanduser().resolve(), name, MappingProxyType(parameters))

    def __str__(self) -> str:
        return self.name

    @property
    def set_back(self) -> str:
        """How a ledger at this place can have become older than its anchor, and what to do."""
        return (
            "an older backup of the database was restored, or a standby took over that had not seen every charge. "
            "Put back the newest state of the database"
        )


def _split(address: str) -> tuple[str, dict[str, str]]:
    """The address for libpq, and our own parameters."""
    if "%00" in address or "\0" in address:
        raise _unreadable()
    whole, mark, query = _SCHEME.sub("postgresql://", address, count=1).partition("?")
    parts = [part.partition("=") for part in query.split("&") if part]
    own = {name: unquote(value) for name, _, value in parts if name in _OURS}
    rest = "&".join(f"{name}={value}" for name, _, value in parts if name not in _OURS)
    # A password with a slash would be taken for a name of a database, and be shown.
    if "@" in whole.partition("://")[2].partition("/")[2]:
        raise _unreadable()
    return (f"{whole}{mark}{rest}" if rest else whole), own


def _read(address: str) -> dict[str, str]:
    psycopg = driver()
    try:
        read = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        # Its text may quote the password.
        raise _unreadable() from None
    parameters = {name: str(value) for name, value in read.items() if value is not None}
    if not _PORTS.fullmatch(parameters.get("port", "")):
        raise _unreadable()
    return parameters


def _unreadable() -> LedgerError:
    return LedgerError(
        f"the address of the ledger, postgresql://..., cannot be read: write {EXAMPLE}, with %40 for @, %2F for / and "
        "%25 for % in a name or password"
    )


def _shown(parameters: Mapping[str, str]) -> str:
    user, host = parameters.get("user", ""), parameters.get("host", "")
    socket = host.startswith("/")
    port = parameters.get("port", "")
    place = "" if socket else host + (f":{port}" if port and "," not in host else "")
    told = [f"host={host}"] if socket else []
    told += [f"port={port}"] if port and (socket or "," in host) else []
    shown = f"postgresql://{user}{'@' if user else ''}{place}/{parameters.get('dbname', '')}"
    return shown + (f"?{'&'.join(told)}" if told else "")


def _joint(shown: str) -> str:
    return "&" if "?" in shown else "?"
