"""Where a policy's tables come from: files, one database file, or frames in memory; and a name for their present state."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from confide.errors import SourceError
from confide.policy import Policy

_SUFFIXES: dict[str, Literal["csv", "parquet"]] = {
    ".csv": "csv", ".csv.gz": "csv", ".csv.zst": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_DATABASES = (".duckdb", ".db", ".ddb")
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class File:
    kind: Literal["csv", "parquet"]
    paths: tuple[str, ...]
    label: str

    @property
    def unreadable(self) -> str:
        hint = "every line needs the same number of fields" if self.kind == "csv" else "it may be truncated"
        return f"{self.label} cannot be read as {self.kind.upper()}; {hint}"


@dataclass(frozen=True, slots=True)
class Attached:
    path: str
    label: str

    @property
    def unreadable(self) -> str:
        return f"{self.label} has no readable table of that name"


@dataclass(frozen=True, slots=True)
class Frame:
    frame: Any
    label: str

    @property
    def unreadable(self) -> str:
        return f"{self.label} is not a frame that can be read; give Arrow, pandas or polars"


Source = File | Attached | Frame


def prepare(policy: Policy, data: Mapping[str, Any] | None) -> tuple[dict[str, Source], str]:
    """The source of every table, and the version of the data as a whole."""
    given = dict(data or {})
    unknown = sorted(set(given) - set(policy.tables))
    if unknown:
        raise SourceError(f"data is given for {', '.join(unknown)}, which the policy does not name")
    sources: dict[str, Source] = {}
    for name in policy.tables:
        if name in given:
            sources[name] = _frame(name, given[name])
        else:
            sources[name] = _declared(policy, name)
    if policy.version is not None:
        return sources, sha256(policy.version.encode()).hexdigest()
    states = sorted(f"{name}\x1f{_state(source)}" for name, source in sources.items())
    return sources, sha256("\x1e".join(states).encode()).hexdigest()


def _declared(policy: Policy, name: str) -> Source:
    source = policy.source
    if source is None:
        raise SourceError(
            f"there is no data for {name}: write `source:` in the policy, or give data={{'{name}': frame}}"
        )
    if isinstance(source, str):
        path = _found(policy.base / source, f"source {source}")
        if path.suffix.lower() not in _DATABASES:
            raise SourceError(
                f"source {source} is not a DuckDB file (.duckdb); give one file per table: {{{name}: file.parquet}}"
            )
        return Attached(str(path), f"{path.name}, table {name}")
    if name not in source:
        raise SourceError(f"the policy's source names no file for {name}")
    path = _found(policy.base / source[name], f"{name}: {source[name]}")
    if path.is_dir():
        parts = tuple(sorted(str(part) for part in path.glob("*.parquet")))
        if not parts:
            raise SourceError(f"{name}: the folder {path.name} holds no .parquet files")
        return File("parquet", parts, path.name)
    suffix = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() in (".gz", ".zst") else path.suffix.lower()
    if suffix in _DATABASES:
        return Attached(str(path), f"{path.name}, table {name}")
    if suffix not in _SUFFIXES:
        raise SourceError(f"{name}: {path.name} is not of a known kind; use {', '.join(_SUFFIXES)} or a .duckdb file")
    if path.stat().st_size == 0:
        raise SourceError(f"{name}: {path.name} is empty")
    if _SUFFIXES[suffix] == "parquet" and not _whole_parquet(path):
        raise SourceError(f"{name}: {path.name} is not a whole Parquet file; it may be truncated")
    return File(_SUFFIXES[suffix], (str(path),), path.name)


def _found(path: Path, what: str) -> Path:
    path = path.expanduser().resolve()
    if not path.exists():
        raise SourceError(f"{what} does not exist (looked for {path})")
    return path


def _whole_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(4)
        stream.seek(-4, 2)
        return head == _MAGIC and stream.read(4) == _MAGIC and path.stat().st_size >= 12


def _frame(name: str, frame: Any) -> Frame:
    if isinstance(frame, str | bytes | Path) or frame is None:
        raise SourceError(
            f"data for {name} must be an Arrow, pandas or polars frame; paths go into the policy's `source`"
        )
    return Frame(_arrow(frame, name), f"the frame for {name}")


def _arrow(frame: Any, name: str) -> Any:
    """Any frame as an Arrow table: one form to hash and to scan."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only frames need it

    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
            frame = frame.collect()
        if type(frame).__module__.startswith("pandas"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
        if isinstance(frame, Mapping):
            return pa.table(dict(frame))
    except (pa.ArrowException, TypeError, ValueError):
        raise SourceError(f"the frame for {name} cannot be turned into Arrow; each column needs one type") from None
    raise SourceError(f"data for {name} is a {type(frame).__name__}; give an Arrow, pandas or polars frame")


def _state(source: Source) -> str:
    """Files by size and time of change, frames by their content."""
    match source:
        case File(paths=paths):
            return "\x1f".join(_stamp(path) for path in paths)
        case Attached(path=path):
            return _stamp(path)
        case Frame(frame=frame):
            digest = sha256(str(frame.schema).encode())
            for column in frame.columns:
                for chunk in column.chunks:
                    digest.update(f"{chunk.offset},{len(chunk)};".encode())
                    for buffer in chunk.buffers():
                        digest.update(b"-" if buffer is None else memoryview(buffer))
            return digest.hexdigest()


def _stamp(path: str) -> str:
    facts = Path(path).stat()
    return f"{path}:{facts.st_size}:{facts.st_mtime_ns}"
