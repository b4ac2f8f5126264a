"""Work on a cluster that has nobody to do it, on one whose executors come late, and on one that says nothing."""

import threading
import time
from typing import Any

import pytest

from confide.engine.result import TimeLimitError
from confide.engine.spark.spark_session import NoExecutorsError, OwnSession


class Cluster:
    """As much of a session of Spark, of its context and of its Java as waiting for work needs."""

    master = "spark://host:7077"
    executors: Any = 0
    _gateway = None  # no Java was started by another process

    def __init__(self, *_: Any) -> None:
        self.cancelled = threading.Event()
        self.settings: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name in ("sparkContext", "_jsc", "conf", "_jsparkSession"):
            return self
        if name in ("sc", "getExecutorMemoryStatus", "cloneSession", "addJobTag", "setInterruptOnCancel"):
            return lambda *_: self
        raise AttributeError(name)

    def get(self, setting: str, default: str | None = "") -> str | None:
        return self.settings.get(setting, default)

    def set(self, setting: str, value: str) -> None:
        self.settings[setting] = value

    def size(self) -> int:
        return 1 + int(self.executors() if callable(self.executors) else self.executors)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802  Spark's name
        self.cancelled.set()

    def work(self) -> str:
        """Takes until somebody ends it."""
        self.cancelled.wait(60)
        raise RuntimeError("cancelled")


def opened(executors: Any, master: str = Cluster.master) -> tuple[OwnSession, Any]:
    session = OwnSession(Cluster(), limit_seconds=1.0)
    session.alone_seconds = 0.3
    session.spark.executors, session.spark.master = executors, master
    return session, session.spark


def test_work_that_nobody_does_is_given_up() -> None:
    session, cluster = opened(executors=0)
    with pytest.raises(NoExecutorsError):
        session.run(cluster.work)
    assert cluster.cancelled.is_set()


@pytest.mark.parametrize("master", ["local", "local[2]", Cluster.master])
def test_work_that_somebody_does_has_its_time(master: str) -> None:
    """Here Java itself works, and has no executors but the driver."""
    session, cluster = opened(2 if master == Cluster.master else 0, master)
    begun = time.monotonic()
    with pytest.raises((RuntimeError, TimeLimitError)):
        session.run(cluster.work)
    assert time.monotonic() - begun >= 1.0
    assert session.run(lambda: "done") == "done"


def test_what_is_not_known_is_no_reason_to_give_up() -> None:
    def broken() -> int:
        raise RuntimeError("Java says nothing")

    session, cluster = opened(broken)
    begun = time.monotonic()
    with pytest.raises((RuntimeError, TimeLimitError)):
        session.run(cluster.work)
    assert time.monotonic() - begun >= 1.0


def test_executors_that_come_in_time_are_waited_for() -> None:
    session, cluster = opened(executors=0)
    session.alone_seconds = 60.0

    def late() -> str:
        time.sleep(0.5)  # well within the limit, which would cancel it
        return "done"

    assert session.run(late) == "done"
    assert not cluster.cancelled.is_set()


def test_what_the_parser_learns_of_statements_is_dropped(spark: Any) -> None:
    own = OwnSession(spark, 60.0)
    assert own.spark.conf.get("spark.sql.parser.manageParserCaches") == "true"
    assert int(own.spark.conf.get("spark.sql.parser.parserDfaCacheFlushThreshold")) <= 20_000
