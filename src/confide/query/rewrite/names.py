"""Which columns the parts of a FROM have, and which of them a name means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.query.scope import Catalog
from confide.query.spelling import nearest


@dataclass(slots=True)
class FromPart:
    """A table or an inner query of a FROM: the name it goes by, and its columns as they are spelled.

    `stands` is what each column stands for where the part is put into the query around it, by its name in lower case.
    """

    alias: str
    node: exp.Expr
    columns: tuple[str, ...]
    stands: Mapping[str, exp.Expr] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return any(column.casefold() == name.casefold() for column in self.columns)


@dataclass(slots=True)
class Names:
    """The parts of one FROM. `merged`: columns of USING and NATURAL, one name for the equal columns of both sides."""

    parts: list[FromPart] = field(default_factory=list)
    merged: dict[str, FromPart] = field(default_factory=dict)

    def add(self, part: FromPart) -> None:
        if any(own.alias.casefold() == part.alias.casefold() for own in self.parts):
            raise QueryError(
                f"two tables are called {part.alias[:60]}; give each its own alias: FROM t AS a JOIN t AS b"
            )
        self.parts.append(part)

    def holds(self, name: str) -> bool:
        return any(part.has(name) for part in self.parts)

    def owner(self, node: exp.Column) -> FromPart:
        """The part that a column belongs to."""
        name, qualifier = node.name, node.table
        parts = self.parts
        if qualifier:
            parts = [part for part in parts if part.alias.casefold() == qualifier.casefold()]
            if not parts:
                aliases = [part.alias for part in self.parts]
                raise QueryError(f"there is no table {qualifier[:60]} here; {nearest(qualifier, aliases, 'there are')}")
        elif name.casefold() in self.merged:
            return self.merged[name.casefold()]
        found = [part for part in parts if part.has(name)]
        if not found:
            names = [column for part in parts for column in part.columns]
            raise QueryError(f"there is no column {name[:60]}; {nearest(name, names, 'there are')}")
        if len(found) > 1:
            owners = " or ".join(f"{part.alias}.{name}" for part in found)
            raise QueryError(f"the column {name[:60]} could be {owners[:200]}; write the table before it")
        return found[0]


def columns_of(table: str, policy: Policy, catalog: Catalog) -> tuple[str, ...] | None:
    """The columns of a table of the policy; None if it has no such table."""
    known = {name.casefold(): own for name, own in policy.tables.items()}.get(table.casefold())
    if known is None:
        return None
    return tuple(catalog.columns(known.name) if known.public else known.columns)


def columns_in(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without those of queries inside it."""
    pending = [node]
    while pending:
        own = pending.pop()
        if isinstance(own, exp.Column):
            if not isinstance(own.this, exp.Star):
                yield own
        elif not isinstance(own, exp.Query):
            pending += own.iter_expressions()
