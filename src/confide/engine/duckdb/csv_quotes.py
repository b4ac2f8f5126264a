"""Whether every quote of a text file is closed: what a reader that goes through it in order does not notice.

The grammar is the one that files are read by: a field is quoted if it begins with a quote, quotes inside are doubled.
"""

import re

from confide.policy.file_kind import packing_of

_PIECE = 1 << 22
_LONGEST = 1 << 25
"""No line is longer; an open quote takes all lines after it along."""


def quotes_are_closed(path: str, delimiter: str) -> bool:
    """False also for a file that cannot be read."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only text files need it here

    mark = re.escape(delimiter.encode())
    quoted, plain = rb'"(?:[^"]++|"")*+"', rb'[^"\r\n%b][^\r\n%b]*+' % (mark, mark)
    fields = re.compile(rb"(?:(?:%b|%b)?+(?:%b|\r\n|\r(?!\Z)|\n))*+" % (quoted, plain, mark))
    rest = b""
    try:
        with pa.input_stream(path, compression=packing_of(path)) as stream:
            while piece := stream.read(_PIECE):
                rest = _unread(fields, rest + piece)
                if len(rest) > _LONGEST:
                    return False
    except (OSError, pa.ArrowException):
        return False
    return not _unread(fields, rest + b"\n")


def _unread(fields: "re.Pattern[bytes]", text: bytes) -> bytes:
    """What is left behind all whole fields."""
    found = fields.match(text)
    return text[found.end() :] if found else text
