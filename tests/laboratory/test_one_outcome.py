"""Exactly one outcome for a charge: whatever goes wrong at whatever step, the same failure leaves, now and each time.

Without a fault each call has so many steps; a fault is tried at some of them here, at all of them in `make audit`.
"""

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import EngineError
from confide.release import Session, holdings
from tests.laboratory.faults import FAILURE, FAULTS, Counting, Event, Tracer, caught_at, entries, traced, what_leaves
from tests.laboratory.products import EDGES, GRAPH, GROUPED, PRODUCTS, Call, Product
from tests.release import samples
from tests.servers import PostgresServer
from tests.synthesis.fitting import pretend_to_fit

SOME = 6
"""How many steps of each product are tried in an ordinary run."""


@pytest.fixture(autouse=True)
def _nothing_is_printed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    pretend_to_fit(monkeypatch)
    yield
    assert "12345" not in "".join(capfd.readouterr())


class Trial:
    """Calls that are new ones each time, in one session."""

    def __init__(self, session: Session, source: Counting, call: Call, least: Fraction) -> None:
        self.session, self.source, self._call = session, source, call
        self._epsilons = (least + Fraction(number, 10**6) for number in count())

    def new_call(self) -> Callable[[], Any]:
        epsilon = next(self._epsilons)
        return lambda: self._call(self.session, epsilon)

    def steps(self, event: Event, monkeypatch: pytest.MonkeyPatch) -> int:
        """How many steps a call has, once everything is loaded and known."""
        for _ in range(2):
            tracer = Tracer(event)
            with traced(tracer, monkeypatch):
                assert what_leaves(self.new_call())[0] == "answered"
        return tracer.seen

    def fails(self, tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> bool:
        """One fault: what leaves, what is kept, what the same call gives. False if that step was not reached."""
        call, before = self.new_call(), len(entries(self.session))
        with traced(tracer, monkeypatch):
            first = what_leaves(call)
        if not tracer.where:
            return False
        assert first == FAILURE, f"{tracer.where}: {first}"
        kept = entries(self.session)[before:]
        assert kept == ["charge", "answer"] * (len(kept) // 2), f"{tracer.where}: {kept}"
        assert kept, tracer.where
        draws, spent = self.source.draws, self.session.budget.spent
        assert what_leaves(call) == FAILURE, tracer.where
        assert self.source.draws == draws, f"{tracer.where}: noise was drawn a second time"
        assert self.session.budget.spent == spent
        assert entries(self.session)[before:] == kept
        return True

    def close(self) -> None:
        self.session.close()


def trial_of(product: Product) -> Trial:
    return Trial(*product.open(), product.call, product.least)


def try_steps(trial: Trial, event: Event, places: Any, faults: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    hit = sum(
        trial.fails(Tracer(event, place, fault), monkeypatch) for place, fault in zip(places, faults, strict=False)
    )
    trial.session._holdings.ledger.verify()
    return hit


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_a_fault_at_any_step_is_the_one_failure(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(product)
    steps = trial.steps("call", monkeypatch)
    assert steps > SOME
    turn = PRODUCTS.index(product)
    places = [round(part * (steps - 1) / (SOME - 1)) for part in range(SOME)]
    faults = [FAULTS[(turn + place) % len(FAULTS)] for place in range(SOME)]
    assert try_steps(trial, "call", places, faults, monkeypatch) >= SOME - 1
    trial.close()


def test_every_fault_looks_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(PRODUCTS[0])
    steps = trial.steps("line", monkeypatch)
    # At a line that meets some of them by their names these are no faults: then at another.
    tried = (try_steps(trial, "line", [steps * at // 7] * len(FAULTS), FAULTS, monkeypatch) for at in (2, 3, 4, 5))
    assert len(FAULTS) in tried
    trial.close()


def test_a_guard_that_lets_one_kind_pass_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the way it was, where errors of the engine alone were foreseen, and not kept."""

    def naive(release: Callable[[], bytes], read: Callable[[bytes], Any]) -> tuple[bytes, Any]:
        given = release()
        return given, read(given)

    monkeypatch.setattr(holdings, "guarded", naive)
    trial = trial_of(PRODUCTS[0])
    steps = trial.steps("call", monkeypatch)
    with pytest.raises(AssertionError, match="OverflowError"):
        trial.fails(Tracer("call", steps - 3), monkeypatch)
    trial.close()


def test_a_failure_that_is_not_kept_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(release: Callable[[], bytes], read: Callable[[bytes], Any]) -> tuple[bytes, Any]:
        try:
            given = release()
        except Exception:
            pass
        else:
            return given, read(given)
        raise EngineError

    monkeypatch.setattr(holdings, "guarded", forgetful)
    trial = trial_of(PRODUCTS[0])
    steps = trial.steps("call", monkeypatch)
    with pytest.raises(AssertionError, match="charge"):
        trial.fails(Tracer("call", steps // 2), monkeypatch)
    trial.close()


def test_a_line_that_meets_an_error_by_its_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("try:\n    a()\n    b()\nexcept (KeyError, json.Broken):\n    c()\nelse:\n    d()\n")
    assert [sorted(caught_at(str(path), line)) for line in (2, 3, 5, 7)] == [["Broken", "KeyError", "json"]] * 2 + [
        []
    ] * 2


@pytest.mark.parametrize("product", PRODUCTS[::5], ids=lambda product: product.name)
def test_a_stop_at_any_step_leaves_the_call_to_be_made_again(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(product)
    steps = trial.steps("call", monkeypatch)
    for part in range(3):
        call, before = trial.new_call(), len(entries(trial.session))
        tracer = Tracer("call", round(part * (steps - 1) / 2), KeyboardInterrupt)
        with traced(tracer, monkeypatch):
            kind, *_, (cause, context, notes) = what_leaves(call)
        assert (kind, cause, context) == (KeyboardInterrupt, None, None)
        assert notes
        spent = trial.session.budget.spent
        assert what_leaves(call)[0] == "answered"
        assert entries(trial.session)[before:].count("charge") == entries(trial.session)[before:].count("answer")
        if not product.name.startswith("synthesis"):
            assert trial.session.budget.spent == spent
    trial.close()


def test_a_node_in_no_triangle_is_nothing_that_leaves() -> None:
    """Where it was the last one, an IndexError told how many nodes there are."""
    pairs = [*EDGES, (20, 21)]
    frame = pl.DataFrame({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})
    with confide.testing.open(GRAPH, {"edge": frame}, seed=1) as session:
        found = {what_leaves(lambda: session.graph("edge", "src", "dst", unit="node").triangles(1)) for _ in range(3)}
        assert len(found) == 1
        assert next(iter(found))[0] == "answered"
        assert entries(session) == ["charge", "answer"]


def test_many_at_once_get_one_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of those who ask fail after the charge; all get what was kept first."""
    guarded, turns = holdings.guarded, count()

    def fails_by_turns(release: Callable[[], bytes], read: Callable[[bytes], Any]) -> tuple[bytes, Any]:
        def work() -> bytes:
            given = release()
            if next(turns) % 2:
                raise MemoryError
            return given

        return guarded(work, read)

    monkeypatch.setattr(holdings, "guarded", fails_by_turns)
    with confide.open(samples.policy(), samples.frames(60), tmp_path / "l", create=True) as session:
        for turn in range(5):
            found: list[tuple[Any, ...]] = []
            call = lambda turn=turn, found=found: found.append(  # noqa: E731
                what_leaves(lambda: session.sql(GROUPED, epsilon=Fraction(1) + Fraction(turn, 100)))
            )
            threads = [threading.Thread(target=call) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 8
            assert len(set(found)) == 1
            assert found[0] == FAILURE or found[0][0] == "answered"
        assert sorted(entries(session)) == ["answer"] * 5 + ["charge"] * 5


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.audit
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_a_fault_at_every_step_of_every_product(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(product)
    steps = trial.steps("call", monkeypatch)
    stride = max(1, steps // 3_000)
    places = range(0, steps, stride)
    hit = try_steps(trial, "call", places, (FAULTS[place % len(FAULTS)] for place in count()), monkeypatch)
    assert hit >= 0.95 * len(places)
    some = [round(part * (steps - 1) / 9) for part in range(10)]
    pairs = [(place, fault) for place in some for fault in FAULTS]
    hit += try_steps(trial, "call", [place for place, _ in pairs], [fault for _, fault in pairs], monkeypatch)
    print(f"{product.name}: {hit:,} faults at {len(places):,} of {steps:,} steps")
    trial.close()


@pytest.mark.audit
@pytest.mark.parametrize("part", range(4))
def test_a_fault_at_every_line_of_a_question(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(PRODUCTS[0])
    steps = trial.steps("line", monkeypatch)
    places = range(part, steps, 4)
    hit = try_steps(trial, "line", places, (FAULTS[place % len(FAULTS)] for place in count()), monkeypatch)
    assert hit >= 0.95 * len(places)
    print(f"{hit:,} faults at {len(places):,} of {steps:,} lines")
    trial.close()


@pytest.mark.audit
def test_a_fault_at_every_step_on_postgres(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres_server.create_database()
    for statement in (
        "CREATE TABLE person AS SELECT g AS id, CASE g % 2 WHEN 0 THEN 'a' ELSE 'b' END AS region, g % 90 AS age"
        " FROM generate_series(1, 500) AS g",
    ):
        postgres_server.run(statement, name)
    columns = {"id": {"type": "id"}, "region": {"values": ["a", "b"]}, "age": {"range": [0, 90]}}
    policy = {
        "budget": {"epsilon": 10**6},
        "unit": "row",
        "source": postgres_server.url(name),
        "tables": {"person": {"columns": columns}},
    }
    sql = "SELECT region, COUNT(*) AS n, MEDIAN(age) AS m FROM person GROUP BY region"
    session = confide.open(policy, ledger=tmp_path / "l", create=True)
    source = Counting(session._holdings.randomness)
    object.__setattr__(session._holdings, "randomness", source)
    trial = Trial(session, source, lambda session, epsilon: session.sql(sql, epsilon=epsilon), Fraction(1))
    steps = trial.steps("call", monkeypatch)
    places = range(0, steps, max(1, steps // 250))
    hit = try_steps(trial, "call", places, (FAULTS[place % len(FAULTS)] for place in count()), monkeypatch)
    assert hit >= 0.95 * len(places)
    print(f"PostgreSQL: {hit:,} faults at {len(places):,} of {steps:,} steps")
    trial.close()
