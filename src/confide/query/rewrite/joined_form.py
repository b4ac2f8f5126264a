"""Inner queries that only filter, project or rename are written out, and tables with commas between are joined.

What is left is one SELECT over tables with JOIN ... ON equal columns, and inner queries that aggregate. A query that is
in this form already stays as it is. Sub-queries are merged where relational algebra lets a filter or a projection move
past a join: into FROM and inner joins, and to the optional side of a LEFT JOIN if they only rename.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.privacy.limits import LONGEST_QUERY, MOST_TABLES
from confide.query.parse import shown
from confide.query.rewrite.joined import JoinedTable, demands, joined
from confide.query.rewrite.names import FromPart, Names, columns_in, columns_of
from confide.query.scope import Catalog
from confide.query.spelling import nearest
from confide.query.view import PLACED

_FILTERS = ("expressions", "from_", "joins", "where", "with_", "order")
"""The clauses of a query that may be written out in place."""


_ROW_FUNCTIONS = (
    exp.And, exp.Or, exp.Abs, exp.Least, exp.Greatest, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Floor, exp.Ceil,
    exp.Round, exp.Trunc, exp.Sign, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Extract, exp.TimestampTrunc,
    exp.DateTrunc, exp.TsOrDsToDate, exp.Date, exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Substring,
    exp.Cast, exp.TryCast, exp.DayOfMonth, exp.Week, exp.WeekOfYear, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear,
    exp.LastDay, exp.DateDiff, exp.DateAdd, exp.DateSub, exp.Length, exp.StrPosition, exp.StartsWith, exp.EndsWith,
    exp.Contains, exp.Replace, exp.Concat, exp.TimeToStr, exp.Dayname, exp.Monthname,
    exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Named:
    """A query of a WITH clause, the columns it is given there, and the queries that it may name."""

    select: exp.Select
    columns: tuple[str, ...]
    known: "Mapping[str, _Named]"


@dataclass(slots=True)
class _Block:
    """A SELECT taken apart: tables in order, conditions that all hold, and what is shown of them by name."""

    entries: list[JoinedTable] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)
    names: Names = field(default_factory=Names)


def joined_form(select: exp.Select, policy: Policy, catalog: Catalog) -> exp.Select:
    """The query with its inner queries written out and its joins explicit; itself, if there is nothing to do."""
    return _Rewriting(policy, catalog).plain(select, {})


@dataclass(slots=True)
class _Rewriting:
    policy: Policy
    catalog: Catalog
    taken: set[str] = field(default_factory=set)
    room: int = LONGEST_QUERY
    """Nodes that may be written in place of columns: what is written out of what is written out could double."""
    tables: int = 0

    def plain(self, select: exp.Select, known: Mapping[str, _Named]) -> exp.Select:
        if not self._needed(select, known):
            return select
        known = _with_named(select, known)
        block = self._block(select, known)
        if block is None:
            return select
        result = select.copy()
        result.set("with_", None)
        for item in list(result.expressions):
            inner = item.unalias()
            if isinstance(inner, exp.Column) and not item.alias and not isinstance(inner.this, exp.Star):
                item.replace(exp.alias_(inner.copy(), inner.name, quoted=True))
        aliases = {item.alias.casefold() for item in result.expressions if isinstance(item, exp.Alias)}
        for clause in ("expressions", "group", "having", "order"):
            value = result.args.get(clause)
            for node in value if isinstance(value, list) else [value] if value is not None else []:
                self._place(node, block.names, clause, aliases)
            if clause == "expressions":
                placed = {
                    item.alias.casefold(): item.this for item in result.expressions if isinstance(item, exp.Alias)
                }
            if clause == "group" and value is not None:
                _write_aliases(value, placed)
        joined(result, block.entries, block.conditions, self.policy)
        return result

    def _needed(self, select: exp.Select, known: Mapping[str, _Named]) -> bool:
        if select.args.get("with_") is not None:
            return True
        clause = select.args.get("from_")
        joins = select.args.get("joins") or []
        nodes = [*([clause.this] if clause is not None else []), *(join.this for join in joins)]
        return (
            any(isinstance(node, exp.Table) and node.name.casefold() in known for node in nodes)
            or any(isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) for node in nodes)
            or any(not _is_plain(join) for join in joins)
        )

    def _block(self, select: exp.Select, known: Mapping[str, _Named]) -> _Block | None:
        """The parts of a query's FROM and WHERE, inner queries merged; None where the binder has words for it."""
        clause = select.args.get("from_")
        if clause is None:
            return None
        block, visible = _Block(), Names()
        first = exp.Join(this=clause.this)
        for place, join in enumerate((first, *(select.args.get("joins") or ()))):
            side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
            method = str(join.args.get("method") or "").upper()
            extras = [
                n for n, v in join.args.items() if v and n not in ("this", "on", "using", "side", "kind", "method")
            ]
            if (
                extras
                or side not in ("", "LEFT")
                or kind not in ("", "INNER", "OUTER", "CROSS")
                or method not in ("", "NATURAL")
            ):
                return None
            part = self._part(join.this, known, optional=side == "LEFT", block=block)
            if part is None:
                return None
            earlier = list(visible.parts)
            visible.add(part)
            conditions = _equalities(join, earlier, part, visible)
            if join.args.get("on") is not None:
                conditions.append(join.args["on"].copy())
            conditions = [self._placed(condition, visible) for condition in conditions]
            if side == "LEFT":
                block.entries[-1].on = [own for condition in conditions for own in demands(condition)]
            elif place:
                block.conditions += conditions
        order = select.args.get("order")
        for item in order.expressions if order is not None and _only_filters(select) else ():
            if not any(item.this.name.casefold() == own.alias.casefold() for own in select.expressions if own.alias):
                self._placed(item.this.copy(), visible)  # the order of an inner query means nothing, but must be one
        where = select.args.get("where")
        if where is not None:
            block.conditions.append(self._placed(where.this.copy(), visible))
        block.names = visible
        return block

    def _part(self, node: exp.Expr, known: Mapping[str, _Named], *, optional: bool, block: _Block) -> FromPart | None:
        """A table or an inner query, put into the block; None if it is neither."""
        if isinstance(node, exp.Table) and not node.args.get("db") and node.name.casefold() in known:
            named = known[node.name.casefold()]
            return self._inner(
                named.select,
                node.alias_or_name,
                _given(node) + named.columns[len(_given(node)) :],
                named.known,
                optional,
                block,
            )
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            if any(value for name, value in node.args.items() if name not in ("this", "alias")):
                return None
            return self._inner(node.this, node.alias or self._fresh("inner"), _given(node), known, optional, block)
        plain_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if not plain_table or any(value for name, value in node.args.items() if name not in ("this", "alias")):
            return None
        columns = columns_of(node.name, self.policy, self.catalog)
        if columns is None:
            tables = nearest(node.name, self.policy.tables, "the policy has")
            raise QueryError(f"there is no table {node.name[:60]}; {tables}")
        if _given(node):
            return None
        self._take_table()
        alias, own = node.alias_or_name, self._fresh(node.alias_or_name)
        block.entries.append(
            JoinedTable(own, exp.alias_(exp.Table(this=node.this.copy()), own, table=True, quoted=True), optional)
        )
        return FromPart(alias, node, columns, {name.casefold(): _column(own, name) for name in columns})

    def _inner(
        self,
        select: exp.Select,
        alias: str,
        given: tuple[str, ...],
        known: Mapping[str, _Named],
        optional: bool,
        block: _Block,
    ) -> FromPart | None:
        """An inner query: merged if it only filters, projects or renames, else kept as it is, in plain form itself."""
        if _only_filters(select):
            inner = self._block(select, _with_named(select, known))
            if inner is not None and (not optional or (len(inner.entries) == 1 and not inner.conditions)):
                outputs = self._outputs(select, inner, given)
                # Where a LEFT JOIN finds nothing a column is NULL, and what is computed of it may not be.
                computed = any(not isinstance(stood, exp.Column) for _, stood in outputs or ())
                if outputs is not None and not (optional and computed):
                    if optional:
                        inner.entries[0].optional = True
                    block.entries += inner.entries
                    block.conditions += inner.conditions
                    stands = {name.casefold(): stood for name, stood in outputs}
                    return FromPart(alias, select, tuple(name for name, _ in outputs), stands)
        self._take_table()
        kept = _Rewriting(self.policy, self.catalog, set(), self.room, self.tables).plain(select, known).copy()
        if len(given) > len(kept.expressions):
            raise QueryError(f"{alias[:60]} has {len(kept.expressions)} columns, and {len(given)} names are given")
        for item, name in zip(list(kept.expressions), given, strict=False):
            item.replace(exp.alias_(item.unalias().copy(), name, quoted=True))
        unnamed = next((item for item in kept.expressions if not item.alias_or_name), None)
        if unnamed is not None:
            raise QueryError(f"give {shown(unnamed)} a name in the inner query: {shown(unnamed)} AS total")
        own = self._fresh(alias)
        columns = tuple(item.alias_or_name for item in kept.expressions)
        node = exp.Subquery(this=kept, alias=exp.TableAlias(this=exp.to_identifier(own, quoted=True)))
        block.entries.append(JoinedTable(own, node, optional))
        return FromPart(alias, node, columns, {name.casefold(): _column(own, name) for name in columns if name})

    def _outputs(self, select: exp.Select, inner: _Block, given: tuple[str, ...]) -> list[tuple[str, exp.Expr]] | None:
        """What an inner query shows, by name; `given` are names that stand after its alias."""
        found: list[tuple[str, exp.Expr]] = []
        for item in select.expressions:
            node = item.unalias()
            star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
            if isinstance(star, exp.Star):
                if any(star.args.values()):
                    return None
                wanted = node.table.casefold() if isinstance(node, exp.Column) else ""
                for part in inner.names.parts:
                    if not wanted or part.alias.casefold() == wanted:
                        merged = inner.names.merged
                        found += [
                            (name, part.stands[name.casefold()])
                            for name in part.columns
                            if wanted or merged.get(name.casefold(), part) is part
                        ]
                continue
            named = item.alias or isinstance(node, exp.Column)  # what has no name nothing can ask for
            found.append((item.alias_or_name if named else "", self._placed(node.copy(), inner.names)))
        if len(given) > len(found):
            raise QueryError(f"the inner query has {len(found)} columns, and {len(given)} names are given after it")
        found = [(name, stood) for name, (_, stood) in zip(given, found, strict=False)] + found[len(given) :]
        named = [name.casefold() for name, _ in found if name]
        if len(set(named)) < len(named):
            raise QueryError("two columns of an inner query have one name; give one another with AS")
        return [(name, stood) for name, stood in found if name]

    def _placed(self, node: exp.Expr, names: Names) -> exp.Expr:
        """An expression with every column as what it stands for."""
        holder = exp.Paren(this=node)
        self._place(holder, names, "where", set())
        return holder.this  # type: ignore[no-any-return]

    def _place(self, node: exp.Expr, names: Names, clause: str, aliases: set[str]) -> None:
        """Aliases of the SELECT stay in HAVING and ORDER BY, and in GROUP BY where no column has the name."""
        for column in list(columns_in(node)):
            if not column.table and column.name.casefold() in aliases:
                in_order = clause in ("having", "order") and column.find_ancestor(exp.AggFunc) is None
                if in_order or (clause == "group" and not names.holds(column.name)):
                    continue
            if column.args.get("db") or column.args.get("catalog"):
                raise QueryError(f"{shown(column)}: write table.column or just the column")
            owner = names.owner(column)
            stands = owner.stands[column.name.casefold()].copy()
            self.room -= sum(1 for _ in stands.walk())
            if self.room < 0:
                raise QueryError("the query is too large when its inner queries are written out; ask with fewer")
            if isinstance(stands, exp.Column):
                stands.meta[PLACED] = True
            elif not isinstance(stands, exp.Literal | exp.Paren | exp.Func):
                stands = exp.Paren(this=stands)
            column.replace(stands)

    def _take_table(self) -> None:
        self.tables += 1
        if self.tables > MOST_TABLES:
            raise QueryError(f"the query names more than {MOST_TABLES} tables")

    def _fresh(self, alias: str) -> str:
        """A name that no table of the query has yet."""
        name, number = alias, 1
        while name.casefold() in self.taken:
            number += 1
            name = f"{alias}_{number}"
        self.taken.add(name.casefold())
        return name


