"""What is measured for microdata, as it is kept in the ledger: noisy counts with the laws of their noise.

Everything else of a release (fits, intervals, records, reports) is computed from this, and costs nothing.
"""

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.fit import CellDomain
from confide.fit import Marginal as MarginalGroup
from confide.mechanism import Law
from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.cost import Cost
from confide.release.law_facts import law_facts, law_of
from confide.release.microdata.marginals import Attribute, Marginal, marginal_of, show_marginal, show_marginals

FORMAT: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """The noisy counts of a marginal, the last column fastest. They are unbiased, and may be negative."""

    marginal: Marginal
    counts: NDArray[np.int64]
    law: Law
    mechanism: str


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Noisy marginals of one table, measured at once, and what is said of them."""

    table: str
    attributes: tuple[Attribute, ...]
    marginals: tuple[NoisyMarginal, ...]
    cost: Cost
    unit: str
    neighbours: str
    design: str
    test_noise: bool
    delta: Fraction = Fraction(0)
    """The δ of the budget, at which the cost means ε; 0 for a pure budget."""

    @property
    def domain(self) -> CellDomain:
        names = tuple(attribute.name for attribute in self.attributes)
        return CellDomain(names, tuple(len(attribute.values) for attribute in self.attributes))

    @property
    def names(self) -> tuple[Marginal, ...]:
        return tuple(each.marginal for each in self.marginals)

    def attribute(self, name: str) -> Attribute:
        return next(attribute for attribute in self.attributes if attribute.name == name)

    def find(self, marginal: object) -> NoisyMarginal:
        wanted = marginal_of(marginal, self.domain.attributes)
        if wanted not in self.names:
            raise ParameterError(f"{show_marginal(wanted)} was not measured; what was: {show_marginals(self.names)}")
        return self.marginals[self.names.index(wanted)]

    def answer(self, marginal: object, confidence: float) -> Answer:
        """One marginal as an answer: each noisy count with its interval, neither cut at zero."""
        found = self.find(marginal)
        half = found.law.half_width(confidence)
        counts = [int(count) for count in found.counts]
        value = ValueColumn(
            self.count_name,
            "integer",
            tuple(counts),
            tuple(count - half for count in counts),
            tuple(count + half for count in counts),
            found.mechanism,
            "always",
            "noisy counts are unbiased and may be negative",
        )
        return Answer(
            columns=(*self.keys(found.marginal), value),
            confidence=confidence,
            cost=self.cost,
            unit=self.unit,
            neighbours=self.neighbours,
            question=self.design,
            notes=("the cost is that of all marginals together",),
            test_noise=self.test_noise,
        )

    @property
    def count_name(self) -> str:
        return self.free_name("count")

    def free_name(self, name: str) -> str:
        """A name for a column of numbers that no attribute has, its interval's ends included."""
        taken = {attribute.name.casefold() for attribute in self.attributes}
        while {name, f"{name}_low", f"{name}_high"} & taken:
            name += "_"
        return name

    def keys(self, marginal: Sequence[str]) -> tuple[KeyColumn, ...]:
        """The columns of a marginal, spelled out for each of its counts."""
        columns = []
        for name, own in zip(marginal, self.places(marginal), strict=True):
            attribute = self.attribute(name)
            columns.append(KeyColumn(name, attribute.type, tuple(attribute.values[place] for place in own)))
        return tuple(columns)

    def places(self, marginal: Sequence[str]) -> NDArray[np.int64]:
        """For each column of a marginal, the place of its value in each count."""
        sizes = [len(self.attribute(name).values) for name in marginal]
        return np.indices(sizes).reshape(len(sizes), math.prod(sizes))

    def group(self, marginal: Sequence[str]) -> MarginalGroup:
        return MarginalGroup(tuple(marginal))

    def to_bytes(self) -> bytes:
        """A line of JSON, and then the counts: 64-bit integers, compressed."""
        head = json.dumps(self.facts(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        counts = np.concatenate([each.counts for each in self.marginals]).astype("<i8")
        return head.encode() + b"\n" + zlib.compress(counts.tobytes(), 6)

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Measurements":
        head, _, rest = stored.partition(b"\n")
        counts = np.frombuffer(zlib.decompress(rest), dtype="<i8").astype(np.int64)
        facts = json.loads(head)
        sizes = [each["counts"] for each in facts["marginals"]]
        parts = np.split(counts, np.cumsum(sizes)[:-1])
        return cls.from_facts(facts, parts)

    def facts(self) -> dict[str, Any]:
        """Everything but the counts, as JSON."""
        return {
            "format": FORMAT,
            "table": self.table,
            "attributes": [
                {
                    "name": attribute.name,
                    "type": attribute.type,
                    "values": [_plain(value) for value in attribute.values],
                    "width": attribute.width,
                }
                for attribute in self.attributes
            ],
            "marginals": [
                {
                    "columns": list(each.marginal),
                    "counts": len(each.counts),
                    "law": law_facts(each.law),
                    "mechanism": each.mechanism,
                }
                for each in self.marginals
            ],
            "cost": self.cost.to_dict(),
            "unit": self.unit,
            "neighbours": self.neighbours,
            "design": self.design,
            "test_noise": self.test_noise,
            "delta": str(self.delta),
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], counts: Sequence[NDArray[np.int64]]) -> "Measurements":
        if facts.get("format") != FORMAT:
            raise ParameterError(f"these microdata have format {facts.get('format')!r}; format {FORMAT} is read")
        attributes = tuple(
            Attribute(
                each["name"],
                each["type"],
                tuple(_restored(value, each["type"]) for value in each["values"]),
                each["width"],
            )
            for each in facts["attributes"]
        )
        marginals = tuple(
            NoisyMarginal(tuple(each["columns"]), own, law_of(each["law"]), each["mechanism"])
            for each, own in zip(facts["marginals"], counts, strict=True)
        )
        return cls(
            facts["table"],
            attributes,
            marginals,
            Cost.from_dict(facts["cost"]),
            facts["unit"],
            facts["neighbours"],
            facts["design"],
            facts["test_noise"],
            Fraction(facts["delta"]),
        )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _restored(value: Any, kind: str) -> Any:
    return date.fromisoformat(value) if kind == "date" and value is not None else value
