"""Noise from opendp's proven samplers: a reference that ours are compared with.

On 64-bit integers opendp takes its scale as a double, turns it into the rational number that the double is, samples
exactly (Canonne, Kamath and Steinke 2020) and saturates. So it draws exactly our law when the scale is a double; any
other scale, and scales so large that saturation could be seen, are not for it.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace

LARGEST_SCALE: Final = 2**40  # exp(-2^22) bounds the chance of saturation

enable_features("contrib")


def opendp_draws(law: DiscreteLaplace | DiscreteGaussian, count: int) -> NDArray[np.int64] | None:
    """`count` draws of the law, or None if opendp cannot draw exactly this law."""
    measurement = _measurement(law)
    return None if measurement is None else np.array(measurement([0] * count), dtype=np.int64)


@lru_cache(maxsize=256)
def _measurement(law: DiscreteLaplace | DiscreteGaussian) -> Any:
    scale = _double(law.scale if isinstance(law, DiscreteLaplace) else _square_root(law.variance))
    if scale is None:
        return None
    domain = vector_domain(atom_domain(T="i64"))
    if isinstance(law, DiscreteLaplace):
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale=scale)


def _square_root(value: Fraction) -> Fraction | None:
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else None


def _double(value: Fraction | None) -> float | None:
    if value is None or value >= LARGEST_SCALE:
        return None
    double = float(value)
    return double if Fraction(double) == value else None
