"""Where a ledger on PostgreSQL is: postgresql://user@host:5432/database?schema=people, with its own `anchor`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from confide.errors import LedgerError
from confide.host.address import HOW_TO_QUOTE, is_postgres, read_address
from confide.ledger.postgres.driver import driver

EXAMPLE = "postgresql://confide@host:5432/database?schema=people"
LONGEST_SCHEMA = 63


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
        read = read_address(address, driver())
        if read is None:
            raise LedgerError(
                f"the address of the ledger, postgresql://..., cannot be read: write {EXAMPLE}, {HOW_TO_QUOTE}"
            )
        shown, schema = read.shown, read.schema
        if not read.database:
            raise LedgerError(f"the ledger {shown} names no database: write {EXAMPLE}")
        if not schema:
            raise LedgerError(
                f"the ledger {shown} names no schema, and a schema holds one ledger: write "
                f"{shown}{_joint(shown)}schema=people"
            )
        if len(schema.encode()) > LONGEST_SCHEMA or "\0" in schema or schema.lower().startswith("pg_"):
            raise LedgerError(
                f"the ledger {shown} names a schema that PostgreSQL does not allow: write a name of at most "
                f"{LONGEST_SCHEMA} bytes that does not begin with pg_"
            )
        name = f"{shown}{_joint(shown)}schema={schema}"
        chosen = base / Path(read.anchor).expanduser() if read.anchor else anchor
        if chosen is None:
            raise LedgerError(
                f"the ledger {name} has no anchor, the file in which this machine keeps how far the ledger has gone: "
                f"write {name}&anchor=/var/lib/confide/{schema}.anchor"
            )
        return cls(schema, Path(chosen).expanduser().resolve(), name, read.parameters)

    def __str__(self) -> str:
        return self.name

    @property
    def set_back(self) -> str:
        """How a ledger at this place can have become older than its anchor, and what to do."""
        return (
            "an older backup of the database was restored, or a standby took over that had not seen every charge. "
            "Put back the newest state of the database"
        )


def _joint(shown: str) -> str:
    return "&" if "?" in shown else "?"
