"""Which engine serves a policy's source: DuckDB for files and frames, else the database that holds the data."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from confide.engine import Engine
from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import SourceError
from confide.host.address import is_postgres, is_settings
from confide.policy import Policy
from confide.release.custody.spark_place import SparkPlace, named_tables, spark_place

Data = Mapping[str, Any] | Any | None
"""Frames by table, the frame of the only private table, or a session of Spark that has the tables."""


def by_table(policy: Policy, data: Data) -> Data:
    """Frames by table, where one frame is given for a policy with one private table."""
    if data is None or _is_spark_session(data):
        return data
    columns = isinstance(data, Mapping) and not any(name in policy.tables for name in data) and bool(data)
    private = policy.private_tables
    if isinstance(data, Mapping) and not (columns and any(name in table.columns for table in private for name in data)):
        return data
    if not isinstance(data, Mapping) and not _may_be_frame(data):
        raise SourceError(
            f"data is a {type(data).__name__}; give frames by table, as in data={{{private[0].name!r}: frame}}, the "
            "frame of the only private table, or a session of Spark"
        )
    if len(private) == 1:
        return {private[0].name: data}
    given = ", ".join(f"{table.name!r}: frame" for table in private)
    raise SourceError(
        f"one frame is given, and the policy has {len(private)} private tables; give frames by table: data={{{given}}}"
    )


def _may_be_frame(data: Any) -> bool:
    """Whether something looks like a table of columns; what it holds is read when it is opened."""
    return any(hasattr(data, name) for name in ("__arrow_c_stream__", "collect_schema", "column_names", "columns"))


def open_engine(policy: Policy, data: Data = None, *, lines: bool = False) -> Engine:
    """Open the data of a policy and compare their schema with it; `SourceError` says what does not fit.

    `lines`, for the custodian alone: it then says on which line a text file is broken.
    """
    source = policy.source
    place = spark_place(policy)
    if place is not None or _is_spark_session(data):
        return _open_spark(policy, place, data)
    if isinstance(source, str) and is_postgres(source):
        _refuse_frames(data, "PostgreSQL")
        require_driver("psycopg", "PostgreSQL", "postgres")
        from confide.engine.postgres.engine import PostgresEngine  # noqa: PLC0415  a driver that few need

        return PostgresEngine(policy)
    if isinstance(source, str) and is_settings(source):
        raise SourceError(
            "the source is given as settings of a PostgreSQL server; write them as an address, "
            "postgresql://user@host:5432/database?schema=..."
        )
    if isinstance(source, str) and "://" in source:
        scheme = source.split("://", maxsplit=1)[0]
        raise SourceError(f"the source {scheme} is not known; use files, frames, postgresql:// or spark")
    if data is not None and not isinstance(data, Mapping):
        raise SourceError(
            f"data is a {type(data).__name__}; give frames by table, as in data={{'person': frame}}, or a Spark session"
        )
    return DuckDBEngine(policy, data, lines=lines)


def _open_spark(policy: Policy, place: SparkPlace | None, data: Data) -> Engine:
    given = data if _is_spark_session(data) else None
    if place is None and policy.source is not None:
        raise SourceError("a session of Spark is given, but the policy's data are elsewhere; leave out data=")
    if given is None:
        _refuse_frames(data, "Spark")
    if place is not None and place.master is not None and given is not None:
        raise SourceError(f"the policy's data are on Spark at {place.master}; leave out data=, or write source: spark")
    require_driver("pyspark", "Spark", "spark")
    from confide.engine.spark.engine import SparkEngine  # noqa: PLC0415  a driver that few need
    from confide.engine.spark.schema import SparkTable  # noqa: PLC0415
    from confide.engine.spark.spark_session import find_spark  # noqa: PLC0415

    place = place or named_tables(policy)
    places = {label: SparkTable(where, label in place.files) for label, where in place.tables.items()}
    return SparkEngine(policy, places, given if given is not None else find_spark(place.master))


def _is_spark_session(data: Any) -> bool:
    return type(data).__name__ == "SparkSession" and type(data).__module__.startswith("pyspark.")


def _refuse_frames(data: Mapping[str, Any] | None, where: str) -> None:
    if data:
        raise SourceError(f"the policy's data are in {where}, so no frames can be given; leave out data=")


def require_driver(module: str, what: str, extra: str) -> None:
    if find_spec(module) is None:
        raise SourceError(f"{what} needs a driver that is not installed; run: pip install 'confide[{extra}]'")
