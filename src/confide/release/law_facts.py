"""Laws of noise as plain values, as results keep them."""

from fractions import Fraction
from typing import assert_never

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Law, NoNoise


def law_facts(law: Law) -> dict[str, str]:
    match law:
        case DiscreteLaplace(scale):
            return {"name": "discrete laplace", "scale": str(scale)}
        case DiscreteGaussian(variance):
            return {"name": "discrete gaussian", "variance": str(variance)}
        case NoNoise():
            return {"name": "exact"}
    assert_never(law)


def law_of(facts: dict[str, str]) -> Law:
    match facts["name"]:
        case "discrete laplace":
            return DiscreteLaplace(Fraction(facts["scale"]))
        case "discrete gaussian":
            return DiscreteGaussian(Fraction(facts["variance"]))
        case "exact":
            return NoNoise()
    raise ParameterError(f"there is no law of noise {facts['name']!r}")
