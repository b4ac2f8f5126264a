"""What the rules of `synthesis/strategy.py` were chosen by: strategies side by side on generated populations.

Errors are shares of all rows: the largest of all counts, and the mean total variation of the marginals.
"""

import time
from typing import Any

import numpy as np
import pyarrow as pa

import confide
import confide.testing
from bench._population import ADULT_LIKE, names, population
from confide.workload import Workload, draw, present_errors, uniform

ROWS = 20_000
SETS = 32
BUDGETS: dict[str, dict[str, Any]] = {"δ = 1/n²": {"epsilon": 100, "delta": 1 / ROWS**2}, "pure": {"epsilon": 100}}
EPSILONS = (0.05, 0.2, 1)
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"select": "closure"},
    {"select": "closure", "rows": 50},
    {"select": "closure", "rows": 200},
    {"select": "marginals", "rounds": 4},
    {"select": "marginals", "rounds": 12},
    {"select": "queries", "rounds": 4, "picks": 16},
)


def policy(sizes: tuple[int, ...], rows: int, budget: dict[str, Any], table: str = "t") -> dict[str, Any]:
    columns = {name: {"range": [0, size - 1]} for name, size in zip(names(sizes), sizes, strict=True)}
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {table: {"size": rows, "columns": columns}}}


def main() -> None:
    codes = population(ROWS, ADULT_LIKE, seed=3)
    columns = names(ADULT_LIKE)
    frame = {"t": pa.table({name: codes[:, place] for place, name in enumerate(columns)})}
    workload = draw(uniform(columns), SETS, 3, generator=np.random.default_rng(4))
    for label, budget in BUDGETS.items():
        for epsilon in EPSILONS:
            for strategy in (*STRATEGIES, {}):
                largest, variation, seconds, method = _run(frame, codes, budget, workload, epsilon, strategy)
                words = ", ".join(f"{name} {value}" for name, value in strategy.items()) or f"auto ({method})"
                print(
                    f"{label:<9} ε {epsilon:<5} {words:<44} largest {largest:.4f}   variation {variation:.4f}"
                    f"   {seconds:5.1f} s",
                    flush=True,
                )


def _run(
    frame: dict[str, Any],
    codes: Any,
    budget: dict[str, Any],
    workload: Workload,
    epsilon: float,
    strategy: dict[str, Any],
) -> tuple[float, float, float, str]:
    with confide.testing.open(policy(ADULT_LIKE, ROWS, budget), frame, seed=1) as session:
        start = time.perf_counter()
        twin = session.synthesize(workload, epsilon, columns=names(ADULT_LIKE), **strategy)
        seconds = time.perf_counter() - start
    largest, variation = present_errors(twin.model, codes, workload.bound(twin.domain))
    return largest, variation, seconds, twin.method


if __name__ == "__main__":
    main()
