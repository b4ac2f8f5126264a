"""Noise on exact integers, and intervals for what comes out."""

from confide.mechanism.additive import Additive, exact, gaussian, laplace
from confide.mechanism.coin import bernoulli_exponential, uniform_below
from confide.mechanism.interval import Assumes, Interval, Intervals
from confide.mechanism.law import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from confide.mechanism.measurement import Measurement, Mechanism
from confide.mechanism.randomness import KernelRandomness, Randomness, TestRandomness
from confide.mechanism.sampler import draw

__all__ = [
    "Additive",
    "Assumes",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Interval",
    "Intervals",
    "KernelRandomness",
    "Law",
    "Measurement",
    "Mechanism",
    "NoNoise",
    "Randomness",
    "TestRandomness",
    "bernoulli_exponential",
    "draw",
    "exact",
    "gaussian",
    "laplace",
    "uniform_below",
]
