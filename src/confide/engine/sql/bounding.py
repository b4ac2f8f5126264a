"""At most `rows` rows and `groups` groups of each unit, the first in an order keyed by a secret.

The order is by a keyed hash of the rows themselves, never by where they stand: of all declared columns, as the policy
sees them. What a tie leaves open are rows that no query can tell apart. The hash is SHA-256 of the values as canonical
texts (`docs/values.md`), so that every engine keeps the same rows, however they are stored. Units with few rows pass as
they are, which is what the order would do with them, so only the others pay for being ordered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from confide.engine.sql.syntax import case, cast, select, text
from confide.query.tree import Bound

Columns = Sequence[tuple[str, str]]

_LONGEST: Final = 10_000
"""So many letters of a column are hashed as they are."""


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """A relation to bound: its FROM and WHERE, the unit's column, the keys and inputs to keep, and what orders rows.

    `texts` are those of `u`, the keys `k0`, ... and what orders rows, `o0`, ..., that may be texts of any length.
    """

    source: str
    conditions: Sequence[str]
    unit: str
    keys: Columns
    inputs: Columns
    order: Sequence[str]
    texts: frozenset[str]


def bounded_rows(relation: BoundedRows, bound: Bound, secret: bytes) -> str:
    """The SQL of the rows that are kept, with their keys and inputs."""
    kept = ", ".join(alias for alias, _ in (*relation.keys, *relation.inputs)) or "1 AS one"
    limits_groups = bool(relation.keys) and bound.groups < bound.rows
    few = bound.groups if limits_groups else bound.rows
    counted = select([("u", relation.unit)], relation.source, relation.conditions)
    parts = [
        select([*relation.keys, *relation.inputs], relation.source, [*relation.conditions, _outside(relation.unit)])
    ]
    if limits_groups:
        middle = f"SELECT u FROM many WHERE n <= {bound.rows}"
        rows = _rows_of(relation, middle, ())
        parts.append(f"SELECT {kept} FROM ({_first_groups(rows, relation, bound, secret)}) AS m")
    heavy = f"SELECT u FROM many WHERE n > {bound.rows}" if limits_groups else "SELECT u FROM many"
    order = [(f"o{place}", value) for place, value in enumerate(relation.order)]
    rows = _rows_of(relation, heavy, order)
    if limits_groups:
        rows = _first_groups(rows, relation, bound, secret)
    aliases = [alias for alias, _ in order]
    ranked = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {_order(aliases, relation.texts, secret)})"
    parts.append(f"SELECT {kept} FROM (SELECT *, {ranked} AS rn FROM ({rows}) AS b) AS n WHERE rn <= {bound.rows}")
    many = f"SELECT u, COUNT(*) AS n FROM ({counted}) AS w GROUP BY u HAVING COUNT(*) > {few}"
    return f"WITH many AS MATERIALIZED ({many}) {' UNION ALL '.join(parts)}"


def bounded_once(relation: BoundedRows, bound: Bound, secret: bytes) -> str:
    """The same rows from one reading of the relation, for engines where two readings may see different rows.

    Only the rows of units that have too many are hashed; which of the others comes first does not matter.
    """
    kept = ", ".join(alias for alias, _ in (*relation.keys, *relation.inputs)) or "1 AS one"
    order = [(f"o{place}", value) for place, value in enumerate(relation.order)]
    limits_groups = bool(relation.keys) and bound.groups < bound.rows
    rows = select(
        [("u", relation.unit), *relation.keys, *relation.inputs, *order], relation.source, relation.conditions
    )
    rows = f"SELECT *, COUNT(*) OVER (PARTITION BY u) AS many FROM ({rows}) AS c"
    if limits_groups:
        rows = _first_groups(rows, relation, bound, secret, bound.groups)
    aliases = [alias for alias, _ in order]
    ranked = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {_order(aliases, relation.texts, secret, bound.rows)})"
    return f"SELECT {kept} FROM (SELECT *, {ranked} AS rn FROM ({rows}) AS b) AS n WHERE rn <= {bound.rows}"


def _rows_of(relation: BoundedRows, units: str, extra: Columns) -> str:
    inside = f"{relation.unit} IN ({units})"
    columns = [("u", relation.unit), *relation.keys, *relation.inputs, *extra]
    return select(columns, relation.source, [*relation.conditions, inside])


def _first_groups(rows: str, relation: BoundedRows, bound: Bound, secret: bytes, few: int | None = None) -> str:
    aliases = [alias for alias, _ in relation.keys]
    # The unit is part of the hash, so that not every unit keeps the same groups.
    order = _order(["u", *aliases], relation.texts, secret, few)
    ranked = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {order})"
    return f"SELECT * FROM (SELECT *, {ranked} AS gr FROM ({rows}) AS h) AS g WHERE gr <= {bound.groups}"


def _outside(unit: str) -> str:
    return f"{unit} NOT IN (SELECT u FROM many)"


def _order(hashed: Sequence[str], texts: frozenset[str], secret: bytes, few: int | None = None) -> str:
    """By a hash that nobody knows without the secret; from `few` rows of a unit on.

    What is hashed are the values as texts, each with its length, so that only rows with the same values tie: an order
    among those that ran together would depend on how they are stored.
    """
    key = sha256(b"confide order\x00" + secret).hexdigest()[:32]
    parts = [_measured(column, column in texts) for column in hashed]
    digest = f"SHA256(CONCAT({', '.join([text(key), *parts])}))"
    if few is not None:
        digest = case([(f"many > {few}", digest)])
    return f"{digest} NULLS LAST"


def _measured(column: str, long: bool) -> str:
    """`,5:12345`, or `,` for what is unknown. A long text stands there by its own hash: no database could hold a text
    of all columns if each were as long as it may be.
    """
    written = cast(column, "VARCHAR")
    told = case([(f"LENGTH({written}) > {_LONGEST}", f"SHA256({written})")], written) if long else written
    known = f"CONCAT(',', {cast(f'LENGTH({written})', 'VARCHAR')}, ':', {told})"
    return case([(f"{column} IS NOT NULL", known)], "','")
