"""A Spark in this process for tests: one for each process of a run, small, without codes that only pay on large data.

Its Java process ends with the one that started it.
"""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

MISSING = "no Java runtime, so Spark is not tested; install one with: apt-get install default-jre-headless"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Java compiles briefly: thousands of different small statements never repay its long optimiser.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.warehouse.dir": "/nonexistent",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""No Java is written and compiled for a statement: several times faster where there are few rows."""


def has_java() -> bool:
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


def free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with one core."""
    if not has_java():
        pytest.skip(MISSING)
    from pyspark.sql import SparkSession  # noqa: PLC0415  heavy

    builder = SparkSession.builder.appName("tests").master("local[1]")
    for setting, value in _SETTINGS.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
