"""Truncated, flipped, rolled back, replaced, removed: a ledger opens with every acknowledged charge, or refuses."""

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerDamaged, LedgerError, LedgerMissing, LedgerRolledBack
from confide.ledger import SqliteLedger, restore_anchor
from confide.ledger import stored_rows as storage
from confide.ledger.sqlite import files as inspection
from confide.ledger.sqlite.files import LedgerFiles
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP

PART = PureDP(Fraction(1, 100))
CHARGES = 12
FILES = ("ledger", "ledger-wal", "ledger.anchor")


def answer_of(number: int) -> bytes:
    return b"answer %d" % number


def use(path: Path, numbers: range) -> None:
    with SqliteLedger.open(path) as ledger:
        for number in numbers:
            charge = ledger.charge(PART, f"question {number}", f"key {number}", f"analyst {number % 3}")
            if number % 4:
                ledger.store(charge, answer_of(number))


def make(folder: Path, *, crashed: bool) -> Path:
    """A ledger with charges, answers and an amendment: closed, or left with its log by a process that died."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ledger"
    SqliteLedger.create(path, Budget.of(1), {"*": "0.9"}).close()
    use(path, range(CHARGES // 2))
    if not crashed:
        use(path, range(CHARGES // 2, CHARGES))
        return path
    process = os.fork()
    if process == 0:
        try:
            ledger = SqliteLedger.open(path)
            ledger.amend(caps={"*": "0.8"})
            use(path, range(CHARGES // 2, CHARGES))
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    assert (folder / "ledger-wal").stat().st_size > 0
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["closed", "crashed"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("original"), crashed=request.param).parent


def copy(original: Path, folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    for name in FILES:  # not the index of the log: SQLite makes that again
        if (original / name).exists():
            shutil.copy(original / name, folder / name)
    return folder / "ledger"


def judge(path: Path) -> str:
    """Every acknowledged charge is paid for and every stored answer is right, or the ledger refuses."""
    try:
        with SqliteLedger.open(path, timeout=0.2) as ledger:
            spent = ledger.spent().epsilon  # type: ignore[union-attr]
            assert spent >= CHARGES * PART.epsilon, "an acknowledged charge is not in the total"
            for number in range(CHARGES):
                key, analyst = f"key {number}", f"analyst {number % 3}"
                kept = ledger.answer(key)
                assert kept in (None, answer_of(number)), "a stored answer has changed"
                ledger.charge(PART, "again", key, analyst)
                paid = ledger.spent().epsilon - spent  # type: ignore[union-attr]
                assert paid in (0, PART.epsilon)
                if number % 4 and kept is None:
                    assert paid, "a question that was answered would be answered again for nothing"
                spent += paid
            ledger.verify()
    except LedgerError as error:
        return type(error).__name__
    return "opened"


def flips(original: Path, steps: tuple[int, int], seed: int) -> Iterator[tuple[str, int, int]]:
    """Bits of every region of every file: one byte in the first step among its first bytes, in the second beyond."""
    chance = random.Random(seed)
    for name in FILES:
        size = (original / name).stat().st_size if (original / name).exists() else 0
        start = chance.randrange(steps[1])
        for offset in [*range(0, min(size, 110), steps[0]), *range(110 + start, size, steps[1])]:
            yield name, offset, 1 << chance.randrange(8)


def run_flips(original: Path, steps: tuple[int, int], seed: int) -> dict[str, int]:
    """Each flip is judged on a copy in memory, where forcing bytes to disk costs nothing."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        return _run_flips(original, Path(folder) / "copy", steps, seed)


def _run_flips(original: Path, folder: Path, steps: tuple[int, int], seed: int) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for name, offset, bit in flips(original, steps, seed):
        path = copy(original, folder)
        with (path.parent / name).open("r+b") as file:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(offset)
            file.write(bytes([byte ^ bit]))
        try:
            outcome = judge(path)
        except BaseException as error:
            raise AssertionError(f"bit {bit} of byte {offset} of {name}: {type(error).__name__}: {error}") from error
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def test_untouched_files_open(original: Path, tmp_path: Path) -> None:
    assert judge(copy(original, tmp_path / "copy")) == "opened"


def test_flipped_bits(original: Path) -> None:
    outcomes = run_flips(original, steps=(5, 997), seed=7)
    assert outcomes["opened"] > 5  # a bit that no row uses
    assert sum(outcomes.values()) - outcomes["opened"] > 5


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(2))
def test_flipped_bits_everywhere(original: Path, seed: int) -> None:
    run_flips(original, steps=(1, 13), seed=seed)


