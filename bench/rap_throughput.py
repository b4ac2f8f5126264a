"""Millions of counts: about 3.5·10⁷ consistent queries of 64 1-of-4 thresholds on a generated table of 42,535 rows and
48 columns with 4,427 places. Fit and all answers together.

Bars: 28,000 queries a second (what the paper reached on a 24 GB GPU), at most 3 GB resident.
"""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import confide
from bench._population import LOANS_LIKE, names, population
from bench.rap_rules import policy
from confide.errors import ParameterError
from confide.policy import Policy
from confide.workload import Workload, domain_of, draw, present_errors, uniform

ROWS = 42_535
WANTED = (3.4e7, 3.7e7)


def main() -> None:
    codes, columns = population(ROWS, LOANS_LIKE, seed=1), names(LOANS_LIKE)
    frame = {"t": pa.table({name: codes[:, place] for place, name in enumerate(columns)})}
    rules = policy(LOANS_LIKE, ROWS, {"epsilon": 10, "delta": 1 / ROWS**2})
    workload = _workload(rules, columns)
    with (
        tempfile.TemporaryDirectory() as folder,
        confide.open(rules, frame, ledger=Path(folder) / "ledger", create=True) as session,
    ):
        start = time.perf_counter()
        twin = session.synthesize(workload, epsilon=0.1)
        fitted = time.perf_counter() - start
        queries = sum(len(block) for _, _, block in twin.answer(workload).blocks())
        seconds = time.perf_counter() - start
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    largest, _ = present_errors(twin.model, codes, workload.bound(domain_of(Policy.parse(rules).tables["t"], columns)))
    rate = queries / seconds
    print(
        f"{queries:,} queries in {seconds:.1f} s (fit {fitted:.1f} s): {rate:,.0f} a second   bar 28,000   "
        f"{'met' if rate >= 28_000 else 'missed'}\nresident at most {resident:.2f} GB   bar 3 GB   "
        f"{'met' if resident <= 3 else 'missed'}\nlargest error {largest:.4f}"
    )


def _workload(rules: dict[str, object], columns: list[str]) -> Workload:
    """The first drawn workload of the wanted size."""
    domain, generator = domain_of(Policy.parse(rules).tables["t"]), np.random.default_rng(0)
    while True:
        drawn = draw(uniform(columns), 64, 4, 1, generator=generator)
        try:
            bound = drawn.bound(domain)
        except ParameterError:  # a set of columns with too many cells
            continue
        if len(bound.thresholds) == 64 and WANTED[0] < bound.size < WANTED[1]:
            return drawn


if __name__ == "__main__":
    main()
