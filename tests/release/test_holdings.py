"""From a charge on there is one outcome: what was released, or the constant failure."""

import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import ConfideError, EngineError, LedgerBusy, LedgerDamaged, LedgerError, LedgerFull
from confide.ledger import SqliteLedger
from confide.mechanism import KernelRandomness
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.limits import LONGEST_ANSWER
from confide.privacy.loss import PureDP
from confide.release.guard import FAILURE, GOES_ON, NOT_CHARGED
from confide.release.holdings import Holdings
from confide.release.request import Asked
from tests.release.samples import row_policy

LOSS = PureDP(Fraction(1))


class NoEngine:
    version = "1"

    def ready(self) -> None:
        pass


@pytest.fixture
def holdings(tmp_path: Path) -> Iterator[Holdings]:
    policy = confide.Policy.parse(row_policy())
    with SqliteLedger.create(tmp_path / "l", Budget.of(100)) as ledger:
        yield Holdings(policy, NoEngine(), ledger, KernelRandomness())  # type: ignore[arg-type]


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def work(*_: object) -> NoReturn:
        raise error

    return work


@dataclass(frozen=True)
class OneRequest:
    """A request whose steps are given."""

    release: Callable[..., bytes]
    read: Callable[[bytes], Any] = bytes
    loss: PureDP = LOSS
    purpose: str = "a question"

    def identity(self) -> str:
        return written("test")

    def price(self, budget: Budget) -> "OneRequest":
        return self

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        return self.release(charge)

    def decode(self, stored: bytes) -> Any:
        return self.read(stored)


def ask(holdings: Holdings, release: Callable[..., bytes], read: Callable[[bytes], Any] = bytes) -> Any:
    return holdings.ask(OneRequest(release, read)).result


def kept(holdings: Holdings) -> bytes | None:
    return holdings.ledger.answer(holdings.key(written("test")))


class OddError(BaseException):
    """Not an Exception."""


