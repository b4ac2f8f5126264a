"""A policy: what is public, who is protected, and how much may be spent. Checked once, then never changed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Self

from confide.errors import PolicyError, Problem
from confide.policy.canonical import canonical_facts, canonical_text
from confide.policy.findings import Findings
from confide.policy.node import Node, UnreadableError, from_python
from confide.policy.reading import read_parts
from confide.policy.structure import structure_faults, unit_paths
from confide.policy.table import KeyUnit, Step, Table, Unit
from confide.policy.yaml_text import TEXT_LIMIT, compose
from confide.privacy.budget import Budget


@dataclass(frozen=True, slots=True)
class Policy:
    """What is public about a set of tables, who is protected, and the budget.

    `source` maps tables to files, or names one database; None when frames are given instead. `analysts` caps the ε of
    single analysts, "*" of anybody else. `version` names the state of the data. Relative paths start at `base`.
    """

    tables: Mapping[str, Table] = field(hash=False)
    unit: Unit
    budget: Budget
    analysts: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    source: Mapping[str, str] | str | None = field(default=None, hash=False)
    ledger: str | None = None
    version: str | None = None
    base: Path = field(default=Path(), compare=False)
    path: Path | None = field(default=None, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        object.__setattr__(self, "analysts", MappingProxyType(dict(self.analysts)))
        if isinstance(self.source, Mapping):
            object.__setattr__(self, "source", MappingProxyType(dict(self.source)))
        findings = Findings()
        for path, what, advice in structure_faults(self.unit, self.tables):
            findings.add(path, what, advice)
        findings.raise_if_any("the policy")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The policy in a YAML file."""
        place = Path(path)
        return cls._read_text(_text_of(place), str(path), place.parent, place)

    @classmethod
    def parse(cls, mapping: Mapping[str, object], base: str | os.PathLike[str] = ".") -> Self:
        """The policy in a dict, with the keys of the file."""
        findings = Findings()
        try:
            root = from_python(mapping)
        except UnreadableError as error:
            findings.add((), error.what, error.advice)
            raise PolicyError(findings.problems()) from None
        return cls._read_tree(root, findings, "the policy", Path(base), None)

    @classmethod
    def parse_text(cls, text: str, base: str | os.PathLike[str] = ".") -> Self:
        """The policy in a YAML text."""
        return cls._read_text(text, "the policy", Path(base), None)

    @classmethod
    def _read_text(cls, text: str, source: str, base: Path, path: Path | None) -> Self:
        doubles = Findings()
        try:
            root = compose(text, doubles)
        except UnreadableError as error:
            doubles.add((), error.what, error.advice, error.line)
            raise PolicyError(doubles.problems(), source) from None
        findings = Findings(root)
        for problem in doubles.problems():
            findings.take(problem)
        return cls._read_tree(root, findings, source, base, path)

    @classmethod
    def _read_tree(cls, root: Node | None, findings: Findings, source: str, base: Path, path: Path | None) -> Self:
        parts = read_parts(root, findings)
        findings.raise_if_any(source)
        if parts.unit is None or parts.budget is None:
            raise AssertionError("a policy without findings has a unit and a budget")
        return cls(
            parts.tables,
            parts.unit,
            parts.budget,
            parts.analysts,
            parts.source,
            parts.ledger,
            parts.version,
            base,
            path,
        )

    @property
    def private_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables.values() if not table.public)

    def unit_path(self, table: str) -> tuple[Step, ...]:
        """The references that lead from a private table to the key of the unit; none from the unit's own table."""
        if self.tables[table].public:
            raise ValueError(f"the table {table!r} is public: its rows belong to nobody")
        if not isinstance(self.unit, KeyUnit):
            return ()
        return next(unit_paths(self.unit, self.tables, table))

    def to_yaml(self) -> str:
        """The canonical text: equal policies have equal texts, and the text loads to an equal policy."""
        return canonical_text(self)

    @property
    def fingerprint(self) -> str:
        """Names the whole policy: SHA-256 of its canonical text."""
        return sha256(self.to_yaml().encode()).hexdigest()

    @property
    def facts_fingerprint(self) -> str:
        """Names what answers depend on: tables, unit, data version; not budget, caps, source and sizes."""
        return sha256(canonical_facts(self).encode()).hexdigest()


def load(source: str | os.PathLike[str] | Mapping[str, object]) -> Policy:
    """A policy from a path, from a dict, or from a YAML text of more than one line."""
    if isinstance(source, Mapping):
        return Policy.parse(source)
    if isinstance(source, str) and "\n" in source:
        return Policy.parse_text(source)
    return Policy.load(source)


def _text_of(path: Path) -> str:
    def refuse(what: str, advice: str) -> PolicyError:
        return PolicyError((Problem(str(path), what, advice),), str(path))

    try:
        with path.open("rb") as file:
            content = file.read(TEXT_LIMIT + 1)
    except FileNotFoundError:
        raise refuse("there is no such file", "check the path, or draft one with: confide init DATA") from None
    except IsADirectoryError:
        raise refuse("this is a folder", "give the policy file in it") from None
    except (OSError, ValueError) as error:
        raise refuse(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}", "check the path"
        ) from None
    if len(content) > TEXT_LIMIT:
        raise refuse(f"the file is larger than {TEXT_LIMIT // 2**20} MB", "a policy is a short text; is this the data?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        advice = "save it as UTF-8 text; is this the data?"
        raise PolicyError((Problem(str(path), "the file is not UTF-8 text", advice, line),), str(path)) from None
    return text
