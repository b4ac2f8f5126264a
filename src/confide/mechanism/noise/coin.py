"""Exact coins and dice of any size, from fair bits: the pieces that exact selection and rejection are made of."""

from fractions import Fraction

from confide.mechanism.noise.enclosure import exponential
from confide.mechanism.noise.randomness import Randomness


def uniform_below(bound: int, randomness: Randomness) -> int:
    """An integer uniform on 0, 1, ..., bound - 1, whatever the size of `bound`.

    Draws as many bits as `bound` has and starts again if they are not below it: at most two tries on average.
    """
    if bound < 1:
        raise ValueError("there is no integer to draw below a bound under 1")
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(randomness.bytes((bits + 7) // 8)) >> (-bits % 8)
        if drawn < bound:
            return drawn


def bernoulli_exponential(rate: Fraction, randomness: Randomness, word: int = 0, known: int = 0) -> bool:
    """True with probability exactly exp(-rate), for a rational rate >= 0.

    Decides U < exp(-rate) for a uniform U whose bits are drawn as needed: at b bits the answer is known unless U's
    prefix is the one that contains exp(-rate), so a further 64 bits are drawn with probability about 2^-b. `word` is
    what is already known of U: its first `known` bits.
    """
    while True:
        if known > 0:
            low, high = exponential(rate, known)
            if word < low:
                return True
            if word >= high:
                return False
        word, known = word << 64 | int.from_bytes(randomness.bytes(8)), known + 64
