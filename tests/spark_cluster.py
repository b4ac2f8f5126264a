"""A cluster of Spark on this machine: a master, a worker and executors, processes of their own that may be killed."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pyspark

from tests.spark import free_port

_SETTINGS = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.openCostInBytes": "128m",  # every file is a task of its own
    "spark.task.maxFailures": "2",
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "2s",
}
"""Of whoever uses the cluster: two executors of one core."""


class SparkCluster:
    """A master that stays, and a worker with two cores that can be killed and started again, on the loopback."""

    def __init__(self, folder: Path) -> None:
        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._port = free_port()
        self.configuration = folder / "conf"
        self.configuration.mkdir()
        lines = [f"{setting} {value}\n" for setting, value in _SETTINGS.items()]
        (self.configuration / "spark-defaults.conf").write_text("".join(lines))
        self._master = self._start("master.Master", "--port", str(self._port))
        self._worker: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def listens(self) -> bool:
        with closing(socket.socket()) as asked:
            return asked.connect_ex(("127.0.0.1", self._port)) == 0

    def start_worker(self) -> None:
        work = ("--cores", "2", "--memory", "2g", "--work-dir", str(self._folder / "work"))
        self._worker = self._start("worker.Worker", *work, self.address)

    def executors(self) -> list[int]:
        """The processes that the worker has started."""
        assert self._worker is not None
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    # After the name, which may hold anything, in parentheses: the state, then the parent.
                    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                    if int(parent) == self._worker.pid and state != "Z":
                        found.append(int(entry.name))
        return sorted(found)

    def kill_executors(self, most: int = 2) -> list[int]:
        killed = self.executors()[:most]
        for process in killed:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return killed

    def kill_worker(self) -> None:
        """And its executors, which would see that it is gone, and end."""
        assert self._worker is not None
        orphans = self.executors()
        self._worker.kill()
        self._worker.wait()
        for process in orphans:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        if self._worker is not None and self._worker.poll() is None:
            self.kill_worker()
        self._master.kill()
        self._master.wait()

    def _start(self, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1"]
        return subprocess.Popen(
            [*command, "--webui-port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            env={
                **os.environ,
                "SPARK_HOME": str(self._home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "SPARK_LOG_DIR": str(self._folder),
            },
        )


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    with closing(SparkCluster(folder)) as cluster:
        wait_for(cluster.listens)
        cluster.start_worker()
        yield cluster


def wait_for(what: Callable[[], object], seconds: float = 120.0) -> None:
    """Until it is so."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.05)
