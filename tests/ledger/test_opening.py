"""Making and opening ledgers, alone and in a crowd."""

import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerMissing
from confide.ledger import Ledger, SqliteLedger
from confide.ledger.process.anchor import Anchor, read_mark
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP

PART = PureDP(Fraction(1, 100))


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_is_a_durable_ledger(tmp_path: Path) -> None:
    ledger: Ledger = SqliteLedger.create(tmp_path / "ledger", Budget.of(1))
    assert ledger.durable
    ledger.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger", "ledger.anchor"]


def test_a_ledger_is_made_once(tmp_path: Path) -> None:
    SqliteLedger.create(tmp_path / "ledger", Budget.of(1)).close()
    with pytest.raises(LedgerError, match="already something at"):
        SqliteLedger.create(tmp_path / "ledger", Budget.of(1))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger", "ledger.anchor"]


def test_no_ledger_is_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing, match="there is no ledger at"):
        SqliteLedger.open(tmp_path / "ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("opening", [SqliteLedger.open, lambda path: SqliteLedger.open_or_create(path, Budget.of(1))])
def test_a_folder_is_not_a_ledger(opening, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LedgerError, match="is not a file"):
        opening(tmp_path)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        SqliteLedger.open_or_create(tmp_path / "none" / "ledger", Budget.of(1))
    with pytest.raises(LedgerError, match="not a place"):
        SqliteLedger.open("a\0b")


def test_names_that_a_database_address_would_misread(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=memory#x%20ü.ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
    with SqliteLedger.open(path) as ledger:
        assert ledger.spent() == PART
    assert path.is_file()


def test_another_budget_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    SqliteLedger.create(path, Budget.of(2), {"ann": "0.5"}).close()
    with pytest.raises(LedgerError, match=r"asked for is ε = 3.*holds a budget of ε = 2"):
        SqliteLedger.open(path, Budget.of(3))
    with pytest.raises(LedgerError, match=r"asked for is ε = 2, δ = 1e-09.*holds a budget of ε = 2:"):
        SqliteLedger.open_or_create(path, Budget.of(2, "1e-9"))
    with pytest.raises(LedgerError, match=r"asked for are \{'ann': 1\}.*holds \{'ann': 0.5\}"):
        SqliteLedger.open(path, caps={"ann": 1})
    with SqliteLedger.open(path, Budget.of(2), {"ann": 0.5}) as ledger:
        ledger.amend(Budget.of(3), {})
    SqliteLedger.open(path, Budget.of(3), {}).close()


def test_an_anchor_on_another_disk_sees_a_whole_folder_set_back(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    path, anchor = tmp_path / "ledger", tmp_path / "disk" / "anchor"
    with SqliteLedger.create(path, Budget.of(1), anchor=anchor) as ledger:
        ledger.charge(PART, "a question", "key")
    with SqliteLedger.open(path, anchor=anchor) as ledger:
        assert ledger.spent() == PART
    with pytest.raises(LedgerError, match="anchor"):
        SqliteLedger.open(path)


@pytest.mark.parametrize("take", [shutil.copy, os.link, shutil.move], ids=["copied", "linked", "moved"])
def test_a_ledger_without_its_log_and_anchor_is_no_new_one(
    take: Callable[[Path, Path], object], tmp_path: Path
) -> None:
    """Until it is first closed, all that was charged is in the log: without it, the file is as it was when made."""
    path, taken = tmp_path / "ledger", tmp_path / "taken"
    process = os.fork()
    if process == 0:
        ledger = SqliteLedger.create(path, Budget.of(1))
        ledger.charge(PART, "a question", "key")
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    take(path, taken)
    for _ in range(2):
        for opening in (SqliteLedger.open, SqliteLedger.open_or_create):
            with pytest.raises(LedgerDamaged, match="is missing"):
                opening(taken, Budget.of(1))
        Path(f"{taken}.anchor").write_bytes(b"")


def test_a_maker_that_was_killed_leaves_no_new_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The anchor comes first, so that there is never a ledger without one."""
    path, linked = tmp_path / "ledger", os.link

    def killed_after(source: Path, target: Path) -> None:
        linked(source, target)
        os._exit(3)

    process = os.fork()
    if process == 0:
        monkeypatch.setattr(os, "link", killed_after)
        SqliteLedger.create(path, Budget.of(1))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    for opening in (SqliteLedger.create, SqliteLedger.open, SqliteLedger.open_or_create):
        with pytest.raises(LedgerMissing, match=r"anchor .* shows that it existed"):
            opening(path, Budget.of(1))
    Path(f"{path}.anchor").unlink()
    SqliteLedger.create(path, Budget.of(1)).close()


def test_a_log_shows_that_there_was_a_ledger(tmp_path: Path) -> None:
    """SQLite would take it for the log of the new file."""
    path = tmp_path / "ledger"
    Path(f"{path}-wal").write_bytes(b"")
    for opening in (SqliteLedger.create, SqliteLedger.open, SqliteLedger.open_or_create):
        with pytest.raises(LedgerMissing, match=r"log .* shows that it existed"):
            opening(path, Budget.of(1))
    assert not path.exists()


def test_a_paid_key_needs_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1), timeout=0.2) as ledger:
        charge = ledger.charge(PART, "a question", "key")
        ledger.store(charge, b"answer")
        writer = Anchor(Path(f"{path}.anchor"))
        with writer.locked() as held:
            assert held
            assert ledger.charge(PART, "a question", "key") == charge
            assert ledger.store(charge, b"another") == ledger.answer("key") == b"answer"
            with pytest.raises(LedgerBusy):
                ledger.charge(PART, "a question", "another key")
        writer.close()


def test_what_was_not_there_a_moment_ago_is_looked_for_again(tmp_path: Path) -> None:
    """A question looks for its answer, charges and stores; somebody else may do any of it in between."""
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger, SqliteLedger.open(path) as other:
        assert ledger.answer("key") is None
        first = other.charge(PART, "a question", "key")
        assert ledger.charge(PART, "a question", "key") == first
        assert ledger.spent() == PART
        second = ledger.charge(PART, "another question", "another key")
        assert other.store(second, b"theirs") == b"theirs"
        assert ledger.store(second, b"ours") == ledger.answer("another key") == b"theirs"


def test_a_question_takes_two_transactions_to_pay_and_to_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen not to be there is not looked for a second time before it is written."""
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        assert ledger.answer("key") is None
        monkeypatch.setattr(ledger._transactions, "read", lambda _: pytest.fail("it looked again"))
        ledger.store(ledger.charge(PART, "a question", "key"), b"answer")


def test_an_anchor_removed_in_use_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
        Path(f"{path}.anchor").unlink()
        with pytest.raises(LedgerDamaged, match="is missing"):
            ledger.charge(PART, "a question", "another key")
    assert not Path(f"{path}.anchor").exists()


def test_a_crash_between_commit_and_anchor_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    SqliteLedger.create(path, Budget.of(1)).close()
    process = os.fork()
    if process == 0:
        try:
            ledger = SqliteLedger.open(path)
            charge = ledger.charge(PART, "a question", "key")
            monkeypatch.setattr(Anchor, "write", lambda *_: os._exit(3))
            ledger.store(charge, b"answer")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    assert _marked(path) == 2
    with SqliteLedger.open(path) as ledger:
        assert _marked(path) == 3
        assert ledger.answer("key") == b"answer"
        ledger.verify()


def test_an_answer_is_anchored_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger:
        charge = ledger.charge(PART, "a question", "key")
        with monkeypatch.context() as patch:
            patch.setattr(Anchor, "write", lambda *_: None)
            with SqliteLedger.open(path) as other:
                other.store(charge, b"answer")
        assert _marked(path) == 2
        assert ledger.answer("key") == b"answer"
        assert _marked(path) == 3


def _marked(path: Path) -> int:
    mark = read_mark(Path(f"{path}.anchor"))
    assert mark is not None
    return mark.sequence


def test_a_crowd_makes_one_ledger(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for round_number in range(4):
        path = tmp_path / str(round_number)
        start, results = context.Barrier(12), context.SimpleQueue()

        def client(number: int, path: Path = path, start=start, results=results) -> None:  # type: ignore[no-untyped-def]
            try:
                start.wait(60)
                with SqliteLedger.open_or_create(path, Budget.of(1), timeout=60) as ledger:
                    ledger.charge(PART, "a question", f"key {number}")
                    results.put(ledger.identity)
            except BaseException as error:
                results.put(f"{type(error).__name__}: {error}")

        processes = [context.Process(target=client, args=(number,)) for number in range(12)]
        for process in processes:
            process.start()
        identities = {results.get() for _ in processes}
        for process in processes:
            process.join()
        assert len(identities) == 1, identities
        with SqliteLedger.open(path) as ledger:
            assert {ledger.identity} == identities
            assert ledger.spent() == PureDP(12 * PART.epsilon)
            ledger.verify()
    assert not [file for file in tmp_path.iterdir() if file.suffix == ".new"]


def test_the_package_imports_no_heavy_library() -> None:
    code = (
        "import sys, confide.ledger\n"
        "print([name for name in ('numpy', 'scipy', 'duckdb', 'pyarrow', 'secrets', 'random') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
