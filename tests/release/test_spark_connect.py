"""A policy whose data are behind a server of Spark Connect, in a process of its own."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import confide
from confide.errors import SourceError
from tests.spark import MISSING, free_port, has_java

SQL = "SELECT g, COUNT(*) AS n, SUM(x) AS s, MEDIAN(x) AS m FROM t GROUP BY g"
TABLES = {"t": {"columns": {"g": {"values": ["a", "b"]}, "x": {"range": [0, 9]}}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    if not has_java():
        pytest.skip(MISSING)
    pyspark = pytest.importorskip("pyspark")
    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "OFF",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]"]
    command += [part for setting in settings.items() for part in ("--conf", "=".join(setting))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    running = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path_factory.mktemp("server"),
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and running.poll() is None:
            with closing(socket.socket()) as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        yield running, port
    finally:
        running.kill()
        running.wait()


def policy(folder: Path, port: int) -> dict[str, Any]:
    place = folder / "t.parquet"
    pl.DataFrame({"g": ["a", "b", "b", None] * 50, "x": [1, 2, 99, 4] * 50}).write_parquet(place)
    source = {"t": f"sc://127.0.0.1:{port}?parquet={place}"}
    return {"budget": {"epsilon": 100_000}, "unit": "row", "source": source, "tables": TABLES, "version": "1"}


@pytest.mark.audit
def test_a_server_answers_and_when_it_is_gone_nothing_is_charged(
    server: tuple[subprocess.Popen[bytes], int], tmp_path: Path
) -> None:
    running, port = server
    with confide.open(policy(tmp_path, port), ledger=tmp_path / "l", create=True) as people:
        rows = people.sql(SQL, epsilon=20_000).to_dicts()
        assert [(row["n"], row["s"], row["m"]) for row in rows] == [(50, 50, 1), (100, 550, pytest.approx(5.5, abs=4))]
        running.kill()
        running.wait()
        begun = time.monotonic()
        with pytest.raises(SourceError, match="nothing was charged"):
            people.sql(SQL, epsilon=10_000)
        assert people.budget.spent == 20_000
    assert time.monotonic() - begun < 120
    with pytest.raises(SourceError, match="cannot be reached"):
        confide.open(policy(tmp_path, port), ledger=tmp_path / "l", create=True)
