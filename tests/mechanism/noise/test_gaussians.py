"""Discrete Gaussians with a variance of their own each: their laws, place by place, and what decides in doubt."""

from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, KernelRandomness, TestRandomness
from confide.mechanism.noise import gaussians as own
from confide.mechanism.noise.gaussians import gaussians
from tests.statistical.goodness import against_tails

VARIANCES = (Fraction(1), Fraction(7, 3), Fraction(40), Fraction(10**5))
HIGH = Fraction(2**70) + Fraction(1, 3)


def drawn(variances: tuple[Fraction, ...], count: int, seed: int) -> np.ndarray:
    flat = np.tile([float(variance) for variance in variances], count)
    found = gaussians(flat, lambda place: variances[place % len(variances)], TestRandomness(seed))
    return found.reshape(count, len(variances))


def fit(variance: Fraction, draws: np.ndarray) -> float:
    law = DiscreteGaussian(variance)
    edges = sorted({int(float(variance) ** 0.5 * step) for step in (0.2, 0.6, 1.1, 1.6, 2.2)})
    return against_tails(draws, edges, [law.tail(edge) for edge in edges])


def test_every_place_has_its_own_law() -> None:
    """The seed is fixed. A true sampler has a p-value below 10⁻⁴ once in 2,500 such tests."""
    draws = drawn(VARIANCES, 60_000, 3)
    for place, variance in enumerate(VARIANCES):
        assert fit(variance, draws[:, place]) > 1e-4
    # The control: of another variance it is seen.
    assert fit(VARIANCES[2] * Fraction(11, 10), draws[:, 2]) < 1e-4


def test_large_variances_have_their_moments_and_low_bits() -> None:
    """Standard errors of 40,000 draws: 0.005 of the mean, 0.007 of the variance, and 0.0025 of a fair bit."""
    draws = drawn((HIGH,), 40_000, 5)[:, 0]
    scaled = draws / float(HIGH) ** 0.5
    assert abs(scaled.mean()) < 0.025
    assert scaled.var() == pytest.approx(1, abs=0.035)
    for bit in range(8):
        assert ((draws >> bit) & 1).mean() == pytest.approx(0.5, abs=0.0125)


def test_exact_arithmetic_decides_as_doubles_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every coin counts as doubtful, rates of fractions decide all: the draws are the same."""
    plain = drawn(VARIANCES, 300, 7)
    monkeypatch.setattr(own, "MARGIN", 50.0)
    monkeypatch.setattr(own, "_geometric", _unmargined(own._geometric, monkeypatch))
    np.testing.assert_array_equal(drawn(VARIANCES, 300, 7), plain)


def _unmargined(geometric: object, monkeypatch: pytest.MonkeyPatch) -> object:
    """Geometric draws by the usual margin: here only coins are looked at."""

    def call(*arguments: object) -> object:
        with monkeypatch.context() as inner:
            inner.setattr(own, "MARGIN", 2.0**-43)
            return geometric(*arguments)  # type: ignore[operator]

    return call


def test_doubtful_geometric_draws_are_decided_by_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = own._geometric(np.full(200, 9.0), TestRandomness(2))
    monkeypatch.setattr(own, "MARGIN", 1.0)
    np.testing.assert_array_equal(own._geometric(np.full(200, 9.0), TestRandomness(2)), plain)


def test_variances_that_the_proof_does_not_hold_for_are_no_variances() -> None:
    for variance in (0.5, 2.0**101):
        with pytest.raises(ValueError, match="variances are from 1"):
            gaussians(np.array([variance]), lambda place: Fraction(1), KernelRandomness())
    assert len(gaussians(np.zeros(0), lambda place: Fraction(1), KernelRandomness())) == 0
