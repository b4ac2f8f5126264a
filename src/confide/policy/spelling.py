"""How places in a policy are spelled, and which known name a wrong one most likely stands for."""

from collections.abc import Iterable
from difflib import get_close_matches

Path = tuple[str | int, ...]
"""The keys and positions that lead from the root of a policy to a place in it."""

_ALIASES = {
    "bounds": "range",
    "categories": "values",
    "contribution": "at_most",
    "data": "source",
    "domain": "values",
    "enum": "values",
    "foreign_keys": "references",
    "granularity": "grain",
    "key": "unit",
    "levels": "values",
    "limits": "at_most",
    "lower": "range",
    "max": "range",
    "min": "range",
    "precision": "grain",
    "privacy_unit": "unit",
    "step": "grain",
    "upper": "range",
}
"""Words that other tools use for a key of ours and that no edit distance would find."""


HALVES_OF_A_RANGE = frozenset({"lower", "upper", "min", "max"})
"""Words that stand for one end of a range, so that what is under them cannot be read as the range."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that the word most likely stands for."""
    folded = {name.casefold(): name for name in known}
    plain = word.casefold()
    if plain in folded:
        return folded[plain]
    if (alias := _ALIASES.get(plain)) in folded.values():
        return alias
    close = get_close_matches(plain, folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def spell_path(path: Path) -> str:
    words = ""
    for step in path:
        words += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if words else step
    return words or "the policy"
