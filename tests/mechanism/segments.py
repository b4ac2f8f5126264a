"""What a segment of the exponential mechanism weighs as it is drawn, found from how its coin is decided."""

from fractions import Fraction
from typing import Any

import numpy as np

from confide.mechanism.selection.exponential import _proposal
from tests.mechanism.scripted import Scripted

BITS = 256


def threshold(proposal: Any, segment: int) -> Fraction:
    """The U, to 256 bits, up to which a proposed segment is accepted: bisection over what is drawn."""
    low, high = 0, 1 << BITS
    while high - low > 1:
        middle = (low + high) // 2
        words = middle.to_bytes(BITS // 8)
        source = Scripted(words[7::-1], *(words[begin : begin + 8] for begin in range(8, BITS // 8, 8)))
        accepted = bool(proposal.accept(np.array([segment]), source)[0])
        low, high = (middle, high) if accepted else (low, middle)
    return Fraction(low, 1 << BITS)


def drawn_weight(exponents: Any, sizes: Any, rate: Fraction, segment: int) -> Fraction:
    """The weight with which a segment is drawn, beside a candidate of the least exponent that has one."""
    proposal = _proposal(exponents, sizes, rate)
    return int(proposal.ceilings[segment]) * threshold(proposal, segment) / proposal.factor
