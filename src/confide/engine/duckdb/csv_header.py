"""The first line of a text file: what its columns are called and what parts them. The rows below are not looked at.

The rest of how the file is read is fixed (quotes are ", doubled inside quotes), so that no row of the data can change
how another is read.
"""

import csv
from dataclasses import dataclass

from confide.errors import SourceError
from confide.policy.file_kind import is_tabbed, packing_of

_LONGEST = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class Header:
    names: tuple[str, ...]
    delimiter: str


def read_header(path: str, label: str, wanted: frozenset[str]) -> Header:
    """The header of a file, split by the delimiter that shows the wanted columns, else the most columns."""
    line = _first_lines(path, label)
    options = ("\t",) if is_tabbed(path) else _DELIMITERS
    headers = [Header(_split(line, delimiter), delimiter) for delimiter in options]
    best = max(headers, key=lambda header: (len(wanted & set(header.names)), len(header.names)))
    if len(set(best.names)) < len(best.names):
        twice = next(name for name in best.names if best.names.count(name) > 1)
        raise SourceError(f"{label}: the first line names the column {twice[:60]!r} twice")
    return best


def _first_lines(path: str, label: str) -> str:
    import pyarrow as pa  # noqa: PLC0415  heavy, and only text files need it here

    text: str | None = None
    try:
        with pa.input_stream(path, compression=packing_of(path)) as stream:
            text = stream.read(_LONGEST).decode("utf-8-sig", errors="replace")
    except (OSError, pa.ArrowException):
        pass
    if text is None:
        raise SourceError(f"{label} cannot be read; it may be truncated or not of its kind")
    if not text.strip():
        raise SourceError(f"{label} is empty: the first line must name the columns")
    return text


def _split(text: str, delimiter: str) -> tuple[str, ...]:
    lines = (line for line in text.splitlines(keepends=True) if line.strip())
    try:
        return tuple(next(csv.reader(lines, delimiter=delimiter, strict=True)))
    except (csv.Error, StopIteration):
        return ()
