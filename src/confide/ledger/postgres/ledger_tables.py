"""The tables of a ledger on PostgreSQL: made once, compared to the letter, and bound to the server that holds them.

The table `ledger` has one row. Writers lock it, so that they come one after another. It also says which ledger this is,
and for which incarnation of the database it was vouched for: the cluster, its timeline, the table of entries, and the
database. A restored dump has another table, a database copied as a template has another number, a point-in-time
recovery or a standby that took over has another timeline, a new cluster another name; in each of them charges may be
missing, and the ledger is refused until its custodian says that none is.
"""

from dataclasses import dataclass
from typing import Any

from confide.errors import LedgerDamaged, LedgerError, LedgerMissing, LedgerRolledBack
from confide.ledger import durable as keeping
from confide.ledger import stored_rows as storage
from confide.ledger.durable import never_made
from confide.ledger.postgres.connection import PostgresConnection
from confide.ledger.postgres.driver import driver, standby
from confide.ledger.postgres.location import PostgresPlace
from confide.ledger.record.entry import Position
from confide.ledger.record.terms import Terms

VERSION = 1


@dataclass(frozen=True, slots=True)
class _Table:
    """A table: its columns and keys as PostgreSQL describes them, and the rights that a user of the ledger needs."""

    name: str
    columns: str
    keys: str
    rights: tuple[str, ...]

    def statement(self) -> str:
        parts = [self.columns.replace("text not null", 'text COLLATE "C" not null')]
        return f"CREATE TABLE {self.name} ({', '.join([*parts, *filter(None, [self.keys])])})"


TABLES = (
    _Table(
        "entry",
        "sequence bigint not null, body bytea not null, hash bytea not null",
        "PRIMARY KEY (sequence)",
        ("SELECT", "INSERT"),
    ),
    _Table(
        "charge",
        "sequence bigint not null, key text not null, answered bigint not null, seal bigint not null",
        "PRIMARY KEY (sequence), UNIQUE (key)",
        ("SELECT", "INSERT", "UPDATE"),
    ),
    _Table("answer", "sequence bigint not null, answer bytea not null", "PRIMARY KEY (sequence)", ("SELECT", "INSERT")),
    _Table(
        "account", "analyst text not null, total text not null", "PRIMARY KEY (analyst)", ("SELECT", "INSERT", "UPDATE")
    ),
    _Table("secret", "secret bytea not null", "", ("SELECT",)),
    _Table(
        "ledger",
        "version integer not null, identity text not null, incarnation text not null",
        "",
        ("SELECT", "UPDATE"),
    ),
)

_DESCRIBED = """
SELECT relname, relkind = 'r' AND relpersistence = 'p' AND NOT relrowsecurity
        AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
        AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid),
    (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod)
            || CASE WHEN attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT coalesce(string_agg(pg_get_constraintdef(k.oid), ', ' ORDER BY contype), '')
        FROM pg_constraint k WHERE conrelid = c.oid AND contype IN ('p', 'u')),
    has_schema_privilege(n.oid, 'USAGE'),
    has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
    has_any_column_privilege(c.oid, 'UPDATE')
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = ? AND relname = ANY(?)
"""
_INCARNATION = (
    "CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE "
    "(SELECT system_identifier::text FROM pg_control_system()) || ':' "
    "|| left(pg_walfile_name(pg_current_wal_lsn()), 8) || ':' || 'entry'::regclass::oid || ':' "
    "|| substring(pg_relation_filepath('entry') from '([0-9]+)/[0-9]+$') END"  # the folder of the database: its number
)


def require_server(connection: PostgresConnection, place: PostgresPlace) -> None:
    """Refuse a server that could lose a charge, or could not write every key."""
    settings = "SELECT current_setting('fsync'), current_setting('server_encoding')"
    forced, encoding = connection.execute(settings).fetchone() or ("", "")
    if forced != "on":
        raise LedgerError(
            f"the server of the ledger {place.name} runs with fsync off, so that a power failure could undo a charge: "
            "set fsync = on in postgresql.conf"
        )
    if encoding != "UTF8":
        raise LedgerError(
            f"the database of the ledger {place.name} is in {encoding}: make one in UTF-8 "
            "(CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0)"
        )


def holds_ledger(connection: PostgresConnection, place: PostgresPlace) -> bool:
    """Whether any table of a ledger is there."""
    return bool(_described(connection, place))


