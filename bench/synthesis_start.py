"""Beginning with rows that are there: marginals of Adult, all pairs measured, from nothing and from several starts.

The private rows are three quarters of Adult, drawn at random. Starts: 5,000 rows of the other quarter, its people
below 35 alone, and rows whose values have nothing to do with each other. Mean total variation of all pairs and of 200
marginals of three columns, two runs with test noise.
"""

import time
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

import confide
import confide.testing
from bench._adult import Adult, adult
from confide.workload import Threshold, Workload, present_errors

RUNS = 2


def main() -> None:
    found = adult()
    if found is None:
        print("skipped: set CONFIDE_DATA to a folder that holds adult/adult_discretized.csv.gz and its domain")
        return
    random = np.random.default_rng(1)
    codes = found.codes[random.permutation(len(found.codes))]
    cut = len(codes) * 3 // 4
    private, public = codes[:cut], codes[cut:]
    loose = np.stack([random.integers(0, size, 5_000) for size in found.sizes], axis=1)
    starts = {
        "none": None, "5,000 others": public[:5_000], "others below 35": public[public[:, 0] < 18],
        "unlike": loose,
    }  # fmt: skip
    triples = list(combinations(found.names, 3))
    some = [triples[place] for place in random.choice(len(triples), 200, replace=False)]
    threes = Workload(tuple(Threshold(own, 3) for own in some))
    for epsilon in (0.1, 1, 10):
        for name, rows in starts.items():
            results = [_run(found, private, rows, epsilon, run, threes) for run in range(RUNS)]
            pairs, three, seconds = np.mean(results, axis=0)
            print(f"ε = {epsilon:<4} {name:<16} pairs {pairs:.4f}   threes {three:.4f}   {seconds:.1f} s", flush=True)


def _frame(found: Adult, codes: Any) -> pa.Table:
    return pa.table({name: codes[:, place] for place, name in enumerate(found.names)})


def _run(
    found: Adult, private: Any, rows: Any, epsilon: float, seed: int, threes: Workload
) -> tuple[float, float, float]:
    policy = found.policy({"epsilon": 10, "delta": 1e-9})
    policy["tables"]["adult"]["size"] = len(private)
    with confide.testing.open(policy, {"adult": _frame(found, private)}, seed=seed) as session:
        start = time.perf_counter()
        given = None if rows is None else _frame(found, rows)
        twin = session.synthesize(confide.marginals(2), epsilon, start=given)
        seconds = time.perf_counter() - start
    errors = [present_errors(twin.model, private, own.bound(twin.domain))[1] for own in (confide.marginals(2), threes)]
    return errors[0], errors[1], seconds


if __name__ == "__main__":
    main()
