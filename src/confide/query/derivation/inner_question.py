"""A SELECT over rows of the data, taken apart: the question that it asks, and what it makes of the answer."""

from dataclasses import replace

from sqlglot import exp

from confide.errors import QueryError
from confide.query.derivation.derivation import DerivedColumn
from confide.query.derivation.shape import REALS, Known, alike, has_aggregate, is_aggregate, is_zero
from confide.query.key_value import key_kind
from confide.query.literal import bare
from confide.query.parse import shown
from confide.query.question import Question, ShownKey
from confide.query.released_kind import day_of, is_date_cast, is_label, released_kind, unwrapped

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_LEFT = ("having", "qualify", "windows", "order", "limit", "offset", "distinct", "with_")


class InnerQuestion:
    """The keys of a SELECT, and the largest parts of it that a question says by itself: aggregates, and arithmetic on
    them. `select` asks for them; everything else is a derivation.
    """

    def __init__(self, select: exp.Select, known: Known, keys: list[exp.Expr]) -> None:
        self.keys = keys
        self._known = known
        self._values: list[exp.Expr] = []
        self._aliases = {i.alias.casefold(): bare(i.this) for i in select.expressions if isinstance(i, exp.Alias)}
        for clause in ("expressions", "having", "qualify", "order", "windows"):
            value = select.args.get(clause)
            for node in value if isinstance(value, list) else [] if value is None else [value]:
                self._collect(node)
        self.names = tuple(self._key_name(node, select, place) for place, node in enumerate(keys))
        self.select = self._question(select)

    def place(self, node: exp.Expr) -> int | None:
        """The column of the question's answer that an expression stands for."""
        found = [place for place, key in enumerate(self.keys) if alike(node, key)]
        if len(found) > 1:
            raise QueryError(f"{shown(node)} could be several keys of GROUP BY; write the table before it")
        if found:
            return found[0]
        values = (p for p, own in enumerate(self._values) if type(own) is type(node) and alike(own, node))
        own = next(values, None)
        if own is None and is_aggregate(node):
            raise QueryError(f"{shown(node)} stands inside another aggregate; write the inner one into an inner query")
        if own is None and isinstance(node, exp.Column) and node.name.casefold() not in self._aliases:
            raise QueryError(f"{shown(node)} is neither in GROUP BY nor inside an aggregate; rows never leave the data")
        return None if own is None else len(self.keys) + own

    def columns(self, question: Question) -> tuple[DerivedColumn, ...]:
        """What is known of the columns of the answer: keys under the names that they have here, then values."""
        found = [
            DerivedColumn(column.name, key_kind(question.keys[column.key]), public=True)
            if isinstance(column, ShownKey)
            else DerivedColumn(column.name, released_kind(column.value), public=False, label=is_label(column.value))
            for column in question.columns
        ]
        named = [replace(own, name=name) for own, name in zip(found, self.names, strict=False)]
        return (*named, *found[len(named) :])

    def _collect(self, root: exp.Expr) -> None:
        pending = [root]
        while pending:
            node = pending.pop()
            inner = bare(node)
            if any(alike(inner, key) for key in self.keys) or isinstance(inner, exp.Query):
                continue
            if isinstance(inner, exp.Window):
                called = inner.this.this if isinstance(inner.this, exp.Filter) else inner.this
                rest = [called] if not isinstance(called, exp.Identifier) else []
                pending += [part for own in rest for part in own.iter_expressions()]
                pending += inner.args.get("partition_by") or ()
                pending += [inner.args["order"]] if inner.args.get("order") is not None else []
            elif _said(inner) == 2:
                if not any(alike(inner, own) for own in self._values):
                    self._values.append(inner)
            else:
                pending += inner.iter_expressions()

    def _key_name(self, node: exp.Expr, select: exp.Select, place: int) -> str:
        named = next((i.alias for i in select.expressions if i.alias and alike(i.unalias(), node)), "")
        return named or (node.name if isinstance(node, exp.Column) else f"key_{place + 1}")

    def _question(self, select: exp.Select) -> exp.Select:
        result = select.copy()
        for clause in _LEFT:
            result.set(clause, None)
        taken: set[str] = set()
        items = []
        for name, node in zip(
            (*self.names, *("value" for _ in self._values)), (*self.keys, *self._values), strict=True
        ):
            free, number = name, 1
            while {f"{free}{end}".casefold() for end in ("", "_low", "_high")} & taken:
                number += 1
                free = f"{name}_{number}"
            taken |= {f"{free}{end}".casefold() for end in ("", "_low", "_high")}
            items.append(exp.alias_(node.copy(), free, quoted=True))
        result.set("expressions", items)
        group = exp.Group(expressions=[node.copy() for node in self.keys]) if self.keys else None
        if group is not None or select.args.get("group") is None:
            result.set("group", group)
        used = _used(result, self._known)
        if used:
            result.set("with_", exp.With(expressions=used))
        return result


def _said(node: exp.Expr) -> int:
    """2 for an aggregate and for arithmetic on aggregates, 1 for a number, 0 for anything else."""
    inner = bare(node)
    if is_aggregate(inner):
        return 2
    if (isinstance(inner, exp.Literal) and not inner.is_string) or day_of(inner) is not None:
        return 1
    if isinstance(inner, exp.DateDiff) and has_aggregate(inner):
        return min(_said(unwrapped(inner.this)), 1) * min(_said(unwrapped(inner.expression)), 1) * 2
    if isinstance(inner, exp.Neg):
        return _said(inner.this)
    if isinstance(inner, _ARITHMETIC):
        left, right = _said(inner.this), _said(inner.expression)
        return max(left, right) if left and right else 0
    guarded = (
        (isinstance(inner, exp.Nullif) and is_zero(inner.expression))
        or (isinstance(inner, exp.Coalesce) and len(inner.expressions) == 1 and is_zero(inner.expressions[0]))
        or (isinstance(inner, exp.Cast) and inner.to.this in REALS)
        or (is_date_cast(inner) and has_aggregate(inner))
    )
    return _said(inner.this) if guarded else 0


def _used(select: exp.Select, known: Known) -> list[exp.Expr]:
    """The queries of WITH that a question names, in an order in which each names only those before it."""
    found: dict[int, exp.Expr] = {}

    def visit(node: exp.Expr, around: Known) -> None:
        for table in node.find_all(exp.Table):
            named = None if table.args.get("db") else around.get(table.name.casefold())
            if named is None or id(named.query) in found:
                continue
            visit(named.query, named.known)
            alias = exp.TableAlias(
                this=exp.to_identifier(table.name, quoted=True),
                columns=[exp.to_identifier(column, quoted=True) for column in named.columns],
            )
            found[id(named.query)] = exp.CTE(this=named.query.copy(), alias=alias)

    visit(select, known)
    return list(found.values())
