"""Strategies on disk: found once, whole or not at all, and only where nobody else writes."""

from pathlib import Path

import numpy as np
import pytest

from confide.workload.strategy import cache
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.line import AskedLine

ASKED = AskedLine(64, ("prefix",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "_held", type(cache._held)())
    found = cache.cache_folder()
    assert found is not None
    return found


def made(monkeypatch: pytest.MonkeyPatch) -> DenseLine:
    """From disk or anew, not from this process."""
    monkeypatch.setattr(cache, "_held", type(cache._held)())
    found = cache.kept_line("optimised", ASKED, "gaussian")
    assert isinstance(found, DenseLine)
    return found


def test_a_strategy_is_found_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(monkeypatch)
    (path,) = folder.iterdir()
    stamp = path.stat().st_mtime_ns
    assert (made(monkeypatch).matrix == first.matrix).all()
    assert path.stat().st_mtime_ns == stamp


def test_a_file_that_is_not_whole_is_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(monkeypatch)
    (path,) = folder.iterdir()
    for damaged in (b"", path.read_bytes()[:-1], b"x" * 40):
        path.write_bytes(damaged)
        assert (made(monkeypatch).matrix == first.matrix).all()


def test_a_strategy_that_somebody_changed_is_no_less_private(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its norms come from its integers, whoever wrote them."""
    first = made(monkeypatch)
    (path,) = folder.iterdir()
    cache._write(path, (3 * first.matrix).astype(np.int32))
    assert made(monkeypatch).norms.l2_squared == 9 * first.norms.l2_squared


@pytest.mark.parametrize("change", ["beyond 64 bits", "without a cell", "of rank one", "of nothing"])
def test_a_strategy_that_is_none_is_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Squares of its entries would pass 64 bits, and noise would be too little; or cells would not follow from it."""
    first = made(monkeypatch)
    (path,) = folder.iterdir()
    wrong = {
        "beyond 64 bits": np.full_like(first.matrix, 2**31 - 1) - np.diag(np.arange(64, dtype=np.int32)),
        "without a cell": first.matrix * (np.arange(64) != 7),
        "of rank one": np.ones_like(first.matrix),
        "of nothing": np.zeros_like(first.matrix),
    }[change]
    cache._write(path, wrong.astype(np.int32))
    assert (made(monkeypatch).matrix == first.matrix).all()


def test_a_folder_that_others_write_to_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o777)
    assert cache.cache_folder() is None
    made(monkeypatch)
    assert not list(folder.iterdir())


def test_without_a_folder_strategies_are_found_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.cache_folder() is None
    made(monkeypatch)
