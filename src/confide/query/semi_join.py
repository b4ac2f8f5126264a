"""EXISTS and IN of a query: rows that have, or have not, a partner in other tables.

A partner is looked for in public tables, or along references that the policy declares: a child of a row, its parent, or
what holds the unit's own key. As in a join, a private table of the inner query must hang on one around it, and where
both hold the unit's key they agree on it. So whether a row passes follows from rows of its own unit and public ones
alone, and no other unit can change it. A unit has no more rows than it has without the condition: sensitivities are
those of the outer query. Neighbours are those of the policy.

A row without a key belongs to nobody, so NULL in an inner column is no value, for NOT IN as well.
"""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import KeyUnit
from confide.query.comparison import joined
from confide.query.expression import predicate
from confide.query.join import Pairs, attach, comparable, plain, table_of
from confide.query.literal import bare
from confide.query.parse import conjuncts, shown
from confide.query.scope import Scope, Source
from confide.query.tree import Field, Join, Known, Matched, Predicate, Scan

_ADVICE = "write WHERE EXISTS (SELECT 1 FROM b WHERE b.key = a.key AND ...), or IN (SELECT b.key FROM b WHERE ...)"
_READ = ("expressions", "from_", "joins", "where", "distinct")


def matched(node: exp.Exists | exp.In, scope: Scope, negated: bool) -> Predicate:
    """A condition that a row has a partner, or (negated) none."""
    if not scope.matching:
        raise QueryError(f"EXISTS and IN of a query stand in WHERE; {_ADVICE}")
    select = node.this if isinstance(node, exp.Exists) else bare(node.args["query"]).this
    if isinstance(select, exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select) or any(v for n, v in select.args.items() if n not in _READ):
        raise QueryError(f"an inner query in WHERE has SELECT, FROM, JOIN and WHERE; {_ADVICE}")
    inner = Scope(scope.policy, scope.catalog, scope.names, scope.room, outer=scope)
    conditions = _tables(select, inner)
    wanted: Field | None = None
    if isinstance(node, exp.In):
        wanted = _column(node.this, scope)
        if len(select.expressions) != 1:
            raise QueryError("IN takes a query of one column: IN (SELECT key FROM b WHERE ...)")
        pairs = [(wanted, _column(select.expressions[0].unalias(), inner))]
    else:
        pairs = []
    rest = []
    for part in conditions:
        found = _pair(part, inner)
        if found is None:
            rest.append(part)
        else:
            pairs.append(found)
    relation, on, unused = _hung(pairs, inner, scope)
    others = tuple(predicate(part, inner) for part in rest)
    if unused:
        raise QueryError(
            f"{unused[0][0].name} = {unused[0][1].name} connects no table of the inner query; leave it out"
        )
    scope.inner_tables += [source.table.name for source in inner.sources if source.private and source.table is not None]
    partner = Matched(relation, on, joined(others, every=True), negated)
    if wanted is None or not negated:
        return partner
    return joined((Known(wanted, negated=False), partner), every=True)


def _tables(select: exp.Select, inner: Scope) -> list[exp.Expr]:
    """Adds the tables of an inner query to its scope; gives all its conditions."""
    clause = select.args.get("from_")
    if clause is None:
        raise QueryError(f"the inner query has no FROM; {_ADVICE}")
    table_of(clause.this, inner)
    found: list[exp.Expr] = []
    for join in select.args.get("joins") or ():
        if any(value for name, value in join.args.items() if name not in ("this", "on", "kind")) or (
            str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS")
        ):
            raise QueryError("tables of an inner query in WHERE are joined with JOIN ... ON, or with commas")
        table_of(join.this, inner)
        found += _parts(join.args.get("on"))
    where = select.args.get("where")
    return found + _parts(None if where is None else where.this)


def _parts(node: exp.Expr | None) -> list[exp.Expr]:
    if node is None:
        return []
    inner = bare(node)
    if not isinstance(inner, exp.And):
        return [inner]
    return [own for part in conjuncts(inner) for own in _parts(part)]


def _column(node: exp.Expr, scope: Scope) -> Field:
    inner = bare(node)
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        raise QueryError(f"{shown(node)} IN (SELECT ...): both sides are columns; {_ADVICE}")
    return plain(scope.find(inner))


def _pair(part: exp.Expr, inner: Scope) -> tuple[Field, Field] | None:
    """Two columns that must be equal, one of them of the inner query."""
    if not isinstance(part, exp.EQ):
        return None
    sides = (bare(part.this), bare(part.expression))
    if not all(isinstance(side, exp.Column) for side in sides):
        return None
    one, two = (inner.find(side) for side in sides)  # type: ignore[arg-type]
    if not isinstance(one, Field) or not isinstance(two, Field) or one.source == two.source:
        return None
    return one, two


def _hung(pairs: Pairs, inner: Scope, scope: Scope) -> tuple[Scan | Join, tuple[tuple[Field, Field], ...], Pairs]:
    """The inner tables as a relation, each hung on one before it, and the pairs that tie them to the outer row."""
    policy = scope.policy
    around = Scope(policy, scope.catalog, scope.names, scope.room)
    around.sources = list(scope.sources)
    waiting, left = list(inner.sources), list(pairs)
    relation: Scan | Join | None = None
    on: Pairs = []
    while waiting:
        known = {source.name for source in around.sources}
        right = next((own for own in waiting if any(_ends_in(pair, own, known) for pair in left)), None)
        if right is None:
            raise QueryError(
                f"{waiting[0].alias} in the inner query has no column that equals one of the query around it; {_ADVICE}"
            )
        waiting.remove(right)
        own = [_oriented(pair, right) for pair in left if _ends_in(pair, right, known)]
        left = [pair for pair in left if not _ends_in(pair, right, known)]
        own = [comparable(*pair) for pair in own]
        scope.take_pairs(len(own))
        earlier = list(around.sources)
        around.sources.append(right)
        assert right.table is not None
        if not right.table.public:
            if not isinstance(policy.unit, KeyUnit):
                raise QueryError(
                    "under `unit: row` a row of another private table could change any number of rows; EXISTS and "
                    "IN are answered of public tables"
                )
            implied = [(other, second) for first, second in own for other in scope.equal_to(first)]
            own += attach([*own, *implied], earlier, right, around, scope.unit)
        scan = Scan(right.table.name, right.name, right.table.public)
        tied = [pair for pair in own if any(source.name == pair[0].source for source in scope.sources)]
        on += tied
        within = tuple(dict.fromkeys(pair for pair in own if pair not in tied))
        if relation is None:
            relation = scan
        elif within:
            relation = Join(relation, scan, within, optional=False)
        else:
            raise QueryError(f"{right.alias} is joined to no table of the inner query; ask two conditions instead")
    assert relation is not None
    return relation, tuple(dict.fromkeys(on)), left


def _ends_in(pair: tuple[Field, Field], right: Source, known: set[str]) -> bool:
    ends = {field.source for field in pair}
    return right.name in ends and bool((ends - {right.name}) & known)


def _oriented(pair: tuple[Field, Field], right: Source) -> tuple[Field, Field]:
    return pair if pair[1].source == right.name else (pair[1], pair[0])
