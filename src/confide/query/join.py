"""Joins: private tables along declared references, public tables on equal columns."""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import KeyUnit, Policy, Table
from confide.query.parse import conjuncts
from confide.query.scope import Scope, Source
from confide.query.tree import Derived, Field, Join, Reading, Relation, Scan


def bind_join(left: Relation, join: exp.Join, scope: Scope, unit: Field | None) -> Relation:
    kind, side = (join.args.get(name) or "" for name in ("kind", "side"))
    if join.args.get("method") or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        words = " ".join(word for word in (join.args.get("method"), side, kind) if word)
        raise QueryError(f"a {words} JOIN is not answered; write JOIN or LEFT JOIN with ON a.key = b.key")
    earlier = list(scope.sources.values())
    right = table_of(join.this, scope)
    assert right.table is not None
    pairs = _using(join, earlier, right, scope) if join.args.get("using") else _on(join, right, scope)
    optional = side == "LEFT"
    if not right.table.public:
        pairs += _private_pairs(pairs, earlier, right, scope, unit, optional)
    return Join(left, Scan(right.table.name, right.alias, right.table.public), tuple(dict.fromkeys(pairs)), optional)


def _private_pairs(
    pairs: list[tuple[Field, Field]],
    earlier: list[Source],
    right: Source,
    scope: Scope,
    unit: Field | None,
    optional: bool,
) -> list[tuple[Field, Field]]:
    """Check that a join of private tables follows a reference; the pairs of unit columns that must agree besides."""
    if not isinstance(scope.policy.unit, KeyUnit):
        return []
    if all(not source.private for source in earlier) and optional:
        raise QueryError(
            f"a LEFT JOIN cannot start from a public table; write FROM {right.alias} LEFT JOIN the public one"
        )
    own = own_unit(right, scope.policy)
    others = [own_unit(source, scope.policy) for source in earlier] if unit is None else [unit]
    agree = [(other, own) for other in others if other is not None and own is not None]
    private_earlier = [source for source in earlier if source.private]
    if private_earlier and not any(_follows(a, b, private_earlier, right) or (a, b) in agree for a, b in pairs):
        assert right.table is not None
        raise QueryError(
            f"{right.table.name} is joined on columns that no reference of the policy connects; "
            f"{_references(scope.policy, right.table, private_earlier)}"
        )
    if private_earlier and not agree and not any(_follows(a, b, private_earlier, right) for a, b in pairs):
        raise QueryError(
            f"nothing says that a row of {right.alias} belongs to the same unit; join it along its reference"
        )
    if optional and not agree:
        raise QueryError(f"a LEFT JOIN of {right.alias} needs the unit's key in both tables; write JOIN")
    return agree


def _follows(left: Field, right: Field, earlier: list[Source], new: Source) -> bool:
    owner = next((source for source in earlier if source.alias == left.source), None)
    if owner is None or owner.table is None or new.table is None:
        return False
    forward = owner.table.references.get(left.name) == (new.table.name, right.name)
    return forward or new.table.references.get(right.name) == (owner.table.name, left.name)


def _references(policy: Policy, right: Table, earlier: list[Source]) -> str:
    known = [
        f"{table.name}.{column} = {target}.{key}"
        for table in policy.tables.values()
        for column, (target, key) in table.references.items()
        if right.name in (table.name, target)
    ]
    return "it can be joined ON " + " or ".join(known) if known else f"the policy declares no reference of {right.name}"


def _on(join: exp.Join, right: Source, scope: Scope) -> list[tuple[Field, Field]]:
    condition = join.args.get("on")
    if condition is None:
        raise QueryError(f"{right.alias} is joined without ON; a cross join is not answered, write ON a.key = b.key")
    pairs = []
    for part in conjuncts(condition) if isinstance(condition, exp.And) else (condition,):
        equality = part.unnest()
        if not isinstance(equality, exp.EQ) or not all(
            isinstance(side, exp.Column) for side in (equality.this, equality.expression)
        ):
            raise QueryError(f"ON {part.sql()[:60]}: joins are on equal columns; put other conditions into WHERE")
        first, second = plain(scope.field(equality.this)), plain(scope.field(equality.expression))
        if first.source == right.alias:
            first, second = second, first
        if second.source != right.alias or first.source == right.alias:
            raise QueryError(f"ON {part.sql()[:60]} does not connect {right.alias} with the tables before it")
        pairs.append((first, second))
    return pairs


def _using(join: exp.Join, earlier: list[Source], right: Source, scope: Scope) -> list[tuple[Field, Field]]:
    pairs = []
    for name in join.args["using"]:
        owners = [source for source in earlier if name.name in source.columns]
        if len(owners) != 1 or name.name not in right.columns:
            raise QueryError(
                f"USING ({name.name}): the column must be in {right.alias} and in one table before it; write ON"
            )
        pairs.append(
            (Field(owners[0].alias, owners[0].columns[name.name]), Field(right.alias, right.columns[name.name]))
        )
    return pairs


def plain(subject: Field | Reading | Derived) -> Field:
    if isinstance(subject, Derived):
        raise QueryError(f"{subject.name} is computed; joins are on columns of tables")
    return subject.field if isinstance(subject, Reading) else subject


def own_unit(source: Source, policy: Policy) -> Field | None:
    """The column of this source that holds the unit's key itself, if it has one."""
    if not isinstance(policy.unit, KeyUnit) or source.table is None or source.table.public:
        return None
    if source.table.name == policy.unit.table:
        return Field(source.alias, source.columns[policy.unit.column])
    path = policy.unit_path(source.table.name)
    return Field(source.alias, source.columns[path[0].column]) if len(path) == 1 else None


def table_of(node: exp.Expr, scope: Scope) -> Source:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        what = node.this.sql()[:60] if isinstance(node, exp.Table) else node.sql()[:60]
        raise QueryError(f"{what} is not a table of the policy; FROM takes tables the policy names")
    if node.args.get("db") or node.args.get("catalog"):
        raise QueryError(f"{node.sql()[:60]}: write the table's name alone, as the policy does")
    extras = [name for name, value in node.args.items() if value and name not in ("this", "alias")]
    if extras:
        raise QueryError(f"{extras[0].upper()} after a table is not answered")
    if node.args.get("alias") and node.args["alias"].args.get("columns"):
        raise QueryError("column aliases after a table are not answered")
    return scope.add_table(node.name, node.alias)


def equal_units(relation: Relation, unit: Field) -> set[Field]:
    """Columns that a join makes equal to the unit's key."""
    equal = {unit}
    while isinstance(relation, Join):
        for pair in relation.on:
            if not relation.optional and equal & set(pair):
                equal |= set(pair)
        relation = relation.left
    return equal
