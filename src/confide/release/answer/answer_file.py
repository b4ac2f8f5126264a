"""Answers in files: CSV, Parquet, JSON and Arrow, told by how the name ends. Numbers keep all their digits.

A text in a CSV file that begins like a formula would be run by the program that opens it, and keys come from data: it
gets an apostrophe before it, which such programs do not show. Names of columns likewise. Numbers stay numbers.
"""

import re
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from confide.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow

    from confide.release.answer.answer import Answer

KINDS: Final = (".csv", ".parquet", ".json", ".arrow")
_FORMULA: Final = r"^[=+\-@\t\r\n＝＋－＠]"


def file_place(path: object, said: str) -> Path:
    """Where to write, or a refusal: a command asks before anything is spent."""
    place = Path(path) if isinstance(path, str | Path) else None
    if place is None or place.suffix.lower() not in KINDS:
        raise ParameterError(f"{said} {path}: answers are written as {', '.join(KINDS)}")
    if place.is_dir() or not place.parent.is_dir():
        raise ParameterError(f"{said} {path}: there is no folder {place.parent}, or the file is one")
    return place


def write(answer: "Answer", stream: IO[bytes], kind: str) -> None:
    """The answer as a file of a kind, one of `KINDS`."""
    match kind.lower():
        case ".csv":
            write_csv(answer.to_arrow(), stream)
        case ".json":
            stream.write(answer.to_json().encode() + b"\n")
        case ".parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415  heavy, and loaded when used

            pq.write_table(answer.to_arrow(), stream)
        case ".arrow":
            import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

            table = answer.to_arrow()
            with pa.ipc.new_file(stream, table.schema) as file:
                file.write_table(table)
        case _:
            raise ValueError(f"no answer is written as {kind}")


def write_csv(table: "pyarrow.Table", stream: object) -> None:
    """A table as CSV; NULL, and what is unknown, is nothing."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used
    import pyarrow.compute as pc  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    def marked(column: Any) -> Any:
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            return column
        mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
        begins = pc.match_substring_regex(column, _FORMULA)
        return pc.if_else(begins, pc.binary_join_element_wise(mark, column, nothing), column)

    columns = [marked(column) for column in table.columns]
    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    csv.write_csv(pa.table(columns, names=names), stream)
