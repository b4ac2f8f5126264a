"""Gathering every mistake of a policy in one pass, each with its line and the nearest valid spelling."""

from collections.abc import Callable, Iterable
from pathlib import Path as FilePath

from confide.errors import PolicyError, Problem
from confide.policy.node import Block, Node, line_at
from confide.policy.spelling import HALVES_OF_A_RANGE, Path, nearest, spell_path


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
