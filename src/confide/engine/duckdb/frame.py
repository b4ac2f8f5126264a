"""Frames in memory: any of them as an Arrow table, and a digest of what it holds."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from confide.engine.duckdb.objects import texts_of
from confide.errors import SourceError
from confide.policy import Column, Table
from confide.privacy.identity import joined

_DECIMAL_BITS = 128


def to_arrow(frame: Any, name: str, table: Table | None = None) -> Any:
    """Any frame as an Arrow table: one form to hash and to scan. No value of a column can make it fail.

    `table` says what its columns are. Of a private one only those that the policy names are taken; the others are there
    by name alone.
    """
    import pyarrow as pa  # noqa: PLC0415  heavy, and only frames need it

    if frame is None or isinstance(frame, str | bytes | Path):
        raise SourceError(
            f"data for {name} must be an Arrow, pandas or polars frame; paths go into the policy's `source`"
        )
    columns: list[tuple[str, Any]] | None = None
    broken = False
    try:
        columns = _columns(frame)
        if columns is not None:
            taken = [(label, _taken(column, table, label)) for label, column in columns]
            rows = len(columns[0][1]) if columns else 0
            filled = [pa.nulls(rows) if array is None else array for _, array in taken]
            result = pa.table(filled, names=[label for label, _ in taken])
            if not columns and isinstance(frame, pa.Table):
                result = frame  # it may have rows without columns
    except Exception:  # a frame's own code may raise anything, with values of the data in its message
        broken = True
    if broken:
        raise SourceError(f"the frame for {name} cannot be turned into Arrow; its columns must be of one length")
    if columns is None:
        raise SourceError(f"data for {name} is a {type(frame).__name__}; give an Arrow, pandas or polars frame")
    if len({label for label, _ in columns}) < len(columns):
        raise SourceError(f"the frame for {name} names a column twice")
    plain = [label.casefold() for label, _ in columns]  # the database tells no names apart by their case
    for label in () if table is None else table.columns:
        if plain.count(label.casefold()) > 1:
            raise SourceError(f"the frame for {name} has several columns {label} that differ in case alone")
    return result


def _columns(frame: Any) -> list[tuple[str, Any]] | None:
    """The columns of a frame by name, each as it comes; None if it is no frame."""
    import pyarrow as pa  # noqa: PLC0415

    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):
        frame = frame.collect()
    if _library(frame) == "pandas":
        return [(str(label), frame.iloc[:, place]) for place, label in enumerate(frame.columns)]
    if _library(frame) == "polars":
        return [(label, frame.get_column(label)) for label in frame.columns]
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    elif not isinstance(frame, pa.Table) and hasattr(frame, "__arrow_c_stream__"):
        frame = pa.table(frame)
    if isinstance(frame, pa.Table):
        return list(zip(frame.column_names, frame.columns, strict=True))
    return [(str(label), column) for label, column in frame.items()] if isinstance(frame, Mapping) else None


def _library(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


def _taken(column: Any, table: Table | None, label: str) -> Any:
    """A column in a type that the database has, or nothing for one that no question can name."""
    if table is not None and label not in table.columns and not table.public:
        return None
    return _array(column, None if table is None else table.columns.get(label))


def _array(column: Any, declared: Column | None) -> Any:
    """One column. How it is stored must not follow from its values, unless they are public and nobody declared them."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(column, pa.Array | pa.ChunkedArray):
        return _storable(column, declared)
    if _library(column) == "pandas" and hasattr(column, "cat"):
        # Labels are converted as a column of their own type; -1 is for what is missing.
        labels, codes = _array(column.cat.categories, declared), column.cat.codes.to_numpy()
        return labels.take(pa.array(codes, mask=codes < 0))
    typed = _library(column) in ("pandas", "polars") or isinstance(column, np.ndarray)
    if declared is None or (typed and str(column.dtype) not in ("object", "Object")):
        try:
            whole = column.to_arrow() if _library(column) == "polars" else pa.array(column, from_pandas=True)
            return _storable(whole, declared)
        except Exception:  # a type that Arrow does not have, texts that are no Unicode, values of many types
            pass
    return texts_of(column.to_list() if _library(column) == "polars" else column, declared)


def _storable(column: Any, declared: Column | None) -> Any:
    """In a type that the database has, and without texts that it would refuse."""
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _storable(column.cast(kind.value_type), declared)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # The same moments, in UTC. With a zone the database makes microseconds of all, and fails where they do not fit.
        return column.cast(pa.timestamp(kind.unit))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind) and (kind.bit_width != _DECIMAL_BITS or not 0 <= kind.scale <= kind.precision):
        return texts_of(column.to_pylist(), declared)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return texts_of(map(_decoded, column.cast(pa.large_binary()).to_pylist()), declared)
    return column


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def digest(table: Any) -> str:
    """SHA-256 of names, types and values: the same however the frame is cut into chunks or its texts are encoded."""
    import pyarrow as pa  # noqa: PLC0415

    content = sha256()
    for label, column in zip(table.column_names, table.columns, strict=True):
        plain = _plain(column)
        content.update(joined(label, str(plain.type), str(len(plain))))
        sink = _Sink(content)
        schema = pa.schema([("", plain.type)])
        with pa.PythonFile(sink, mode="w") as stream, pa.ipc.new_stream(stream, schema) as writer:
            writer.write_table(pa.table([plain.combine_chunks()], schema=schema))
    return content.hexdigest()


def _plain(column: Any) -> Any:
    """Dictionaries spelled out, texts of one width, and zeros where nothing is: what is under a NULL is arbitrary."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pa.chunked_array([_spelled_out(chunk) for chunk in column.chunks], _wide_text(kind.value_type))
        kind = column.type
    if _wide_text(kind) != kind:
        return column.cast(_wide_text(kind))
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        nothing = pa.scalar(False if pa.types.is_boolean(kind) else 0, kind)
        parts = [pc.fill_null(column, nothing).combine_chunks(), pc.is_valid(column).combine_chunks()]
        return pa.chunked_array([pa.StructArray.from_arrays(parts, names=["value", "known"])])
    return column


def _spelled_out(chunk: Any) -> Any:
    return chunk.dictionary.cast(_wide_text(chunk.dictionary.type)).take(chunk.indices)


def _wide_text(kind: Any) -> Any:
    """The one type that texts are compared in; another type is itself."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.large_string() if pa.types.is_string(kind) or pa.types.is_string_view(kind) else kind


class _Sink:
    """A file that keeps nothing but the digest of what is written."""

    closed = False

    def __init__(self, content: Any) -> None:
        self._content = content

    def write(self, data: Any) -> int:
        self._content.update(data)
        return len(data)

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True
