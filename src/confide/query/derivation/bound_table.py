"""A released table as far as the text tells."""

from dataclasses import dataclass, replace

from confide.errors import QueryError
from confide.query.derivation.derivation import DerivedColumn, DerivedTable


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A table with its columns. `rows`: how many at most, None if that is private; `chosen`: by released numbers."""

    table: DerivedTable
    columns: tuple[DerivedColumn, ...]
    chosen: bool
    rows: int | None
    parts: int
    """Of its tree: what is named twice counts twice."""
    keyed: frozenset[int] | None = None
    """Places of public columns that no two rows share; None if there may be none."""
    depth: int = 0
    """How many functions in each other say whether a row is there."""
    blurred: bool = False
    """Whether rows were put together by how their released numbers look: nothing is computed of them any more."""


def renamed(bound: BoundTable, names: tuple[str, ...]) -> BoundTable:
    if len(names) > len(bound.columns):
        raise QueryError(f"the inner query has {len(bound.columns)} columns, and {len(names)} names are given after it")
    own = [replace(column, name=name) for column, name in zip(bound.columns, names, strict=False)]
    return replace(bound, columns=(*own, *bound.columns[len(own) :]))
