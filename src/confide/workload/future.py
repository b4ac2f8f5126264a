"""How well questions of the future are answered: the experiment of a custodian, on public or generated data."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.workload.counting import Tables, threshold_blocks
from confide.workload.domain import Domain
from confide.workload.features import Interest, draw
from confide.workload.tables import Integers, tables_of
from confide.workload.workload import BoundWorkload, Marks, Workload


@dataclass(frozen=True, slots=True)
class FutureError:
    """The mean over drawn thresholds of the largest error among their counts, as a share of all rows.

    `low` and `high` are the ends of a 95 % interval for the mean over the distribution of thresholds.
    """

    mean: float
    low: float
    high: float
    thresholds: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.low:.4f} to {self.high:.4f}, {self.thresholds} thresholds)"


def future_error(
    tables: Tables,
    domain: Domain,
    codes: Integers,
    interest: Interest,
    k: int,
    r: int | None = None,
    *,
    count: int = 100,
    generator: np.random.Generator,
) -> FutureError:
    """Definition 5.3 of [AventKorolova2023], estimated from `count` thresholds drawn from `interest`.

    `codes` are public rows, the place of each in each column of the domain; `tables` answers as shares of all rows.
    """
    if codes.ndim != 2 or codes.shape[1] != len(domain) or not len(codes):
        raise ParameterError(f"codes must be rows with a place for each of the {len(domain)} columns of the domain")
    drawn = draw(interest, count, k, r, generator=generator)
    bound = [marks for part in drawn.parts for marks in Workload((part,)).bound(domain).thresholds]
    unique = {marks: largest_error(tables, codes, domain.sizes, marks) for marks in set(bound)}
    errors = np.array([unique[marks] for marks in bound])
    half = 1.96 * float(errors.std(ddof=1)) / np.sqrt(len(errors)) if len(errors) > 1 else float("inf")
    mean = float(errors.mean())
    return FutureError(mean, max(0.0, mean - half), mean + half, len(errors))


def largest_error(tables: Tables, codes: Integers, sizes: tuple[int, ...], marks: Marks) -> float:
    """The largest error of a threshold's counts, as a share of all rows."""
    return max(float(errors.max()) for errors in _errors(tables, codes, sizes, marks))


def present_errors(tables: Tables, codes: Integers, workload: BoundWorkload) -> tuple[float, float]:
    """The largest error of all counts, and the mean over thresholds of half their summed absolute errors.

    For marginals the second is the mean total variation.
    """
    largest, halves = 0.0, []
    for marks in workload.thresholds:
        half = 0.0
        for errors in _errors(tables, codes, workload.domain.sizes, marks):
            largest = max(largest, float(errors.max()))
            half += float(errors.sum(dtype=np.float64)) / 2
        halves.append(half)
    return largest, float(np.mean(halves))


def _errors(tables: Tables, codes: Integers, sizes: tuple[int, ...], marks: Marks) -> Iterator[NDArray[np.float64]]:
    exact = tables_of(codes, sizes, (marks.columns,))
    pairs = zip(threshold_blocks(tables, marks), threshold_blocks(exact, marks), strict=True)
    yield from (np.abs(predicted - counts / len(codes)) for (_, predicted), (_, counts) in pairs)
