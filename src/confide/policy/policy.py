"""A policy: what is public, who is protected, and how much may be spent. Checked once, then never changed.

What reads policies is imported when one is read: half of the package, and of no use to code that only holds a policy.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from confide.errors import PolicyError, Problem
from confide.policy.analyst import cap_faults
from confide.policy.canonical import canonical_facts, canonical_text
from confide.policy.findings import spell_path
from confide.policy.structure import structure_faults, unit_paths
from confide.policy.table import SUMMARY_ROWS, KeyUnit, ReferenceStep, Table, Unit
from confide.privacy.budget import Budget

if TYPE_CHECKING:
    from confide.policy.parsing import Parts


@dataclass(frozen=True, slots=True)
class Policy:
    """What is public about a set of tables, who is protected, and the budget.

    `source` maps tables to files, or names one database; None when frames are given instead. `analysts` caps the ε of
    single analysts, "*" of all others together. `version` names the state of the data, `summary_rows` how many
    distinct values a summary may hold. Relative paths start at `base`.
    """

    tables: Mapping[str, Table] = field(hash=False)
    unit: Unit
    budget: Budget
    analysts: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    source: Mapping[str, str] | str | None = field(default=None, hash=False, repr=False)  # may hold a password
    ledger: str | None = field(default=None, repr=False)
    version: str | None = None
    base: Path = field(default=Path(), compare=False)
    path: Path | None = field(default=None, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    summary_rows: int = SUMMARY_ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        object.__setattr__(self, "analysts", MappingProxyType(dict(self.analysts)))
        if isinstance(self.source, Mapping):
            object.__setattr__(self, "source", MappingProxyType(dict(self.source)))
        faults = [*structure_faults(self.unit, self.tables), *cap_faults(self.analysts)]
        problems = tuple(Problem(spell_path(path), what, advice) for path, what, advice in faults)
        if problems:
            raise PolicyError(problems)

    @classmethod
    def load(cls, path: str | os.PathLike[str], also: Mapping[str, object] | None = None) -> Self:
        """The policy in a YAML file; `also` gives top-level keys that the file leaves out."""
        from confide.policy.policy_file import parts_of_text, text_of  # noqa: PLC0415

        place = Path(path)
        return cls._of(parts_of_text(text_of(place), also, str(path), place.parent), place.parent, place)

    @classmethod
    def parse(
        cls,
        mapping: Mapping[str, object],
        base: str | os.PathLike[str] = ".",
        also: Mapping[str, object] | None = None,
    ) -> Self:
        """The policy in a dict, with the keys of the file."""
        from confide.policy.policy_file import parts_of_mapping  # noqa: PLC0415

        return cls._of(parts_of_mapping(mapping, also, Path(base)), Path(base))

    @classmethod
    def parse_text(
        cls, text: str, base: str | os.PathLike[str] = ".", also: Mapping[str, object] | None = None
    ) -> Self:
        """The policy in a YAML text."""
        from confide.policy.policy_file import parts_of_text  # noqa: PLC0415

        return cls._of(parts_of_text(text, also, "the policy", Path(base)), Path(base))

    @classmethod
    def _of(cls, parts: "Parts", base: Path, path: Path | None = None) -> Self:
        if parts.unit is None or parts.budget is None:
            raise AssertionError("parts without findings have a unit and a budget")
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
            parts.notes,
            parts.summary_rows or SUMMARY_ROWS,
        )

    @property
    def private_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables.values() if not table.public)

    def unit_path(self, table: str) -> tuple[ReferenceStep, ...]:
        """The references that lead from a private table to the key of the unit; none from the unit's own table."""
        if self.tables[table].public:
            raise ValueError(f"the table {table!r} is public: its rows belong to nobody")
        if not isinstance(self.unit, KeyUnit):
            return ()
        return next(unit_paths(self.unit, self.tables, table))

    def replaces(self, tables: Iterable[str]) -> bool:
        """Whether neighbours replace a unit in these private tables, because how many there are is public.

        A unit with a key is replaced with all its rows, also where nothing is read of the table that counts the units.
        """
        counted = (self.unit.table,) if isinstance(self.unit, KeyUnit) else tables
        return any(self.tables[table].rows == "public" for table in counted)

    def to_yaml(self) -> str:
        """The canonical text: equal policies have equal texts, and the text loads to an equal policy."""
        return canonical_text(self)

    def __repr__(self) -> str:
        return f"<Policy {self.path or 'without a file'}: {', '.join(self.tables)}; protects one {self.unit}>"

    def _repr_html_(self) -> str:
        from confide.policy.policy_html import policy_html  # noqa: PLC0415  loaded when shown

        return policy_html(self)

    @property
    def fingerprint(self) -> str:
        """Names the whole policy: SHA-256 of its canonical text."""
        return _digest(self.to_yaml())

    @property
    def facts_fingerprint(self) -> str:
        """Names what answers depend on: tables, unit, data version; not budget, caps, source and sizes."""
        return _digest(canonical_facts(self))


def load(source: str | os.PathLike[str] | Mapping[str, object], also: Mapping[str, object] | None = None) -> Policy:
    """A policy from a path, from a dict, or from a YAML text of more than one line."""
    if isinstance(source, Mapping):
        return Policy.parse(source, also=also)
    if isinstance(source, str) and "\n" in source:
        return Policy.parse_text(source, also=also)
    return Policy.load(source, also=also)


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415

    return sha256(text.encode()).hexdigest()
