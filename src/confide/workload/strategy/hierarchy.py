"""A tree of stretches, each of `branching` smaller ones, with a whole weight for each level ([Hay2010], [Qardaji2013]).

Least squares on a tree needs two passes: upward every node becomes the best estimate from its own subtree, downward
what is left over is shared among children by their variances. Both are linear, so the coefficients of an answer follow
from the weights alone: off the way to the ends of a stretch they only shrink from parent to child.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from confide.workload.strategy.line import AskedLine, Floats, Integers, Kind, NoiseKind, Norms, unit_error

WEIGHT_BITS: Final = 10
NEAREST: Final = 2
BRANCHINGS: Final = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class _Level:
    """The nodes of one level: how far they reach, and what the two passes do at each."""

    width: int
    weight: int
    own: Floats
    """The share of a node's own measurement in the upward estimate (1 at the leaves)."""
    share: Floats
    """The share of what is left over at the parent that goes to this node."""
    before: Floats
    """Σ of `share` over the siblings before this node."""
    second: Floats
    """Σ over the subtree of squared coefficients, for a coefficient of 1 on the upward estimate."""
    fourth: Floats

    @property
    def count(self) -> int:
        return len(self.own)


@dataclass(frozen=True)
class TreeLine:
    """Nodes of all levels from the root down, each times its level's weight; a level of weight 0 is not measured."""

    size: int
    branching: int
    weights: tuple[int, ...]
    name: str = "hierarchy"

    def __post_init__(self) -> None:
        if self.weights[-1] <= 0 or min(self.weights) < 0:
            raise ValueError("the weights of a tree are not negative, and the leaves are measured")
        if self.branching ** (len(self.weights) - 1) < self.size:
            raise ValueError("the levels of a tree reach every cell")

    @property
    def factors(self) -> Integers | None:
        return None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many cells a node of each level covers."""
        depth = len(self.weights) - 1
        return tuple(self.branching ** (depth - level) for level in range(depth + 1))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many nodes of each level cover any cell."""
        return tuple(-(-self.size // width) for width in self.widths)

    @property
    def rows(self) -> int:
        return sum(count for count, weight in zip(self.counts, self.weights, strict=True) if weight)

    @cached_property
    def norms(self) -> Norms:
        """Every cell is in one node of each level. Nothing is negative, so no inner product is."""
        root = self.weights[0]
        squares = sum(weight * weight for weight in self.weights)
        return Norms(sum(self.weights), Fraction(squares), Fraction(root * root), max(self.weights))

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        levels: list[_Level] = []
        variance = np.full(self.size, 1 / self.weights[-1] ** 2)
        own = np.ones(self.size)
        second, fourth = variance.copy(), np.full(self.size, 1 / self.weights[-1] ** 4)
        for place in range(len(self.weights) - 1, -1, -1):
            parents = self.counts[place - 1] if place else 1
            begins = np.arange(parents) * (self.branching if place else 1)
            below = np.add.reduceat(variance, begins)
            parent = np.arange(len(variance)) // (self.branching if place else 1)
            share = variance / below[parent]
            running = np.cumsum(share)
            before = running - share - (running[begins] - share[begins])[parent]
            levels.append(_Level(self.widths[place], self.weights[place], own, share, before, second, fourth))
            if place:
                weight = self.weights[place - 1]
                own = below / (below + 1 / weight**2) if weight else np.zeros(parents)
                rest = 1 - own
                variance = below * rest
                inside = [np.add.reduceat(powers, begins) for powers in (second, fourth)]
                mine = own / weight if weight else own
                second, fourth = mine**2 + rest**2 * inside[0], mine**4 + rest**4 * inside[1]
        return tuple(reversed(levels))

    def _sums(self, values: Floats | Integers) -> list[Floats | Integers]:
        """Of every level, the sums over its nodes."""
        sums = []
        for width in self.widths:
            begins = np.arange(0, self.size, width)
            sums.append(np.add.reduceat(values, begins, axis=0))
        return sums

    def measure(self, counts: Integers) -> Integers:
        sums = self._sums(counts)
        return np.concatenate([own * weight for own, weight in zip(sums, self.weights, strict=True) if weight])

    def estimate(self, measured: Floats) -> Floats:
        parts = self._parted(measured)
        upward: list[Floats] = [np.zeros(0)] * len(parts)
        for place in range(len(parts) - 1, -1, -1):
            level = self._levels[place]
            if place == len(parts) - 1:
                upward[place] = parts[place] / level.weight
                continue
            below = self._gathered(upward[place + 1], place)
            own = _tall(level.own, measured)
            upward[place] = (1 - own) * below + (own * parts[place] / level.weight if level.weight else 0.0)
        found = upward[0]
        for place in range(1, len(parts)):
            left = found - self._gathered(upward[place], place - 1)
            found = upward[place] + _tall(self._levels[place].share, measured) * self._handed(left, place)
        return found

    def coefficients(self, query: Floats) -> Floats:
        levels = self._levels
        wanted: list[Floats] = [query]
        for place in range(len(levels) - 1, 0, -1):
            wanted.append(self._gathered(wanted[-1] * _tall(levels[place].share, query), place - 1))
        wanted.reverse()
        reach = wanted[0]
        parts = []
        for place, level in enumerate(levels):
            if place:
                parent = 1 - _tall(levels[place - 1].own, query)
                reach = wanted[place] + self._handed(parent * reach - wanted[place - 1], place)
            if level.weight:
                parts.append(reach * _tall(level.own, query) / level.weight)
        return np.concatenate(parts)

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        from confide.workload.strategy.hierarchy_spread import tree_spread  # noqa: PLC0415  it looks at what this is

        return tree_spread(self, starts, stops, fourth)

    def _parted(self, measured: Floats) -> list[Floats]:
        parts, begin = [], 0
        for count, weight in zip(self.counts, self.weights, strict=True):
            parts.append(measured[begin : begin + count] if weight else measured[:0])
            begin += count if weight else 0
        return parts

    def _gathered(self, values: Floats, place: int) -> Floats:
        """Sums over the children of every node of a level."""
        found: Floats = np.add.reduceat(values, np.arange(self.counts[place]) * self.branching, axis=0)
        return found

    def _handed(self, values: Floats, place: int) -> Floats:
        """Of every node of a level what its parent has."""
        return values[np.arange(self.counts[place]) // self.branching]


def _tall(values: Floats, like: Floats) -> Floats:
    """Shaped so that it multiplies along the first axis."""
    return values.reshape(-1, *([1] * (like.ndim - 1)))


def tree_for(asked: AskedLine, noise: NoiseKind) -> TreeLine:
    """The tree with the least error of all branchings, each with the best weights of its levels.

    What a branching would give if its tree were full is known in closed form; the nearest few are compared exactly.
    """
    branchings = [own for own in BRANCHINGS if own == 2 or own < 2 * asked.size]
    made = [_weighted(asked, noise, branching) for branching in branchings]
    nearest = sorted(made, key=lambda pair: pair[0])[:NEAREST]
    trees = [tree for _, tree in nearest]
    return trees[0] if len(trees) == 1 else min(trees, key=lambda tree: unit_error(tree, asked, noise))


def _weighted(asked: AskedLine, noise: NoiseKind, branching: int) -> tuple[float, TreeLine]:
    """A tree, and the error it would have if it were full."""
    depth = 0
    while branching**depth < asked.size:
        depth += 1
    widths = [branching ** (depth - level) for level in range(depth + 1)]
    needs = contrast_needs(asked, widths)
    weights = gaussian_weights(needs, widths) if noise == "gaussian" else laplace_weights(needs, widths)
    scale = 2**WEIGHT_BITS / max(weights)
    whole = [round(weight * scale) for weight in weights]
    whole[-1] = max(whole[-1], 1)
    whole_weights = np.array(whole, dtype=np.float64)
    precision = np.cumsum((whole_weights**2 * np.array(widths))[::-1])[::-1]
    norm = (whole_weights**2).sum() if noise == "gaussian" else whole_weights.sum() ** 2
    return float((needs / precision).sum() * norm), TreeLine(asked.size, branching, tuple(whole))


def contrast_needs(asked: AskedLine, widths: list[int]) -> Floats:
    """How much of all that is asked lies in the differences within each level: Σ over answers of ‖P·q‖²."""
    energy = np.array([sum(_energy(kind, asked.size, width) for kind in asked.kinds) for width in widths])
    return np.maximum(np.diff(energy, prepend=0.0), 0.0)


def _energy(kind: Kind, size: int, width: int) -> float:
    """Σ over the answers of a kind, and over the stretches of a width, of overlap²/width."""
    if kind == "total":
        return float(size * size / (width * -(-size // width)))
    if kind == "each":
        return size / width
    if kind == "prefix":
        stops = np.arange(1, size + 1, dtype=np.float64)
        left = stops % width
        return float((stops - left + left * left / width).sum())
    begins = np.arange(0, size, width, dtype=np.float64)
    inside = np.minimum(width, size - begins)
    ways = (begins + 1) * (size - begins - inside + 1)
    ends = begins + size - begins - inside + 2
    part = (inside - 1) * inside * (2 * inside - 1) / 6
    strict = (inside - 1) * part - ((inside - 1) * inside / 2) ** 2
    return float((inside**2 * ways + ends * part + strict).sum() / width)


def gaussian_weights(needs: Floats, widths: list[int]) -> list[float]:
    """The best weights in closed form: λ of each level's differences is proportional to √(need / price)."""
    price = 1 / np.array(widths, dtype=np.float64)
    price = np.diff(price, prepend=0.0)
    # Weights are not negative, so λ falls from level to level: levels that would break this are pooled.
    pools: list[tuple[float, float, int]] = []
    for need, cost in zip(needs, price, strict=True):
        pools.append((float(need), float(cost), 1))
        while len(pools) > 1 and pools[-1][0] * pools[-2][1] >= pools[-2][0] * pools[-1][1]:
            later, earlier = pools.pop(), pools.pop()
            pools.append((earlier[0] + later[0], earlier[1] + later[1], earlier[2] + later[2]))
    lambdas = np.concatenate([np.full(count, np.sqrt(need / cost)) for need, cost, count in pools])
    squares = (lambdas - np.append(lambdas[1:], 0.0)) / np.array(widths)
    return [float(weight) for weight in np.sqrt(np.maximum(squares, 0.0))]


def laplace_weights(needs: Floats, widths: list[int]) -> list[float]:
    """The best weights for noise by the L1 norm, found numerically: any weights are a strategy."""
    from scipy.optimize import minimize  # noqa: PLC0415  heavy, and loaded when used

    spans = np.array(widths, dtype=np.float64)

    def error(logs: Floats) -> float:
        weights = np.exp(logs)
        precision = np.cumsum((weights**2 * spans)[::-1])[::-1]
        return float(2 * np.log(weights.sum()) + np.log((needs / precision).sum()))

    start = np.zeros(len(widths))
    found = minimize(error, start, method="L-BFGS-B", bounds=[(-12, 3)] * len(widths))
    weights = np.exp(found.x)
    weights[weights < weights.max() * 2.0 ** -(WEIGHT_BITS + 1)] = 0.0
    return [float(weight) for weight in weights]
