"""The nearest known word, for messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], introduction: str) -> str:
    """The nearest known spelling, or the list of what there is."""
    names = sorted(set(known))
    close = get_close_matches(name.lower()[:60], [n.lower() for n in names[:10_000]], n=1, cutoff=0.6)
    if close:
        return f"did you mean {next(n for n in names if n.lower() == close[0])}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"{introduction} {shown}" if names else f"{introduction} none"
