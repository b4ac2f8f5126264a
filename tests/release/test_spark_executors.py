"""Executors of a cluster that are killed while a question runs: it is answered rightly, or fails and costs once."""

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.engine import Engine
from confide.errors import ConfideError, EngineError, SourceError
from confide.policy import Policy
from tests.spark import MISSING, has_java

FILES, ROWS = 60, 4_000
SQL = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"
TABLES = {"t": {"columns": {"g": {"values": ["a", "b"]}, "x": {"range": [0, 9]}}}}
EACH = FILES * ROWS // 2
RIGHT = [("a", EACH, 4 * EACH), ("b", EACH, 5 * EACH)]
"""Of the rows below: x is 0, 2, 4, 6, 8 in one group and 1, 3, 5, 7, 9 in the other."""
SHORT, LONG = 10.0, 180.0
"""Seconds in which an executor must come."""
pytestmark = [pytest.mark.audit, pytest.mark.skipif(not has_java(), reason=MISSING)]


class Analyst:
    """A process with a session on the cluster, which does as it is told while we watch."""

    def __init__(self, policy: dict[str, Any], ledger: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, other = context.Pipe()
        self._process = context.Process(target=_obey, args=(other, policy, str(ledger)))
        self._process.start()
        other.close()

    def tell(self, *order: Any) -> Any:
        self._line.send(order)
        assert self._line.poll(500), "nothing is said any more"
        return self._line.recv()

    def ask(self, epsilon: int) -> Any:
        """Ask, and wait for the answer."""
        self.tell("begin", epsilon)
        return self.tell("end")

    def wait_until_at_work(self) -> None:
        """Until some tasks of a question are done, some are running, and most are not begun."""
        from tests.spark_cluster import wait_for  # noqa: PLC0415  needs Spark

        wait_for(lambda: any(active and 5 <= done < FILES // 2 for active, done, _ in self.tell("stages")))

    def close(self) -> None:
        self._line.close()
        self._process.join(60)
        self._process.kill()


def _obey(line: Connection, policy: dict[str, Any], ledger: str) -> None:
    """What the process of an analyst does."""
    from confide.engine.spark import spark_session  # noqa: PLC0415  heavy

    session = confide.open(policy, ledger=ledger, create=True)
    found: list[Any] = []
    asking = Thread()

    def ask(epsilon: int) -> None:
        try:
            found.append([(row["g"], row["n"], row["s"]) for row in session.sql(SQL, epsilon=epsilon).to_dicts()])
        except ConfideError as error:
            found.append((type(error), str(error), error.__context__))

    while True:
        try:
            order, *rest = line.recv()
        except EOFError:
            return
        if order == "begin":
            found.clear()
            asking = Thread(target=ask, args=rest)
            asking.start()
            line.send(None)
        elif order == "stages":
            tracker = session._holdings.engine._session.spark.sparkContext.statusTracker()  # type: ignore[attr-defined]
            stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
            line.send([(stage.numActiveTasks, stage.numCompletedTasks, stage.numFailedTasks) for stage in stages])
        elif order == "asking":
            line.send(asking.is_alive())
        elif order == "end":
            asking.join()
            line.send(found[0])
        elif order == "spent":
            line.send(session.budget.spent)
        elif order == "wait for executors":
            (spark_session._ALONE,) = rest  # type: ignore[misc]
            (session._holdings.engine._session.alone_seconds,) = rest  # type: ignore[attr-defined]
            line.send(None)
        else:
            session.close()
            try:
                session = confide.open(policy, ledger=ledger, create=True)
                line.send(None)
            except SourceError as error:
                line.send(str(error))


def _end_what_takes_too_long(line: Connection, address: str, folder: Path) -> None:
    """The shared check, on joins whose tasks do not see that they are cancelled."""
    from confide.engine.spark.spark_session import find_spark  # noqa: PLC0415  heavy
    from tests.conformance import engine as conformance  # noqa: PLC0415
    from tests.conformance.test_spark_engine import kind_with  # noqa: PLC0415
    from tests.engine.spark_tables import create_engine  # noqa: PLC0415

    spark = find_spark(address)

    def limited(policy: Policy, tables: Any, seconds: float) -> Engine:
        engine = create_engine(spark, folder, policy, tables)
        conformance.ask(engine, policy, "SELECT COUNT(*) AS n FROM person")  # executors are there from now on
        engine._session.limit_seconds = SHORT + seconds
        return engine

    kind = replace(kind_with(spark, folder, {}), create_limited=limited)
    line.send(repr(conformance.failure(lambda: conformance.a_statement_that_takes_too_long_is_ended(kind))))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.spark_cluster import spark_cluster  # noqa: PLC0415  needs Spark

    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(autouse=True)
def _settings(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SPARK_CONF_DIR", str(cluster.configuration))


@pytest.fixture
def analyst(cluster: Any, tmp_path: Path) -> Iterator[Analyst]:
    (tmp_path / "t").mkdir()
    rows = pa.table({"g": ["a", "b"] * (ROWS // 2), "x": [place % 10 for place in range(ROWS)]})
    for number in range(FILES):
        pq.write_table(rows, tmp_path / "t" / f"{number}.parquet")
    source = {"t": f"{cluster.address}?parquet={tmp_path}/t"}
    facts = {"budget": {"epsilon": 10**6}, "unit": "row", "source": source, "tables": TABLES, "version": "1"}
    started = Analyst(facts, tmp_path / "ledger")
    try:
        yield started
    finally:
        started.close()


FAILED = (EngineError, str(EngineError()), None)


def test_executors_that_are_killed(cluster: Any, analyst: Analyst) -> None:
    from tests.spark_cluster import wait_for  # noqa: PLC0415  needs Spark

    # One is lost: Spark runs its tasks again, and another executor comes.
    analyst.tell("begin", 20_000)
    analyst.wait_until_at_work()
    (lost,) = cluster.kill_executors(1)
    wait_for(lambda: any(failed for _, _, failed in analyst.tell("stages")))
    assert analyst.tell("end") == RIGHT
    wait_for(lambda: len(cluster.executors()) == 2)
    assert lost not in cluster.executors()

    # They are lost again and again: Spark gives up.
    begun = time.monotonic()
    analyst.tell("begin", 30_000)
    rounds = 0
    while analyst.tell("asking"):
        time.sleep(0.1)
        if any(active for active, _, _ in analyst.tell("stages")):
            rounds += len(cluster.kill_executors()) > 0
    assert analyst.tell("end") == FAILED
    assert time.monotonic() - begun < 500
    assert rounds >= 1
    assert analyst.tell("spent") == 50_000
    # The same question is free, and ends the same way; another is answered once executors are back.
    assert analyst.ask(30_000) == FAILED
    assert analyst.tell("spent") == 50_000
    assert analyst.ask(31_000) == RIGHT
    assert analyst.tell("spent") == 81_000

    # All are lost and none comes: Spark itself would wait for ever.
    analyst.tell("wait for executors", SHORT)
    analyst.tell("begin", 40_000)
    analyst.wait_until_at_work()
    cluster.kill_worker()
    begun = time.monotonic()
    assert analyst.tell("end") == FAILED
    assert time.monotonic() - begun < SHORT + 200
    assert analyst.tell("spent") == 121_000
    assert "Spark has no executors" in analyst.tell("open")
    analyst.tell("wait for executors", LONG)
    cluster.start_worker()
    assert analyst.tell("open") is None
    assert analyst.ask(40_000) == FAILED
    assert analyst.ask(41_000) == RIGHT
    assert analyst.tell("spent") == 162_000


def test_a_task_that_does_not_see_its_end_goes_with_its_executor(cluster: Any, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_end_what_takes_too_long, args=(sent, cluster.address, tmp_path))
    process.start()
    sent.close()
    try:
        assert received.poll(500), "nothing is said any more"
        assert received.recv() == "None"
    finally:
        process.kill()
        process.join()
