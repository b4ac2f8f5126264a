"""Lists of values that stand in a file beside the policy: `values: @codes.csv`.

What the file lists is part of the policy's public facts, as if it were written there: the same list gives the same
policy, wherever it stands. No message repeats a line of the file, which may be another than was meant: the data.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

from confide.policy.column import VALUES_LIMIT, CategoryValue
from confide.policy.findings import Findings
from confide.policy.node import Leaf, Node, Path, UnreadableError, plain_leaf
from confide.privacy.limits import LONGEST_POLICY

MARK: Final = "@"
_UNQUOTED: Final = re.compile(r"(\bvalues:[ \t]+)(@[^\s,{}\[\]#\"']+)")
_ADVICE: Final = "write one value on each line"


def quoted_marks(text: str) -> str:
    """YAML keeps @ for itself, so `values: @codes.csv` is read as if it stood in quotes."""
    return _UNQUOTED.sub(r'\1"\2"', text) if MARK in text else text


def file_of(node: Node) -> str | None:
    """The file that a list of values is in; None if it is written out."""
    if isinstance(node, Leaf) and isinstance(node.value, str) and node.value.startswith(MARK):
        return node.value.removeprefix(MARK)
    return None


def read_values(
    file: str, column: str, path: Path, findings: Findings, base: FilePath
) -> tuple[CategoryValue, ...] | None:
    """The values that a file lists, or None and a finding.

    They are whole numbers if all are written as such, true and false if all are one of these, and texts otherwise.
    """
    try:
        texts = _different(file, column, base)
    except UnreadableError as error:
        findings.add(path, error.what, error.advice)
        return None
    values = [plain_leaf(text, None).value for text in texts]
    for kind in (int, bool):
        if all(type(value) is kind for value in values):
            return tuple(value for value in values if isinstance(value, kind))
    return texts


def _different(file: str, column: str, base: FilePath) -> tuple[str, ...]:
    """The values as they are written, each once; a first line that is the name of the column is a heading."""
    lines = list(_lines(file, base))
    if lines and lines[0][1].strip().casefold() == column.casefold():
        lines = lines[1:]
    if not lines:
        raise UnreadableError(f"the file {file} lists no values", _ADVICE)
    if len(lines) > VALUES_LIMIT:
        advice = f"at most {VALUES_LIMIT:,} are allowed; write {{type: text}} for more"
        raise UnreadableError(f"the file {file} lists {len(lines):,} values", advice)
    seen: dict[str, int] = {}
    for number, text in lines:
        first = seen.setdefault(text, number)
        if first != number:
            what = f"line {number} of {file} lists the value of line {first} again"
            raise UnreadableError(what, "leave one of them out")
    return tuple(seen)


def _lines(file: str, base: FilePath) -> Iterator[tuple[int, str]]:
    """Each value with its line."""
    reader = csv.reader(_text(file, base).rstrip().splitlines(), strict=True)
    try:
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                raise UnreadableError(f"the file {file} has nothing on line {reader.line_num}", _ADVICE)
            if len(row) != 1:
                advice = f'{_ADVICE}, in quotes if it holds a comma: "a, b"'
                raise UnreadableError(f"the file {file} has {len(row)} fields on line {reader.line_num}", advice)
            yield reader.line_num, row[0]
    except csv.Error:
        what = f"the file {file} has a quote that is not closed, near line {reader.line_num}"
        raise UnreadableError(what, _ADVICE) from None


def _text(file: str, base: FilePath) -> str:
    if not file.strip():
        raise UnreadableError("no file is named after @", "write for example values: @codes.csv")
    try:
        place = base / FilePath(file).expanduser()
        with place.open("rb") as stream:
            content = stream.read(LONGEST_POLICY + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        what = f"the file {file} is not there (looked for {place})"
        raise UnreadableError(what, "paths start at the folder of the policy") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"the file {file} is not UTF-8 text", "save it as UTF-8 text, one value a line") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise UnreadableError(f"the file {file} cannot be read: {reason}", "check the path") from None
    if len(content) > LONGEST_POLICY:
        what = f"the file {file} is larger than {LONGEST_POLICY // 2**20} MB"
        raise UnreadableError(what, "is this the data? A list of values is short")
    return text