def _write_aliases(group: exp.Expr, placed: Mapping[str, exp.Expr]) -> None:
    """What an alias in GROUP BY stands for: tables have columns that an inner query does not show, of any name."""
    for column in list(columns_in(group)):
        if not column.table and column.name.casefold() in placed:
            column.replace(exp.Paren(this=placed[column.name.casefold()].copy()))


def _with_named(select: exp.Select, known: Mapping[str, _Named]) -> dict[str, _Named]:
    """The queries of WITH, each of which may name the ones before it."""
    clause, found = select.args.get("with_"), dict(known)
    if clause is None:
        return found
    if clause.args.get("recursive"):
        raise QueryError("recursive queries are not answered; ask each level by itself")
    used = {table.name.casefold() for table in select.find_all(exp.Table)}
    own: set[str] = set()
    inside = {
        table.name.casefold()
        for part in select.find_all(exp.Exists, exp.In)
        for query in (part.this if isinstance(part, exp.Exists) else part.args.get("query"),)
        if query is not None
        for table in query.find_all(exp.Table)
    }
    for item in clause.expressions:
        name = item.alias.casefold()
        if not isinstance(item.this, exp.Select) or item.args.get("scalar"):
            raise QueryError("WITH takes a plain query: WITH t AS (SELECT a, b FROM ... WHERE ...)")
        if name in own:
            raise QueryError(f"WITH names {item.alias[:60]} twice")
        if name in inside:
            raise QueryError(
                f"WITH {item.alias[:60]} is named in EXISTS or IN; name its table there, with the conditions"
            )
        if name not in used:
            raise QueryError(f"WITH {item.alias[:60]} is not used in FROM; leave it out")
        own.add(name)
        columns = tuple(column.name for column in item.args["alias"].args.get("columns") or ())
        found[name] = _Named(item.this, columns, dict(found))
    return found


