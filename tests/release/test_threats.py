"""Attacks on the whole path, each beside a control that shows the test can fail."""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import confide
from confide.engine import Exact
from confide.errors import ConfideError, EngineError, QueryError
from confide.ledger import SqliteLedger
from confide.privacy.charge import Charge
from confide.query import Summary
from confide.release.session import Session
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

SQL = "SELECT g, COUNT(*) AS n, SUM(y) AS s, AVG(x) AS a FROM t GROUP BY g"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return confide.open(row_policy(), rows_frame(), tmp_path / "l", create=True)


class Watching:
    """An engine that tells what the ledger held when private rows were read, and can be made to fail there."""

    def __init__(self, inner: Any, spent: Callable[[], object], failure: BaseException | None = None) -> None:
        self.inner, self.spent, self.failure = inner, spent, failure
        self.reads: list[object] = []

    def evaluate(self, summary: Summary, charge: Charge, secret: bytes, *more: Any) -> Exact:
        self.reads.append(self.spent())
        if self.failure is not None:
            raise self.failure
        result: Exact = self.inner.evaluate(summary, charge, secret, *more)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def read_through(session: Session, engine: Any) -> None:
    session._holdings = replace(session._holdings, engine=engine)


def test_charge_before_read(session: Session) -> None:
    engine = Watching(session._holdings.engine, lambda: session.budget.spent)
    read_through(session, engine)
    session.sql(SQL, epsilon="0.25")
    assert engine.reads == [0.25]
    session.plan(SQL, epsilon=1)
    session.plan(SQL, within="10%")
    session.sql(SQL, epsilon="0.25")
    assert engine.reads == [0.25], "plans and repeated questions read nothing"


@pytest.mark.parametrize("failure", [EngineError(), MemoryError()], ids=lambda f: type(f).__name__)
def test_whatever_fails_during_a_read_the_charge_stands_and_the_failure_is_its_outcome(
    session: Session, failure: BaseException
) -> None:
    engine = session._holdings.engine
    read_through(session, Watching(engine, lambda: None, failure))
    with pytest.raises(EngineError):
        session.sql(SQL, epsilon=1)
    assert session.budget.spent == 1
    read_through(session, engine)
    with pytest.raises(EngineError):
        session.sql(SQL, epsilon=1)
    assert session.budget.spent == 1


