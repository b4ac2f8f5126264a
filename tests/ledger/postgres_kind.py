"""Ledgers on a PostgreSQL server for tests: each folder of a test stands for one schema, with its anchor in it."""

from hashlib import sha256
from pathlib import Path

from confide.ledger import PostgresLedger
from tests.conformance.ledger import LedgerKind
from tests.servers import PostgresServer


def address(server: PostgresServer, database: str, folder: Path, user: str = "confide") -> str:
    schema = f"ledger_{sha256(str(folder).encode()).hexdigest()[:16]}"
    return server.url(database, user, schema=schema, anchor=str(folder / "anchor"))


def ledger_kind(server: PostgresServer, database: str) -> LedgerKind:
    return LedgerKind(
        lambda folder, budget, caps: PostgresLedger.create(address(server, database, folder), budget, caps, timeout=60),
        lambda folder: PostgresLedger.open(address(server, database, folder), timeout=60),
    )
