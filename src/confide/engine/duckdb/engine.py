"""DuckDB, embedded: CSV, Parquet and DuckDB files and in-memory frames behind one locked connection."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from confide.engine.duckdb.database import LIMIT_SECONDS, Database, open_alone
from confide.engine.duckdb.source import prepare, version_of
from confide.engine.result import Columns, Rows
from confide.engine.sql_engine import SqlEngine
from confide.policy import Column, Policy


class DuckDBEngine(SqlEngine):
    """One policy's tables in one in-memory database. Private rows stay in it."""

    def __init__(
        self,
        policy: Policy,
        data: Mapping[str, Any] | None = None,
        limit_seconds: float = LIMIT_SECONDS,
        threads: int | None = None,
        lines: bool = False,
    ) -> None:
        super().__init__()
        self._policy = policy
        sources = prepare(policy, policy.tables, data)
        opening = partial(open_alone, threads=threads, lines=lines)
        self._database = Database(policy.tables, sources, opening, limit_seconds)
        self._storages = self._database.storages
        self._version = version_of(self._database.stamps, policy.version)

    @property
    def version(self) -> str:
        """Names the state the data had when they were opened."""
        return self._version

    def ready(self) -> None:
        self._database.opened()
        super().ready()

    def close(self) -> None:
        self._database.close()

    def _rows(self, statement: str) -> Rows:
        return self._database.rows(statement)

    def _columns(self, statement: str) -> Columns:
        return self._database.columns(statement)

    def _batches(self, statement: str) -> Iterator[Rows]:
        return self._database.batches(statement)

    def _unchanged(self) -> bool:
        return self._database.unchanged()

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        declared = self._policy.tables[table].columns
        return {column: declared.get(column) for owner, column in self._storages if owner == table}