def test_who_stops_a_read_may_ask_again_for_nothing(session: Session) -> None:
    engine = session._holdings.engine
    read_through(session, Watching(engine, lambda: None, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as stopped:
        session.sql(SQL, epsilon=1)
    assert "costs nothing more" in "".join(stopped.value.__notes__)
    read_through(session, engine)
    session.sql(SQL, epsilon=1)
    assert session.budget.spent == 1


def test_one_key_many_parallel_calls_one_charge_one_answer(session: Session) -> None:
    """L10, through the whole path: every caller gets the first stored answer."""
    answers: list[bytes] = []

    def ask() -> None:
        answers.append(session.sql(SQL, epsilon=1).to_bytes())

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 40
    assert len(set(answers)) == 1
    assert session.budget.spent == 1


def test_released_sums_are_multiples_of_the_public_grain(session: Session) -> None:
    """M02: no digit of a printed or JSON number is finer than the grain."""
    for run in range(20):
        for row in session.sql(SQL, epsilon=Fraction(1) + Fraction(run, 1000)).to_dicts():
            for name in ("s", "s_low", "s_high"):
                assert Decimal(repr(row[name])) % Decimal("0.001") == 0
            assert isinstance(row["n"], int)


def test_neighbours_are_treated_alike(tmp_path: Path) -> None:
    """Status, error text, shape and charge are the same on neighbouring data, whatever the one row holds."""
    base = rows_frame(50)["t"]
    hostile = [
        {"g": "zzz", "x": 10**12, "y": float("nan")},
        {"g": None, "x": None, "y": float("inf")},
        {"g": "", "x": -(2**62), "y": -1e308},
        {"g": "c", "x": 5, "y": None},
    ]
    questions = [
        SQL,
        "SELECT COUNT(*) AS n, VARIANCE(x) AS v FROM t WHERE x > 3 OR g = 'a'",
        "SELECT BIN(x, 10) AS b, SUM(x * x - 3 * x) AS s FROM t GROUP BY b HAVING COUNT(*) > -1000",
        "SELECT SUM(1 / (x - 5)) AS s FROM t",
        "SELECT SUM(CAST(g AS INT)) AS s FROM t",
        "SELECT g FROM t",
    ]

    def outcome(frame: pl.DataFrame, sql: str, place: Path) -> tuple[object, ...]:
        opened = confide.open(row_policy(), {"t": frame}, place, create=True)
        try:
            answer = opened.sql(sql, epsilon=1)
            keys = [column.values for column in answer.keys]
            return len(answer), keys, str(answer.cost), opened.budget.spent
        except ConfideError as error:
            return type(error), str(error), opened.budget.spent
        finally:
            opened.close()

    for number, row in enumerate(hostile):
        other = pl.concat([base, pl.DataFrame([row], schema=base.schema)])
        for place, sql in enumerate(questions):
            first = outcome(base, sql, tmp_path / f"a{number}{place}")
            assert first == outcome(other, sql, tmp_path / f"b{number}{place}")


def test_no_canary_gets_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """S07: a value of one row is in no log, error, printed answer, or file but the data's own."""
    canary = "canary7f3a9"
    data = frames(200)
    data["person"] = data["person"].with_columns(town=pl.lit(canary))
    caplog.set_level(logging.DEBUG)
    place = tmp_path / "here"
    place.mkdir()
    opened = confide.open(policy(APPROXIMATE), data, place / "l", create=True)
    texts = []
    for sql in (
        "SELECT region, COUNT(*) AS n FROM person WHERE town LIKE 'canary%' GROUP BY region",
        "SELECT COUNT(DISTINCT town) AS n FROM person",
        "SELECT SUM(CAST(town AS INT)) FROM person",
        "SELECT town FROM person",
        "SELECT MAX(town) FROM person",
    ):
        try:
            texts.append(str(opened.sql(sql, epsilon=1)))
        except QueryError as error:
            texts.append(str(error))
    opened.close()
    captured = capfd.readouterr()
    everything = [*texts, caplog.text, captured.out, captured.err]
    everything += [path.read_bytes().decode("latin-1") for path in place.rglob("*") if path.is_file()]
    assert not any(canary in text for text in everything)
    control = confide.open(policy(APPROXIMATE), data, tmp_path / "m", create=True)
    shown = control.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=20)
    assert canary in str(shown), "the search would have found it: all 200 people share this town"


def test_a_key_that_one_unit_holds_is_never_shown(tmp_path: Path) -> None:
    """M09, as far as a few runs can: at δ = 10⁻⁹ it would take a miracle. The naive control shows it every time."""
    data = frames(300)
    lonely = data["person"].with_columns(
        town=pl.when(pl.col("person_id") == 7).then(pl.lit("Lonely")).otherwise(pl.col("town"))
    )
    opened = confide.testing.open(policy(APPROXIMATE | {"epsilon": 10_000}), data | {"person": lonely}, seed=1)
    for run in range(50):
        shown = opened.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=5 + Fraction(run, 100))
        assert "Lonely" not in shown.keys[0].values
    exact = opened._holdings.engine.evaluate(
        _summary(opened, "SELECT town, COUNT(*) AS n FROM person GROUP BY town"),
        Charge(1, "k", opened._holdings.ledger.spent(), "p", "", "l"),
        b"s",
    )
    assert ("Lonely",) in (exact.keys or ())


def _summary(opened: Session, sql: str) -> Summary:
    return opened._reader("duckdb")(sql).under("auto").summary


def test_two_sessions_race_for_the_last_unit(tmp_path: Path) -> None:
    rules = row_policy({"epsilon": 1})
    sessions = [confide.open(rules, rows_frame(), tmp_path / "l", analyst=str(who), create=True) for who in range(8)]
    outcomes: list[str] = []

    def ask(opened: Session) -> None:
        try:
            opened.sql(SQL, epsilon="0.5")
            outcomes.append("answered")
        except ConfideError as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=ask, args=(opened,)) for opened in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["BudgetError"] * 6 + ["answered"] * 2
    with SqliteLedger.open(tmp_path / "l") as ledger:
        ledger.verify()


def test_why_a_statement_failed_reaches_no_terminal() -> None:
    """Without any logging set up, Python writes what is logged to standard error."""
    script = (
        "import confide, confide.testing\n"
        "rules = {'budget': {'epsilon': 9}, 'unit': 'row', 'tables': {'t': {'columns': {'x': {'range': [0, 9]}}}}}\n"
        "session = confide.testing.open(rules, {'t': {'x': [1, 2]}}, seed=1)\n"
        "session._holdings.engine._rows = lambda statement: 1 / 0\n"
        "try: session.sql('SELECT COUNT(*) FROM t', epsilon=1)\n"
        "except confide.errors.EngineError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{EngineError()}\n"
    assert done.stderr == ""
