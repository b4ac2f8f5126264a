"""From a file, a text or a dict to the parts of a policy, or to one error that holds every mistake."""

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Final

from confide.errors import PolicyError, Problem
from confide.policy.file_kind import kind_of
from confide.policy.findings import Findings
from confide.policy.node import Block, Node, UnreadableError, from_python
from confide.policy.parsing import Parts, read_parts
from confide.policy.smartnoise import is_smartnoise, translate
from confide.policy.value_list import quoted_marks
from confide.policy.yaml_text import compose
from confide.privacy.limits import LONGEST_POLICY

_SQL: Final = re.compile(r"\s*(SELECT|WITH)\s", re.IGNORECASE)

Also = Mapping[str, object] | None
"""Top-level keys that are given beside a document."""


def parts_of_text(text: str, also: Also, source: str, base: Path) -> Parts:
    """The parts of a policy in a YAML text; `source` names it in errors, and files that it names start at `base`."""
    twice = Findings()
    try:
        root = compose(quoted_marks(text), twice)
    except UnreadableError as error:
        twice.add((), error.what, error.advice, error.line)
        raise PolicyError(twice.problems(), source) from None
    return _parts(root, also, twice.problems(), source, base)


def parts_of_mapping(mapping: Mapping[str, object], also: Also, base: Path) -> Parts:
    """The parts of a policy in a dict."""
    return _parts(_tree(mapping), also, (), "the policy", base)


def _parts(root: Node | None, also: Also, problems: tuple[Problem, ...], source: str, base: Path) -> Parts:
    if also and isinstance(root, Block):
        root, clashes = _merge(root, _tree(also))
        problems += clashes
    notes: tuple[str, ...] = ()
    findings = Findings(root, base=base)
    if isinstance(root, Block) and is_smartnoise(root):
        translation = translate(root)
        root, notes = translation.root, tuple(translation.notes)
        problems += tuple(translation.problems)
        findings = Findings(root, translation.spell, base)
    for problem in problems:
        findings.take(problem)
    parts = read_parts(root, findings)
    findings.raise_if_any(source)
    parts.notes = notes
    return parts


def _tree(mapping: object) -> Node:
    try:
        return from_python(mapping)
    except UnreadableError as error:
        raise PolicyError((Problem("the policy", error.what, error.advice),)) from None


def _merge(root: Block, more: Node) -> tuple[Block, tuple[Problem, ...]]:
    if not isinstance(more, Block):
        return root, (Problem("the policy", "the keys given beside the file are not a mapping"),)
    clashes = tuple(
        Problem(key, "the key is given in the file and beside it", "leave one out", root.key_lines.get(key))
        for key in more.entries
        if key in root.entries
    )
    return Block({**more.entries, **root.entries}, root.line, root.key_lines), clashes


def text_of(path: Path) -> str:
    """The text of a policy file, or an error that says why there is none."""

    def refuse(what: str, advice: str) -> PolicyError:
        return PolicyError((Problem(str(path), what, advice),), str(path))

    if _SQL.match(str(path)):
        raise PolicyError((Problem("the policy", "this is SQL", "the policy comes first, and then the SQL"),))
    if kind_of(path) is not None and path.exists():
        raise refuse("this is a file of data", f"draft a policy from it: confide init {quote(str(path))}")
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_POLICY + 1)
    except FileNotFoundError:
        raise refuse("there is no such file", "check the path, or draft one with: confide init DATA") from None
    except IsADirectoryError:
        raise refuse("this is a folder", "give the policy file in it") from None
    except (OSError, ValueError) as error:
        raise refuse(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}", "check the path"
        ) from None
    if len(content) > LONGEST_POLICY:
        raise refuse(
            f"the file is larger than {LONGEST_POLICY // 2**20} MB", "a policy is a short text; is this the data?"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        advice = "save it as UTF-8 text; is this the data?"
        raise PolicyError((Problem(str(path), "the file is not UTF-8 text", advice, line),), str(path)) from None
    return text
