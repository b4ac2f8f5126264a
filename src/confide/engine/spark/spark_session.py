"""A session of our own on Spark: in this process, given by the caller, or far away over Spark Connect.

The session is a copy, with settings of its own: nobody else's tables, views and settings are touched.
"""

import atexit
import logging
import os
import shutil
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from importlib import import_module
from itertools import count
from typing import Any, Final, TypeVar

from confide.engine.result import TimeLimitError
from confide.errors import SourceError

_SETTINGS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.path.enabled": "false",
    "spark.sql.functionResolution.sessionOrder": "second",  # else functions of the session's owner hide Spark's own
    "spark.sql.variable.substitute": "false",  # else ${...} in a text of a question would be replaced
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",  # else a name in backquotes would be a pattern
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # else one folder more changes what all mean
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # What the parser has learnt is kept for ever otherwise, and a few hundred different questions fill a driver.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "10000",
}
_START: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # what Spark logs of a failure may hold values
}
_START_HERE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),  # 200 otherwise, each of them a task
}
_TALKATIVE: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Of pyspark: what went wrong in a statement, values and all, to standard error."""
_WARNING: Final = ("py4j", "grpc", "pyspark")
"""What they warn of would go to standard error as well, unless somebody has set up logging."""
_FORKED: Final = (
    "this process was forked from the one that opened Spark, and must not use its connection: open the data in the "
    "process that asks, which is started anew (spawn) or forked before Spark is there"
)
_PATIENCE: Final = 10.0
_PAUSE: Final = 0.1
_LOOK: Final = 5.0
_ALONE: Final = 180.0
_NUMBERS = count()

Result = TypeVar("Result")


class NoExecutorsError(Exception):
    """Nobody has been there for too long to do the work, for which Spark itself would wait for ever."""


def new_tag() -> str:
    """What a piece of work on Spark is called, so that it can be ended."""
    return f"confide-{os.getpid()}-{next(_NUMBERS)}"


class OwnSession:
    """A copy of a session on Spark. Statements run in it within a time limit, and Ctrl-C ends them there too."""

    def __init__(self, spark: Any, limit_seconds: float) -> None:
        for name in _TALKATIVE:
            logging.getLogger(name).disabled = True
        _hush()
        self._process = os.getpid()
        self.spark = _copy(spark)
        self.limit_seconds = limit_seconds
        self.alone_seconds = _ALONE
        for setting, value in _SETTINGS.items():
            if self.spark.conf.get(setting, None) != value:
                self.spark.conf.set(setting, value)

    def require_process(self) -> None:
        """Refuse to be used on the far side of a fork."""
        if os.getpid() != self._process:
            raise SourceError(_FORKED)

    def run(self, work: Callable[[], Result], tag: str | None = None) -> Result:
        """What `work` gives, if it gives it in time; what takes longer, or is interrupted, is ended on Spark too."""
        self.require_process()
        tag = tag or new_tag()
        results: list[Result] = []
        errors: list[BaseException] = []

        def labelled() -> None:
            try:
                self._label(tag)
                results.append(work())
            except BaseException as error:  # raised again in the caller's thread
                errors.append(error)

        worker = _start(labelled)
        alone = False
        try:
            alone = self._wait(worker)
        finally:
            # Again and again, since one that comes before the work has begun is forgotten; in threads of their own,
            # since a Spark that says nothing any more must hold up nobody.
            deadline = time.monotonic() + _PATIENCE
            while worker.is_alive() and time.monotonic() < deadline:
                _start(lambda: self._cancel(tag)).join(_PATIENCE)
                worker.join(_PAUSE)
        if results:
            return results[0]
        if alone:
            raise NoExecutorsError
        if errors:
            raise errors[0]
        raise TimeLimitError

    def _wait(self, worker: threading.Thread) -> bool:
        """Until the work is done or its time is over; whether it was given up before, since no executor was there."""
        begun = seen = time.monotonic()
        while (left := begun + self.limit_seconds - time.monotonic()) > 0:
            worker.join(min(left, _LOOK, self.alone_seconds))
            if not worker.is_alive():
                break
            if self._has_executors():
                seen = time.monotonic()
            elif time.monotonic() - seen > self.alone_seconds:
                return True
        return False

    def _has_executors(self) -> bool:
        """Whether anybody works for Spark; a server of Spark Connect does not tell, and here Java itself does."""
        if _is_remote(self.spark):
            return True
        counted: list[int] = []

        def count_them() -> None:
            context = self.spark.sparkContext
            here = context.master == "local" or context.master.startswith("local[")
            counted.append(1 if here else context._jsc.sc().getExecutorMemoryStatus().size() - 1)  # without the driver

        _start(count_them).join(_LOOK)
        return counted != [0]

    def _label(self, tag: str) -> None:
        if _is_remote(self.spark):
            self.spark.addTag(tag)
            return
        self.spark.sparkContext.addJobTag(tag)
        self.spark.sparkContext.setInterruptOnCancel(True)

    def _cancel(self, tag: str) -> None:
        if _is_remote(self.spark):
            self.spark.interruptTag(tag)
        else:  # results that come as Arrow are fetched in a thread of Spark's, which tags of a session do not reach
            self.spark.sparkContext.cancelJobsWithTag(tag)

    def close(self) -> None:
        """End the session if it is one on a server; Spark in this process is its owner's, and ends with it."""
        if _is_remote(self.spark) and os.getpid() == self._process:
            _start(self.spark.stop).join(_PAUSE if self._lost() else _PATIENCE)

    def gone(self) -> bool:
        """Whether Spark has stopped, or does not say that it has not."""
        asked: list[bool] = []

        def ask() -> None:
            remote = _is_remote(self.spark)
            asked.append(bool(self.spark.version) if remote else not self.spark.sparkContext._jsc.sc().isStopped())

        _start(ask).join(_PATIENCE)
        return asked != [True]

    def _lost(self) -> bool:
        asked: list[Any] = []
        _start(lambda: asked.append(self.spark.version)).join(1.0)
        return not asked