@pytest.mark.parametrize("name", FILES)
def test_truncated(original: Path, tmp_path: Path, name: str) -> None:
    if not (original / name).exists():
        pytest.skip("a closed ledger has no log")
    size = (original / name).stat().st_size
    frame = 4096 + 24
    lengths = {0, 1, 16, 32, 100, 512, 4096, size // 2, size - 4096, size - frame, size - 1}
    refused = 0
    for length in sorted(length for length in lengths if 0 <= length < size):
        path = copy(original, tmp_path / "copy")
        os.truncate(path.parent / name, length)
        refused += judge(path) != "opened"
    assert refused > 0


def test_a_lost_log_is_a_rollback(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=True)
    Path(f"{path}-wal").unlink()
    with pytest.raises(LedgerRolledBack, match=r"has seen entry \d+: an older copy was put back"):
        SqliteLedger.open(path)


def test_yesterdays_ledger_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    yesterday = path.read_bytes()
    use(path, range(CHARGES, CHARGES + 3))
    path.write_bytes(yesterday)
    with pytest.raises(LedgerRolledBack, match="older copy"):
        SqliteLedger.open(path)
    with pytest.raises(LedgerRolledBack):
        inspection.verify(LedgerFiles.of(path), 1.0)
    # The control: the file by itself is a perfect ledger. Only the anchor knows better.
    assert inspection.verify(LedgerFiles.of(path), 1.0, anchored=False).charges == CHARGES


@pytest.mark.parametrize("more", [1, 2], ids=["same length", "longer"])
def test_another_history_is_refused(tmp_path: Path, more: int) -> None:
    path = make(tmp_path / "one", crashed=False)
    before = path.read_bytes()
    use(path, range(CHARGES, CHARGES + 1))
    anchor = Path(f"{path}.anchor").read_bytes()
    path.write_bytes(before)
    Path(f"{path}.anchor").write_bytes(b"")
    restore_anchor(path)
    use(path, range(CHARGES + 1, CHARGES + 1 + more))
    Path(f"{path}.anchor").write_bytes(anchor)
    with pytest.raises(LedgerDamaged, match="is not the one that its anchor"):
        SqliteLedger.open(path)


def test_a_rollback_under_an_open_ledger_is_noticed(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    old = tmp_path / "old"
    shutil.copy(path, old)
    with SqliteLedger.open(path) as ledger:
        ledger.charge(PART, "a question", "more")
        shutil.copy(old, tmp_path / "other")
        (tmp_path / "other").replace(path)
        with pytest.raises(LedgerDamaged, match="was replaced while it was in use"):
            ledger.charge(PART, "a question", "even more")
        path.unlink()
        with pytest.raises(LedgerMissing, match="was removed while it was in use"):
            ledger.spent()


def test_a_missing_ledger_is_not_made_again(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    path.unlink()
    openings: list[Callable[[], object]] = [
        lambda: SqliteLedger.open(path),
        lambda: SqliteLedger.open_or_create(path, Budget.of(1)),
        lambda: SqliteLedger.create(path, Budget.of(1)),
    ]
    for opening in openings:
        with pytest.raises(LedgerMissing, match=r"is gone, but its anchor .* shows that it existed"):
            opening()
    assert not path.exists()


def test_a_missing_anchor_is_refused_and_can_be_restored(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=True)
    anchor = Path(f"{path}.anchor")
    whole = anchor.read_bytes()
    anchor.unlink()
    with pytest.raises(LedgerDamaged, match=r"is missing.*restore-anchor"):
        SqliteLedger.open(path)
    with pytest.raises(LedgerDamaged, match=r"is missing.*restore-anchor"):
        SqliteLedger.open_or_create(path, Budget.of(1))
    restore_anchor(path)
    assert judge(path) == "opened"
    with pytest.raises(LedgerError, match="nothing to restore"):
        restore_anchor(path)
    anchor.write_bytes(b"nonsense")
    with pytest.raises(LedgerDamaged, match=r"is damaged.*restore-anchor"):
        SqliteLedger.open(path)
    restore_anchor(path)
    assert anchor.with_name("ledger.anchor.damaged").read_bytes() == b"nonsense"
    assert len(anchor.read_bytes()) == len(whole)
    assert judge(path) == "opened"


def test_restoring_an_anchor_verifies_the_ledger_first(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    Path(f"{path}.anchor").unlink()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE entry SET body = CAST(replace(body, 'question', 'Question') AS BLOB) WHERE sequence = 5"
        )
    connection.close()
    with pytest.raises(LedgerDamaged, match="entry 5"):
        restore_anchor(path)
    assert not Path(f"{path}.anchor").exists()


def test_an_anchor_of_another_ledger_is_refused(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one", crashed=False), make(tmp_path / "other", crashed=False)
    shutil.copy(f"{other}.anchor", f"{one}.anchor")
    with pytest.raises(LedgerDamaged, match="belongs to another ledger"):
        SqliteLedger.open(one)


LAST = "(SELECT max(sequence) FROM entry)"
FIRST_ANSWER = "(SELECT min(sequence) FROM answer)"
TAMPERING = {
    "a total": f"UPDATE entry SET body = CAST(replace(body, '\"total\"', '\"Total\"') AS BLOB) WHERE sequence = {LAST}",
    "an account": "UPDATE account SET total = '1' WHERE analyst = 'analyst 1'",
    "an account removed": "DELETE FROM account WHERE analyst = 'analyst 2'",
    "an account added": "INSERT INTO account VALUES ('mallory', '0')",
    "the genesis": "UPDATE entry SET body = CAST(replace(body, '\"1\"', '\"9\"') AS BLOB) WHERE sequence = 1",
    "the last entry removed": f"DELETE FROM entry WHERE sequence = {LAST}",
    "every entry removed": "DELETE FROM entry",
    "the secret": "UPDATE secret SET secret = zeroblob(32)",
    "the secret removed": "DELETE FROM secret",
    "a table more": "CREATE TABLE other (x)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM charge; END",
    "a table removed": "DROP TABLE answer",
    "the version": "PRAGMA user_version = 9",
    "the application": "PRAGMA application_id = 9",
}
LATER = {
    "an entry in the middle": "UPDATE entry SET body = CAST(replace(body, 'question 5', 'question 6') AS BLOB)",
    "an entry removed in the middle": "DELETE FROM entry WHERE sequence = 6",
    "a stored answer": f"UPDATE answer SET answer = CAST('answer X' AS BLOB) WHERE sequence = {FIRST_ANSWER}",
    "a stored answer removed": f"DELETE FROM answer WHERE sequence = {FIRST_ANSWER}",
    "an answer forgotten": "UPDATE charge SET answered = 0 WHERE key = 'key 5'",
    "a key": "UPDATE charge SET key = 'key X' WHERE key = 'key 5'",
    "a row added": "INSERT INTO charge VALUES (1000, 'key Y', 0, 0)",
    "an answer added": "INSERT INTO answer VALUES (1000, zeroblob(8))",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_noticed_when_it_is_opened(statement: str, tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    _tamper(path, statement)
    with pytest.raises((LedgerDamaged, LedgerRolledBack)):
        SqliteLedger.open(path)


@pytest.mark.parametrize("statement", LATER.values(), ids=LATER.keys())
def test_tampering_further_back_is_noticed_when_it_is_verified(statement: str, tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=False)
    _tamper(path, statement)
    with SqliteLedger.open(path) as ledger:
        assert ledger.spent() == PureDP(CHARGES * PART.epsilon)
        with pytest.raises(LedgerDamaged):
            ledger.verify()
    assert judge(path) == "LedgerDamaged"


def test_without_its_seal_a_forgotten_answer_would_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    path = make(tmp_path / "one", crashed=False)
    _tamper(path, LATER["an answer forgotten"])
    monkeypatch.setattr(storage, "seal", lambda *_: Anything())
    with pytest.raises(AssertionError, match="answered again for nothing"):
        judge(path)


def _tamper(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_refused_ledger_is_left_as_it_was(tmp_path: Path) -> None:
    path = make(tmp_path / "one", crashed=True)
    log = Path(f"{path}-wal")
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    before = {name: (path.parent / name).read_bytes() for name in FILES}
    for _ in range(2):
        with pytest.raises(LedgerRolledBack):
            SqliteLedger.open(path)
    assert {name: (path.parent / name).read_bytes() for name in FILES} == before


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"a,b\n1,2\n" * 1000, "is damaged or is not a ledger"), (os.urandom(8192), "not a ledger")],
    ids=["empty", "csv", "noise"],
)
def test_a_file_that_is_not_a_ledger(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "ledger").write_bytes(content)
    with pytest.raises(LedgerDamaged, match=message):
        SqliteLedger.open(tmp_path / "ledger")


def test_a_database_of_something_else(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger") as connection:
        connection.execute("CREATE TABLE person (name)")
    connection.close()
    with pytest.raises(LedgerDamaged, match="is not a ledger of Confide"):
        SqliteLedger.open(tmp_path / "ledger")
