"""What is fitted: noisy answers with the laws of their noise, and what is known besides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from confide.errors import ParameterError
from confide.fit.group import CellDomain, Floats, Group, Mask
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace

NoiseLaw = DiscreteLaplace | DiscreteGaussian

LARGEST_ANSWER: Final = 1e15  # beyond, doubles no longer hold every count
SMALLEST_VARIANCE: Final = 1e-9  # weights of answers next to exact ones would overflow


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredGroup:
    """A group of queries, their noisy answers, and the law of the noise on each of them."""

    group: Group
    answers: Floats
    law: NoiseLaw

    @property
    def variance(self) -> float:
        """An upper bound, for weights."""
        return max(float(self.law.variance), SMALLEST_VARIANCE)


@dataclass(frozen=True, slots=True, eq=False)
class Public:
    """What holds without noise: cells that cannot be (structural zeros), and totals that everybody knows."""

    zeros: Mask | None = None
    totals: tuple[tuple[Group, Floats], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class FitProblem:
    """Measurements over one domain. Built wrong, it refuses; built, every method succeeds on it."""

    domain: CellDomain
    measured: tuple[MeasuredGroup, ...]
    public: Public = Public()

    def __post_init__(self) -> None:
        if not self.measured:
            raise ParameterError("there is nothing to fit: no measurement was given")
        flat = []
        for place, item in enumerate(self.measured):
            answers = _flat(item.answers, item.group.count(self.domain), f"measurement {place}")
            if not isinstance(item.law, DiscreteLaplace | DiscreteGaussian):
                raise ParameterError(f"measurement {place} must have Laplace or Gaussian noise; got {item.law!r}")
            flat.append(MeasuredGroup(item.group, answers, item.law))
        object.__setattr__(self, "measured", tuple(flat))
        object.__setattr__(self, "public", _checked(self.domain, self.public))

    def again(self, answers: Sequence[Floats]) -> "FitProblem":
        """The same queries with other answers."""
        pairs = zip(self.measured, answers, strict=True)
        return replace(self, measured=tuple(MeasuredGroup(item.group, new, item.law) for item, new in pairs))


def _flat(values: Floats, count: int, name: str) -> Floats:
    flat = np.asarray(values, dtype=np.float64).ravel()
    if len(flat) != count:
        raise ParameterError(f"{name} needs {count:,} numbers; got {len(flat):,}")
    if not np.isfinite(flat).all() or np.abs(flat).max(initial=0) > LARGEST_ANSWER:
        raise ParameterError(f"{name} holds something that is not a number below 10¹⁵")
    return flat


def _checked(domain: CellDomain, public: Public) -> Public:
    zeros = public.zeros
    if zeros is not None:
        zeros = np.asarray(zeros, dtype=bool).ravel()
        if len(zeros) != domain.cells:
            raise ParameterError(
                f"structural zeros need one flag for each of {domain.cells:,} cells; got {len(zeros):,}"
            )
        if zeros.all():
            raise ParameterError("every cell is a structural zero: there is nothing to fit")
        zeros = zeros if zeros.any() else None
    totals = []
    for place, (group, values) in enumerate(public.totals):
        flat = _flat(values, group.count(domain), f"public total {place}")
        if (flat < 0).any():
            raise ParameterError(f"public total {place} holds a negative count")
        totals.append((group, flat))
    return Public(zeros, tuple(totals))
