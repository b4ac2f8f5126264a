"""DuckDB, embedded: CSV, Parquet and DuckDB files and in-memory frames behind one locked connection."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb

from confide.engine.arrange import arrange, arrange_tally
from confide.engine.loading import Loader, public_columns
from confide.engine.protocol import Exact
from confide.engine.public import infer_column, most_rows
from confide.engine.running import Columns, Rows, run_apart, run_columns
from confide.engine.source import Attached, File, prepare, stamp, version_of
from confide.engine.sql import SummaryWriter
from confide.errors import EngineError
from confide.policy import Column, Policy
from confide.privacy.charge import Charge
from confide.query.tree import Field, Join, Relation, Scan, Summary

_LIMIT_SECONDS = 3600.0
_LOG = logging.getLogger(__name__)


class DuckDBEngine:
    """One policy's tables in one in-memory database. Private rows stay in it."""

    def __init__(
        self,
        policy: Policy,
        data: Mapping[str, Any] | None = None,
        limit_seconds: float = _LIMIT_SECONDS,
        threads: int | None = None,
    ) -> None:
        self._policy = policy
        self._limit = limit_seconds
        self._sources = prepare(policy, data)
        self._stamps = self._live_stamps()
        self._version = version_of(policy, self._sources)
        self._connection = duckdb.connect(":memory:")
        self._public: dict[str, Mapping[str, Column]] = {}
        self._multiplicities: dict[tuple[str, tuple[Column, ...]], int] = {}
        loader = Loader(self._connection, policy, threads)
        try:
            loader.load(self._sources)
        except BaseException:
            self._connection.close()
            raise
        self._storages = loader.storages

    @property
    def version(self) -> str:
        """Names the state the data had when they were opened."""
        return self._version

    # --- private reads ------------------------------------------------------------------------------------------------

    def evaluate(self, summary: Summary, charge: Charge, secret: bytes) -> Exact:
        """Exact integers out: one statement for cells, one per tally. Whatever fails, fails with the same words."""
        if not isinstance(charge, Charge):
            raise TypeError("private rows are read against a charge of the ledger")
        reason = "the data changed since they were opened"
        try:
            writer = SummaryWriter(summary, self._storages, secret)
            bounding = not self._bounded_anyway(summary)
            # Keys of undeclared domain always come with a cell that counts their units.
            rows = self._run(writer.statement(bounding)) if summary.cells else []
            exact = arrange(rows, summary)
            tallies = tuple(
                arrange_tally(self._columns(writer.tally_statement(tally, bounding)), summary, exact.keys)
                for tally in summary.tallies
            )
            if self._stamps == self._live_stamps():
                return replace(exact, tallies=tallies)
        except Exception as error:
            reason = type(error).__name__
        # Raised outside of the handler, so that the database's words do not travel along as its context.
        _LOG.error("a statement failed: %s", reason)
        raise EngineError

    def _columns(self, statement: str) -> Columns:
        return run_columns(self._connection, statement, self._limit)

    def _run(self, statement: str) -> Rows:
        return run_apart(self._connection, statement, self._limit)

    def _live_stamps(self) -> list[str]:
        """The state of the files that are read anew for every question; text files and frames were copied."""
        sources = self._sources.values()
        return [stamp(s) for s in sources if isinstance(s, Attached) or (isinstance(s, File) and s.kind == "parquet")]

    def _bounded_anyway(self, summary: Summary) -> bool:
        """Whether no unit can have more rows than its bound: then bounding changes nothing and is left out."""
        bound = summary.bound
        if bound is None:
            return True
        few = bound.groups if summary.keys else bound.rows
        return self._most_rows(summary.relation, bound.unit, few) <= few

    def _most_rows(self, relation: Relation, unit: Field, enough: int) -> int:
        """At least the most rows one unit has in a relation; more than `enough` says nothing else."""
        joins = []
        while isinstance(relation, Join):
            joins.append(relation)
            relation = relation.left
        if not isinstance(relation, Scan) or relation.source != unit.source:
            return enough + 1
        most = self._most(relation.table, (unit.column,))
        for join in reversed(joins):
            if most > enough:
                break
            most *= max(1, self._most(join.right.table, tuple(right.column for _, right in join.on)))
        return most

    def _most(self, table: str, columns: tuple[Column, ...]) -> int:
        key = (table, columns)
        if key not in self._multiplicities:
            self._multiplicities[key] = most_rows(self._run, self._storages, table, columns)
        return self._multiplicities[key]

    # --- public facts -------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> Mapping[str, Column]:
        if not self._policy.tables[table].public:
            return self._policy.tables[table].columns
        if table not in self._public:
            self._public[table] = {
                label: column or infer_column(self._run, table, label, self._storages[table, label])
                for label, column in public_columns(self._policy, self._storages, table).items()
            }
        return self._public[table]

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._policy.tables[table].public:
            raise ValueError(f"{table} is private: how often its values repeat is not told")
        known = self.columns(table)
        return self._most(table, tuple(known[column] for column in columns))

    def close(self) -> None:
        self._connection.close()
