"""Whether a synthetic table is as the policy says: everything that is wrong is told at once. Its values are public."""

from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any, Final, assert_never

from confide.errors import SourceError
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded
from confide.policy.column import show
from confide.policy.file_kind import endings, is_tabbed, kind_of, packing_of

_EXAMPLES: Final = 3


def read_file(path: Path, label: str) -> Any:
    """A CSV or Parquet file as an Arrow table; the cells of a CSV file are texts, which `checked` reads."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

    kind = kind_of(path)
    if not path.is_file():
        raise SourceError(f"{label}: there is no file {path}")
    if kind not in ("text", "parquet"):
        known = endings("text", "parquet")
        raise SourceError(f"{label}: {path.name} is not of a known kind; use {known}, or a frame")
    if path.stat().st_size == 0:
        raise SourceError(f"{label}: {path.name} is empty")
    try:
        if kind == "parquet":
            from pyarrow import parquet  # noqa: PLC0415

            return parquet.read_table(path)
        return _text_file(path)
    except (pa.ArrowException, OSError, ValueError):
        what = "Parquet" if kind == "parquet" else "CSV"
        raise SourceError(f"{label}: {path.name} cannot be read as {what}; it may be damaged") from None


def checked(frame: Any, columns: Mapping[str, Column], needed: frozenset[str] | None, label: str) -> Any:
    """The columns that the policy names, each in a type that fits; `SourceError` lists everything that does not.

    With `needed`, those columns and no others, and all of them must be there.
    """
    import pyarrow as pa  # noqa: PLC0415

    problems: list[str] = []
    kept: dict[str, Any] = {}
    for name, column in columns.items():
        if name not in frame.column_names or (needed is not None and name not in needed):
            problems += [_missing(name, frame.column_names)] if needed is not None and name in needed else []
            continue
        values, wrong = _typed(frame.column(name), column)
        if wrong:
            problems.append(f"{name}: {wrong}")
            continue
        kept[name] = values
        problems += [f"{name}: {fault}" for fault in _faults(values, column)]
    if not kept and not problems and not columns.keys() & set(frame.column_names):
        problems.append(f"it has none of the policy's columns {', '.join(columns)}")
    if frame.num_rows == 0:
        problems.append("it has no rows, so it answers nothing")
    if problems:
        raise SourceError(f"{label} does not fit the policy:\n" + "\n".join(f"  {problem}" for problem in problems))
    # A count of all rows reads no column.
    return pa.table(kept or {"row": pa.nulls(frame.num_rows)})


def _text_file(path: Path) -> Any:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    parsing = csv.ParseOptions(delimiter="\t" if is_tabbed(path) else ",")
    with pa.input_stream(path, compression=packing_of(path)) as stream:
        names = csv.open_csv(stream, parse_options=parsing).schema.names
    converting = csv.ConvertOptions(
        column_types={name: pa.string() for name in names}, null_values=[""], strings_can_be_null=True
    )
    with pa.input_stream(path, compression=packing_of(path)) as stream:
        return csv.read_csv(stream, parse_options=parsing, convert_options=converting)


def _missing(name: str, found: list[str]) -> str:
    other = next((own for own in found if own.casefold() == name.casefold()), None)
    return f"there is no column {name}; it has {other if other is not None else ', '.join(found[:20])}"


def _typed(values: Any, column: Column) -> tuple[Any, str]:
    """A column in a type that fits, or what is wrong with its type. Texts are read as what they should be."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(values.type):
        plain = pa.large_string() if _is_text(values.type.value_type) else values.type.value_type
        values = pa.chunked_array([chunk.dictionary.cast(plain).take(chunk.indices) for chunk in values.chunks], plain)
    kind, is_text = values.type, _is_text(values.type)
    if isinstance(column, Text | Identifier) or pa.types.is_null(kind):
        return values, ""
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    wanted, fits, targets = _wanted(column, kind, numeric)
    if fits:
        return values, ""
    for target in targets if is_text else ():
        try:
            return values.cast(pa.large_string()).cast(target), ""
        except pa.ArrowInvalid:
            continue
    return values, f"it is stored as {'text' if is_text else kind}, but the policy makes it {wanted}"


def _wanted(column: Column, kind: Any, numeric: bool) -> tuple[str, bool, tuple[Any, ...]]:
    """What a column should be in words, whether a type fits that, and the types that texts of it may be read as."""
    import pyarrow as pa  # noqa: PLC0415

    match column:
        case Number() | Unbounded():
            return "a number", numeric, (pa.int64(), pa.float64())
        case Date():
            return "a date", pa.types.is_date(kind) or pa.types.is_timestamp(kind), (pa.date32(),)
        case Category() if column.kind is int:
            return "a category of whole numbers", numeric, (pa.int64(),)
        case Category() if column.kind is bool:
            return "a category of true and false", pa.types.is_boolean(kind), (pa.bool_(),)
        case Category() | Text() | Identifier():
            return "a category of texts", _is_text(kind), ()
    assert_never(column)


def _faults(values: Any, column: Column) -> Iterator[str]:
    """Values that the policy rules out."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_null(values.type):
        return
    match column:
        case Number(low=low, high=high):
            numbers = values.cast(pa.float64(), safe=False)
            yield from _outside(values, numbers, float(low), float(high), f"[{show(low)}, {show(high)}]")
        case Date(low=first, high=last):
            days = values.cast(pa.date32(), safe=False)
            yield from _outside(days, days, pa.scalar(first), pa.scalar(last), f"{first} to {last}")
        case Category(values=allowed):
            found = [value for value in pc.unique(values).to_pylist() if value is not None and not _nan(value)]
            strange = [value for value in found if value not in allowed]
            if strange:
                more = f" and {len(strange) - _EXAMPLES} more" if len(strange) > _EXAMPLES else ""
                shown = ", ".join(repr(value) for value in strange[:_EXAMPLES])
                yield f"{shown}{more} are not among the values of the policy"
        case Unbounded() | Text() | Identifier():
            pass  # the policy rules nothing out
        case _:
            assert_never(column)


def _outside(values: Any, compared: Any, low: Any, high: Any, range_: str) -> Iterator[str]:
    import pyarrow.compute as pc  # noqa: PLC0415

    beyond = pc.or_(pc.less(compared, low), pc.greater(compared, high))
    count = pc.sum(beyond).as_py() or 0
    if count:
        least, most = (pc.min_max(values)[end].as_py() for end in ("min", "max"))
        yield f"{count:,} of {len(values):,} values are outside {range_}; they go from {least} to {most}"


def _nan(value: object) -> bool:
    return isinstance(value, float) and isnan(value)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
