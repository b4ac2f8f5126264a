"""Noise on exact integers, and intervals for what comes out."""

from confide.mechanism.additive import Additive, exact, gaussian, laplace
from confide.mechanism.coin import bernoulli_exponential, uniform_below
from confide.mechanism.interval import Assumes, Interval, Intervals
from confide.mechanism.law import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from confide.mechanism.linear import combined_half_width
from confide.mechanism.measurement import Measurement
from confide.mechanism.moments import deviation_intervals, variance_estimates, variance_intervals
from confide.mechanism.randomness import KernelRandomness, Randomness, TestRandomness
from confide.mechanism.ratio import ratio_estimates, ratio_intervals
from confide.mechanism.sampler import draw
from confide.mechanism.threshold import KeyThreshold, ReleasedKeys, key_threshold

__all__ = [
    "Additive",
    "Assumes",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Interval",
    "Intervals",
    "KernelRandomness",
    "KeyThreshold",
    "Law",
    "Measurement",
    "NoNoise",
    "Randomness",
    "ReleasedKeys",
    "TestRandomness",
    "bernoulli_exponential",
    "combined_half_width",
    "deviation_intervals",
    "draw",
    "exact",
    "gaussian",
    "key_threshold",
    "laplace",
    "ratio_estimates",
    "ratio_intervals",
    "uniform_below",
    "variance_estimates",
    "variance_intervals",
]