def require_schema(connection: PostgresConnection, place: PostgresPlace, *, anchored: bool) -> None:
    """Refuse tables that are not ours to the letter, or that this user may not use."""
    found = _described(connection, place)
    if not found:
        raise missing(place, anchored=anchored)
    for table in TABLES:
        if found.get(table.name, ())[:3] != (True, table.columns, table.keys):
            raise LedgerDamaged(f"{place.name} is not a ledger of Confide, or its table {table.name!r} was altered")
    lacking = []
    for table in TABLES:
        usage, *granted = found[table.name][3:]
        if not usage:
            raise LedgerError(f"this user may not use the ledger {place.name}: {_grant('USAGE', 'SCHEMA', place)}")
        held = {right for right, given in zip(("SELECT", "INSERT", "UPDATE"), granted, strict=True) if given}
        lacking += [f"{right} on {table.name}" for right in table.rights if right not in held]
    if lacking:
        raise LedgerError(
            f"this user lacks rights on the tables of the ledger {place.name}: {', '.join(lacking)}. "
            "Its custodian grants them; docs/ledger.md shows how"
        )


def create(connection: PostgresConnection, place: PostgresPlace, terms: Terms) -> bool:
    """Make a ledger in its schema; False if somebody else did so first: of any number of makers one succeeds."""
    psycopg = driver()
    try:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(?), hashtext('confide'))", (place.schema,))
        if holds_ledger(connection, place):
            return False
        if connection.execute("SELECT FROM pg_namespace WHERE nspname = ?", (place.schema,)).fetchone() is None:
            quoted = place.schema.replace('"', '""')
            connection.execute(f'CREATE SCHEMA "{quoted}"')
        for table in TABLES:
            connection.execute(table.statement())
        identity = keeping.begin(connection, terms)
        connection.execute(f"INSERT INTO ledger SELECT ?::integer, ?, {_INCARNATION}", (VERSION, identity))
    except psycopg.errors.InsufficientPrivilege as error:
        raise LedgerError(
            f"a ledger cannot be made at {place.name}: this user may not. Make its schema, for example "
            f'CREATE SCHEMA "{place.schema}" AUTHORIZATION its_user, or let its custodian open it first'
        ) from error
    return True


def start(connection: PostgresConnection, place: PostgresPlace, *, lock: bool = False) -> tuple[str, Position]:
    """The identity of the ledger, and where its chain stands; with `lock`, alone among all writers.

    Refuses a standby, another version, or a database that was restored or taken over.
    """
    state = f"SELECT version, identity, incarnation, {_INCARNATION} FROM ledger" + (" FOR UPDATE" if lock else "")
    # In one journey, and in this order: the last entry is looked for when the lock is held.
    rows, entries = connection.together(state, storage.LAST)
    if len(rows) != 1:
        raise LedgerDamaged(f"{place.name} is not a ledger of Confide, or its table 'ledger' was altered")
    version, identity, vouched, now = rows[0]
    if now == "standby":
        raise standby(place.name)
    if version != VERSION:
        raise LedgerDamaged(f"the ledger {place.name} is of version {version}; this program reads version {VERSION}")
    # Earlier ledgers were not bound to the number of their database.
    if vouched != now and not now.startswith(f"{vouched}:"):
        raise LedgerRolledBack(
            f"the database of the ledger {place.name} was restored from a backup, moved, or taken over by a standby, "
            "and charges may have been lost in that. Compare the newest entries with an export or another machine's "
            "anchor; if you are sure that none is missing, say so: confide ledger restore-anchor"
        )
    return identity, Position.of(*storage.last_of(entries))


def vouch(connection: PostgresConnection) -> bool:
    """Bind the ledger to the database as it is now; whether it was bound to another one."""
    return connection.change(f"UPDATE ledger SET incarnation = {_INCARNATION} WHERE incarnation <> {_INCARNATION}") > 0


def missing(place: PostgresPlace, *, anchored: bool) -> LedgerMissing:
    if anchored:
        return LedgerMissing(
            f"the ledger {place.name} is gone, but its anchor {place.anchor} shows that it existed. It is not made "
            "again, because what was spent would be forgotten: put its tables back"
        )
    return never_made(place.name)


def _described(connection: PostgresConnection, place: PostgresPlace) -> dict[str, tuple[Any, ...]]:
    names = [table.name for table in TABLES]
    return {name: tuple(facts) for name, *facts in connection.execute(_DESCRIBED, (place.schema, names))}


def _grant(right: str, kind: str, place: PostgresPlace) -> str:
    return f'GRANT {right} ON {kind} "{place.schema}" TO its_user'
