"""The error of every strategy in closed form, beside its bar: nothing is drawn and nothing is read.

Run as `python -m bench.workload_strategies`. Root mean square error of all answers: σ = 1 for a unit L2 norm under
Gaussian noise, ε = 1 under Laplace noise; marginals at ρ = ½, every marginal counted the same. With --long also
columns of 4,096 cells, which take two minutes.
"""

import sys
import time
from itertools import combinations

from confide.workload.asked import AskedTable
from confide.workload.strategy.design import designs
from confide.workload.strategy.line import AskedLine, Kind, NoiseKind, unit_error
from confide.workload.strategy.registry import LINES

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
LINE_BARS: list[tuple[int, Kind, str, NoiseKind, float | None]] = [
    (1024, "prefix", "identity", "gaussian", None),
    (1024, "prefix", "hierarchy", "gaussian", None),
    (1024, "prefix", "wavelet", "gaussian", None),
    (1024, "prefix", "prefix", "gaussian", None),
    (1024, "prefix", "optimised", "gaussian", 2.960),
    (1024, "range", "identity", "gaussian", None),
    (1024, "range", "hierarchy", "gaussian", None),
    (1024, "range", "prefix", "gaussian", None),
    (1024, "range", "optimised", "gaussian", 3.520),
    (1024, "prefix", "hierarchy", "laplace", None),
    (1024, "prefix", "optimised", "laplace", 9.7),
    (1024, "range", "hierarchy", "laplace", None),
    (1024, "range", "optimised", "laplace", 11.2),
    (100_000, "prefix", "prefix", "gaussian", 4.57),
    (1_000_000, "prefix", "prefix", "gaussian", 5.31),
]
LONG_BARS: list[tuple[int, Kind, str, NoiseKind, float | None]] = [
    (4096, "prefix", "optimised", "gaussian", 3.396),
    (4096, "range", "optimised", "gaussian", 4.140),
]


def main() -> None:
    for bar in LINE_BARS + (LONG_BARS if "--long" in sys.argv else []):
        line(*bar)
    marginals("Adult, at most 3 columns", ADULT, range(1, 4), 15.7)
    marginals("Adult, at most 2 columns", ADULT, range(1, 3), None)
    marginals("NLTCS, 3 columns", (2,) * 16, range(3, 4), 6.33)
    marginals("100 columns of 10 values, 3 columns", (10,) * 100, range(3, 4), None, direct=False)


def line(size: int, kind: Kind, name: str, noise: NoiseKind, bar: float | None) -> None:
    asked = AskedLine(size, (kind,))
    start = time.process_time()
    made = LINES[name].make(asked, noise)
    planned = time.process_time() - start
    error = (unit_error(made, asked, noise) * (2 if noise == "laplace" else 1) / asked.count) ** 0.5
    _print(f"{size:,} cells, {kind}, {name}, {noise}", error, bar, planned)


def marginals(what: str, sizes: tuple[int, ...], orders: range, bar: float | None, direct: bool = True) -> None:
    tables = tuple(
        AskedTable(chosen, ("each",) * order) for order in orders for chosen in combinations(range(len(sizes)), order)
    )
    for strategy in ("direct", "residual") if direct else ("residual",):
        start = time.process_time()
        (design,) = designs(sizes, tables, strategy, "gaussian")
        planned = time.process_time() - start
        _print(
            f"{what}, {strategy}",
            (design.error() / len(tables)) ** 0.5,
            bar if strategy == "residual" else None,
            planned,
        )


def _print(what: str, error: float, bar: float | None, planned: float) -> None:
    said = "" if bar is None else f"{'holds' if error <= bar else 'MISSED'}: at most {bar}"
    print(f"{what:<58} {error:>9.4f}   planned in {planned:6.2f} s   {said}", flush=True)


if __name__ == "__main__":
    main()
