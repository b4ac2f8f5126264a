"""How fast noise is drawn and intervals are made: each figure beside its bar, where it has one.

Run as `python -m bench.noise`. Every time is the least of a few runs, taken side by side in one process.
"""

import math
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from tests.conformance.opendp_noise import opendp_draws

from confide.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    KernelRandomness,
    draw,
    ratio_intervals,
    variance_intervals,
)

DRAWS = 10**7
OPENDP_DRAWS = 20_000
LAWS: list[tuple[str, DiscreteGaussian | DiscreteLaplace]] = [
    ("discrete Gaussian, σ = 10", DiscreteGaussian(Fraction(100))),
    ("discrete Gaussian, σ = 100", DiscreteGaussian(Fraction(10**4))),
    ("discrete Gaussian, σ = 10⁶", DiscreteGaussian(Fraction(10**12))),
    ("discrete Laplace, scale 2", DiscreteLaplace(Fraction(2))),
    ("discrete Laplace, scale 10⁶", DiscreteLaplace(Fraction(10**6))),
]


def fastest(run: Callable[[], object], repeats: int = 5) -> float:
    """The least time in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def line(what: str, figure: str, bar: str = "") -> None:
    print(f"{what:<58} {figure:>22}   {bar}")


def draws() -> None:
    normal = fastest(lambda: np.random.default_rng().standard_normal(DRAWS))
    line(f"numpy standard_normal, {DRAWS:,} draws", f"{normal:.3f} s")
    source = KernelRandomness()
    for name, law in LAWS:
        ours = fastest(lambda law=law: draw(law, DRAWS, source), 3)  # type: ignore[misc]
        bar = f"{'holds' if ours <= 20 * normal else 'MISSED'}: at most 20 x" if name.endswith("σ = 10") else ""
        line(f"{name}, {DRAWS:,} draws", f"{ours:.3f} s = {ours / normal:.1f} x", bar)
    for name, law in (LAWS[0], LAWS[3]):
        theirs = fastest(lambda law=law: opendp_draws(law, OPENDP_DRAWS), 1)  # type: ignore[misc]
        line(f"opendp, {name}, {OPENDP_DRAWS:,} draws", f"{OPENDP_DRAWS / theirs:,.0f} a second")


def memory() -> None:
    tracemalloc.start()
    drawn = draw(LAWS[0][1], DRAWS, KernelRandomness())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    beyond = (peak - drawn.nbytes) / 2**20
    line(
        "memory beyond the draws themselves",
        f"{beyond:.1f} MiB",
        f"{'holds' if beyond < 32 else 'MISSED'}: blocks, below 32",
    )


def few() -> None:
    """20 draws of laws that were never seen before, as each question has them, beside opendp with its set-up."""
    source = KernelRandomness()
    for name, law in LAWS:
        fresh = iter([_moved(law, Fraction(step, 64)) for step in range(200)])
        ours = fastest(lambda fresh=fresh: draw(next(fresh), 20, source), 50)  # type: ignore[misc]
        theirs = fastest(lambda fresh=fresh: opendp_draws(next(fresh), 20), 50)  # type: ignore[misc]
        line(f"20 draws of a new {name}", f"{1000 * ours:.2f} ms", f"opendp {1000 * theirs:.2f} ms")


def _moved(law: DiscreteGaussian | DiscreteLaplace, step: Fraction) -> DiscreteGaussian | DiscreteLaplace:
    """A law beside another, with a scale, or a σ, that is a double, which opendp needs."""
    if isinstance(law, DiscreteLaplace):
        return DiscreteLaplace(law.scale + step)
    return DiscreteGaussian((math.isqrt(int(law.variance)) + step) ** 2)


def intervals() -> None:
    counts_law, sums_law = DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(4 * 250_000))
    squares_law = DiscreteLaplace(Fraction(4 * 250_000**2))
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 10**5, 10**4)
    sums = counts * generator.integers(-200_000, 200_000, 10**4)
    squares = counts * 2 * 10**10

    def means(cells: int, confidence: float = 0.95) -> None:
        ratio_intervals(sums[:cells], counts[:cells], sums_law, counts_law, confidence, low=-250_000, high=250_000)

    fresh = iter(np.linspace(0.9, 0.99, 20))
    line(
        "a first mean of a new pair of laws",
        f"{1000 * fastest(lambda: means(1, float(next(fresh)))):.1f} ms",
        "about 10",
    )
    line("one more mean", f"{1000 * fastest(lambda: means(1), 20):.2f} ms", "about 2")
    line("10,000 means", f"{1000 * fastest(lambda: means(10**4)):.0f} ms", "well under 200")
    laws = (counts_law, sums_law, squares_law)
    variances = fastest(lambda: variance_intervals(counts, sums, squares, laws, 250_000, 0.95), 3)
    line("10,000 variances", f"{1000 * variances:.0f} ms")


def main() -> None:
    draws()
    memory()
    few()
    intervals()


if __name__ == "__main__":
    main()
