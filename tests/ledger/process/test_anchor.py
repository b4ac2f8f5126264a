import os
from pathlib import Path

import pytest

from confide.errors import LedgerDamaged, LedgerError
from confide.ledger.process.anchor import Anchor, Mark, read_mark


def mark(sequence: int) -> Mark:
    return Mark("ab" * 16, sequence, f"{sequence:064x}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "anchor"


def write(path: Path, *sequences: int) -> None:
    anchor = Anchor(path, create=True)
    for sequence in sequences:
        with anchor.locked() as held:
            assert held
            anchor.write(mark(sequence))
    anchor.close()


def test_remembers_the_newest(path: Path) -> None:
    assert read_mark(path) is None
    write(path, 1)
    assert read_mark(path) == mark(1)
    write(path, 2, 3, 10)
    assert read_mark(path) == mark(10)
    assert path.stat().st_size == 8192


def test_sees_what_others_write(path: Path) -> None:
    write(path, 1)
    anchor = Anchor(path)
    assert anchor.read() == anchor.read() == mark(1)
    write(path, 2)
    assert anchor.read() == mark(2)
    path.write_bytes(path.read_bytes().replace(b"confide", b"another"))
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="is damaged"):
            anchor.read()
    anchor.close()


def test_never_goes_back(path: Path) -> None:
    write(path, 5, 4, 5, 1)
    assert read_mark(path) == mark(5)


@pytest.mark.parametrize("sequences", [(1,), (1, 2), (1, 2, 3)])
def test_a_write_cut_short_leaves_the_mark_before(path: Path, sequences: tuple[int, ...]) -> None:
    write(path, *sequences)
    before = path.read_bytes()
    write(path, 9)
    after = path.read_bytes()
    changed = [number for number in range(8192) if before[number] != after[number]]
    for cut in changed[:: max(1, len(changed) // 40)]:
        path.write_bytes(after[:cut] + before[cut:])
        assert read_mark(path) in (mark(sequences[-1]), mark(9))


def test_damage_is_told_from_absence(path: Path) -> None:
    path.write_bytes(b"")
    assert read_mark(path) is None
    path.write_bytes(b"\0" * 8192)
    assert read_mark(path) is None
    path.write_bytes(b"confide-anchor-1 " + b"x" * 100)
    with pytest.raises(LedgerDamaged, match="is damaged"):
        read_mark(path)


def test_one_holder_at_a_time(path: Path) -> None:
    one, other = Anchor(path, create=True), Anchor(path)
    with one.locked() as held:
        assert held
        with other.locked() as also:
            assert not also
    with other.locked() as held:
        assert held
    one.close()
    other.close()


def test_a_replaced_anchor_is_noticed(path: Path) -> None:
    write(path, 1)
    anchor = Anchor(path)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    with pytest.raises(LedgerDamaged, match="was replaced"), anchor.locked():
        pass
    path.unlink()
    with pytest.raises(LedgerDamaged, match="is missing"), anchor.locked():
        pass
    anchor.close()


def test_a_failed_write_says_that_the_entry_stands(path: Path) -> None:
    write(path, 1)
    anchor = Anchor(path)
    reading = os.open(path, os.O_RDONLY)
    os.dup2(reading, anchor._descriptor)
    os.close(reading)
    with pytest.raises(LedgerError, match=r"entry 2 is in the ledger, but its anchor .* cannot be written"):
        anchor.write(mark(2))
    anchor.close()


def test_a_folder_is_no_anchor(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        read_mark(tmp_path)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Anchor(tmp_path)
