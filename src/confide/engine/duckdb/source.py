"""Where a policy's tables come from: files, database files, or frames in memory; and a name for their present state."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never

from confide.engine.duckdb.frame import digest, to_arrow
from confide.errors import SourceError
from confide.host.address import is_settings
from confide.policy import Policy, Table
from confide.policy.file_kind import endings, kind_of
from confide.privacy.identity import plain_name

_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class File:
    kind: Literal["text", "parquet"]
    paths: tuple[str, ...]
    label: str

    @property
    def unreadable(self) -> str:
        if self.kind == "parquet":
            return f"{self.label} cannot be read as Parquet; it may be truncated"
        return (
            f"{self.label} cannot be read as CSV; every line needs as many fields as the first, "
            "quotes must be closed, lines must end alike and have at most 2 MB, and the text must be UTF-8"
        )


@dataclass(frozen=True, slots=True)
class Attached:
    path: str
    label: str

    @property
    def unreadable(self) -> str:
        return f"{self.label}: the file has no such table that can be read"


@dataclass(frozen=True, slots=True)
class Frame:
    frame: Any
    label: str

    @property
    def unreadable(self) -> str:
        return f"{self.label} is not a frame that can be read; give Arrow, pandas or polars"


Source = File | Attached | Frame
Stamp = tuple[tuple[str, ...], ...]


def prepare(policy: Policy, tables: Mapping[str, Table], data: Mapping[str, Any] | None) -> dict[str, Source]:
    """The source of every table: what is given for it, or else what the policy says."""
    given = dict(data or {})
    unknown = sorted(str(name) for name in set(given) - set(tables))
    if unknown:
        raise SourceError(
            f"data is given for {', '.join(unknown)}, which the policy does not name; it names {', '.join(tables)}"
        )
    return {
        name: Frame(to_arrow(given[name], name, table), f"the frame for {name}")
        if name in given
        else _declared(policy, name)
        for name, table in tables.items()
    }


def stamp(source: Source) -> Stamp:
    """What a source is known by: the place, size and times of change of each of its files; a frame by its content."""
    match source:
        case Frame(frame=frame):
            return (("frame", digest(frame)),)
        case File(paths=paths):
            return ("files",), *(_stamp(Path(path)) for path in paths)
        case Attached(path=path):
            return ("files",), _stamp(Path(path)), _stamp(Path(f"{path}.wal"))
        case _:
            assert_never(source)


def _stamp(path: Path) -> tuple[str, ...]:
    try:
        facts = path.stat()
    except OSError:
        return str(path), "gone", ""
    return str(path), str(facts.st_size), str(facts.st_mtime_ns), str(facts.st_ctime_ns)


def version_of(stamps: Mapping[str, Stamp], stated: str | None = None) -> str:
    """The state of the data as a whole: the policy's word for it, or else what each source is known by.

    It follows from the data, and anybody could make it from a guess of them: it goes into keys, under a secret, and
    nowhere else. The last time in a stamp, which no program that copies a file can set back, is not part of it: files
    that are moved with their times are the same data.
    """
    if stated is not None:
        return plain_name("stated", stated)
    parts = [plain_name(name, *(part for own in marks for part in own[:3])) for name, marks in sorted(stamps.items())]
    return plain_name("found", *parts)


def _declared(policy: Policy, name: str) -> Source:
    source = policy.source
    if source is None:
        raise SourceError(
            f"there is no data for {name}: write `source:` in the policy, or give data={{'{name}': frame}}"
        )
    if isinstance(source, str):
        path = _found(policy.base / source, f"source {source}")
        if kind_of(path) != "duckdb":
            raise SourceError(
                f"source {source} is not a DuckDB file ({endings('duckdb')}); "
                f"give one file per table: {{{name}: file.parquet}}"
            )
        return _database(path, name)
    if name not in source:
        raise SourceError(f"the policy's source names no file for {name}")
    if "://" in source[name] or is_settings(source[name]):  # and it may hold a password
        raise SourceError(
            f"{name} is given an address, not a file; a database holds all tables: source: postgresql://..."
        )
    return _file(_found(policy.base / source[name], f"{name}: {source[name]}"), name)


def _file(path: Path, name: str) -> Source:
    if path.is_dir():
        parts = tuple(sorted(part for part in path.iterdir() if kind_of(part) == "parquet"))
        if not parts:
            raise SourceError(f"{name}: the folder {path.name} holds no Parquet files ({endings('parquet')})")
        for part in parts:
            _check_parquet(part, name)
        return File("parquet", tuple(map(str, parts)), path.name)
    kind = kind_of(path)
    if kind is None:
        raise SourceError(f"{name}: {path.name} is not of a known kind; use {endings()}")
    if kind == "duckdb":
        return _database(path, name)
    if path.stat().st_size == 0:
        raise SourceError(f"{name}: {path.name} is empty")
    if kind == "parquet":
        _check_parquet(path, name)
    return File(kind, (str(path),), path.name)


def _database(path: Path, name: str) -> Attached:
    if not path.is_file() or path.stat().st_size == 0:
        raise SourceError(f"{name}: {path.name} is not a DuckDB file")
    return Attached(str(path), f"{path.name}, table {name}")


def _found(path: Path, what: str) -> Path:
    path = path.expanduser().resolve()
    if not path.exists():
        raise SourceError(f"{what} does not exist (looked for {path})")
    return path


def _check_parquet(path: Path, name: str) -> None:
    whole = False
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
            if path.stat().st_size >= 12:
                stream.seek(-4, 2)
                whole = head == _MAGIC and stream.read(4) == _MAGIC
    except OSError:
        pass
    if not whole:
        raise SourceError(f"{name}: {path.name} is not a whole Parquet file; it may be truncated")