FAULTS: list[BaseException] = [
    EngineError(),
    OverflowError("int too large to convert to float: 12345"),
    MemoryError(),
    RecursionError(),
    IndexError("index 7 is out of bounds"),
    TypeError(),
    AssertionError(),
    FloatingPointError(),
    StopIteration(3),
    LedgerFull("nothing was charged"),
    RuntimeWarning("a warning that was made an error"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    OddError("17 rows"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("where", ["released", "read"])
def test_whatever_goes_wrong_leaves_the_same_failure_for_good(
    holdings: Holdings, fault: BaseException, where: str
) -> None:
    release = raising(fault) if where == "released" else lambda charge: b"something"
    with pytest.raises(EngineError) as first:
        ask(holdings, release, raising(fault) if where == "read" else bytes)
    with pytest.raises(EngineError) as second:
        ask(holdings, lambda charge: b"an answer")
    for caught in (first.value, second.value):
        assert type(caught) is EngineError
        assert (str(caught), caught.args) == (str(EngineError()), EngineError().args)
        assert caught.__context__ is None
        assert caught.__cause__ is None
        assert not getattr(caught, "__notes__", [])
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge", "answer"]
    assert kept(holdings) == FAILURE


def test_a_failure_holds_nothing_that_was_read(holdings: Holdings) -> None:
    def release(charge: object) -> NoReturn:
        secret = "a row of the data"
        raise ValueError(secret)

    with pytest.raises(EngineError) as caught:
        ask(holdings, release)
    frames = [frame for frame, _ in walk_tb(caught.value.__traceback__) if "confide" in frame.f_globals["__name__"]]
    assert frames
    assert not [frame for frame in frames if "a row of" in repr(frame.f_locals)]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_who_stops_leaves_no_outcome(holdings: Holdings, stop: BaseException) -> None:
    with pytest.raises(type(stop)) as caught:
        ask(holdings, raising(stop))
    assert caught.value is not stop, "its frames hold what was read"
    assert caught.value.__context__ is None
    assert getattr(caught.value, "code", 3) == 3
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge"]
    assert ask(holdings, lambda charge: b"an answer") == b"an answer"
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge", "answer"]


def test_a_stop_that_a_library_turned_into_an_error_of_its_own_is_no_failure(holdings: Holdings) -> None:
    def release(charge: object) -> NoReturn:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise RuntimeError("in the middle of loading") from stop

    with pytest.raises(KeyboardInterrupt) as caught:
        ask(holdings, release)
    assert caught.value.__notes__ == [GOES_ON]
    assert ask(holdings, lambda charge: b"an answer") == b"an answer"


@pytest.mark.parametrize("written", [False, True])
def test_a_stop_on_either_side_of_the_charge_says_whether_it_was_written(
    holdings: Holdings, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    real = SqliteLedger.charge

    def charge(ledger: SqliteLedger, *given: Any) -> NoReturn:
        if written:
            real(ledger, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteLedger, "charge", charge)
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(holdings, lambda charge: b"an answer")
    assert caught.value.__notes__ == [GOES_ON if written else NOT_CHARGED]
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge"][: 1 + written]


def test_an_answer_that_no_ledger_keeps_is_a_failure(holdings: Holdings) -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return LONGEST_ANSWER + 1

    with pytest.raises(EngineError):
        ask(holdings, lambda charge: Long(b"x"))
    assert kept(holdings) == FAILURE


def test_an_answer_is_read_once(holdings: Holdings) -> None:
    reads: list[bytes] = []

    def read(kept: bytes) -> bytes:
        reads.append(kept)
        return kept

    assert ask(holdings, lambda charge: b"an answer", read) == b"an answer"
    assert len(reads) == 1


@pytest.mark.parametrize("first", ["failure", "answer"])
def test_of_two_that_race_both_get_what_was_kept_first(holdings: Holdings, first: str) -> None:
    """One fails and one does not; whoever keeps its outcome first decides for both."""

    def other() -> None:
        charge = holdings.ledger.charge(LOSS, "a question", holdings.key(written("test")), "")
        holdings.ledger.store(charge, FAILURE if first == "failure" else b"an answer")

    def release(charge: object) -> bytes:
        other()
        if first == "answer":
            raise MemoryError
        return b"another answer"

    if first == "failure":
        with pytest.raises(EngineError):
            ask(holdings, release)
    else:
        assert holdings.ask(OneRequest(release)) == Asked(b"an answer", stored=True)
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge", "answer"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (LedgerFull("the disk is full; nothing was charged"), LedgerFull),
        (LedgerBusy("nothing was charged"), LedgerBusy),
        (LedgerDamaged("entry 3"), LedgerDamaged),
        (LedgerError("cannot be reached"), LedgerError),
        (OSError(28, "No space left on device"), LedgerError),
        (MemoryError(), LedgerError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_when_keeping_fails_the_words_say_that_it_was_charged(
    holdings: Holdings, monkeypatch: pytest.MonkeyPatch, fault: Exception, kind: type[Exception]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "store", raising(fault))
        for release in (lambda charge: b"an answer", raising(MemoryError())):
            with pytest.raises(kind) as caught:
                ask(holdings, release)
            assert type(caught.value) is kind
            assert "the charge stands, and the same call again costs nothing more" in str(caught.value)
            assert "nothing was charged" not in str(caught.value)
            assert caught.value.__context__ is None
    assert ask(holdings, lambda charge: b"an answer") == b"an answer"
    assert [entry.kind for entry in holdings.ledger.entries()] == ["genesis", "charge", "answer"]


# --- warnings ---------------------------------------------------------------------------------------------------------


def loud(charge: object) -> bytes:
    warnings.warn("12345 rows", RuntimeWarning, stacklevel=1)
    np.array([1e308]) * np.array([1e308])
    np.array([1.0]) / np.array([0.0])
    return b"an answer"


@pytest.mark.parametrize("action", ["error", "always", "default", "once"])
def test_no_warning_leaves_a_release(holdings: Holdings, action: str, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)  # type: ignore[arg-type]
        with np.errstate(all="raise"):
            assert ask(holdings, loud) == b"an answer"
    assert not caught
    assert "".join(capfd.readouterr()) == ""


def test_warnings_elsewhere_are_not_touched(holdings: Holdings) -> None:
    begun, done = threading.Event(), threading.Event()

    def release(charge: object) -> bytes:
        begun.set()
        assert done.wait(10)
        return loud(charge)

    thread = threading.Thread(target=ask, args=(holdings, release))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread.start()
        assert begun.wait(10)
        warnings.warn("said outside", UserWarning, stacklevel=1)
        warnings.simplefilter("always", DeprecationWarning)  # before ours
        done.set()
        thread.join()
        warnings.warn("said after", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["said outside", "said after"]
    assert kept(holdings) == b"an answer"


# --- through a session ------------------------------------------------------------------------------------------------


def test_arithmetic_on_noisy_numbers_gives_no_free_noise(tmp_path: Path) -> None:
    """It overflowed in two ways, by the noisy value, with nothing kept: each further call drew anew for nothing."""
    first = "COUNT(*) FILTER (WHERE x > 5)" + " * 1e30" * 10
    sql = f"SELECT {first} AS a, ABS(COUNT(*){' * 1e30' * 11} + 1) AS b FROM t"
    frame = pl.DataFrame({"g": ["a"] * 10, "x": [1] * 10, "y": [0.5] * 10})
    outcomes = set()
    with confide.open(row_policy(), {"t": frame}, tmp_path / "l", create=True) as session:
        for _ in range(10):
            try:
                outcomes.add(session.sql(sql, epsilon=1).to_bytes())
            except ConfideError as error:
                outcomes.add((type(error), str(error)))  # type: ignore[arg-type]
        assert session.budget.spent in (0, 1), "refused from its text, or charged once"
    assert len(outcomes) == 1
