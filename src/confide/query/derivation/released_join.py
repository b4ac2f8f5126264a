"""FROM over released tables: joins on equal keys, which are public."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query.derivation.bound_table import BoundTable
from confide.query.derivation.derivation import MatchedTables
from confide.query.derivation.public_rows import keyed_by
from confide.query.derivation.released_expression import ReleasedNames, VisibleColumn
from confide.query.derivation.released_function import deeper
from confide.query.derivation.shape import Known, Shapes
from confide.query.literal import bare
from confide.query.parse import conjuncts, shown

Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class JoinedSource:
    bound: BoundTable
    names: ReleasedNames


@dataclass(frozen=True, slots=True)
class ReleasedFrom:
    """`source` binds one table of a FROM."""

    shapes: Shapes
    source: Callable[[exp.Expr, Known], BoundTable]
    public: Callable[[exp.Expr, exp.Select, Known], BoundTable | None]

    def joined(self, select: exp.Select, known: Known) -> JoinedSource:
        first = select.args["from_"].this
        bound = self._bound(first, known, select)
        found = JoinedSource(bound, ReleasedNames(_visible(first, bound, 0)))
        for join in select.args.get("joins") or ():
            found = self._join(found, join, known, select)
        return found

    def _bound(self, node: exp.Expr, known: Known, select: exp.Select) -> BoundTable:
        if not self.shapes.released(node, known):
            listed = self.public(node, select, known)
            if listed is not None:
                return listed
            raise QueryError(
                f"{shown(node)} holds rows, and what it is joined to was released; join rows before they are counted, "
                "or aggregate both and join on their keys"
            )
        return self.source(node, known)

    def _join(self, left: JoinedSource, join: exp.Join, known: Known, select: exp.Select) -> JoinedSource:
        side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
        read = ("this", "on", "using", "side", "kind", "method")
        extras = [name for name, value in join.args.items() if value and name not in read]
        if extras or kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL"):
            raise QueryError(f"{shown(join)} is not answered over released tables; write JOIN ... USING (key)")
        right = self._bound(join.this, known, select)
        width = len(left.bound.columns)
        names = ReleasedNames([*left.names.visible, *_visible(join.this, right, width)], set(left.names.merged))
        taken = [own.table.casefold() for own in left.names.visible]
        alias = join.this.alias_or_name
        if alias.casefold() in taken:
            raise QueryError(f"two tables are called {alias[:60]}; give each its own alias: FROM t AS a JOIN t AS b")
        pairs = self._pairs(join, method, left, right, names, width)
        if not pairs and side == "" and kind != "OUTER":
            where = select.args.get("where")
            pairs = _equalities(where.this, names, width, strict=False) if where is not None else []
        if not pairs and (side or kind == "OUTER"):
            raise QueryError(f"{shown(join)}: an outer join needs equal keys: USING (key)")
        right = keyed_by(right, (second for _, second in pairs))
        if len(left.names.visible) == len(left.bound.columns):
            left = JoinedSource(keyed_by(left.bound, (first for first, _ in pairs)), left.names)
        outer = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}[side]
        if (outer in ("left", "full") and right.chosen) or (outer in ("right", "full") and left.bound.chosen):
            raise QueryError(
                "an outer join to rows that are chosen by value is not answered: whether a row has a partner would be "
                "uncertain; filter after the join, or write JOIN"
            )
        return _matched(left, right, names, outer, pairs, width)

    def _pairs(
        self, join: exp.Join, method: str, left: JoinedSource, right: BoundTable, names: ReleasedNames, width: int
    ) -> Pairs:
        """Equal columns: of USING and NATURAL by name, of ON as written. Places of the right ones begin at 0."""
        using = [own.name for own in join.args.get("using") or ()]
        if method == "NATURAL":
            known = {own.column.name.casefold() for own in left.names.visible if own.column.public}
            using = [own.name for own in right.columns if own.public and own.name.casefold() in known]
            if not using:
                raise QueryError(f"{shown(join)}: no key has the same name; write ON a.key = b.key")
        pairs: Pairs = []
        for name in using:
            one = left.names.find(exp.column(exp.to_identifier(name, quoted=True)))
            other = next(
                (place for place, own in enumerate(right.columns) if own.name.casefold() == name.casefold()), None
            )
            if one is None or other is None:
                raise QueryError(f"USING ({name[:60]}): both tables need the column")
            _require_keys(one.column.public and right.columns[other].public, join)
            names.merged.add(name.casefold())
            pairs.append((one.place, other))
        if join.args.get("on") is not None:
            pairs += _equalities(join.args["on"], names, width, strict=True)
        return pairs


def _matched(
    left: JoinedSource, right: BoundTable, names: ReleasedNames, outer: str, pairs: Pairs, width: int
) -> JoinedSource:
    one, two = left.bound, right
    if outer == "right":
        # A LEFT JOIN from the other side: its columns come first, and names know where they are.
        one, two, outer = right, left.bound, "left"
        pairs = [(second, first) for first, second in pairs]
        moved = [
            VisibleColumn(
                own.table, own.place - width if own.place >= width else own.place + len(right.columns), own.column
            )
            for own in names.visible
        ]
        if names.merged:
            moved.sort(key=lambda own: own.place)
        names = ReleasedNames(moved, names.merged)
    kind: Literal["inner", "left", "full"] = outer  # type: ignore[assignment]
    if kind == "full" and names.merged:
        raise QueryError("FULL JOIN ... USING is not answered; write ON a.key = b.key and COALESCE(a.key, b.key)")
    single_left = one.keyed is not None and one.keyed <= {first for first, _ in pairs}
    single_right = two.keyed is not None and two.keyed <= {second for _, second in pairs}
    keyed = None
    if one.keyed is not None and two.keyed is not None and kind != "full":
        keyed = one.keyed if single_right else one.keyed | {len(one.columns) + place for place in two.keyed}
    rows = None
    if one.rows is not None and two.rows is not None:
        rows = one.rows * two.rows
        rows = min(rows, one.rows) if single_right else min(rows, two.rows + one.rows) if single_left else rows
        rows = rows + one.rows + two.rows if kind == "full" else max(rows, one.rows) if kind == "left" else rows
    if rows is None and not (single_left or single_right):
        raise QueryError("how many keys are released is private here: join on all keys of one of the tables")
    table = MatchedTables(one.table, two.table, kind, tuple(pairs), (len(one.columns), len(two.columns)))
    depth = max(one.depth, two.depth)
    depth = deeper(depth) if one.chosen and two.chosen else depth
    columns, parts = (*one.columns, *two.columns), one.parts + two.parts + 1
    bound = BoundTable(table, columns, one.chosen or two.chosen, rows, parts, keyed, depth)
    return JoinedSource(bound, names)


def _visible(node: exp.Expr, bound: BoundTable, start: int) -> list[VisibleColumn]:
    alias = node.alias_or_name
    return [VisibleColumn(alias, start + place, column) for place, column in enumerate(bound.columns)]


def _equalities(node: exp.Expr, names: ReleasedNames, width: int, *, strict: bool) -> Pairs:
    """Equal columns of both sides. An ON says nothing else; of a WHERE the rest is a condition."""
    inner = bare(node)
    pairs: Pairs = []
    for part in _parts(inner):
        sides = [bare(side) for side in (part.this, part.expression)] if isinstance(part, exp.EQ) else []
        columns = [names.find(side) if isinstance(side, exp.Column) else None for side in sides]
        found = [column for column in columns if column is not None]
        if len(found) == 2 and (found[0].place < width) != (found[1].place < width):
            _require_keys(all(own.column.public for own in found), part)
            one, two = sorted(found, key=lambda own: own.place)
            pairs.append((one.place, two.place - width))
        elif strict:
            raise QueryError(
                f"ON {shown(part)}: released tables are joined on equal keys; put other conditions into WHERE"
            )
    return pairs


def _parts(node: exp.Expr) -> Iterable[exp.Expr]:
    return map(bare, conjuncts(node)) if isinstance(node, exp.And) else (node,)


def _require_keys(public: bool, node: exp.Expr) -> None:
    if not public:
        raise QueryError(f"{shown(node)}: released numbers differ by their noise; join on keys")
