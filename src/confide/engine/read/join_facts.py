"""What a join is judged by: residuals, frequencies, contributions of units. Exact integers, never rows."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Statements
from confide.engine.sql.expression_sql import RowWriter
from confide.engine.sql.grid_tally import gridded_rows, sum_columns, summed
from confide.engine.sql.group_codes import places
from confide.engine.sql.statement import SummaryWriter
from confide.engine.sql.syntax import cast, select
from confide.query.conjunction import Conjunction, distinct_owners, filters_of, relation_of
from confide.query.grid import FloatingGrid
from confide.query.grouping import key_size
from confide.query.hypergraph import Places, hypergraph_of
from confide.query.tree import Always, BinnedKey, Both, Bound, Cell, Field, Key, Known, Scan, Summary
from confide.query.weight import MOST_ADDED


@dataclass(frozen=True, slots=True)
class ResidualInquiry:
    """T_E of every part that is left when private occurrences are taken away: the most joined rows of E that agree
    on the columns they share with the rest. The parts of the filter that speak of one occurrence alone make it
    smaller; the others are left out, which can only make it larger.
    """

    question: Conjunction

    def read(self, statements: Statements) -> dict[Places, int]:
        """By set of occurrences taken away: the product over the parts that are left."""
        shape = hypergraph_of(self.question)
        parts: dict[Places, int] = {}
        result: dict[Places, int] = {}
        for removed, left in shape.residuals(self.question.private):
            product = 1
            for part in left:
                if part not in parts:
                    scans = tuple(self.question.occurrences[place] for place in sorted(part))
                    parts[part] = _most(self.question, scans, shape.pairs(), shape.boundary(part), statements)
                product *= parts[part]
            result[removed] = product
        return result


@dataclass(frozen=True, slots=True)
class FrequencyInquiry:
    """Of every joined column how often its most frequent value occurs in its table: what FLEX calls mf."""

    question: Conjunction

    def read(self, statements: Statements) -> dict[tuple[int, str], int]:
        places = {scan.source: place for place, scan in enumerate(self.question.occurrences)}
        fields = dict.fromkeys(field for pair in self.question.pairs for field in pair)
        result = {}
        for field in fields:
            scan = self.question.occurrences[places[field.source]]
            result[places[field.source], field.name] = _most(self.question, (scan,), (), (field,), statements)
        return result


@dataclass(frozen=True, slots=True)
class RepeatsInquiry:
    """How often the tables that LEFT JOINs add repeat a row at most, all together; one without a partner stays once."""

    question: Conjunction

    def read(self, statements: Statements) -> int:
        product = 1
        for scan, pairs in self.question.optional:
            own = tuple(dict.fromkeys(second for _, second in pairs))
            product *= max(1, _most(self.question, (scan,), (), own, statements))
        return product


def _most(
    question: Conjunction,
    scans: tuple[Scan, ...],
    pairs: tuple[tuple[Field, Field], ...],
    boundary: tuple[Field, ...],
    statements: Statements,
) -> int:
    """The most rows of a join that agree on columns; rows that are NULL there join nothing, and do not count."""
    relation = relation_of(scans, pairs)
    rows = RowWriter(statements.storages, relation)
    source = SummaryWriter(Summary(relation, Always(True), None, (), ()), statements.storages, b"").source()
    values = [rows.joined(field).sql for field in boundary]
    filters = filters_of(question.where)
    conditions = [f"{value} IS NOT NULL" for value in values]
    conditions += [rows.predicate(part) for scan in scans for part in filters.get(scan.source, ())]
    grouped = f" GROUP BY {', '.join(values)}" if values else ""
    counted = f"{select([('n', 'COUNT(*)')], source, conditions)}{grouped}"
    return int(statements.rows(f"SELECT COALESCE(MAX(n), 0) FROM ({counted}) AS c")[0][0])


# --- units ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SharedRows:
    """Of one group: sets of entities that share joined rows, numbered anew, and what those rows count for.

    Where each joined row has one entity, `entities` is None, and `weights` are contributions of entities with how
    many entities have each. Contributions between two powers of two are then levelled: there are as many, and their
    sum is the same, so Σ min(contribution, τ) is exact for every power of two τ, and for the largest contribution.
    """

    entities: NDArray[np.int64] | None
    weights: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SharesInquiry:
    """What every unit, or every set of units that share rows, adds to one weight of a join, group by group.

    `largest` is what one adds at most; more is cut. Single units are counted and summed by powers of two, so that of
    each group no more rows leave the database than there are such powers.
    """

    question: Conjunction
    weight: int
    largest: int = MOST_ADDED

    def read(self, statements: Statements) -> tuple[SharedRows, ...]:
        question, owners = self.question, distinct_owners(self.question)
        bound = Bound(owners[0], 1, 1)
        parts = (question.where, *(Known(owner, negated=False) for owner in owners[1:]))
        where = parts[0] if len(parts) == 1 else Both(parts)
        summary = Summary(question.relation, where, bound, question.keys, ())
        writer = SummaryWriter(summary, statements.storages, b"")
        rows = RowWriter(statements.storages, question.relation)
        chosen = question.weights[self.weight]
        cell = Cell("rows" if chosen.number is None else "total", chosen.number, chosen.where)
        value = writer.input_of(cell)
        alike = len({rows.storage(owner) for owner in owners}) == 1
        keys_of = rows.column if alike else rows.joined_text
        units = [(f"u{place}", keys_of(owner)) for place, owner in enumerate(owners)]
        kept = writer.unbounded_rows([*units, ("w", value)])
        keys = [f"k{place}" for place in range(len(question.keys))]
        grouped = ", ".join([*keys, *(alias for alias, _ in units)])
        added = "COUNT(w)" if chosen.number is None else "COALESCE(SUM(w), 0)"
        total = cast(f"LEAST({added}, {min(self.largest, MOST_ADDED)})", "BIGINT")
        sums = f"SELECT {grouped}, {total} AS w FROM ({kept}) AS r GROUP BY {grouped}"
        if len(owners) > 1:
            return _arranged(statements.columns(_numbered(sums, keys, len(owners))), question, len(owners))
        grid = FloatingGrid(0, min(self.largest, MOST_ADDED), 0, 0)
        named = "".join(f"{key}, " for key in keys)
        points = gridded_rows(f"SELECT {named}w AS x FROM ({sums}) AS s", keys, grid)
        counted = ", ".join(["COUNT(*) AS n", *sum_columns(grid)])
        statement = f"SELECT {named}{counted} FROM ({points}) AS r GROUP BY {named}t"
        return _arranged(_levelled(statements.columns(statement), grid), question, 1)


def _numbered(sums: str, keys: list[str], owners: int) -> str:
    """The same with entities numbered from 0: their keys stay in the database."""
    ends = " UNION ".join(f"SELECT u{place} AS v FROM sums" for place in range(owners))
    joins = " ".join(f"JOIN ids AS i{place} ON sums.u{place} = i{place}.v" for place in range(owners))
    shown = ", ".join([*(f"sums.{key}" for key in keys), *(f"i{place}.n AS u{place}" for place in range(owners))])
    return (
        f"WITH sums AS MATERIALIZED ({sums}), "
        f"ids AS MATERIALIZED (SELECT v, ROW_NUMBER() OVER () - 1 AS n FROM ({ends}) AS e) "
        f"SELECT {shown}, sums.w AS w FROM sums {joins}"
    )


def _levelled(columns: dict[str, Any], grid: FloatingGrid) -> dict[str, Any]:
    """As many contributions in each cell, with the same sum: two numbers next to each other, between its ends."""
    counts = np.asarray(columns["n"]).astype(np.int64)
    sums = summed(columns, grid)
    lower = (sums // counts.astype(object)).astype(np.int64) if len(counts) else np.empty(0, dtype=np.int64)
    upper = (sums - lower.astype(object) * counts).astype(np.int64) if len(counts) else lower
    weights, numbers = np.concatenate([lower, lower + 1]), np.concatenate([counts - upper, upper])
    kept = numbers > 0
    keys = {label: column for label, column in columns.items() if label.startswith("k")}
    twice = {label: _twice(column)[kept] for label, column in keys.items()}
    return {**twice, "w": weights[kept], "n": numbers[kept]}


def _twice(column: Any) -> Any:
    mask = np.ma.getmaskarray(column)
    plain = np.ma.getdata(column)
    return np.ma.masked_array(np.concatenate([plain, plain]), np.concatenate([mask, mask]))


def _arranged(columns: dict[str, Any], question: Conjunction, owners: int) -> tuple[SharedRows, ...]:
    """By group, in the order of the product of the keys' domains."""
    weights = np.asarray(columns["w"]).astype(np.int64)
    group = np.zeros(len(weights), dtype=np.int64)
    for place, key in enumerate(question.keys):
        group = group * (key_size(key) or 1) + _places(key, columns[f"k{place}"])
    groups = prod(key_size(key) or 1 for key in question.keys)
    counts = np.asarray(columns["n"]).astype(np.int64) if owners == 1 else np.ones(len(weights), dtype=np.int64)
    entities = None
    if owners > 1:
        entities = np.stack([np.asarray(columns[f"u{place}"]).astype(np.int64) for place in range(owners)], axis=1)
    return tuple(
        SharedRows(None if entities is None else entities[inside], weights[inside], counts[inside])
        for inside in (group == place for place in range(groups))
    )


def _places(key: Key, column: Any) -> NDArray[np.int64]:
    if isinstance(key, BinnedKey) and not key.nulls:
        return np.asarray(column).astype(np.int64)
    found = places(key)
    assert found is not None
    known = (None if np.ma.is_masked(value) else value for value in column)
    plain = (value.item() if isinstance(value, np.generic) else value for value in known)
    return np.array([found[value] for value in plain], dtype=np.int64)
