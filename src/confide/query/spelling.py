"""The nearest known word, for messages."""

from bisect import bisect
from collections.abc import Iterable
from difflib import get_close_matches

_TRIED = 200
"""Names that are compared letter by letter, which takes up to a millisecond each: those next to it in the alphabet."""


def nearest(name: str, known: Iterable[str], introduction: str) -> str:
    """The nearest known spelling, or the list of what there is."""
    names, wanted = sorted(set(known)), name.lower()[:60]
    lowered = sorted((own.lower(), own) for own in names)
    begin = max(0, bisect(lowered, (wanted, "")) - _TRIED // 2)
    near = dict(reversed(lowered[begin : begin + _TRIED]))
    close = get_close_matches(wanted, near, n=1, cutoff=0.6)
    if close:
        return f"did you mean {near[close[0]]}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"{introduction} {shown}" if names else f"{introduction} none"
