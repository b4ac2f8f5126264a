"""Methods of synthesis side by side: mean L1 error of 3-way marginals, as shares of all rows, at δ = 1e-9.

python -m bench.synthesis_methods nltcs mst,aim 0.1,1,10        all 560 triples of NLTCS
python -m bench.synthesis_methods adult mst 1                   64 random triples of Adult

Beside ours stands what others report or what was measured of them on the same marginals, where there is such a number.
"""

import csv
import gzip
import json
import os
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import confide
from bench._adult import FOLDER
from confide.workload import Threshold, Workload, tables_of

SETS = {"nltcs": None, "adult": 64}
DELTA = 1e-9
OTHERS = {
    ("nltcs", "aim"): {0.1: 0.085, 1: 0.0138, 10: 0.0042},
    ("nltcs", "mwem"): {0.1: 0.084, 10: 0.032},
    ("nltcs", "privbayes+model"): {0.1: 0.141, 10: 0.054},
    ("nltcs", "mst"): {0.1: 0.283, 10: 0.284},
    ("adult", "aim"): {0.1: 0.385, 1: 0.19, 10: 0.13},
    ("adult", "privbayes+model"): {0.1: 0.53, 10: 0.18},
    ("adult", "mst"): {0.1: 0.50, 10: 0.22},
}


def data(name: str) -> tuple[list[str], tuple[int, ...], NDArray[np.int64]] | None:
    """Names, sizes and codes of the columns; None where the data are not."""
    folder = Path(os.environ.get(FOLDER, "data")) / name
    stem = "adult_discretized" if name == "adult" else name
    if not (folder / f"{stem}.csv.gz").is_file():
        return None
    sizes: dict[str, int] = json.loads((folder / f"{stem}-domain.json").read_text())
    with gzip.open(folder / f"{stem}.csv.gz", "rt") as file:
        reader = csv.reader(file)
        header = next(reader)
        codes = np.array(list(reader), dtype=np.int64)[:, [header.index(own) for own in sizes]]
    return list(sizes), tuple(sizes.values()), codes


def main(name: str = "nltcs", methods: str = "mst,aim", epsilons: str = "0.1,1,10") -> None:
    found = data(name)
    if found is None:
        print(f"skipped: set {FOLDER} to a folder that holds {name}")
        return
    names, sizes, codes = found
    sets = list(combinations(range(len(names)), 3))
    if SETS[name] is not None:
        sets = [sets[place] for place in np.random.default_rng(0).choice(len(sets), SETS[name], replace=False)]
    workload = Workload(tuple(Threshold(tuple(names[column] for column in own), 3) for own in sets))
    exact = tables_of(codes, sizes, tuple(sets))
    columns = {own: {"range": [0, size - 1]} for own, size in zip(names, sizes, strict=True)}
    table = {"size": len(codes), "columns": columns}
    policy: dict[str, Any] = {"budget": {"epsilon": 10, "delta": DELTA}, "unit": "row", "tables": {"t": table}}
    frame = {"t": pa.table({own: codes[:, place] for place, own in enumerate(names)})}
    for method in methods.split(","):
        for epsilon in epsilons.split(","):
            with (
                tempfile.TemporaryDirectory() as folder,
                confide.open(policy, frame, ledger=Path(folder) / "ledger", create=True) as session,
            ):
                start = time.perf_counter()
                twin = session.synthesize(workload, epsilon, columns=names, method=method)
                seconds = time.perf_counter() - start
                apart = [
                    np.abs(
                        twin.model.marginal(own, 0, sizes[own[0]]) - exact.marginal(own, 0, sizes[own[0]]) / len(codes)
                    )
                    for own in sets
                ]
            mean, largest = np.mean([own.sum() for own in apart]), max(own.max() for own in apart)
            theirs = OTHERS.get((name, method), {}).get(float(epsilon))
            beside = "" if theirs is None else f"   others {theirs}"
            print(
                f"{name} {method:10} ε = {epsilon:<4} mean L1 {mean:.4f}{beside}   largest {largest:.4f}   "
                f"{seconds:.1f} s, {twin.model.words}",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
