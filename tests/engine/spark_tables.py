"""Arrow tables as Parquet files that Spark reads, for tests."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from confide.engine.spark.engine import SparkEngine
from confide.engine.spark.schema import SparkTable
from confide.policy import Policy

_NUMBERS = count()


def create_engine(
    spark: Any,
    folder: Path,
    policy: Policy,
    tables: Mapping[str, pa.Table],
    seconds: float = 600.0,
    settings: Mapping[str, str] | None = None,
) -> SparkEngine:
    """An engine over new files in a folder; `settings` of its session are changed after it has made its own."""
    places = {}
    for label, table in tables.items():
        place = folder / f"{next(_NUMBERS)}.parquet"
        pq.write_table(table, place)
        places[label] = SparkTable(str(place), files=True)
    engine = SparkEngine(policy, places, spark, limit_seconds=seconds)
    for setting, value in (settings or {}).items():
        engine._session.spark.conf.set(setting, value)
    return engine
