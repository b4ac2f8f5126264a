"""Our samplers against the exact probabilities, and against opendp's.

The ordinary runs are seeded, so they pass or fail for good; were the seed drawn, each would fail once in 10,000 times.
The audits draw from the kernel and each fails once in a million times by chance.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, KernelRandomness, TestRandomness
from confide.mechanism.noise.handful import few
from confide.mechanism.noise.sampler import vectorised
from tests.conformance.exact_law import tails
from tests.conformance.opendp_noise import opendp_draws
from tests.statistical.goodness import against_sample, against_tails, p_value

LAWS = [
    DiscreteLaplace(Fraction(1, 5)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(22, 7)),
    DiscreteLaplace(Fraction(16)),  # the last with one table
    DiscreteLaplace(Fraction(16) + Fraction(1, 10)),  # the first with digits
    DiscreteLaplace(Fraction(100, 3)),
    DiscreteLaplace(Fraction(12345)),
    DiscreteLaplace(Fraction(10**12, 7)),
    DiscreteGaussian(Fraction(1, 5)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(22, 7)),
    DiscreteGaussian(Fraction(100)),
    DiscreteGaussian(Fraction(128**2)),  # the last with one table
    DiscreteGaussian(Fraction(128**2) + Fraction(1, 10)),  # the first with blocks
    DiscreteGaussian(Fraction(10**6, 7)),
    DiscreteGaussian(Fraction(12345**2)),
    DiscreteGaussian(Fraction(10**24, 7)),
]
WIDE = [
    DiscreteLaplace(Fraction(10**18)),
    DiscreteLaplace(Fraction(10**30, 3)),
    DiscreteGaussian(Fraction(10**36)),
    DiscreteGaussian(Fraction(10**60, 3)),
]
SAMPLERS = pytest.mark.parametrize("sampler", [vectorised, few], ids=["tables", "handful"])
ON_DOUBLES = [
    DiscreteLaplace(Fraction(0.3)),
    DiscreteLaplace(Fraction(10)),
    DiscreteLaplace(Fraction(19.7)),
    DiscreteGaussian(Fraction(0.7) ** 2),
    DiscreteGaussian(Fraction(10) ** 2),
    DiscreteGaussian(Fraction(33.3) ** 2),
]


def _tail(law, edge):
    """P(X > edge), from exact sums, the closed form, or for a very wide Gaussian the normal limit (off by 0.05/σ²)."""
    if isinstance(law, DiscreteLaplace):
        return math.exp(-(edge + 1) / law.scale) / (1 + math.exp(-1 / law.scale))
    if law.variance < 10**6:
        exact = tails(law)
        return float(exact[edge]) if edge < len(exact) else 0.0
    return float(norm.sf((edge + 0.5) / math.sqrt(law.variance)))


def _edges(law, size):
    """Edges that cut each side into at most forty cells, every one expecting at least ten."""
    spread = float(law.variance) ** 0.5
    candidates = sorted({int(spread * step / 10) for step in range(100)} | set(range(3)))
    edges, last = [], 0.5
    for edge in candidates:
        tail = _tail(law, edge)
        if last - tail > 10 / size and tail > 10 / size:
            edges.append(edge)
            last = tail
    return edges or [0]


def _fit(law, sample):
    edges = _edges(law, len(sample))
    return against_tails(sample, edges, [_tail(law, edge) for edge in edges])


@SAMPLERS
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_exact_law(law, sampler):
    assert _fit(law, sampler(law, 200_000, TestRandomness(11))) > 1e-4


@pytest.mark.parametrize("law", WIDE, ids=str)
def test_wide_draws_follow_the_exact_law(law):
    assert _fit(law, vectorised(law, 20_000, TestRandomness(12))) > 1e-4


@SAMPLERS
@pytest.mark.parametrize("law", [*LAWS[5:8], *LAWS[14:], *WIDE], ids=str)
def test_the_low_digits_of_wide_draws_are_uniform(law, sampler):
    """The law is flat over sixteen neighbours, so that the last four bits of a draw are fair."""
    if law in WIDE and sampler is few:
        pytest.skip("a handful is of scales up to 2^50")
    size = 20_000 if law in WIDE else 200_000
    modulus = 16 if law.variance > 10**8 else 4
    residues = np.bincount((sampler(law, size, TestRandomness(13)) % modulus).astype(np.int64), minlength=modulus)
    if law.variance > 1e5:
        assert p_value(residues, np.full(modulus, size / modulus)) > 1e-4


@SAMPLERS
@pytest.mark.parametrize("law", ON_DOUBLES, ids=str)
def test_draws_agree_with_opendp(law, sampler):
    """opendp is not seeded: a false alarm once in 10⁹ runs."""
    assert against_sample(sampler(law, 20_000, TestRandomness(14)), opendp_draws(law, 20_000)) > 1e-9


def test_the_chi_square_test_can_fail():
    law = DiscreteGaussian(Fraction(100))
    sample = vectorised(law, 200_000, TestRandomness(15))
    continuous = np.rint(np.random.default_rng(1).normal(0, 10, 200_000)).astype(np.int64)
    wider = vectorised(DiscreteGaussian(Fraction(106)), 200_000, TestRandomness(16))
    without_zero = np.where(sample == 0, 1, sample)
    one_sided = np.where(np.abs(sample) > 25, np.abs(sample), sample)
    assert _fit(law, wider) < 1e-4
    assert _fit(law, without_zero) < 1e-4
    assert _fit(law, one_sided) < 1e-4
    assert against_sample(sample, wider) < 1e-4
    small = DiscreteGaussian(Fraction(1, 5))
    rounded = np.rint(np.random.default_rng(1).normal(0, 0.2**0.5, 200_000)).astype(np.int64)
    assert _fit(small, rounded) < 1e-4
    assert _fit(law, continuous) > 1e-4  # at σ = 10 rounding is not seen; the pmf audit is for that


def _by_handfuls(law, count):
    """So many draws, 1,000 or so at a time, as `draw` makes them."""
    return np.concatenate([few(law, 1000, KernelRandomness()) for _ in range(count // 1000)])


@pytest.mark.audit
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_audit_draws_follow_the_exact_law(law):
    assert _fit(law, vectorised(law, 10**7, KernelRandomness())) > 1e-6
    assert _fit(law, _by_handfuls(law, 10**7)) > 1e-6


@pytest.mark.audit
@pytest.mark.parametrize("law", [ON_DOUBLES[1], ON_DOUBLES[4]], ids=str)
def test_audit_ten_million_draws_agree_with_opendp(law):
    theirs = np.concatenate([opendp_draws(law, 10**5) for _ in range(100)])
    assert against_sample(vectorised(law, 10**7, KernelRandomness()), theirs) > 1e-6
    assert _fit(law, theirs) > 1e-6


@pytest.mark.audit
@pytest.mark.parametrize("law", ON_DOUBLES, ids=str)
def test_audit_a_million_draws_agree_with_opendp(law):
    theirs = np.concatenate([opendp_draws(law, 10**5) for _ in range(10)])
    assert against_sample(vectorised(law, 10**6, KernelRandomness()), theirs) > 1e-6
    assert against_sample(_by_handfuls(law, 10**6), theirs) > 1e-6
    assert _fit(law, theirs) > 1e-6
