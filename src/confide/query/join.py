"""Joins: private tables along declared references, public tables on equal columns.

A joined row must belong to one unit. Each private table of a query hangs on another by one reference, child on
parent, or holds the unit's key and is made to agree with the others on it; so whose a joined row is follows from one
table alone, and no row of another unit can change it.
"""

from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Column, Date, Identifier, KeyUnit, Number, Policy, Text, Unbounded
from confide.query.parse import conjuncts, shown
from confide.query.scope import Scope, Source
from confide.query.tree import Derived, Field, Join, Relation, Scan

Pairs = list[tuple[Field, Field]]


def bind_join(left: Relation, join: exp.Join, scope: Scope, unit: Field | None) -> Relation:
    """One JOIN. `unit` is the unit's key where it is known already."""
    earlier, side = list(scope.sources), str(join.args.get("side") or "").upper()
    right, pairs = join_pairs(join, scope)
    table = right.table
    assert table is not None
    if side == "LEFT":
        right = replace(right, optional=True)
        scope.replace(right)
    if not table.public and isinstance(scope.policy.unit, KeyUnit):
        pairs += attach(pairs, earlier, right, scope, unit)
    scan = Scan(table.name, right.name, table.public)
    return Join(left, scan, tuple(dict.fromkeys(pairs)), side == "LEFT")


def join_pairs(join: exp.Join, scope: Scope) -> tuple[Source, Pairs]:
    """The table that a JOIN adds to the scope, and the columns it is joined on, those of earlier tables first."""
    kind, side = (str(join.args.get(name) or "").upper() for name in ("kind", "side"))
    known = ("this", "on", "using", "kind", "side")
    extras = [name for name, value in join.args.items() if value and name not in known]
    if extras or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        words = " ".join(
            word for word in (*(str(join.args[name]).upper()[:40] for name in extras[:1]), side, kind) if word
        )
        raise QueryError(f"{words} JOIN is not answered; write JOIN or LEFT JOIN with ON a.key = b.key")
    earlier = list(scope.sources)
    right = table_of(join.this, scope)
    pairs = _using(join, earlier, right, scope) if join.args.get("using") else _on(join, right, scope)
    scope.take_pairs(len(set(pairs)))
    return right, pairs


def attach(pairs: Pairs, earlier: list[Source], right: Source, scope: Scope, unit: Field | None) -> Pairs:
    """Hang a private table on the ones before it; the pair of unit keys that must agree besides, if both are there."""
    private = [source for source in earlier if source.private]
    if not private:
        if right.optional:
            raise QueryError(
                f"a LEFT JOIN cannot start from a public table; write FROM {right.label} LEFT JOIN the public one"
            )
        return []
    own, known = scope.own_unit(right), unit if unit is not None else unit_of(private, scope)
    along = [_follows(first, second, scope, right) for first, second in pairs]
    if own is not None and known is not None:
        equal = {known} | {field for source in private if (field := scope.own_unit(source)) is not None}
        if any(along) or any(first in equal and second == own for first, second in pairs):
            return [(known, own)]
    for (first, _), way in zip(pairs, along, strict=True):
        owner = scope.named(first.source)
        if way == "child":
            scope.replace(replace(right, parent=owner.name))
            return []
        if way == "parent" and owner.parent is None and known is None:
            if right.optional:
                raise QueryError(
                    f"without {right.label} nothing says whose row it is, so LEFT is not answered; write JOIN"
                )
            scope.replace(replace(owner, parent=right.name))
            return []
        if way == "parent":
            raise QueryError(f"{owner.alias} is joined already to what it refers to; join {right.label} once")
    raise QueryError(
        f"{right.label} is joined on columns that no reference of the policy connects; "
        f"{_references(scope.policy, right.label)}"
    )


def unit_of(private: list[Source], scope: Scope) -> Field | None:
    """The first column that holds the unit's key in every row."""
    fields = (scope.own_unit(source) for source in private if not source.optional)
    return next((field for field in fields if field is not None), None)


def root_of(private: list[Source]) -> Source:
    """The table that says whose rows these are, when none holds the unit's key."""
    return next(source for source in private if source.parent is None and not source.optional)


def _follows(left: Field, right: Field, scope: Scope, new: Source) -> str | None:
    """Whether a pair of columns is a reference: the new table is then "parent" or "child" of the other."""
    owner = scope.named(left.source)
    if owner.table is None or new.table is None or owner.table.public:
        return None
    if owner.table.references.get(left.name) == (new.table.name, right.name):
        return "parent"
    return "child" if new.table.references.get(right.name) == (owner.table.name, left.name) else None


