"""What an engine is, said without any of them."""

import subprocess
import sys

import pytest

_DRIVERS = "{'duckdb', 'sqlite3', 'psycopg', 'pyspark'}"


def loaded_drivers(statement: str) -> str:
    check = f"{statement}\nimport sys\nprint(sorted({_DRIVERS} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["confide.engine.protocol", "confide.engine"])
def test_an_engine_is_described_without_a_driver(module: str) -> None:
    assert loaded_drivers(f"import {module}") == "[]"


def test_the_check_would_notice() -> None:
    assert loaded_drivers("import confide.engine.duckdb.engine") == "['duckdb']"
