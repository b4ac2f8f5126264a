"""Which engine serves a policy's source: DuckDB for files and frames, else the database that holds the data."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from confide.engine import Engine
from confide.engine.duckdb_engine import DuckDBEngine
from confide.errors import SourceError
from confide.policy import Policy

_POSTGRES = ("postgresql://", "postgres://")


def open_engine(policy: Policy, data: Mapping[str, Any] | None = None) -> Engine:
    """Open the data of a policy and compare their schema with it; `SourceError` says what does not fit."""
    source = policy.source
    if isinstance(source, str) and source.startswith(_POSTGRES):
        _refuse_frames(data, "PostgreSQL")
        _require("psycopg", "PostgreSQL", "postgres")
        from confide.engine.postgres_engine import PostgresEngine  # noqa: PLC0415  a driver that few need

        return PostgresEngine(policy)
    if isinstance(source, str) and (source == "spark" or "://" in source):
        scheme = source.split("://", maxsplit=1)[0]
        raise SourceError(f"the source {scheme} is not known; use files, frames or postgresql://")
    return DuckDBEngine(policy, data)


def _refuse_frames(data: Mapping[str, Any] | None, where: str) -> None:
    if data:
        raise SourceError(f"the policy's data are in {where}, so no frames can be given; leave out data=")


def _require(module: str, what: str, extra: str) -> None:
    if find_spec(module) is None:
        raise SourceError(f"{what} needs a driver that is not installed; run: pip install 'confide[{extra}]'")
