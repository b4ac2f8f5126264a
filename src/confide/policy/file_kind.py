"""The kinds of files that hold tables, told by how their names end, in letters of either case."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["text", "parquet", "duckdb"]
Packing = Literal["gzip", "zstd"]

_PACKINGS: Final[Mapping[str, Packing]] = MappingProxyType({".gz": "gzip", ".zst": "zstd"})
_TABBED: Final = (".tsv", ".tsv.gz", ".tsv.zst")
_ENDINGS: Final[Mapping[Kind, tuple[str, ...]]] = MappingProxyType(
    {
        "text": (".csv", ".csv.gz", ".csv.zst", *_TABBED),
        "parquet": (".parquet", ".pq"),
        "duckdb": (".duckdb", ".ddb", ".db"),
    }
)


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What a file of this name holds; None if the name does not say."""
    name = _name(path)
    return next((kind for kind, known in _ENDINGS.items() if name.endswith(known)), None)


def packing_of(path: str | os.PathLike[str]) -> Packing | None:
    """How a text file of this name is compressed."""
    name = _name(path)
    return next((packing for ending, packing in _PACKINGS.items() if name.endswith(ending)), None)


def is_tabbed(path: str | os.PathLike[str]) -> bool:
    """Whether tabs part the columns of a text file of this name."""
    return _name(path).endswith(_TABBED)


def endings(*kinds: Kind) -> str:
    """How names of these kinds end, for a message: all of them if none is given."""
    return ", ".join(ending for kind, known in _ENDINGS.items() if not kinds or kind in kinds for ending in known)


def _name(path: str | os.PathLike[str]) -> str:
    return os.fspath(path).lower()
