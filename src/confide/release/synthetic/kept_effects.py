"""What the parts of marginals tell, kept with synthetic data: any marginal of which all parts were measured follows.

The part of some columns is their marginal without its means along each column. Cells of a marginal are sums of the
parts of all its sets of columns, each spread evenly over the columns it lacks; the noise of a part is the same along
every contrast of length 1, so that the variance of any sum of cells is known.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import DiscreteGaussian
from confide.mechanism.interval.many import gaussian_factor
from confide.release.block_noise import BlockNoise
from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.helmert import HelmertLine

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class KeptEffect:
    """The part of some columns, an axis each, with exact discrete Gaussian noise."""

    columns: tuple[int, ...]
    counts: Floats
    variance: float
    """Of every contrast of length 1."""
    least: float
    """The least variance of the integers that it was made of, in their own unit."""


@dataclass(frozen=True, eq=False)
class KeptEffects:
    """All parts that were measured at once."""

    effects: tuple[KeptEffect, ...]

    @cached_property
    def _by_columns(self) -> dict[tuple[int, ...], KeptEffect]:
        return {own.columns: own for own in self.effects}

    def parts(self, columns: Sequence[int]) -> list[KeptEffect] | None:
        """Those of all sets within some columns; None if one is missing."""
        ordered = sorted(columns)
        sets = [part for order in range(len(ordered) + 1) for part in combinations(ordered, order)]
        found = [self._by_columns.get(part) for part in sets]
        return None if None in found else [own for own in found if own is not None]

    @property
    def largest(self) -> list[tuple[int, ...]]:
        """The largest sets of columns whose marginals follow."""
        known = [own.columns for own in self.effects if own.columns and self.parts(own.columns) is not None]
        return [own for own in known if not any(set(own) < set(other) for other in known)]

    def marginal(self, columns: tuple[int, ...], sizes: Sequence[int]) -> tuple[Floats, float]:
        """The cells of a marginal of increasing columns, and the variance of each: the same for all."""
        parts = self.parts(columns)
        assert parts is not None
        cells = np.zeros(tuple(sizes[column] for column in columns))
        variance = 0.0
        for own in parts:
            rest = prod(sizes[column] for column in columns if column not in own.columns)
            shape = [sizes[column] if column in own.columns else 1 for column in columns]
            cells = cells + own.counts.reshape(shape) / rest
            kept = prod((sizes[column] - 1) / sizes[column] for column in own.columns)
            variance += own.variance * kept / rest**2
        return cells, variance

    def sums(self, columns: Sequence[int], weights: Floats) -> tuple[Floats, Floats] | None:
        """Sums of cells of a marginal, each with weights of its own along the first axis, and their variances."""
        parts = self.parts(columns)
        if parts is None:
            return None
        values, variances = np.zeros(len(weights)), np.zeros(len(weights))
        order = sorted(range(len(columns)), key=lambda axis: columns[axis])
        turned = np.transpose(weights, (0, *(axis + 1 for axis in order)))
        ordered = [columns[axis] for axis in order]
        for own in parts:
            away = tuple(axis + 1 for axis, column in enumerate(ordered) if column not in own.columns)
            mean = turned.mean(axis=away) if away else turned
            values += (mean * own.counts).reshape(len(weights), -1).sum(axis=1)
            for axis in range(1, mean.ndim):
                mean = mean - mean.mean(axis=axis, keepdims=True)
            variances += own.variance * (mean**2).reshape(len(weights), -1).sum(axis=1)
        return values, variances

    def half_widths(self, variances: Floats, confidence: float) -> Floats:
        """See `mechanism.interval.many`: sums of discrete Gaussians with any coefficients."""
        factor = gaussian_factor(min(own.least for own in self.effects), confidence)
        found: Floats = factor * np.sqrt(variances * (1 + 1e-9))
        return found

    @property
    def deviation(self) -> float:
        return sqrt(max(own.variance for own in self.effects))


NO_EFFECTS = KeptEffects(())


def effects_of(
    blocks: Sequence[ProductBlock],
    noises: Sequence[BlockNoise],
    told: Sequence[MeasuredMarginal | MeasuredEffect],
    sizes: Sequence[int],
) -> KeptEffects:
    """Those parts that were measured by Helmert rows with Gaussian noise, all of whose contrasts have one variance."""
    found = []
    for block, noise, part in zip(blocks, noises, told, strict=True):
        plain = all(isinstance(line, HelmertLine) for line in block.lines)
        if plain and isinstance(part, MeasuredEffect) and isinstance(noise.law, DiscreteGaussian):
            shape = tuple(sizes[column] for column in block.columns)
            variance = noise.variance / block.fineness**2
            found.append(KeptEffect(block.columns, part.counts.reshape(shape), variance, noise.variance))
    return KeptEffects(tuple(found))


def effects_facts(kept: KeptEffects) -> list[dict[str, Any]]:
    return [{"columns": list(own.columns), "variance": own.variance, "least": own.least} for own in kept.effects]


def effects_bytes(kept: KeptEffects) -> bytes:
    flat = [own.counts.reshape(-1) for own in kept.effects] or [np.zeros(0)]
    return zlib.compress(np.concatenate(flat).astype("<f8").tobytes(), 6)


def kept_effects(facts: Iterable[Mapping[str, Any]], stored: bytes, sizes: Sequence[int], most: int) -> KeptEffects:
    """What `effects_facts` and `effects_bytes` say, of at most so many bytes."""
    listed = list(facts)
    if not listed:
        return NO_EFFECTS
    shapes = [tuple(sizes[int(column)] for column in own["columns"]) for own in listed]
    engine = zlib.decompressobj()
    content = engine.decompress(stored, most)
    values = np.frombuffer(content, "<f8").astype(np.float64)
    if not engine.eof or len(values) != sum(map(prod, shapes)) or not np.all(np.isfinite(values)):
        raise ValueError("numbers that are not those of the parts")
    parts = np.split(values, np.cumsum([prod(shape) for shape in shapes])[:-1])
    return KeptEffects(
        tuple(
            KeptEffect(
                tuple(map(int, own["columns"])), part.reshape(shape), float(own["variance"]), float(own["least"])
            )
            for own, part, shape in zip(listed, parts, shapes, strict=True)
        )
    )
