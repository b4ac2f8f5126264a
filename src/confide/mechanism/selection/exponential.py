"""The exponential mechanism over segments of a huge set of candidates, drawn exactly.

Candidates of one segment share an exponent, so a draw costs one pass over the segments, however many candidates they
hold. The law is exact; floating point only proposes:

1.  Segment i weighs size_i·exp(-rate·exponent_i), exponents from the smallest on. Each weight is computed in double
    precision, scaled so that all sum to about 2^50, and rounded up to an integer W_i with a margin of 2^-36 to spare,
    far above the error of the arithmetic (arguments below 745, so below 10^-12). A weight too small to see becomes 1.
2.  An exact uniform integer below ΣW_i proposes a segment with probability in proportion to W_i.
3.  It is accepted with probability (exact weight) / W_i, which is at most 1: an exact coin, decided from an enclosure
    of the exponential as far as is needed. Otherwise the draw starts again. This goes for every segment, however
    little it weighs: a neighbour may give it e^ε times as much, and no less than the e^ε-th part.

So segments come out in proportion to their exact weights, and within one the candidate is uniform. Fewer than one draw
in 10^8 is repeated for a million segments.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.coin import uniform_below
from confide.mechanism.noise.enclosure import exponential
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.tally import Integers
from confide.privacy.loss import PureDP

AnyIntegers = NDArray[Any]  # int64, or Python integers

SCALE: Final = 2.0**50
MARGIN: Final = 2.0**-36
DOUBT: Final = 2.0**-34  # a coin closer to its threshold than this is decided by exact arithmetic
STEEP: Final = Fraction(10**6)  # at rates from here on all that is near is the peak itself
INVISIBLE: Final = 2.0**-40  # a chance below it is told from 0 by exact arithmetic alone, which is asked from DOUBT on


@dataclass(frozen=True, slots=True)
class Exponential:
    """Releases one candidate, with probability proportional to exp(-rate × exponent), rate = ε / spread.

    Neighbours: those between which the changes of any two candidates' exponents differ by at most `spread`.
    Loss: ε-DP; the log-ratio of probabilities has a range of at most ε, so also ε²/8-zCDP ([CesarRogers2021]).
    Theorem: [McSherryTalwar2007]; for a score of sensitivity Δ the changes lie in [-Δ, Δ] and the spread is 2Δ.
    """

    epsilon: Fraction
    spread: int

    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.spread

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    def select(
        self, exponents: Integers, sizes: AnyIntegers, randomness: Randomness, count: int = 1
    ) -> tuple[Integers, AnyIntegers]:
        """`count` independent draws: the segment of each, and the candidate's place within its segment.

        Sizes are 64-bit integers, or Python integers below 2^900; places are what sizes are.
        """
        proposal = _proposal(exponents, sizes, self.rate)
        segments = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            proposed = proposal.propose(count - done, randomness)
            accepted = proposed[proposal.accept(proposed, randomness)]
            segments[done : done + len(accepted)] = accepted
            done += len(accepted)
        chosen = sizes[segments]
        places = np.zeros(count, dtype=sizes.dtype)
        for draw in np.flatnonzero(chosen > 1):
            places[draw] = uniform_below(int(chosen[draw]), randomness)
        return segments, places


@dataclass(frozen=True, slots=True, eq=False)
class _Proposal:
    relative: Integers  # exponents from the smallest on
    sizes: AnyIntegers
    rate: Fraction
    factor: Fraction
    ceilings: Integers  # W_i
    ends: Integers
    chances: NDArray[np.float64]  # of acceptance, nearly

    def propose(self, count: int, randomness: Randomness) -> Integers:
        total = int(self.ends[-1])
        bits = max(1, (total - 1).bit_length())
        kept = np.empty(0, dtype=np.int64)
        while len(kept) < count:
            drawn = (randomness.uint64(count - len(kept)) >> np.uint64(64 - bits)).astype(np.int64)
            kept = np.concatenate([kept, drawn[drawn < total]])
        return np.searchsorted(self.ends, kept, side="right").astype(np.int64)

    def accept(self, segments: Integers, randomness: Randomness) -> NDArray[np.bool_]:
        words = randomness.uint64(len(segments))
        excess = self.chances[segments] - words * 2.0**-64
        accepted = excess > 0
        for draw in np.flatnonzero(np.abs(excess) <= DOUBT):
            accepted[draw] = self._coin(int(segments[draw]), int(words[draw]), randomness)
        return accepted

    def _coin(self, segment: int, word: int, randomness: Randomness) -> bool:
        ratio = self.factor * int(self.sizes[segment]) / int(self.ceilings[segment])
        return scaled_coin(ratio, self.rate * int(self.relative[segment]), randomness, word, 64)


def scaled_coin(ratio: Fraction, rate: Fraction, randomness: Randomness, word: int = 0, known: int = 0) -> bool:
    """True with probability exactly ratio × exp(-rate), which must not exceed 1; `word` is `known` bits of its U."""
    while True:
        low, high = exponential(rate, known)
        if (word + 1) * ratio.denominator <= ratio.numerator * low:
            return True
        if word * ratio.denominator >= ratio.numerator * high:
            return False
        word, known = word << 64 | int.from_bytes(randomness.bytes(8)), known + 64


def _proposal(exponents: Integers, sizes: AnyIntegers, rate: Fraction) -> _Proposal:
    occupied: NDArray[np.bool_] = (sizes > 0).astype(bool)
    if not occupied.any():
        raise ValueError("there is nothing to select from")
    relative = exponents - exponents[occupied].min()
    # One weight is at least 1, so the factor is at most SCALE. What lies beyond `far` has a chance that is invisible
    # beside a ceiling of 1: there 0 is as near as DOUBT asks for.
    far = math.log(int(sizes.max())) + math.log(SCALE / INVISIBLE)
    near = np.flatnonzero(occupied & (relative <= math.floor(Fraction(far) / rate)))
    weights = sizes[near].astype(np.float64) * np.exp(-float(min(rate, STEEP)) * relative[near])
    factor = SCALE / float(weights.sum())
    scaled = weights * factor
    ceilings = occupied.astype(np.int64)
    ceilings[near] = (np.ceil(scaled * (1 + MARGIN)) + 1).astype(np.int64)
    chances = np.zeros(len(sizes))
    chances[near] = scaled / ceilings[near]
    return _Proposal(relative, sizes, rate, Fraction(factor), ceilings, np.cumsum(ceilings), chances)
