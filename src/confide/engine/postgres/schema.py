"""The tables of a PostgreSQL database as a policy sees them: names, types and unique keys, from its catalogue alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confide.engine.postgres.types import PostgresType, plain, stored_type
from confide.engine.sql.schema import Stored, read_column, read_public_column
from confide.engine.sql.syntax import name
from confide.engine.sql.translation import Translator
from confide.engine.storage import Storage
from confide.errors import SourceError
from confide.policy import Table

TABLE_SQL = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, has_table_privilege(c.oid, 'SELECT') AS readable,
       has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')
       OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE') AS writable,
       row_security_active(c.oid)
FROM unnest(CAST(%s AS text[])) WITH ORDINALITY AS s(place, turn)
JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(s.place)
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace ORDER BY s.turn LIMIT 1
"""
COLUMN_SQL = """
WITH RECURSIVE base(attname, attnum, own, type, modifier) AS (
    SELECT attname, attnum, format_type(atttypid, atttypmod), atttypid, atttypmod FROM pg_catalog.pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT b.attname, b.attnum, b.own, t.typbasetype, t.typtypmod
    FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT b.attname, b.own, b.type::bigint, b.modifier, (t.typtype = 'e' AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_cast AS k WHERE k.castsource = t.oid AND k.casttarget = CAST('text' AS regtype)
           AND k.castmethod <> 'i')) OR (t.typname = 'citext' AND EXISTS (
           SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
           WHERE d.classid = CAST('pg_catalog.pg_type' AS regclass) AND d.objid = t.oid AND d.deptype = 'e'
           AND d.refclassid = CAST('pg_catalog.pg_extension' AS regclass) AND e.extname = 'citext')),
       has_column_privilege(%s, b.attnum, 'SELECT')
FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
UNIQUE_SQL = """
SELECT a.attname FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a
ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
AND i.indpred IS NULL AND i.indexprs IS NULL
AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS h WHERE h.inhparent = c.oid))
"""
"""Tables that inherit from one are read with it, and their rows are under no index of it, unless they are its parts."""
CALLING_SQL = """
WITH RECURSIVE rule(classid, objid, owner) AS (
    SELECT CAST('pg_catalog.pg_rewrite' AS regclass), r.oid, r.ev_class
    FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class WHERE c.relkind = 'v'
    UNION ALL
    SELECT CAST('pg_catalog.pg_policy' AS regclass), p.oid, p.polrelid
    FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid WHERE c.relrowsecurity
), seen(oid) AS (
    SELECT CAST(%s AS oid)
    UNION
    SELECT d.refobjid FROM seen JOIN rule ON rule.owner = seen.oid JOIN pg_catalog.pg_depend AS d USING (classid, objid)
    WHERE d.refclassid = CAST('pg_catalog.pg_class' AS regclass)
)
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM seen JOIN pg_catalog.pg_class AS c USING (oid) WHERE c.relkind = 'v'
UNION ALL
SELECT pg_catalog.pg_get_expr(p.polqual, p.polrelid) FROM seen JOIN rule ON rule.owner = seen.oid
JOIN pg_catalog.pg_policy AS p ON p.oid = rule.objid
WHERE rule.classid = CAST('pg_catalog.pg_policy' AS regclass) AND p.polqual IS NOT NULL
UNION ALL
SELECT quote_ident(p.proname) || '()' FROM seen JOIN rule ON rule.owner = seen.oid
JOIN pg_catalog.pg_depend AS d USING (classid, objid)
LEFT JOIN pg_catalog.pg_operator AS o
ON d.refclassid = CAST('pg_catalog.pg_operator' AS regclass) AND o.oid = d.refobjid
JOIN pg_catalog.pg_proc AS p
ON p.oid = COALESCE(o.oprcode, CASE WHEN d.refclassid = CAST('pg_catalog.pg_proc' AS regclass) THEN d.refobjid END)
"""
"""Views and row security policies as they are written, and the functions of others behind their operators and casts.
What a materialised view was made of does not matter: its rows are stored."""
VOLATILE_SQL = """
SELECT DISTINCT proname FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND proname = ANY(%s) ORDER BY proname
"""
_TEXTS = re.compile(r"'(?:[^']|'')*'")
_CALLED = re.compile(r'("(?:[^"]|"")+"|[A-Za-z_][\w$]*)\s*\(')
_NAMES = re.compile(r'"(?:[^"]|"")*"')
_BY_PLACE = re.compile(r"\b(LIMIT|OFFSET|DISTINCT ON|ROWS (?=BETWEEN|UNBOUNDED|CURRENT|\d))")
_OF_PLACES = {"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "any_value"} | {
    *("array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"),
    *("json_arrayagg", "json_objectagg", "xmlagg"),
}
"""Functions of rows in the order in which they come, as in `_BY_PLACE` are words: an order that is given may leave it
open, and then each reading has its own."""
_READABLE_KINDS = {"r": "table", "p": "table", "v": "view", "m": "materialised view", "f": "foreign table"}


@dataclass(frozen=True, slots=True)
class Described:
    """One table: its place, its columns with their types, and the columns that are unique keys by constraint."""

    place: str
    kind: str
    columns: Mapping[str, PostgresType]
    unique: frozenset[str]
    writable: bool


@dataclass(frozen=True, slots=True)
class PostgresRelation:
    """What stands for a table in a statement, and how its columns are then stored."""

    query: str
    storages: Mapping[str, Storage]


def describe(run: Any, table: Table, schemas: Sequence[str]) -> Described:
    """A table of the database, in the first of these schemas; `run` gives the rows of a statement with parameters."""
    found = run(TABLE_SQL, ([f"{name(schema)}.{name(table.name)}" for schema in schemas],))
    if not found:
        where = f"in the schema {schemas[0]}" if len(schemas) == 1 else "on the search path"
        raise SourceError(f"the database has no table {table.name} {where}")
    oid, own_schema, own_name, kind, readable, writable, choosing = found[0]
    if kind not in _READABLE_KINDS:
        raise SourceError(f"{table.name} is not a table or a view in the database")
    if kind == "v" or choosing:
        _require_repeatable(run, table, oid, "is a view" if kind == "v" else "has a row security policy")
    columns = run(COLUMN_SQL, (oid, oid))
    if not readable:
        closed = [label for label, *_, open_ in columns if not open_ and (table.public or label in table.columns)]
        if closed:
            grant = f"GRANT SELECT ON {own_schema}.{own_name} TO ..."
            raise SourceError(f"the database does not let this user read {table.name}; run: {grant}")
    unique = frozenset(row[0] for row in run(UNIQUE_SQL, (oid,)))
    types = {label: stored_type(*facts) for label, *facts, _ in columns}
    return Described(f"{name(own_schema)}.{name(own_name)}", _READABLE_KINDS[kind], types, unique, bool(writable))


def _require_repeatable(run: Any, table: Table, oid: int, what: str) -> None:
    """A view must give the same rows whenever a question reads it: a bound counts them first, and takes them after."""
    texts = [_TEXTS.sub("''", row[0]) for row in run(CALLING_SQL, (oid,))]
    called = {found.strip('"').replace('""', '"') for text in texts for found in _CALLED.findall(text)}
    changing = [row[0] for row in run(VOLATILE_SQL, (sorted(called),))]
    if changing:
        raise SourceError(
            f"{table.name} {what} that calls {', '.join(changing)}, which the database calls volatile: it may give "
            "other rows each time it is read; let it call STABLE or IMMUTABLE functions only, or store its rows in a "
            "table"
        )
    words = {found.strip() for text in texts for found in _BY_PLACE.findall(_NAMES.sub("", text))}
    if placed := sorted(words | {f"{one}()" for one in called & _OF_PLACES}):
        raise SourceError(
            f"{table.name} {what} with {', '.join(placed)}, which takes rows as they come: they may come in another "
            "order each time it is read; store its rows in a table, or in a materialised view"
        )


def relation(described: Described, table: Table) -> PostgresRelation:
    """The columns that the policy names, each in the type that statements expect of it; of a public table all."""
    stored: dict[str, Stored] = {}
    given: list[str] = []
    for label in [*table.columns, *(own for own in described.columns if table.public and own not in table.columns)]:
        if label not in described.columns:
            raise SourceError(_missing(label, described, table))
        column, kind = table.columns.get(label), described.columns[label]
        if column is not None:
            read_column(column, kind.words, f"{table.name}, column {label}")  # is such a type accepted?
        words, sql = plain(column, name(label), kind)
        given.append(f"{sql} AS {name(label)}")
        where = f"{table.name}, column {label}"
        stored[label] = read_column(column, words, where) if column is not None else read_public_column(label, words)
    base = f"SELECT {', '.join(given) or '1 AS one'} FROM {described.place}"
    shown = ", ".join(f"{column.sql} AS {name(label)}" for label, column in stored.items()) or "1 AS one"
    query = Translator("postgres", {"base": base})(f"SELECT {shown} FROM main.base AS base")
    return PostgresRelation(query, {label: column.storage for label, column in stored.items()})


def _missing(label: str, described: Described, table: Table) -> str:
    other = next((own for own in described.columns if own.casefold() == label.casefold()), None)
    hint = f"it has {other or ', '.join(sorted(described.columns)[:20]) or 'none'}"
    return f"{table.name} has no column {label}, which the policy names; {hint}"
