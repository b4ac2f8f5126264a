"""The tables of Spark's catalogue, or of Parquet files: names and types of their columns. No row is read."""

from collections.abc import Callable
from typing import Any, TypeVar

from confide.engine.spark.schema import quoted
from confide.engine.spark.spark_session import find_spark
from confide.engine.spark.types import type_name
from confide.errors import SourceError

Schema = tuple[tuple[str, str], ...]
Found = TypeVar("Found")


def spark_tables(master: str | None, schema: str | None) -> dict[str, Schema]:
    """Every table and view of a schema of the catalogue; of the current one if none is named."""
    spark = find_spark(master)

    def listed() -> dict[str, Schema]:
        found = spark.catalog.listTables(schema) if schema else spark.catalog.listTables()
        prefix = "".join(f"{quoted(part)}." for part in schema.split(".")) if schema else ""
        return {
            str(table.name): _columns(spark.table(("" if table.isTemporary else prefix) + quoted(table.name)))
            for table in found
        }

    return _read(
        listed, f"Spark has no schema {schema}, or cannot list it" if schema else "Spark cannot list its tables"
    )


def spark_files(master: str | None, path: str) -> Schema:
    """The columns of Parquet files, as Spark sees them."""
    spark = find_spark(master)
    return _read(
        lambda: _columns(spark.read.parquet(path)),
        f"{path} cannot be read as Parquet files; write a full path, and check that Spark may read it",
    )


def _columns(frame: Any) -> Schema:
    return tuple((str(field.name), type_name(field)) for field in frame.schema.fields)


def _read(find: Callable[[], Found], complaint: str) -> Found:
    try:
        return find()
    except SourceError:
        raise
    except Exception:  # Spark's own words are pages, and may hold credentials of a store
        pass
    raise SourceError(complaint)
