"""Gathering every mistake of a policy in one pass, each with its line and the nearest valid spelling."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from confide.errors import PolicyError, Problem
from confide.policy.node import Node, Path, line_at

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


class Findings:
    """The mistakes found so far. `root` gives their lines; `spell` turns a path into words."""

    def __init__(self, root: Node | None = None, spell: Callable[[Path], str] | None = None) -> None:
        self._root = root
        self._spell = spell or spell_path
        self._found: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: Path, what: str, advice: str = "", line: int | None = None) -> None:
        line = line_at(self._root, path) if line is None else line
        self.take(Problem(self._spell(path), what, advice, line))

    def take(self, problem: Problem) -> None:
        if problem not in self._found:
            self._found.append(problem)

    def unknown(self, path: Path, kind: str, word: str, known: Iterable[str]) -> None:
        """A name that is none of the known ones."""
        names = list(known)
        guess = nearest(word, names)
        allowed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        advice = f"did you mean {guess!r}? " if guess else ""
        self.add(path, f"{kind} {word!r} is not known", f"{advice}allowed: {allowed or 'none'}")

    def problems(self) -> tuple[Problem, ...]:
        """Every mistake, in the order of the file."""
        return tuple(sorted(self._found, key=lambda problem: problem.line or 0))

    def raise_if_any(self, source: str) -> None:
        if self._found:
            raise PolicyError(self.problems(), source)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that the word most likely stands for."""
    folded = {name.casefold(): name for name in reversed(list(known))}
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