def find_spark(master: str | None) -> Any:
    """Spark at this master or address; None is the Spark of this process, or a new one here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of versions of pandas, which is not used
        from pyspark import SparkContext  # noqa: PLC0415  heavy
        from pyspark.sql import SparkSession  # noqa: PLC0415

    master = master or os.environ.get("SPARK_REMOTE")
    if master is not None and master.startswith("sc://"):
        return _connected(master)
    _require_own_java(SparkContext._gateway)
    _forget_stopped(SparkContext._active_spark_context)
    active = _quietly(SparkSession.getActiveSession)
    if active is None:
        return _started(SparkSession, master or "local[*]")
    if master is not None and not _is_remote(active) and active.sparkContext.master != master:
        raise SourceError(
            f"the source is Spark at {master}, but this process runs Spark at {active.sparkContext.master} already; "
            "stop that first, or make it the source (source: spark)"
        )
    return active


def _require_own_java(gateway: Any) -> None:
    """Refuse a Java that the process from which this one was forked has started, and whose sockets it uses."""
    java = getattr(gateway, "proc", None)
    if java is None or java.returncode is not None:
        return
    try:
        os.waitid(os.P_PID, java.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        foreign = True
    else:
        foreign = False
    if foreign:
        raise SourceError(_FORKED)


def _forget_stopped(context: Any) -> None:
    """A cluster that drops us stops Spark in Java alone, and Python would go on giving out what has stopped."""
    if context is not None and _quietly(lambda: context._jsc.sc().isStopped()):
        _quietly(context.stop)


def _connected(address: str) -> Any:
    remote: Any = None
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of versions of pandas, which is not used
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415  heavy

        remote = SparkSession
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)  # said below, and by a question that fails
    if remote is None:
        raise SourceError("Spark Connect needs drivers that are not installed; run: pip install 'confide[spark]'")
    begun: list[Any] = []

    def begin() -> None:
        session = _quietly(lambda: _impatient(remote.builder.remote(address).create()))
        if session is not None and _quietly(lambda: session.version) is not None:
            begun.append(session)

    _start(begin).join(3 * _PATIENCE)
    if not begun:
        shown = address.partition(";")[0]  # what follows may be a token
        raise SourceError(f"Spark Connect cannot be reached at {shown}; check host, port and that it runs")
    return begun[0]


def _started(sessions: Any, master: str) -> Any:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:  # Spark heeds JAVA_HOME before PATH
        raise SourceError(
            "Spark needs a Java runtime, and none was found; install one, for example apt-get install "
            "default-jre-headless, or set JAVA_HOME"
        )
    if master.startswith("spark://") and not any(map(_answers, master.removeprefix("spark://").split(","))):
        raise SourceError(f"no master of Spark answers at {master}; check host, port and that it runs")
    builder = sessions.builder.appName("confide").master(master)
    for setting, value in (_START | (_START_HERE if master.startswith("local") else {})).items():
        builder = builder.config(setting, value)
    with _without_stderr():
        started = _quietly(builder.getOrCreate)
    if started is None:
        raise SourceError(f"Spark does not start at {master}; check the master, and that Java is 17 or newer")
    return started


def _answers(address: str) -> bool:
    """Whether anybody listens there: Spark itself would try for a minute."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LOOK).close()
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Java is born with this process's standard error, and writes a page to it before it can be told not to."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _copy(spark: Any) -> Any:
    """A session with the tables and temporary views of another, and settings that can be changed alone."""
    if _is_remote(spark):
        return _impatient(spark.cloneSession())
    _require_own_java(spark.sparkContext._gateway)
    return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())


def _impatient(spark: Any) -> Any:
    """A server that is gone is asked again for half a minute, and not for ten."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415  heavy

    spark.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=5_000)])
    atexit.unregister(spark.client._on_exit)  # it clears what we never use there, and a process would end late
    return spark


def _is_remote(spark: Any) -> bool:
    return ".connect." in type(spark).__module__


def _quietly(call: Callable[[], Any]) -> Any:
    """None instead of pages of Java, which may hold addresses and tokens."""
    try:
        return call()
    except Exception:
        return None


def _hush() -> None:
    """Keep what libraries log off standard error, unless somebody has set up logging."""
    for name in _WARNING:
        logging.getLogger(name).addHandler(logging.NullHandler())
    with suppress(ImportError):
        java_gateway = import_module("py4j.java_gateway")

        # It logs a lost Java through the root logger, which then writes to standard error by itself.
        java_gateway.__dict__["logging"] = java_gateway.__dict__["logger"]


def _start(work: Callable[[], Any]) -> threading.Thread:
    context = copy_context()  # in a release no warning is shown, here neither
    thread = threading.Thread(target=context.run, args=(_quietly, work), name="confide-statement", daemon=True)
    thread.start()
    return thread
