"""A table of Parquet files, in as many parts as there are ways in which the files store the policy's columns.

Spark reads all files of a table in the same types, and fails where one stores a column in a type that it cannot widen:
one missing value may have made floats of the whole numbers of one file. So files that differ are read each in its own
types. The footers of all files tell them, and Spark reads these at once, wherever they are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from confide.engine.spark.types import type_name
from confide.errors import SourceError

MOST_KINDS: Final = 64
"""In so many ways files may store the columns: each is a branch of every statement."""
_AT_ONCE: Final = 8
_LOOKING_UP: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_PATTERN: Final = frozenset("{}[]*?\\")


class TooManyKindsError(SourceError):
    """Files differ in more ways than can be read together."""


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read in the same types."""

    frame: Any
    types: Mapping[str, str]


class Files:
    """The files at one place; `labels` are the columns that matter, None is all of them."""

    def __init__(self, where: str, labels: Collection[str] | None) -> None:
        self._where = where
        self._labels = labels
        self._alike: list[list[str]] = []  # as they were found last, so that only new files are told apart again

    def read(self, spark: Any) -> list[Part]:
        """The files as they are now. If Spark can read all of them in the same types, they are one part."""
        if (frame := _merged(spark, [self._where])) is not None:
            return [Part(frame, {field.name: type_name(field) for field in frame.schema.fields})]
        fields = self._tell_apart(spark)
        kinds = sorted(fields.items(), key=lambda kind: -len(kind[1]))
        rest = [path for _, paths in kinds[1:] for path in paths]
        parts = []
        for place, (own, paths) in enumerate(kinds):
            frame = spark.read.schema(_structure(own)).parquet(self._where)
            if rest:
                # Of all files that are listed, so that folders mean what they mean to all of them.
                listed = frame.metadataColumn("_metadata")["file_path"].isin(_spellings(paths if place else rest))
                frame = frame.where(listed if place else ~listed)
            types = {field.name: type_name(field) for field in frame.schema.fields}
            parts.append(Part(frame, types | {field.name: type_name(field) for field in own}))
        return parts

    def _tell_apart(self, spark: Any) -> dict[tuple[Any, ...], list[str]]:
        """The columns as files store them, and the files that store them so."""
        paths = spark.read.parquet(self._where).inputFiles()
        new = set(paths).difference(*self._alike)
        before = [[path for path in group if path in set(paths)] for group in self._alike]
        with _few_tasks(spark):
            found = [own for group in [*before, sorted(new)] if group for own in _alike(spark, group)]
        self._alike = [group for group, _ in found]
        columns: dict[str, Any] = {}
        for _, own in found:
            for label, field in own.items():
                if self._labels is None or label in self._labels:
                    columns.setdefault(label, field)
        kinds: dict[tuple[tuple[str, str], ...], tuple[tuple[Any, ...], list[str]]] = {}
        for group, own in found:
            # A column that a file lacks is NULL there, whatever its type is.
            fields = tuple(own.get(label, field) for label, field in columns.items())
            kinds.setdefault(tuple((field.name, type_name(field)) for field in fields), (fields, []))[1].extend(group)
        if len(kinds) > MOST_KINDS:
            raise TooManyKindsError(
                f"stores its columns in more than {MOST_KINDS} ways, each in some of its files; write them alike"
            )
        return dict(kinds.values())


@contextmanager
def _few_tasks(spark: Any) -> Iterator[None]:
    """Files that are named one by one are looked up by a task for each, unless fewer are asked for."""
    before = spark.conf.get(_LOOKING_UP)
    spark.conf.set(_LOOKING_UP, str(_AT_ONCE))
    try:
        yield
    finally:
        spark.conf.set(_LOOKING_UP, before)


def _alike(spark: Any, paths: Sequence[str]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Files in groups that can be read together, each with the columns that they have."""
    columns = _columns(spark, paths)
    if columns is not None:
        yield list(paths), columns
        return
    step = -(-len(paths) // _AT_ONCE)
    for start in range(0, len(paths), step):
        yield from _alike(spark, paths[start : start + step])


def _merged(spark: Any, paths: Sequence[str]) -> Any:
    """Files in types that hold for all of them, or None if there are no such types."""
    try:
        frame = spark.read.option("mergeSchema", "true").parquet(*paths)
        frame.schema  # noqa: B018  over Spark Connect nothing is looked at before
        return frame
    except Exception as error:
        if "CANNOT_MERGE" not in str(error):
            raise
    return None


def _columns(spark: Any, paths: Sequence[str]) -> dict[str, Any] | None:
    """What files store, in types that hold for all of them, or None if there are no such types."""
    try:
        frame = _merged(spark, [_literal(path) for path in paths])
    except Exception as error:
        if "UNABLE_TO_INFER_SCHEMA" not in str(error):
            raise
        return {}  # no byte is in them
    return None if frame is None else {field.name: field for field in frame.schema.fields}


def _structure(fields: Sequence[Any]) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415  heavy

    return StructType(list(fields))


def _literal(path: str) -> str:
    """A file as Spark lists it, as a pattern that means that file alone."""
    return "".join(f"\\{letter}" if letter in _PATTERN else letter for letter in unquote(path))


def _spellings(paths: Sequence[str]) -> list[str]:
    """Files here are listed as file:///a and read as file:/a."""
    return [*paths, *(path.replace("file:///", "file:/", 1) for path in paths if path.startswith("file:///"))]
