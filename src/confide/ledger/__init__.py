"""The budget as a durable record: who was charged what, in which order, and what is left."""

from confide.ledger.memory import MemoryLedger
from confide.ledger.postgres.ledger import PostgresLedger, postgres_holds_ledger, restore_postgres_anchor
from confide.ledger.postgres.location import PostgresPlace
from confide.ledger.protocol import Ledger
from confide.ledger.record.entry import Entry, Head
from confide.ledger.record.export import check_export, export
from confide.ledger.record.replay import Statement
from confide.ledger.sqlite.creation import restore_anchor
from confide.ledger.sqlite.ledger import SqliteLedger

__all__ = [
    "Entry",
    "Head",
    "Ledger",
    "MemoryLedger",
    "PostgresLedger",
    "PostgresPlace",
    "SqliteLedger",
    "Statement",
    "check_export",
    "export",
    "postgres_holds_ledger",
    "restore_anchor",
    "restore_postgres_anchor",
]
