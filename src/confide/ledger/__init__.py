"""The budget as a durable record: who was charged what, in which order, and what is left."""

from confide.ledger.chain import Entry, Head
from confide.ledger.creation import restore_anchor
from confide.ledger.export import check_export, export
from confide.ledger.memory import MemoryLedger
from confide.ledger.postgres import PostgresLedger, postgres_holds_ledger, restore_postgres_anchor
from confide.ledger.postgres_address import PostgresPlace
from confide.ledger.protocol import Ledger
from confide.ledger.replay import Statement
from confide.ledger.sqlite import SqliteLedger

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
