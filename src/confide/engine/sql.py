"""From a summary to one SQL statement, built node by node and written by sqlglot in the engine's dialect.

Only total functions are used: no cast, division or sum here can raise, whatever a row holds. Comments name the reason where a
plainer form would not be total, exact, or the same on every engine.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Literal

from sqlglot import exp

from confide.policy import Category, Date
from confide.policy import Number as NumberColumn
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    BinnedKey,
    Both,
    Cell,
    Choice,
    Combined,
    Compare,
    Constant,
    DeclaredKey,
    Derived,
    Either,
    Field,
    FirstKnown,
    Join,
    Key,
    Known,
    Number,
    PerUnit,
    Predicate,
    Reading,
    Relation,
    SameField,
    Scaled,
    Scan,
    Span,
    Summary,
    TextIs,
    TextLike,
    UnknownKey,
)

Kind = Literal["integer", "wide integer", "float", "decimal", "text", "boolean", "date", "timestamp", "other"]
"""How a column is stored; part of a schema, not of the data."""

_NARROW = 1 << 62
_EXACT_FLOAT = 1 << 40
"""Below this, index arithmetic in double precision is off by less than 2⁻¹⁰, so clamping before rounding clamps the index."""
_SEPARATOR = "\x1f"
_CELL_FUNCTIONS = {"total": "SUM", "smallest": "MIN", "largest": "MAX"}


class Writer:
    """Writes statements for one source: `kinds` says how each (alias's) column is stored."""

    def __init__(self, kinds: Mapping[tuple[str, str], Kind], secret: bytes) -> None:
        self._kinds = kinds
        self._secret = secret.hex()
        self._tables: dict[str, str] = {}

    # --- the statement ---------------------------------------------------------------------------------------------------

    def summary(self, summary: Summary) -> exp.Select:
        """SELECT key places or values, then one integer per cell, one row per group that has rows."""
        self._tables = dict(_aliases(summary.relation))
        keys = [(f"k{i}", self._key(key)) for i, key in enumerate(summary.keys)]
        inputs, used = self._inputs(summary.cells)
        conditions = [] if summary.where == Always(True) else [self.predicate(summary.where)]
        if summary.bound is None:
            rows = self._rows(keys, inputs, summary.relation, conditions)
        else:
            rows = self._bounded(summary, keys, inputs, conditions)
        outputs = [_named(exp.column(name), name) for name, _ in keys]
        outputs += [_named(_aggregate(cell, used[i]), f"v{i}") for i, cell in enumerate(summary.cells)]
        counted = exp.select(*outputs, _named(_call("COUNT", exp.Star()), "n")).from_(rows.subquery("r"))
        if keys:
            counted = counted.group_by(*(exp.column(name) for name, _ in keys))
        domains = [part for i, key in enumerate(summary.keys) for part in _in_domain(key, f"k{i}")]
        if not domains or summary.bound is not None:
            return counted
        # The condition reads an aggregate so that it is not pushed below the grouping, where it would be paid per row.
        kept = _case([(exp.column("n") >= _integer(0), exp.and_(*domains))], exp.false())
        return exp.select("*").from_(counted.subquery("g")).where(kept)

    def _rows(
        self,
        keys: list[tuple[str, exp.Expr]],
        inputs: list[tuple[str, exp.Expr]],
        relation: Relation,
        conditions: list[exp.Expr],
    ) -> exp.Select:
        columns = [_named(value, name) for name, value in (*keys, *inputs)] or [_named(_integer(1), "one")]
        return self._from(exp.select(*columns), relation, conditions)

    def _bounded(
        self,
        summary: Summary,
        keys: list[tuple[str, exp.Expr]],
        inputs: list[tuple[str, exp.Expr]],
        conditions: list[exp.Expr],
    ) -> exp.Select:
        """At most `rows` rows and `groups` groups of each unit, the first in a keyed hash order.

        Units with few rows pass as they are, which is what the order would do with them; only the others are ordered.
        """
        assert summary.bound is not None
        bound, names = summary.bound, [name for name, _ in (*keys, *inputs)]
        unit = self.column(bound.unit)
        conditions = [*conditions, unit.is_(exp.null()).not_()]
        conditions += [part for key, (_, value) in zip(summary.keys, keys, strict=True) for part in _valid(key, value)]
        texts = [(f"o{i}", self._text(field)) for i, field in enumerate(summary.order_by)]
        everything = self._rows([("u", unit), *keys], [*inputs, *texts], summary.relation, conditions)
        few = min(bound.rows, bound.groups) if keys else bound.rows
        heavy = exp.select("u").from_("rel").group_by("u").having(_call("COUNT", exp.Star()) > _integer(few))
        shown = [exp.column(name) for name in names] or [_named(_integer(1), "one")]
        light = exp.select(*shown).from_("rel").where(exp.column("u").isin(query="SELECT u FROM heavy").not_())
        ordered: exp.Select = exp.select("*").from_("rel").where(exp.column("u").isin(query="SELECT u FROM heavy"))
        if keys and bound.groups < bound.rows:
            group = [exp.column(name) for name, _ in keys]
            order = [self._hash(_as_text(column) for column in group), *group]
            rank = _over("DENSE_RANK", order)
            ranked = exp.select("*", _named(rank, "gr")).from_(ordered.subquery("h"))
            ordered = exp.select("*").from_(ranked.subquery("hg")).where(exp.column("gr") <= _integer(bound.groups))
        order = [self._hash(exp.column(name) for name, _ in texts), *(exp.column(name) for name, _ in texts)]
        numbered = exp.select("*", _named(_over("ROW_NUMBER", order), "rn")).from_(ordered.subquery("b"))
        kept = exp.select(*shown).from_(numbered.subquery("n")).where(exp.column("rn") <= _integer(bound.rows))
        both = exp.union(light, kept, distinct=False)
        return exp.select("*").from_(both.subquery("kept")).with_("rel", everything).with_("heavy", heavy)

    def _from(self, select: exp.Select, relation: Relation, conditions: list[exp.Expr]) -> exp.Select:
        select = self._relation(select, relation)
        return select.where(*conditions) if conditions else select

    def _relation(self, select: exp.Select, relation: Relation) -> exp.Select:
        match relation:
            case Scan(table, source):
                return select.from_(exp.to_table(_quote(table)).as_(exp.to_identifier(source, quoted=True)))
            case Join(left, right, on, optional):
                joined = self._relation(select, left)
                condition = exp.and_(*(self._equal(first, second) for first, second in on))
                table = exp.to_table(_quote(right.table)).as_(exp.to_identifier(right.source, quoted=True))
                return joined.join(table, on=condition, join_type="left" if optional else "inner")
            case PerUnit():
                return select.from_(self._per_unit(relation))

    def _equal(self, first: Field, second: Field) -> exp.Expr:
        # Keys stored in different types are compared as text, because an implicit cast could raise on a row.
        if self._kind(first) == self._kind(second):
            return exp.EQ(this=self.column(first), expression=self.column(second))
        return exp.EQ(this=_as_text(self.column(first)), expression=_as_text(self.column(second)))

    def _per_unit(self, relation: PerUnit) -> exp.Subquery:
        unit = self.column(relation.unit)
        columns = [_named(unit, relation.unit.name)]
        for name, cell, span in relation.columns:
            total = _aggregate(cell, self._input(cell))
            columns.append(_named(_cast(_clamped(total, span.low, span.high), "BIGINT"), name))
        conditions = [unit.is_(exp.null()).not_()]
        if relation.where != Always(True):
            conditions.append(self.predicate(relation.where))
        inner = self._from(exp.select(*columns), relation.inner, conditions).group_by(unit.copy())
        return inner.subquery(exp.to_identifier(relation.source, quoted=True))

    # --- keys and cells --------------------------------------------------------------------------------------------------

    def _key(self, key: Key) -> exp.Expr:
        match key:
            case DeclaredKey(_, field, values):
                return self._listed(field, field.column) if None in values else self.column(field)
            case BinnedKey(_, number, first, width):
                shifted = self.number(number) - _integer(first)
                # Never negative, so truncating division is flooring on every engine.
                return _divided(shifted, width) if width > 1 else shifted
            case UnknownKey(_, field):
                return self.column(field)

    def _inputs(self, cells: tuple[Cell, ...]) -> tuple[list[tuple[str, exp.Expr]], list[str]]:
        """The distinct inputs of all cells, and which each cell uses: a total and its count read one column."""
        names: dict[tuple[object, ...], str] = {}
        inputs, used = [], []
        for cell in cells:
            key = (cell.subject, cell.where)
            if key not in names:
                names[key] = f"c{len(names)}"
                inputs.append((names[key], self._input(cell)))
            used.append(names[key])
        return inputs, used

    def _input(self, cell: Cell) -> exp.Expr:
        """What a row gives to a cell, NULL if it does not pass the cell's filter."""
        value = _integer(1) if cell.subject is None else self._subject(cell.subject)
        return value if cell.where == Always(True) else _case([(self.predicate(cell.where), value)])

    def _subject(self, subject: Field | Number) -> exp.Expr:
        if isinstance(subject, Field):
            return (
                self._listed(subject, subject.column) if isinstance(subject.column, Category) else self.column(subject)
            )
        return self.number(subject)

    def _listed(self, field: Field, column: object) -> exp.Expr:
        """The column where it holds a declared value, else NULL."""
        assert isinstance(column, Category)
        return _case([(_is_in(self.column(field), column.values), self.column(field))])

    def _text(self, field: Field) -> exp.Expr:
        """A text of the column's value, equal on every engine: ranged columns as indices, the rest as they are."""
        value = self.number(_reading(field)) if isinstance(field.column, NumberColumn | Date) else self.column(field)
        return _call("COALESCE", _as_text(value), exp.Literal.string(""))

    def _hash(self, texts: Iterable[exp.Expr]) -> exp.Expr:
        separator = exp.Literal.string(_SEPARATOR)
        parts = [exp.Literal.string(self._secret), *(part for text in texts for part in (separator, text))]
        return _call("MD5", reduce(lambda a, b: exp.DPipe(this=a, expression=b), parts))

    # --- numbers ---------------------------------------------------------------------------------------------------------

    def number(self, node: Number) -> exp.Expr:
        match node:
            case Reading(field):
                return self._reading(field)
            case Derived(source, name):
                return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(source, quoted=True))
            case Constant(index):
                return _integer(index)
            case Scaled(inner, factor, offset, span):
                value = self._wide(inner, span)
                value = value if factor == 1 else exp.paren(value) * _integer(factor)
                return value if offset == 0 else exp.paren(value) + _integer(offset)
            case Combined("add", left, right, span):
                return exp.paren(self._wide(left, span) + self._wide(right, span))
            case Combined("multiply", left, right, span):
                return exp.paren(exp.paren(self._wide(left, span)) * exp.paren(self._wide(right, span)))
            case Combined(operation, left, right):
                return _call(operation.upper(), self.number(left), self.number(right))
            case Absolute(inner):
                return _call("ABS", self.number(inner))
            case Choice(branches, otherwise):
                cases = [(self.predicate(condition), self.number(value)) for condition, value in branches]
                return _case(cases, None if otherwise is None else self.number(otherwise))
            case FirstKnown(options):
                return _call("COALESCE", *(self.number(option) for option in options))

    def _wide(self, node: Number, span: Span) -> exp.Expr:
        """The operand in a type that holds the result."""
        value = self.number(node)
        return _cast(value, "HUGEINT") if span.largest >= _NARROW else value

    def _reading(self, field: Field) -> exp.Expr:
        """Clamped to the range, rounded to the grain, an integer index; NULL for NULL and NaN."""
        column, value, kind = field.column, self.column(field), self._kind(field)
        if isinstance(column, Date):
            return self._day(value, kind, column)
        assert isinstance(column, NumberColumn)
        p, q = column.grain.numerator, column.grain.denominator
        low, high = column.low_index, column.high_index
        if kind in ("integer", "wide integer"):
            # ends lie on the grain, so for a whole grain they are whole numbers; else they round inwards and stay in range
            least, most = (
                -(-column.low.numerator // column.low.denominator),
                column.high.numerator // column.high.denominator,
            )
            bounded = _cast(_clamped(value, least, most), "BIGINT")
            if (p, q) == (1, 1):
                return bounded
            # round(x·q/p) = ⌊(2(x·q − low·p) + p) / 2p⌋ + low, where nothing is negative
            shifted = exp.paren(bounded * _integer(q) - _integer(low * p))
            return exp.paren(_divided(exp.paren(shifted * _integer(2) + _integer(p)), 2 * p) + _integer(low))
        scaled = value if kind == "float" else _cast(value, "DOUBLE")
        position = scaled if q == 1 else scaled * _float(q)
        position = position if p == 1 else exp.paren(position) / _float(p)
        # FLOOR(x + ½), since engines differ in how ROUND treats halves.
        # TRY_CAST, lest an optimiser move the cast out of the CASE that guards it.
        index = _try_cast(_call("FLOOR", position + _float("0.5")), "BIGINT")
        inside = exp.and_(scaled >= _float(_decimal(column.low)), scaled <= _float(_decimal(column.high)))
        if max(abs(low), abs(high)) >= _EXACT_FLOAT:
            index = _clamped(index, low, high)
        # NaN is larger than every number here: the first test lets it fall through, and the last excludes it.
        above = exp.and_(scaled > _float(_decimal(column.high)), _call("ISNAN", scaled).not_())
        return _case([(inside, index), (scaled < _float(_decimal(column.low)), _integer(low)), (above, _integer(high))])

    def _day(self, value: exp.Expr, kind: Kind, column: Date) -> exp.Expr:
        day = value if kind == "date" else _cast(value, "DATE")
        first, last = (_cast(exp.Literal.string(end.isoformat()), "DATE") for end in (column.low, column.high))
        epoch = _cast(exp.Literal.string("1970-01-01"), "DATE")
        inside = exp.and_(day >= first, day <= last)
        index = _cast(exp.paren(day - epoch), "BIGINT")
        return _case(
            [(inside, index), (day < first, _integer(column.low_index)), (day > last, _integer(column.high_index))]
        )

    # --- predicates ------------------------------------------------------------------------------------------------------

    def predicate(self, node: Predicate) -> exp.Expr:
        match node:
            case Always(holds):
                return exp.true() if holds else exp.false()
            case Both(parts):
                return exp.paren(exp.and_(*(self.predicate(part) for part in parts)))
            case Either(parts):
                return exp.paren(exp.or_(*(self.predicate(part) for part in parts)))
            case Compare():
                return self._compare(node)
            case Among(field, values):
                return _is_in(self.column(field), values) if values else exp.false()
            case TextIs(field, values, negated):
                found = _is_in(self.column(field), values)
                return found.not_() if negated else found
            case TextLike(field, pattern, negated, ignore_case):
                like = (exp.ILike if ignore_case else exp.Like)(
                    this=self.column(field), expression=exp.Literal.string(pattern)
                )
                return like.not_() if negated else like
            case SameField(left, right, negated):
                return (exp.NEQ if negated else exp.EQ)(this=self.column(left), expression=self.column(right))
            case Known(subject, negated):
                null = self._subject(subject).is_(exp.null())
                return null if negated else null.not_()

    def _compare(self, node: Compare) -> exp.Expr:
        left, right = self._comparand(node), self.number(node.right)
        kinds = {"<": exp.LT, "<=": exp.LTE, "=": exp.EQ, "<>": exp.NEQ, ">=": exp.GTE, ">": exp.GT}
        return kinds[node.operation](this=left, expression=right)

    def _comparand(self, node: Compare) -> exp.Expr:
        """A whole-number column strictly inside its range compares as it is stored, which lets an engine skip blocks."""
        left, right = node.left, node.right
        if isinstance(left, Reading) and isinstance(right, Constant) and self._kind(left.field) == "integer":
            inside = left.span.low < right.index < left.span.high
            if left.span.grain == 1 and inside:
                return self.column(left.field)
        return self.number(left)

    def column(self, field: Field) -> exp.Expr:
        return exp.column(
            exp.to_identifier(field.name, quoted=True), table=exp.to_identifier(field.source, quoted=True)
        )

    def _kind(self, field: Field) -> Kind:
        return self._kinds.get((self._tables.get(field.source, ""), field.name), "other")


# --- pieces ----------------------------------------------------------------------------------------------------------------


def _aliases(relation: Relation) -> Iterable[tuple[str, str]]:
    match relation:
        case Scan(table, source):
            yield source, table
        case Join(left, right):
            yield from _aliases(left)
            yield right.source, right.table
        case PerUnit(inner):
            yield from _aliases(inner)


def _reading(field: Field) -> Reading:
    return Reading(field, Span(0, 0))


def _aggregate(cell: Cell, value: str | exp.Expr) -> exp.Expr:
    argument = exp.column(value) if isinstance(value, str) else value
    if cell.kind == "rows" and cell.where == Always(True):
        return _call("COUNT", exp.Star())
    if cell.kind in ("rows", "known"):
        return _call("COUNT", argument)
    if cell.kind == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[argument]))
    return _call(_CELL_FUNCTIONS[cell.kind], argument)


