"""Forty data sets to try intervals on: generated, so everybody has them. Values lie in DOMAIN."""

import numpy as np

from confide.mechanism.tally import Tally

DOMAIN = (-1_000, 100_000)


def _clip(values):
    return np.clip(np.rint(values), *DOMAIN).astype(np.int64)


def _make():
    generator = np.random.default_rng(20)
    low, high = DOMAIN
    yield "no rows", []
    yield "one row", [17]
    yield "one row at the low end", [low]
    yield "one row at the high end", [high]
    yield "two far rows", [low, high]
    yield "three rows", [5, 6, 90_000]
    for rows in (10, 1_000, 50_000):
        yield f"all equal, {rows}", [4_321] * rows
        yield f"all at the low end, {rows}", [low] * rows
        yield f"all at the high end, {rows}", [high] * rows
    for rows in (40, 2_000, 40_000):
        yield (
            f"two clusters, {rows}",
            np.concatenate([generator.integers(0, 20, rows // 2), generator.integers(80_000, 80_020, rows // 2)]),
        )
        yield f"clusters at the ends, {rows}", [low] * (rows // 2) + [high] * (rows // 2)
        yield f"heavy tail, {rows}", _clip(20 * generator.pareto(1.1, rows))
        yield f"very heavy tail, {rows}", _clip(generator.pareto(0.5, rows))
        yield f"ties everywhere, {rows}", generator.integers(0, 4, rows)
        yield f"lognormal, {rows}", _clip(np.exp(generator.normal(7, 1.5, rows)))
    yield "even", generator.integers(low, high + 1, 5_000)
    yield "narrow", generator.integers(50_000, 50_100, 20_000)
    yield "normal", _clip(generator.normal(40_000, 9_000, 30_000))
    yield "one outlier", [*([10] * 5_000), high]
    yield "half zero", np.concatenate([np.zeros(4_000), generator.integers(1, high, 4_000)]).astype(np.int64)
    yield "unbalanced ties", [1] * 9_000 + [2] * 8_999
    yield "odd and just above half", [0] * 501 + [99_999] * 500


DATA = {name: Tally.of(values) for name, values in _make()}
assert len(DATA) == 40
