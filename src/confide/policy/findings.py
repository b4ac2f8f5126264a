"""Gathering every mistake of a policy in one pass, each with its line and the nearest valid spelling."""

from collections.abc import Callable, Iterable

from confide.errors import PolicyError, Problem
from confide.policy.node import Node, line_at
from confide.policy.spelling import Path, nearest, spell_path


class Findings:
    """The mistakes found so far. `root` gives their lines; `spell` turns a path into words."""

    def __init__(self, root: Node | None = None, spell: Callable[[Path], str] | None = None) -> None:
        self._root = root
        self._spell = spell or spell_path
        self._found: dict[Problem, None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: Path, what: str, advice: str = "", line: int | None = None) -> None:
        line = line_at(self._root, path) if line is None else line
        self.take(Problem(self._spell(path), what, advice, line))

    def take(self, problem: Problem) -> None:
        self._found.setdefault(problem)

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
