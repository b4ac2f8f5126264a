"""Generated populations for measuring synthesis: columns that depend on each other, as those of real tables do."""

import numpy as np
from numpy.typing import NDArray

ADULT_LIKE = (74, 9, 90, 16, 7, 15, 6, 5, 2, 100, 90, 96, 40, 2)
LOANS_LIKE = (1500, 1500, 421, *([2] * 8), *([5] * 10), *([12] * 10), *([40] * 10), *([60] * 7))
"""48 columns with 4,427 places."""


def population(rows: int, sizes: tuple[int, ...], seed: int) -> NDArray[np.int64]:
    """Codes of made-up rows: each column follows from one or two earlier ones, mixed with a skewed law of its own."""
    generator = np.random.default_rng(seed)
    codes = np.zeros((rows, len(sizes)), dtype=np.int64)
    for column, size in enumerate(sizes):
        skew = generator.uniform(0.5, 1.8)
        shares = generator.permutation((np.arange(size) + 1.0) ** -skew)
        own = generator.choice(size, rows, p=shares / shares.sum())
        if column:
            parents = generator.choice(column, min(2, column), replace=False)
            mixed = sum(codes[:, parent] * int(generator.integers(1, 50)) for parent in parents)
            # A table from what the parents hold to a place: the dependence that a model has to find.
            table = generator.choice(size, 997, p=shares / shares.sum())
            follows = generator.random(rows) < generator.uniform(0.1, 0.7)
            own = np.where(follows, table[mixed % 997], own)
        codes[:, column] = own
    return codes


def names(sizes: tuple[int, ...]) -> list[str]:
    return [f"c{place:02d}" for place in range(len(sizes))]
