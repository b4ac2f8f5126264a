"""The DuckDB engine against the conformance suite, and the suite against engines that are known to be careless."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from confide.engine import Engine, Exact
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.occupied_rows import OccupiedRows
from confide.errors import EngineError
from confide.policy import Column, Policy
from confide.privacy.charge import Charge
from confide.query import Summary
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.workload import ExactTables, SparseCounts
from tests.conformance.engine import CHECKS, EngineKind, Tables
from tests.engine.reference import Naive, Reference, all_groups

FORBIDDEN = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/hostname')",
    "SELECT * FROM read_parquet('/tmp/x.parquet')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM '/etc/passwd'",
    "COPY (SELECT 1) TO '/tmp/confide-should-not-exist.csv'",
    "COPY t FROM '/etc/passwd'",
    "ATTACH '/tmp/confide-should-not-exist.db'",
    "EXPORT DATABASE '/tmp/confide-should-not-exist'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '1GB'",
    "SET threads = 1",
    "SET temp_directory = '/tmp'",
    "SET python_enable_replacements = true",
    "RESET enable_external_access",
    "PRAGMA enable_profiling",
    "PRAGMA enable_logging",
    "CALL enable_logging()",
    "SELECT * FROM data_frame_of_the_caller",
    "SELECT getenv('HOME')",
    "CREATE SECRET x (TYPE s3)",
)


def _duckdb(policy: Policy, tables: Tables) -> Engine:
    return DuckDBEngine(policy, tables)


def _limited(policy: Policy, tables: Tables, seconds: float) -> Engine:
    return DuckDBEngine(policy, tables, limit_seconds=seconds)


def _send(engine: Engine, statement: str) -> object:
    data_frame_of_the_caller = pa.table({"x": [1]})
    assert len(data_frame_of_the_caller) == 1
    return cast(DuckDBEngine, engine)._database.opened().execute(statement).fetchall()


def _damage(engine: Engine) -> None:
    """Every question then casts the texts of `s` to numbers, at which the database fails and shows them."""
    connection = cast(DuckDBEngine, engine)._database.opened()
    connection.execute("ALTER TABLE t RENAME TO hidden")
    connection.execute("CREATE VIEW t AS SELECT s, CAST(s AS BIGINT) AS x FROM hidden")


DUCKDB = EngineKind(_duckdb, _limited, _send, FORBIDDEN, damage=_damage)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_duckdb(check: Callable[[EngineKind], None]) -> None:
    check(DUCKDB)


# --- careless engines -------------------------------------------------------------------------------------------------


class PlainEngine:
    """The plain reading as an engine, with single protections turned off."""

    def __init__(self, policy: Policy, tables: Tables, naive: Naive) -> None:
        self._inner = DuckDBEngine(policy, tables)
        self._tables: Mapping[str, list[dict[str, Any]]] = {name: table.to_pylist() for name, table in tables.items()}
        self._naive = naive
        self.version = self._inner.version
        self._open = True

    def evaluate(self, summary: Summary, charge: Charge, secret: bytes, *_: object) -> Exact:
        if not isinstance(charge, Charge):
            raise TypeError("a charge is needed")
        if not self._open:
            raise EngineError
        reference = Reference(self._tables, self._naive, secret)
        found, tallies = reference.evaluate(summary), reference.tallies(summary)
        keys = (
            sorted(found, key=lambda key: tuple((value is None, str(value)) for value in key))
            if summary.open_keys
            else all_groups(summary.keys)
        )
        cells = tuple(
            np.array([found[key][place] for key in keys], dtype=object) for place in range(len(summary.cells))
        )
        counted = tuple(tuple(_arrays(tally.get(key, {})) for key in keys) for tally in tallies)
        return Exact(cells, tuple(keys) if summary.open_keys else None, counted)

    def tabulate(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> ExactTables:
        tables = {}
        for columns in tabulation.sets:
            counts = self.evaluate(tabulation.summary(columns), charge, secret).cells[0].astype(np.int64)
            occupied = np.flatnonzero(counts)
            tables[columns] = SparseCounts(columns, occupied, counts[occupied])
        return ExactTables(tuple(key_size(key) or 0 for key in tabulation.keys), tables)

    def occupied(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> OccupiedRows:
        sizes = tuple(key_size(key) or 0 for key in tabulation.keys)
        counts = self.evaluate(tabulation.summary(tuple(range(len(sizes)))), charge, secret).cells[0].astype(np.int64)
        places = np.unravel_index(np.repeat(np.arange(len(counts)), counts), sizes)
        return OccupiedRows(sizes, tuple(places))

    def columns(self, table: str) -> Mapping[str, Column]:
        return self._inner.columns(table)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        return self._inner.multiplicity(table, columns)

    def distinct(
        self, table: str, columns: tuple[str, ...], most: int
    ) -> tuple[tuple[str | int | bool | None, ...], ...] | None:
        return self._inner.distinct(table, columns, most)

    def counted(
        self, table: str, columns: tuple[str, ...], most: int
    ) -> tuple[tuple[str | int | bool | None, ...], ...] | None:
        return self._inner.counted(table, columns, most)

    def close(self) -> None:
        self._open = False
        self._inner.close()


def _arrays(counts: Mapping[int, int]) -> Any:
    values = sorted(counts)
    return np.array(values, dtype=np.int64), np.array([counts[value] for value in values], dtype=np.int64)


def _plain(naive: Naive) -> EngineKind:
    return EngineKind(lambda policy, tables: PlainEngine(policy, tables, naive))


SLOW = {
    "a_unit_of_a_hundred_thousand_rows_is_cut",
    "every_question_reads_as_the_plain_reading",
    "neighbours_differ_by_no_more_than_the_sensitivity",
}


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.__name__ not in SLOW], ids=lambda check: check.__name__
)
def test_the_plain_reading_passes(check: Callable[[EngineKind], None]) -> None:
    check(_plain(Naive()))


@pytest.mark.parametrize(
    ("naive", "check"),
    [
        (Naive(no_rows_bound=True), "a_unit_has_no_more_rows_and_groups_than_its_bound"),
        (Naive(no_groups_bound=True), "a_unit_has_no_more_rows_and_groups_than_its_bound"),
        (Naive(bound_before_join=True), "filters_come_before_the_bound_and_joins_too"),
        (Naive(by_row_order=True), "the_bound_is_keyed_and_blind_to_order"),
        (Naive(no_clamp=True), "values_are_rounded_to_every_grain"),
        (Naive(float_sums=True), "sums_pass_64_bits"),
    ],
    ids=lambda value: str(value) if isinstance(value, Naive) else value,
)
def test_a_careless_engine_fails_the_check(naive: Naive, check: str) -> None:
    chosen = next(own for own in CHECKS if own.__name__ == check)
    with pytest.raises(AssertionError):
        chosen(_plain(naive))
