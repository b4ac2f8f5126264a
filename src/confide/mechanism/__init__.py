"""Noise on exact integers, and intervals for what comes out."""

from confide.mechanism.interval.interval import Assumes, Interval, Intervals
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.interval.moments import deviation_intervals, variance_estimates, variance_intervals
from confide.mechanism.interval.ratio import ratio_estimates, ratio_intervals
from confide.mechanism.noise.additive import Additive, Measurement, exact, gaussian, laplace
from confide.mechanism.noise.coin import bernoulli_exponential, uniform_below
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from confide.mechanism.noise.randomness import KernelRandomness, Randomness, TestRandomness
from confide.mechanism.noise.sampler import draw
from confide.mechanism.selection.threshold import KeyThreshold, ReleasedKeys, gaussian_key_threshold, key_threshold

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
    "gaussian_key_threshold",
    "key_threshold",
    "laplace",
    "ratio_estimates",
    "ratio_intervals",
    "uniform_below",
    "variance_estimates",
    "variance_intervals",
]
