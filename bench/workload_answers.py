"""How long a million answers with intervals take beside reading, and how often intervals hold.

Run as `python -m bench.workload_answers`. Data are made up; noise is the kernel's.
"""

import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import confide
from confide.mechanism import KernelRandomness
from confide.privacy.loss import ZCDP, PureDP
from confide.release.block_noise import noises_for
from confide.release.workload.measured_design import MeasuredDesign
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import designs
from confide.workload.strategy.line import NoiseKind

RUNS = 10_000


def main() -> None:
    speed()
    for noise in ("gaussian", "laplace"):
        coverage(noise)  # type: ignore[arg-type]


def speed() -> None:
    """All ranges of 1,413 cells: 998,991 answers."""
    cells, rows = 1_413, 1_000_000
    policy = {
        "budget": {"epsilon": 10, "delta": 1e-9},
        "unit": "row",
        "tables": {"t": {"size": rows, "columns": {"x": {"range": [0, cells - 1]}}}},
    }
    data = {"x": np.random.default_rng(1).integers(0, cells, rows)}
    with tempfile.TemporaryDirectory() as folder:
        session = confide.open(policy, data={"t": data}, ledger=Path(folder) / "ledger", create=True)
        for strategy in ("hierarchy", "prefix"):
            start = time.perf_counter()
            session.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=Fraction(1, 10))
            read = time.perf_counter() - start
            start = time.perf_counter()
            table = session.answer(confide.ranges("x"), epsilon=Fraction(1, 10), strategy=strategy).to_arrow()
            took = time.perf_counter() - start
            held = "holds" if took <= 5 + read else "MISSED"
            said = f"{table.num_rows:,} answers by {strategy}: {took:.2f} s, a GROUP BY {read:.2f} s"
            print(f"{said}   {held}: at most 5 s beyond")
        session.close()


def coverage(noise: NoiseKind) -> None:
    """Single answers and sums of 2,000 of them, which are counts of their own, over many measurements."""
    sizes, change = (64,), UnitChange(1, False)
    counts = np.random.default_rng(2).integers(0, 50, sizes)
    sums = np.concatenate([[0], np.cumsum(counts)])
    table = AskedTable((0,), ("range",))
    random = np.random.default_rng(3)
    weights = random.integers(0, 5, 64).astype(float)  # a sum of thousands of ranges is such a query
    for strategy in ("hierarchy", "prefix", "optimised", "wavelet"):
        (design,) = designs(sizes, (table,), strategy, noise)
        cost = ZCDP(Fraction(1, 50)) if noise == "gaussian" else PureDP(Fraction(1, 5))
        noises = noises_for(design, change, cost)
        held, held_sum = np.zeros(64 * 65 // 2), 0
        source = KernelRandomness()
        widths = None
        for _ in range(RUNS):
            values = tuple(own.measure(block, counts, source) for block, own in zip(design.blocks, noises, strict=True))
            found = MeasuredDesign(sizes, strategy, design.blocks, noises, values, design.sources)
            if widths is None:
                widths = found.half_widths(table, (0,), 0.95)
                one = found.count((0,), weights, 0.95)
                assert one is not None
                wide = one[2] - one[0]
            starts, stops = np.triu_indices(64)
            truth = sums[stops + 1] - sums[starts]
            held += np.abs(found.table(table, (0,)) - truth) <= widths
            held_sum += abs(float((found.cells(0) * weights).sum()) - float((counts * weights).sum())) <= wide
        print(
            f"{noise}, {strategy}: {RUNS:,} runs, 95 % intervals held {held.mean() / RUNS:.4f} on average, "
            f"{held.min() / RUNS:.4f} at least; of a sum of many ranges {held_sum / RUNS:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
