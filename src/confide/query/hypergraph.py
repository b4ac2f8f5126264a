"""The shape of a join: which occurrences share which variables, classes of columns that pairs make equal."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from confide.query.conjunction import Conjunction, equal_fields
from confide.query.tree import Field, Scan

Places = frozenset[int]


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """Occurrences by place, and the variables as classes of columns."""

    scans: tuple[Scan, ...]
    variables: tuple[frozenset[Field], ...]

    def variables_of(self, places: Places) -> frozenset[int]:
        sources = {self.scans[place].source for place in places}
        return frozenset(
            index for index, columns in enumerate(self.variables) if any(field.source in sources for field in columns)
        )

    def components(self, places: Places) -> tuple[Places, ...]:
        """The parts of a set of occurrences that share no variable with each other."""
        rest, parts = set(places), []
        while rest:
            part, grown = {min(rest)}, True
            while grown:
                own = self.variables_of(frozenset(part))
                joined = {place for place in rest - part if own & self.variables_of(frozenset((place,)))}
                part |= joined
                grown = bool(joined)
            parts.append(frozenset(part))
            rest -= part
        return tuple(parts)

    def boundary(self, places: Places) -> tuple[Field, ...]:
        """One column inside for every variable that is also outside."""
        outside = frozenset(range(len(self.scans))) - places
        shared = sorted(self.variables_of(places) & self.variables_of(outside))
        sources = {self.scans[place].source for place in places}
        return tuple(
            min((field for field in self.variables[index] if field.source in sources), key=repr) for index in shared
        )

    def pairs(self) -> tuple[tuple[Field, Field], ...]:
        """Every two columns of different occurrences that are equal, directly or through others."""
        return tuple(
            (one, two)
            for columns in self.variables
            for one, two in combinations(sorted(columns, key=repr), 2)
            if one.source != two.source
        )

    def residuals(self, private: tuple[int, ...]) -> Iterator[tuple[Places, tuple[Places, ...]]]:
        """Every set of private occurrences to take away, and the parts that are left."""
        everything = frozenset(range(len(self.scans)))
        for size in range(1, len(private) + 1):
            for removed in combinations(private, size):
                yield frozenset(removed), self.components(everything - frozenset(removed))


def hypergraph_of(question: Conjunction) -> Hypergraph:
    found: list[frozenset[Field]] = []
    for pair in question.pairs:
        if not any(pair[0] in columns for columns in found):
            found.append(equal_fields(question.pairs, pair[0]))
    return Hypergraph(question.occurrences, tuple(found))
