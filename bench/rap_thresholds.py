"""r-of-4 thresholds of Adult: 64 random ones, ε = 0.1, δ = 1/n², beside answering 0 and noise on every count.

Bar: a largest error below both baselines for every r. CONFIDE_PLOTS=FOLDER also draws it.
"""

import os
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import confide
from bench._adult import Adult, adult
from bench._baselines import noisy_answers, zero_answers
from bench._chart import lines
from confide.mechanism import KernelRandomness
from confide.privacy.budget import Budget
from confide.workload import draw, present_errors, tables_of, uniform

EPSILON = 0.1
RUNS = 3


def main() -> None:
    found = adult()
    if found is None:
        print("skipped: set CONFIDE_DATA to a folder that holds adult/adult_discretized.csv.gz and its domain")
        return
    points = []
    for need in (1, 2, 3, 4):
        ours, zero, noisy = zip(*(_run(found, need, run) for run in range(RUNS)), strict=True)
        met = max(ours) < min(zero) and max(ours) < min(noisy)
        print(
            f"{need}-of-4   ours {np.mean(ours):.4f} (at most {max(ours):.4f})   all 0: {np.mean(zero):.4f}   "
            f"Gaussian, cut to [0, 1]: {np.mean(noisy):.4f}   {'met' if met else 'missed'}",
            flush=True,
        )
        points += [(need, float(np.mean(ours)), "rap"), (need, float(np.mean(zero)), "all 0"),
                   (need, float(np.mean(noisy)), "Gaussian")]  # fmt: skip
    lines(points, "r", "largest error", "rap-thresholds")


def _run(found: Adult, need: int, run: int) -> tuple[float, float, float]:
    n = len(found.codes)
    workload = draw(uniform(found.names), 64, 4, need, generator=np.random.default_rng(run))
    budget = {"epsilon": 10, "delta": 1 / n**2}
    with (
        tempfile.TemporaryDirectory() as folder,
        confide.open(found.policy(budget), found.frame, ledger=Path(folder) / "ledger", create=True) as session,
    ):
        twin = session.synthesize(workload, EPSILON, columns=found.names)
    bound = workload.bound(twin.domain)
    exact = tables_of(found.codes, found.sizes, bound.sets)
    largest, _ = present_errors(twin.model, found.codes, bound)
    zero = max(float(truth.answers.max()) for _, truth in zero_answers(bound, exact)) / n
    cost = Budget.of(10, 1 / n**2).cost(Fraction(str(EPSILON)))
    noisy = 0.0
    for noised, truth in noisy_answers(bound, exact, cost, 1, KernelRandomness()):
        noisy = max(noisy, float(np.abs(np.clip(noised.answers, 0, n) - truth.answers).max()) / n)
        if noisy > 0.99:  # it cannot become worse
            break
    return largest, zero, noisy


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