def _only_filters(select: exp.Select) -> bool:
    if any(value for name, value in select.args.items() if name not in _FILTERS):
        return False
    order = select.args.get("order")
    items = [*select.expressions, *(order.expressions if order is not None else ())]
    return all(_of_one_row(own) for item in items for own in item.walk())


def _of_one_row(node: exp.Expr) -> bool:
    """Whether a node is one that makes one value of one row; of functions that nobody knows nothing is assumed."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper() in ("BIN", "DATE_PART", "DATEPART", "WEEKDAY", "ISODOW", "ISOYEAR")
    if isinstance(node, exp.Query | exp.Window | exp.AggFunc | exp.UDTF):
        return False
    return not isinstance(node, exp.Func) or isinstance(node, _ROW_FUNCTIONS)


def _is_plain(join: exp.Join) -> bool:
    """An explicit join on equal columns, or one that the binder refuses in its own words."""
    if join.args.get("using"):
        return True
    on = join.args.get("on")
    if on is None or join.args.get("method"):
        return False
    return str(join.args.get("side") or "").upper() != "" or all(_is_pair(own) for own in demands(on))


def _is_pair(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and all(isinstance(s.unnest(), exp.Column) for s in (node.this, node.expression))


def _equalities(join: exp.Join, earlier: list[FromPart], part: FromPart, visible: Names) -> list[exp.Expr]:
    """What USING and NATURAL make equal. The merged column is that of the earlier table."""
    names = [name.name for name in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        known = {column.casefold() for own in earlier for column in own.columns}
        names = [column for column in part.columns if column.casefold() in known]
        if not names:
            raise QueryError(f"NATURAL JOIN {part.alias[:60]}: no column has the same name; write ON a.key = b.key")
    found: list[exp.Expr] = []
    for name in names:
        merged = visible.merged.get(name.casefold())
        left = [merged] if merged is not None else [own for own in earlier if own.has(name)]
        if len(left) != 1 or not part.has(name):
            raise QueryError(
                f"USING ({name[:60]}): the column must be in {part.alias[:60]} and in one table before it; write ON"
            )
        visible.merged[name.casefold()] = left[0]
        found.append(exp.EQ(this=_column(left[0].alias, name), expression=_column(part.alias, name)))
    return found


def _given(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(column.name for column in alias.args.get("columns") or ()) if alias is not None else ()


def _column(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))
