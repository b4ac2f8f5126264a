"""Synthetic data beside what it is to reach: NLTCS and Adult, δ = 10⁻⁹, kernel noise.

Run as `python -m bench.synthesis_bars [nltcs] [adult] [epsilon ...] [method=NAME] [select=NAME] [runs=N]`. The error of
a marginal is the sum over its cells of what the shares are off; given are the mean over marginals, the largest error of
a cell, the seconds of the call and the most memory that the process had. Figures of others are as reported for the same
marginals. Of Adult they are those of the first run of `bench.rap_adult`, with `runs=2` those of the second too.
"""

import csv
import gzip
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import confide
from bench._adult import FOLDER, Adult, adult
from confide.workload import Threshold, Workload, present_errors

EPSILONS = (0.1, 1.0, 10.0)
BARS = {
    "nltcs": {0.1: (0.075, None), 1.0: (0.0105, None), 10.0: (0.0012, None)},
    "adult": {0.1: (0.38, 0.045), 1.0: (0.18, 0.0075), 10.0: (0.10, 0.0036)},
}
OTHERS = {
    "nltcs": {0.1: "AIM .085, planner alone .097", 1.0: "AIM .0138, .0109", 10.0: "AIM .0042, .0012"},
    "adult": {0.1: "AIM .385", 1.0: "AIM .19", 10.0: "AIM .13"},
}


@dataclass(frozen=True)
class Question:
    name: str
    data: Adult
    workload: Workload


def main() -> None:
    words = [word for word in sys.argv[1:] if word.isalpha()]
    given = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    epsilons = [float(word) for word in sys.argv[1:] if word[0].isdigit() or word[0] == "."] or EPSILONS
    runs = int(given.get("runs", 1))
    more = {"method": given["method"]} if "method" in given else {}
    more |= {"select": given["select"]} if "select" in given else {}
    for epsilon in epsilons:
        for name in words or list(BARS):
            results = []
            for run in range(runs):
                question = asked(name, run)
                if question is None:
                    print(f"skipped: set {FOLDER} to a folder that holds {name}")
                    break
                results.append(answered(question, epsilon, more))
            if results:
                _show(name, epsilon, results)


def asked(name: str, run: int) -> Question | None:
    data = nltcs() if name == "nltcs" else adult()
    if data is None:
        return None
    sets = list(combinations(data.names, 3))
    if name == "adult":
        places = np.random.default_rng(run).choice(len(sets), 64, replace=False)
        sets = [sets[place] for place in places]
    return Question(name, data, Workload(tuple(Threshold(columns, 3) for columns in sets)))


def answered(question: Question, epsilon: float, more: dict[str, Any]) -> tuple[float, float, float, str]:
    """The mean error, the largest, the seconds, and the method."""
    data = question.data
    with tempfile.TemporaryDirectory() as folder:
        policy = data.policy({"epsilon": 100, "delta": 1e-9})
        with confide.open(policy, data.frame, ledger=Path(folder) / "ledger", create=True) as session:
            start = time.perf_counter()
            twin = session.synthesize(question.workload, epsilon, columns=data.names, **more)
            seconds = time.perf_counter() - start
    largest, variation = present_errors(twin.model, data.codes, question.workload.bound(twin.domain))
    return 2 * variation, largest, seconds, twin.method


def nltcs() -> Adult | None:
    """16 columns of two places. None where the data are not."""
    folder = Path(os.environ.get(FOLDER, "data")) / "nltcs"
    if not (folder / "nltcs.csv.gz").is_file():
        return None
    sizes: dict[str, int] = json.loads((folder / "nltcs-domain.json").read_text())
    with gzip.open(folder / "nltcs.csv.gz", "rt") as file:
        rows: Iterator[list[str]] = csv.reader(file)
        header = next(rows)
        codes = np.array(list(rows), dtype=np.int64)[:, [header.index(name) for name in sizes]]
    return Adult([f"c{place:02d}" for place in range(len(sizes))], tuple(sizes.values()), codes)


def _show(name: str, epsilon: float, results: list[tuple[float, float, float, str]]) -> None:
    errors = np.array([result[:3] for result in results])
    mean, largest = errors[:, 0].mean(), errors[:, 1].mean()
    bar, highest = BARS[name][epsilon]
    met = mean <= bar and (highest is None or largest <= highest)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:<6} ε {epsilon:<5} error {mean:.5f} (bar {bar})  largest {largest:.4f} (bar {highest or '-'})  "
        f"{'met' if met else 'MISSED'}  {errors[:, 2].max():.1f} s  {memory:.2f} GB  {results[0][3]}; "
        f"{OTHERS[name][epsilon]}",
        flush=True,
    )


if __name__ == "__main__":
    main()
