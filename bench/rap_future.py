"""Questions of the future on Adult: 1-of-3 thresholds, ε = 0.1, history and future drawn from feature distributions.

The error falls as the history grows, without and with padding; and it grows gracefully with drift γ, for a history of
four thresholds from a geometric distribution. Bars: the longest history beats the shortest for each distribution, and
every point of a padded one beats answering 0. CONFIDE_PLOTS=FOLDER also draws both.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import confide
from bench._adult import Adult, adult
from bench._chart import lines
from confide.workload import Interest, draw, drifted, future_error, geometric, padded, uniform, zipf

EPSILON = 0.1
HISTORIES = (1, 4, 16, 64)
GAMMAS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
RUNS = 3
FUTURE = 60


def main() -> None:
    found = adult()
    if found is None:
        print("skipped: set CONFIDE_DATA to a folder that holds adult/adult_discretized.csv.gz and its domain")
        return
    sizes: list[tuple[float, float, str]] = []
    for label, interest in (("uniform", uniform), ("zipf", zipf), ("geometric", geometric)):
        errors = []
        for size in HISTORIES:
            error = np.mean([_run(found, interest(found.names), size, 0.0, run, pad=0) for run in range(RUNS)])
            errors.append(float(error))
            sizes.append((size, float(error), label))
        fell = "falls" if errors[-1] < errors[0] else "does not fall"
        print(f"{label:<10} |W_H| {HISTORIES}: {', '.join(f'{error:.4f}' for error in errors)}   {fell}", flush=True)
    lines(sizes, "historical thresholds", "future error", "rap-future", log=True)
    drift: list[tuple[float, float, str]] = []
    for label, pad in (("4 thresholds", 0), ("4 thresholds, padded to 64", 64)):
        errors = []
        for gamma in GAMMAS:
            error = np.mean([_run(found, geometric(found.names), 4, gamma, run, pad) for run in range(RUNS)])
            errors.append(float(error))
            drift.append((gamma, float(error), label))
        print(f"drift γ {GAMMAS}, {label}: {', '.join(f'{error:.4f}' for error in errors)}", flush=True)
    lines(drift, "drift", "future error", "rap-drift")


def _run(found: Adult, interest: Interest, size: int, gamma: float, run: int, pad: int) -> float:
    generator = np.random.default_rng(run)
    history = draw(interest, size, 3, 1, generator=generator)
    history = padded(history, found.names, pad, 3, 1, generator=generator)
    with tempfile.TemporaryDirectory() as folder:
        budget = {"epsilon": 10, "delta": 1 / len(found.codes) ** 2}
        with confide.open(found.policy(budget), found.frame, ledger=Path(folder) / "ledger", create=True) as session:
            twin = session.synthesize(history, EPSILON, columns=found.names)
    future = drifted(interest, gamma, generator)
    return future_error(twin.model, twin.domain, found.codes, future, 3, 1, count=FUTURE, generator=generator).mean


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
