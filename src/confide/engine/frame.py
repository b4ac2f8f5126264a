"""Frames in memory: any of them as an Arrow table, and a digest of what it holds."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from confide.errors import SourceError
from confide.privacy.naming import joined


def to_arrow(frame: Any, name: str) -> Any:
    """Any frame as an Arrow table: one form to hash and to scan."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only frames need it

    if frame is None or isinstance(frame, str | bytes | Path):
        raise SourceError(
            f"data for {name} must be an Arrow, pandas or polars frame; paths go into the policy's `source`"
        )
    table = None
    try:
        if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):
            frame = frame.collect()
        if isinstance(frame, pa.RecordBatch):
            table = pa.Table.from_batches([frame])
        elif type(frame).__module__.partition(".")[0] == "pandas":
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif isinstance(frame, pa.Table):
            table = frame
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        elif isinstance(frame, Mapping):
            table = pa.table(dict(frame))
        table = None if table is None else _storable(table)
    except Exception:  # a frame's own code may raise anything, with values of the data in its message
        table = None
        broken = True
    else:
        broken = False
    if broken:
        raise SourceError(f"the frame for {name} cannot be turned into Arrow; each column needs one type")
    if table is None:
        raise SourceError(f"data for {name} is a {type(frame).__name__}; give an Arrow, pandas or polars frame")
    if len(set(table.column_names)) < len(table.column_names):
        raise SourceError(f"the frame for {name} names a column twice")
    return table


def _storable(table: Any) -> Any:
    """Half-precision numbers in single precision, since the database has none."""
    import pyarrow as pa  # noqa: PLC0415

    for place, field in enumerate(table.schema):
        if pa.types.is_float16(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float32()))
    return table


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