def _in_domain(key: Key, name: str) -> list[exp.Expr]:
    """Which groups are part of the result, told from the key alone."""
    column = exp.column(name)
    match key:
        case DeclaredKey(values=values):
            listed = _is_in(column, tuple(value for value in values if value is not None))
            return [exp.paren(exp.or_(listed, column.is_(exp.null()))) if None in values else listed]
        case BinnedKey() | UnknownKey():
            return [column.is_(exp.null()).not_()]


def _valid(key: Key, value: exp.Expr) -> list[exp.Expr]:
    """The same, row by row: rows outside every group do not use up a unit's bound."""
    match key:
        case DeclaredKey(values=values):
            return [] if None in values else [_is_in(value, values)]  # type: ignore[arg-type]
        case BinnedKey() | UnknownKey():
            return [value.copy().is_(exp.null()).not_()]


def _over(function: str, order: list[exp.Expr]) -> exp.Expr:
    terms = [exp.Ordered(this=term) for term in order]
    return exp.Window(
        this=_call(function), partition_by=[exp.column("u")], order=exp.Order(expressions=terms), over="OVER"
    )


def _clamped(value: exp.Expr, low: int, high: int) -> exp.Expr:
    return _case([(value > _integer(high), _integer(high)), (value < _integer(low), _integer(low))], value)


def _divided(value: exp.Expr, divisor: int) -> exp.Expr:
    return exp.IntDiv(this=exp.paren(value), expression=_integer(divisor))


def _is_in(column: exp.Expr, values: tuple[str | int | bool, ...]) -> exp.Expr:
    return exp.In(this=column.copy(), expressions=[_literal(value) for value in values])


def _literal(value: str | int | bool) -> exp.Expr:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    return exp.Literal.string(value) if isinstance(value, str) else _integer(value)


def _integer(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.paren(exp.Neg(this=exp.Literal.number(-value)))


def _float(value: object) -> exp.Expr:
    return _cast(exp.Literal.string(str(value)), "DOUBLE")


def _decimal(value: object) -> str:
    return repr(float(value))  # type: ignore[arg-type]


def _case(branches: list[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None = None) -> exp.Expr:
    ifs = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in branches]
    return exp.Case(ifs=ifs, default=None if otherwise is None else otherwise.copy())


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.func(name, *arguments)


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


def _try_cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.TryCast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


def _as_text(value: exp.Expr) -> exp.Expr:
    return _cast(value, "TEXT")


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)


def _quote(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