def _references(policy: Policy, right: str) -> str:
    known = [
        f"{table.name}.{column} = {target}.{key}"
        for table in policy.tables.values()
        for column, (target, key) in table.references.items()
        if right in (table.name, target)
    ]
    return "it can be joined ON " + " or ".join(known) if known else f"the policy declares no reference of {right}"


def table_of(node: exp.Expr, scope: Scope) -> Source:
    """A table that FROM or JOIN names, added to the scope."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        what = shown(node.this) if isinstance(node, exp.Table) else shown(node)
        raise QueryError(
            f"{what} is not a table of the policy; FROM takes tables the policy names, "
            "and one inner query in the first place"
        )
    if node.args.get("db") or node.args.get("catalog"):
        raise QueryError(f"{shown(node)}: write the table's name alone, as the policy does")
    extras = [name for name, value in node.args.items() if value and name not in ("this", "alias")]
    if extras:
        raise QueryError(f"{extras[0].strip('_').upper()} after a table is not answered; ask the whole table")
    if node.args.get("alias") and node.args["alias"].args.get("columns"):
        raise QueryError("column aliases after a table are not answered; use the names of the policy")
    return scope.add_table(node.name, node.alias_or_name)


def _on(join: exp.Join, right: Source, scope: Scope) -> Pairs:
    condition = join.args.get("on")
    if condition is None:
        raise QueryError(
            f"{right.alias} is joined on no equal columns; a cross join is not answered, write ON a.key = b.key"
        )
    pairs = []
    inner = condition.unnest()
    for part in conjuncts(inner) if isinstance(inner, exp.And) else (inner,):
        equality = part.unnest()
        sides = (equality.this.unnest(), equality.expression.unnest()) if isinstance(equality, exp.EQ) else ()
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            raise QueryError(f"ON {shown(part)}: joins are on equal columns; put other conditions into WHERE")
        first, second = (plain(scope.find(side)) for side in sides)
        if first.source == right.name:
            first, second = second, first
        if second.source != right.name or first.source == right.name:
            raise QueryError(f"ON {shown(part)} does not connect {right.alias} with the tables before it")
        pairs.append(comparable(first, second))
    return pairs


def _using(join: exp.Join, earlier: list[Source], right: Source, scope: Scope) -> Pairs:
    pairs = []
    for name in join.args["using"]:
        mine = right.matches(name.name)
        theirs = [match for source in earlier for match in source.matches(name.name)]
        merged = scope.merged.get(name.name.casefold())
        left = [merged] if merged is not None else theirs
        if len(left) != 1 or len(mine) != 1:
            raise QueryError(
                f"USING ({name.name[:60]}): the column must be in {right.alias} and in one table before it; write ON"
            )
        pair = comparable(plain(left[0]), plain(mine[0]))
        scope.merged[name.name.casefold()] = pair[0]
        pairs.append(pair)
    return pairs


def plain(subject: Field | Derived) -> Field:
    if isinstance(subject, Derived):
        raise QueryError("a computed column does not join; joins are on columns of tables")
    return subject


def comparable(first: Field, second: Field) -> tuple[Field, Field]:
    """Refuse pairs that could never be equal, or only by a cast that may fail."""
    kinds = {_kind(first.column), _kind(second.column)}
    if None not in kinds and (
        len(kinds) == 1 or kinds in ({"id", "text"}, {"id", "whole number"}, {"number", "whole number"})
    ):
        return first, second
    raise QueryError(
        f"{first.name} and {second.name} are of different kinds ({_kind(first.column) or 'unbounded'} and "
        f"{_kind(second.column) or 'unbounded'}) and do not join"
    )


def _kind(column: Column) -> str | None:
    match column:
        case Identifier():
            return "id"
        case Text():
            return "text"
        case Category():
            return {str: "text", int: "whole number", bool: "true/false"}[column.kind]
        case Number():
            return "whole number" if column.integer else "number"
        case Date():
            return "date"
        case Unbounded():
            return None
        case _:
            assert_never(column)


def equal_units(relation: Relation, unit: Field) -> frozenset[Field]:
    """Columns that joins make equal to the unit's key."""
    equal = {unit}
    while isinstance(relation, Join):
        for pair in relation.on:
            if not relation.optional and equal & set(pair):
                equal |= set(pair)
        relation = relation.left
    return frozenset(equal)


def equal_pairs(relation: Relation) -> Pairs:
    """The columns that joins make equal in every row."""
    found: Pairs = []
    while isinstance(relation, Join):
        found += [] if relation.optional else relation.on
        relation = relation.left
    return found
