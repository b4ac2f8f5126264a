"""Strategies that take long to find, kept on disk for good: public facts, whatever data they are used on.

A file is named by what was asked and by a version of the search; it is used if it is whole, if every cell follows from
what it measures, and if its folder is the user's alone. A strategy that somebody changed would be less exact and no
less private: its sensitivity is always computed from its integers, which are so small that this is exact.
"""

import hashlib
import os
import stat
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from confide.workload.strategy.centred import centred_optimum
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.line import AskedLine, LineStrategy, NoiseKind
from confide.workload.strategy.registry import LINES

VERSION: Final = 1
"""Of the searches; raised when one finds another strategy."""
SMALLEST_KEPT: Final = 64
"""Cells of a column from which on a strategy is worth a file."""
LARGEST_FILE: Final = 2**28
SOUND: Final = 1e-6
"""How far cells may be from themselves once measured and estimated without noise."""
_MOST_HELD: Final = 16

_held: "OrderedDict[tuple[str, AskedLine, str], LineStrategy]" = OrderedDict()
_lock = Lock()


def kept_line(name: str, asked: AskedLine, noise: NoiseKind) -> LineStrategy:
    """The strategy of a name for what is asked of a column: found once in a process, and once on a machine if dense."""
    key = (name, asked, noise)
    with _lock:
        if key in _held:
            _held.move_to_end(key)
            return _held[key]
    made = _stored(name, asked, noise)
    with _lock:
        _held[key] = made
        while len(_held) > _MOST_HELD:
            _held.popitem(last=False)
    return made


def _stored(name: str, asked: AskedLine, noise: NoiseKind) -> LineStrategy:
    make: Callable[[], LineStrategy] = (
        (lambda: centred_optimum(asked)) if name == "residual" else (lambda: LINES[name].make(asked, noise))
    )
    if name not in ("optimised", "residual") or asked.size < SMALLEST_KEPT:
        return make()
    folder = cache_folder()
    path = None if folder is None else folder / f"{_digest(name, asked, noise)}.strategy"
    if path is not None:
        found = _read(path, asked.size)
        line = None if found is None else _sound(name, found)
        if line is not None:
            return line
    made = make()
    assert isinstance(made, DenseLine)
    if path is not None:
        _write(path, made.matrix)
    return made


def _digest(name: str, asked: AskedLine, noise: NoiseKind) -> str:
    said = f"confide strategy {VERSION}: {name} {noise} {asked.size} {' '.join(asked.kinds)}"
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def cache_folder() -> Path | None:
    """Where strategies are kept: a folder that only its user may write to; None if there is none to be had."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(named) if named and Path(named).is_absolute() else Path.home() / ".cache"
        folder = base / "confide" / "strategies"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except (OSError, RuntimeError):
        return None
    mine = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
    alone = os.name == "nt" or not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if stat.S_ISDIR(facts.st_mode) and mine and alone else None


def _read(path: Path, size: int) -> "np.typing.NDArray[np.int32] | None":
    """The integers of a file; None if there is none, or it is not whole."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return None
        kept = path.read_bytes()
    except OSError:
        return None
    digest, body = kept[:32], kept[32:]
    if hashlib.sha256(body).digest() != digest or not body or len(body) % (4 * size):
        return None
    return np.frombuffer(body, dtype="<i4").reshape(-1, size).astype(np.int32)


def _sound(name: str, matrix: "np.typing.NDArray[np.int32]") -> DenseLine | None:
    """The strategy of some integers, if its cells, or their differences, follow from it; else None."""
    try:
        line = DenseLine(name, matrix, centred=name == "residual")
        probe = np.cos(np.arange(1.0, line.size + 1))
        if line.centred:
            probe -= probe.mean()
        there = line.estimate(line.matrix.astype(np.float64) @ probe)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return line if np.abs(there - probe).max() < SOUND else None


def _write(path: Path, matrix: "np.typing.NDArray[np.int32]") -> None:
    """Whole or not at all; a disk that is full only costs the next search."""
    body = np.ascontiguousarray(matrix, dtype="<i4").tobytes()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(body).digest() + body)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
    except OSError:
        return
