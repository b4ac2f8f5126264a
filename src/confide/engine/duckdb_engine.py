"""DuckDB, embedded: CSV, Parquet and DuckDB files and in-memory frames behind one locked connection."""

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from confide.engine.loading import Loader, public_columns
from confide.engine.running import Columns, Rows, run_apart, run_batches, run_columns
from confide.engine.source import Attached, File, prepare, stamp, version_of
from confide.engine.sql_engine import SqlEngine
from confide.policy import Column, Policy

_LIMIT_SECONDS = 3600.0


class DuckDBEngine(SqlEngine):
    """One policy's tables in one in-memory database. Private rows stay in it."""

    def __init__(
        self,
        policy: Policy,
        data: Mapping[str, Any] | None = None,
        limit_seconds: float = _LIMIT_SECONDS,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self._policy = policy
        self._limit = limit_seconds
        self._sources = prepare(policy, data)
        self._stamps = self._live_stamps()
        self._version = version_of(policy, self._sources)
        self._connection = duckdb.connect(":memory:")
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

    def close(self) -> None:
        self._connection.close()

    def _rows(self, statement: str) -> Rows:
        return run_apart(self._connection, statement, self._limit)

    def _columns(self, statement: str) -> Columns:
        return run_columns(self._connection, statement, self._limit)

    def _batches(self, statement: str) -> Iterator[Rows]:
        return run_batches(self._connection, statement, self._limit)

    def _unchanged(self) -> bool:
        return self._stamps == self._live_stamps()

    def _live_stamps(self) -> list[tuple[str, ...]]:
        """The state of the files that are read anew for every question; text files and frames were copied."""
        sources = self._sources.values()
        return [stamp(s) for s in sources if isinstance(s, Attached) or (isinstance(s, File) and s.kind == "parquet")]

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        return public_columns(self._policy, self._storages, table)
