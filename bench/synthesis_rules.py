"""What the rule of `method="auto"` was chosen by: methods side by side on generated populations, test noise.

Run as `python -m bench.synthesis_rules [world ...] [epsilon ...] [methods=NAME,NAME] [pure]`; else δ = 10⁻⁹. The error
of a marginal is the sum over its cells of what the shares are off; given are the mean over marginals, the largest of a
cell, the seconds, and what a plan says.
"""

import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

import confide
import confide.testing
from bench._population import ADULT_LIKE, names, population
from bench.rap_rules import policy
from confide.errors import ConfideError
from confide.workload import Workload, draw, present_errors, uniform

WORLDS: dict[str, tuple[tuple[int, ...], int, int]] = {
    "pairs": ((2,) * 14, 20_000, 0),
    "few": ((2, 3, 4, 5, 6, 7, 8), 5_000, 0),
    "mixed": ((4, 6, 12, 2, 2, 9, 5, 16), 50_000, 20),
    "wide": (ADULT_LIKE, 20_000, 32),
    "large": (ADULT_LIKE, 500_000, 32),
    "many": ((*ADULT_LIKE, *(10,) * 16), 20_000, 48),
}
"""Sizes of columns, rows, and how many 3-way marginals are drawn; 0 is all."""
EPSILONS = (0.02, 0.1, 1.0)
METHODS = ("planned", "rap", "mst", "aim", "auto")


def main() -> None:
    worlds = [word for word in sys.argv[1:] if word in WORLDS] or list(WORLDS)
    epsilons = [float(word) for word in sys.argv[1:] if word.replace(".", "").isdigit()] or EPSILONS
    given = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    methods = given["methods"].split(",") if "methods" in given else METHODS
    budget = {"epsilon": 1_000} if "pure" in sys.argv else {"epsilon": 1_000, "delta": 1e-9}
    for world in worlds:
        sizes, rows, count = WORLDS[world]
        codes, columns = population(rows, sizes, seed=5), names(sizes)
        frame = {"t": pa.table({name: codes[:, place] for place, name in enumerate(columns)})}
        wanted = draw(uniform(columns), count, 3, generator=np.random.default_rng(6)) if count else confide.marginals(3)
        for epsilon in epsilons:
            for method in methods:
                said = _run(policy(sizes, rows, budget), frame, codes, wanted, epsilon, method, columns)
                print(
                    f"{world:<6} {'pure' if 'pure' in sys.argv else 'ρ':<4} ε {epsilon:<5} {method:<9} {said}",
                    flush=True,
                )


def _run(
    rules: dict[str, Any], frame: dict[str, Any], codes: Any, wanted: Workload, epsilon: float, method: str,
    columns: list[str],
) -> str:  # fmt: skip
    try:
        with confide.testing.open(rules, frame, seed=1) as session:
            start = time.perf_counter()
            twin = session.synthesize(wanted, epsilon, columns=columns, method=method)
            seconds = time.perf_counter() - start
    except ConfideError as refusal:
        return f"refused: {str(refusal)[:90]}"
    largest, variation = present_errors(twin.model, codes, wanted.bound(twin.domain))
    return f"error {2 * variation:.4f}  largest {largest:.4f}  {seconds:5.1f} s  {twin.method[:70]}"


if __name__ == "__main__":
    main()
