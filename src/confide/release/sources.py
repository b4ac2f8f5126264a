"""Which engine serves a policy's source: DuckDB for files and frames, else the database that holds the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from confide.engine import Engine
from confide.engine.duckdb_engine import DuckDBEngine
from confide.errors import SourceError
from confide.policy import Policy

_POSTGRES = ("postgresql://", "postgres://")
_SPARK = "spark:"


def open_engine(policy: Policy, data: Mapping[str, Any] | None = None) -> Engine:
    """Open the data of a policy and compare their schema with it; `SourceError` says what does not fit."""
    source = policy.source
    if isinstance(source, str) and source.startswith(_POSTGRES):
        _refuse_frames(data, "PostgreSQL")
        _require("psycopg", "PostgreSQL", "postgres")
        from confide.engine.postgres_engine import PostgresEngine  # noqa: PLC0415  a driver that few need

        return PostgresEngine(policy)
    if (place := spark_place(policy)) is not None:
        _refuse_frames(data, "Spark")
        _require("pyspark", "Spark", "spark")
        from confide.engine.spark_engine import SparkEngine, start_spark  # noqa: PLC0415  a driver that few need

        return SparkEngine(policy, place.tables, start_spark(place.master))
    if isinstance(source, str) and "://" in source:
        scheme = source.split("://", maxsplit=1)[0]
        raise SourceError(f"the source {scheme}:// is not known; use files, postgresql:// or spark")
    return DuckDBEngine(policy, data)


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """Which Spark, None for the one of this process or a new one here; and where on it each table is."""

    master: str | None
    tables: Mapping[str, str]


def spark_place(policy: Policy) -> SparkPlace | None:
    """What a policy says of Spark; None if its data are elsewhere.

    `spark` is the Spark of this process, `spark:local[4]`, `spark://host:7077` and `sc://host` are others: tables are
    then those of the catalogue. {table: spark:PATH} or {table: spark:NAME} says where each is.
    """
    source = policy.source
    if isinstance(source, str):
        if source == "spark":
            return SparkPlace(None, {label: label for label in policy.tables})
        if source.startswith(("spark://", "sc://", _SPARK)):
            master = source if "://" in source else source.removeprefix(_SPARK)
            return SparkPlace(master, {label: label for label in policy.tables})
        return None
    if source is None or not any(place.startswith(_SPARK) for place in source.values()):
        return None
    elsewhere = [label for label in policy.tables if not source.get(label, "").startswith(_SPARK)]
    if elsewhere:
        raise SourceError(f"some tables are on Spark, so all must be: write {elsewhere[0]}: spark:PATH")
    return SparkPlace(None, {label: _path(policy, source[label].removeprefix(_SPARK)) for label in policy.tables})


def _path(policy: Policy, place: str) -> str:
    """A path beside the policy, if it is one; Spark has other schemes and names of tables too."""
    local = policy.base / place
    return str(local.resolve()) if "://" not in place and local.exists() else place


def _refuse_frames(data: Mapping[str, Any] | None, where: str) -> None:
    if data:
        raise SourceError(f"the policy's data are in {where}, so no frames can be given; leave out data=")


def _require(module: str, what: str, extra: str) -> None:
    if find_spec(module) is None:
        raise SourceError(f"{what} needs a driver that is not installed; run: pip install 'confide[{extra}]'")
