"""How large the numbers of a mechanism may get: what passes these is refused before anything is charged.

After a read every integer is below one of these, so nothing wraps and nothing overflows. They follow from public facts:
the policy, the text of a question, ε and the confidence. Scales grow as ε falls, so a refusal is one of ε.
"""

from fractions import Fraction
from typing import Final

from confide.errors import EpsilonTooSmall

MOST_ROWS: Final = 2**44
"""No table has more rows, nor has a join: what `query.number.WIDEST` counts on too."""
LARGEST_SCALE: Final = 2**190
"""Of noise that is added: sums are below 2^126, and noise far beyond that says that the budget is a mistake."""
LARGEST_WALK: Final = 2**48
"""Of noise that is compared in 64 bits. A draw is beyond 2^12 scales with a chance below exp(-2^12), and margins are
kept within 2^7 scales, so no difference of the two reaches 2^62.
"""
LARGEST_SHIFT: Final = 2**58
"""Of a rank, or an exponent, by which an end of an interval is moved: sums of a few of them stay below 2^62."""
LARGEST_SMOOTH: Final = 2.0**150
"""Of a smooth bound: sums stay below 2^126, and so does what a unit changes; the lesser of the two is smooth too."""
LARGEST_USED: Final = 300
"""Of ε, where e^ε is worked with: more than that is charged as asked, and not used."""


def keep_scale(scale: Fraction, largest: int, what: str) -> Fraction:
    """The scale, if it is one that is drawn with."""
    if scale > largest:
        raise EpsilonTooSmall(f"epsilon is too small: {what} would pass 2^{largest.bit_length() - 1}")
    return scale


def keep_shift(shift: float, what: str) -> None:
    """Refuses a shift that 64 bits might not hold."""
    if not shift <= LARGEST_SHIFT:
        raise EpsilonTooSmall(f"epsilon is too small: {what} would pass 2^{LARGEST_SHIFT.bit_length() - 1}")
