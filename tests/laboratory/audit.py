"""The long audits, in parts that take at most 80 minutes each on two cores.

python -m tests.laboratory.audit            what parts there are
python -m tests.laboratory.audit NAME ...   run parts; each ends with a line of what it saw, for docs/audits.md
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.laboratory.report import folder_of, totals

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Part:
    """Tests that are run together: files or folders, and a choice among their names."""

    what: str
    paths: tuple[str, ...]
    chosen: str = ""
    workers: int = 2


LABORATORY = "tests/laboratory/"

PARTS: dict[str, Part] = {
    "pairs": Part("100,000 neighbour pairs on DuckDB", (f"{LABORATORY}test_pairs.py",), "hundred_thousand"),
    "pairs-postgres": Part("5,000 neighbour pairs on PostgreSQL", (f"{LABORATORY}test_pairs.py",), "on_postgres"),
    "pairs-spark": Part("5,000 neighbour pairs on Spark", (f"{LABORATORY}test_pairs.py",), "on_spark"),
    "outcomes": Part("a fault at every step between a charge and its outcome", (f"{LABORATORY}test_one_outcome.py",)),
    "mutants": Part("wrong changes of the source, one by one", (f"{LABORATORY}test_mutants.py",)),
    "plans": Part("20,000 questions, planned and answered", (f"{LABORATORY}test_plan_and_answer.py",)),
    "storages": Part(
        "every kind of column in every storage, with and without an odd row",
        (f"{LABORATORY}test_storages.py", f"{LABORATORY}test_server_storages.py",
         "tests/engine/postgres/test_types.py"),
    ),
    "faults": Part(
        "kills, failing and full disks, stopped processes, forks",
        (f"{LABORATORY}test_faults.py", "tests/release/test_left_open.py", "tests/release/test_stderr.py"),
        workers=0,
    ),
    "mechanisms": Part(
        "lower bounds on the loss from a million runs a side, exact laws, brute force",
        ("tests/mechanism", "tests/conformance/test_mechanism.py", "tests/trust", "tests/synthesis",
         "tests/statistical/test_noise_laws.py", "tests/statistical/test_statistic_privacy.py"),
    ),
    "coverage": Part(
        "how often what is said is true; `python -m tests.laboratory.coverage --write` writes its table",
        ("tests/statistical/test_coverage.py", "tests/statistical/test_statistic_coverage.py",
         f"{LABORATORY}test_coverage.py"),
    ),
    "engines": Part(
        "cells against the plain reading; sensitivities by neighbours; the suite of engines on Spark",
        ("tests/engine/test_neighbours.py", "tests/engine/test_reference.py", "tests/conformance/test_spark_engine.py"),
    ),
    "agreement": Part("2,000 questions on three engines", ("tests/engine/test_agreement.py",)),
    "releases": Part(
        "joins, graphs, microdata, synthesis, Spark and texts at length; damaged ledgers",
        ("tests/release", "tests/query", "tests/ledger"), "not left_open and not stderr",
    ),
}  # fmt: skip


def run(name: str) -> int:
    """Run a part, and say what it saw."""
    part = PARTS[name]
    os.environ["CONFIDE_AUDIT"] = name
    shutil.rmtree(folder_of(name), ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-m", "audit", *part.paths]
    command += ["-k", part.chosen] if part.chosen else []
    command += ["-n", str(part.workers), "--dist", "worksteal"] if part.workers else ["-p", "no:xdist", "-s"]
    begun, last = time.monotonic(), ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    done, minutes = process.returncode, (time.monotonic() - begun) / 60
    print(f"\n{name}, {datetime.now(UTC):%Y-%m-%d}, {minutes:.0f} min: {last.strip('= ')}")
    for audit, counts in totals(name).items():
        print(f"  {audit}: " + ", ".join(f"{value:,} {what}" for what, value in counts.items()))
    return done


def main() -> int:
    names = sys.argv[1:]
    if not names:
        for name, part in PARTS.items():
            print(f"{name:16}{part.what}")
        return 0
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    return max(run(name) for name in names)


if __name__ == "__main__":
    sys.exit(main())
