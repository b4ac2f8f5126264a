"""Every mistake of a policy, gathered in one pass, each with its place, its line and the nearest valid spelling.

A wrong name is told with the known one that it most likely stands for; a wrong value with what was expected there.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path as FilePath

from confide.errors import PolicyError, Problem
from confide.policy.node import Block, Leaf, Listing, Node, Path, line_at, plain_leaf, ratio

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

BLANK = "a blank is left to fill in"


class Findings:
    """The mistakes found so far. `root` gives their lines; `spell` turns a path into words; files start at `base`."""

    def __init__(
        self, root: Node | None = None, spell: Callable[[Path], str] | None = None, base: FilePath | None = None
    ) -> None:
        self._root = root
        self.base = base or FilePath()
        self._spell = spell or spell_path
        self._found: dict[Problem, None] = {}
        self._written: dict[Path, str] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: Path, what: str, advice: str = "", line: int | None = None) -> None:
        path = tuple(self._written.get(path[: depth + 1], step) for depth, step in enumerate(path))
        line = line_at(self._root, path) if line is None else line
        self.take(Problem(self._spell(path), what, advice, line))

    def take(self, problem: Problem) -> None:
        self._found.setdefault(problem)

    def unknown(self, path: Path, kind: str, word: str, known: Iterable[str]) -> str | None:
        """A name that is none of the known ones; which of them it most likely stands for."""
        names = list(known)
        guess = nearest(word, names)
        allowed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        advice = f"did you mean {guess!r}? " if guess else ""
        self.add(path, f"{kind} {word!r} is not known", f"{advice}allowed: {allowed or 'none'}")
        return guess

    def known_keys(self, block: Block, path: Path, known: tuple[str, ...]) -> dict[str, Node]:
        """The entries of a block with every unknown key told, and then read as the key that it most likely stands for.

        So what stands under a misspelled key is checked as well, and the key is not said to be missing too.
        """
        entries = {key: node for key, node in block.entries.items() if key in known}
        for key, node in block.entries.items():
            if key not in known:
                guess = self.unknown((*path, key), "the key", key, known)
                if guess is not None and guess not in entries and key.casefold() not in HALVES_OF_A_RANGE:
                    entries[guess] = node
                    self._written[*path, guess] = key
        return entries

    def problems(self) -> tuple[Problem, ...]:
        """Every mistake, in the order of the file."""
        return tuple(sorted(self._found, key=lambda problem: problem.line or 0))

    def raise_if_any(self, source: str) -> None:
        if self._found:
            raise PolicyError(self.problems(), source)


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


def say(node: Node) -> str:
    """What was found, in plain words."""
    if isinstance(node, Block):
        return "a mapping" if node.entries else "an empty mapping"
    if isinstance(node, Listing):
        return "a list" if node.items else "an empty list"
    if node.blank:
        return "a blank that is left to fill in"
    if node.value is None:
        return "nothing"
    text = node.text if len(node.text) <= 60 else f"{node.text[:57]}..."
    return f"the text {text!r}" if isinstance(node.value, str) else text


def read_number(node: Node, path: Path, findings: Findings) -> Fraction | None:
    """An exact number, or None and a finding."""
    if isinstance(node, Leaf) and not node.blank:
        if isinstance(node.value, int | Fraction) and not isinstance(node.value, bool):
            return Fraction(node.value)
        if isinstance(node.value, float):
            what = f"{say(node)} is not a number that can be used"
            findings.add(path, what, "write a finite number of at most 60 digits")
            return None
        if isinstance(node.value, str) and (number := ratio(node.value)) is not None:
            return number
        meant = node.value.replace(",", "") if isinstance(node.value, str) else ""
        if isinstance(plain_leaf(meant, None).value, int | Fraction) and meant:
            how = "write it without quotes" if meant == node.value else "write it without commas"
            findings.add(path, f"expected a number, found {say(node)}", f"{how}: {meant}")
            return None
    _expected("a number", node, path, findings)
    return None


def read_whole(node: Node, path: Path, findings: Findings, least: int, most: int) -> int | None:
    """A whole number between two ends, or None and a finding."""
    allowed = f"write a whole number from {least} to {most:,}"
    number = read_number(node, path, findings)
    if number is None:
        return None
    if number.denominator != 1 or not least <= number <= most:
        findings.add(path, f"{say(node)} is not allowed here", allowed)
        return None
    return int(number)


def read_flag(node: Node, path: Path, findings: Findings) -> bool | None:
    """true or false, or None and a finding."""
    if isinstance(node, Leaf) and isinstance(node.value, bool):
        return node.value
    _expected("true or false", node, path, findings)
    return None


def _expected(kind: str, node: Node, path: Path, findings: Findings) -> None:
    if isinstance(node, Leaf) and node.blank:
        findings.add(path, BLANK, f"write {kind}")
    else:
        findings.add(path, f"expected {kind}, found {say(node)}")
