"""Text files: what the first line says of the columns, and whether every quote is closed.

How a file is read is fixed: a field is quoted if it begins with ", and quotes inside are doubled. The first line alone
says what the columns are called and what parts them. So no row of the data can change how another is read, save by a
quote that is never closed, which a reader that goes through the file in order does not notice.
"""

import csv
import re
from dataclasses import dataclass

from confide.errors import SourceError
from confide.policy.file_kind import is_tabbed, packing_of

_LONGEST_HEADER = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")

_PIECE = 1 << 22
_LONGEST_LINE = 1 << 25
"""No line is longer; an open quote takes all lines after it along."""


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
    plain = [name.casefold() for name in best.names]  # the database tells no names apart by their case
    if len(set(plain)) < len(plain):
        twice = next(name for name in best.names if plain.count(name.casefold()) > 1)
        raise SourceError(f"{label}: the first line names the column {twice[:60]!r} twice")
    return best


def _first_lines(path: str, label: str) -> str:
    import pyarrow as pa  # noqa: PLC0415  heavy, and only text files need it here

    text: str | None = None
    try:
        with pa.input_stream(path, compression=packing_of(path)) as stream:
            text = stream.read(_LONGEST_HEADER).decode("utf-8-sig", errors="replace")
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


def quotes_are_closed(path: str, delimiter: str) -> bool:
    """Whether every quote of a file is closed. False also for a file that cannot be read."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only text files need it here

    mark = re.escape(delimiter.encode())
    quoted, plain = rb'"(?:[^"]++|"")*+"', rb'[^"\r\n%b][^\r\n%b]*+' % (mark, mark)
    fields = re.compile(rb"(?:(?:%b|%b)?+(?:%b|\r\n|\r(?!\Z)|\n))*+" % (quoted, plain, mark))
    rest = b""
    try:
        with pa.input_stream(path, compression=packing_of(path)) as stream:
            while piece := stream.read(_PIECE):
                rest = _unread(fields, rest + piece)
                if len(rest) > _LONGEST_LINE:
                    return False
    except (OSError, pa.ArrowException):
        return False
    return not _unread(fields, rest + b"\n")


def _unread(fields: "re.Pattern[bytes]", text: bytes) -> bytes:
    """The rest of the text, after the last whole field."""
    found = fields.match(text)
    return text[found.end() :] if found else text
