"""What is loaded before it is needed: nothing that is heavy."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "altair",
    "clarabel",
    "duckdb",
    "highspy",
    "numpy",
    "opendp",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sqlglot",
}

_AFTER = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def loaded(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{_AFTER}"], check=True, capture_output=True, text=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_confide_loads_nothing_heavy() -> None:
    assert not loaded("import confide") & (HEAVY | {"typer", "rich", "yaml", "sqlite3"})


@pytest.mark.parametrize("arguments", [["--help"], ["sql", "--help"], ["ledger", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    statement = (
        "from confide.cli.app import app\n"
        "try:\n"
        f"    app({arguments!r}, prog_name='confide')\n"
        "except SystemExit as done:\n"
        "    assert done.code == 0"
    )
    assert not loaded(statement) & (HEAVY | {"yaml", "sqlite3"})


def test_the_check_would_notice() -> None:
    assert loaded("import confide; confide.open") & HEAVY >= {"duckdb", "numpy", "sqlglot"}


def test_drawing_is_loaded_only_to_draw() -> None:
    assert not loaded("import confide; confide.open") & {"altair", "pandas", "polars"}
