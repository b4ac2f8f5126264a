"""From the SQL that is written here, in DuckDB's words, to the same statement of another database.

Only our own statements come through here, so every kind of node is known: one that is not listed is a mistake of ours
and is refused, never passed on in the hope that it means the same. Each rule names the difference that it bridges.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal

import sqlglot
from sqlglot import exp

from confide.engine.sql.syntax import APART
from confide.query.comparison import lowered

Rule = Callable[[exp.Expr], exp.Expr]

_SAME: Final = (
    exp.Abs, exp.Add, exp.Alias, exp.And, exp.Between, exp.Boolean, exp.Case, exp.Coalesce, exp.Column, exp.Concat,
    exp.ConcatWs, exp.Count, exp.CTE, exp.DataTypeParam, exp.Distinct, exp.Div, exp.EQ, exp.Exists, exp.Filter,
    exp.Floor, exp.From, exp.GT, exp.GTE, exp.Greatest, exp.Group, exp.Having, exp.Identifier, exp.If, exp.In, exp.Is,
    exp.Join, exp.LT, exp.LTE, exp.Least, exp.Literal, exp.Lower, exp.Max, exp.Min, exp.Mod, exp.Mul, exp.NEQ, exp.Neg,
    exp.Null, exp.Or, exp.Order, exp.Ordered, exp.Paren, exp.Replace, exp.RowNumber, exp.DenseRank, exp.Select,
    exp.Star, exp.Sub, exp.Subquery, exp.Sum, exp.TableAlias, exp.Tuple, exp.Union, exp.Where, exp.Window, exp.With,
    exp.GroupingSets, exp.Grouping, exp.Limit, exp.BitwiseAnd, exp.Length, exp.Substring, exp.Trim, exp.Values,
    exp.StrPosition, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow,
)  # fmt: skip
_TYPES: Final = {
    exp.DType.BIGINT, exp.DType.INT128, exp.DType.DOUBLE, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE,
    exp.DType.BOOLEAN, exp.DType.DECIMAL, exp.DType.INT,
}  # fmt: skip
_WIDEST_DOUBLE: Final = "9.2e18"
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_LARGEST_QUOTIENT: Final = 1 << 62
_MOST_WIDE: Final = 10**38 - 1
_NEARLY_NOTHING: Final = "1e-290"
_WIDE: Final = "DECIMAL(38, 0)"
_HALF: Final = 31
_MOST_ARGUMENTS: Final = 100
_MOST_BYTES: Final = 1 << 26
EPOCH: Final = "1970-01-01"


class _DeepCalls:
    """While statements are translated, calls may go as deep as statements of ours do: a parser needs some twenty for
    each parenthesis. The limit is that of the process, so the last who needs it puts it back.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _DEEPEST))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setrecursionlimit(self._before)


_DEEPEST: Final = 20_000
_DEEP: Final = _DeepCalls()


class UnknownNodeError(ValueError):
    """A statement of ours holds what no rule translates."""


@dataclass(frozen=True, slots=True)
class Translator:
    """Translates to one dialect; `relations` says what stands for each table, as a query in that dialect."""

    dialect: Literal["postgres", "spark"]
    relations: Mapping[str, str]

    def __call__(self, statement: str) -> str:
        with _DEEP:
            return self._translated(statement)

    def _translated(self, statement: str) -> str:
        tree = sqlglot.parse_one(statement, read="duckdb")
        rules = _POSTGRES if self.dialect == "postgres" else _SPARK
        if rules is _SPARK and any(kind.this == exp.DType.INT128 for kind in tree.find_all(exp.DataType)):
            rules = _SPARK_WIDE
        root = exp.Paren(this=tree)
        # From the leaves up: a rule sees parts that are translated already.
        for node in reversed(list(tree.walk(bfs=True))):
            translated = self._translate(node, rules)
            if translated is not node:
                node.replace(translated)
        return str(root.this.sql(dialect=self.dialect))

    def _translate(self, node: exp.Expr, rules: Mapping[type[exp.Expr], Rule]) -> exp.Expr:
        if isinstance(node, exp.Table):
            return self._relation(node)
        if (rule := rules.get(type(node))) is not None:
            return rule(node)
        if type(node) not in _SAME:
            raise UnknownNodeError(type(node).__name__)
        return node

    def _relation(self, node: exp.Table) -> exp.Expr:
        """A table of ours stands in the schema `main`; other names are parts of the statement itself."""
        if node.db != "main":
            return node
        # As it is written: it is of that dialect already.
        query = exp.Subquery(this=exp.Var(this=self.relations[node.name]))
        return exp.alias_(query, node.alias or node.name, table=True)


# --- rules ------------------------------------------------------------------------------------------------------------


def _type(wide: exp.DataType) -> Rule:
    """128-bit integers are decimals elsewhere."""

    def rule(node: exp.Expr) -> exp.Expr:
        assert isinstance(node, exp.DataType)
        if node.this not in _TYPES:
            raise UnknownNodeError(str(node))
        return wide.copy() if node.this == exp.DType.INT128 else node

    return rule


def _guarded_cast(node: exp.Expr) -> exp.Expr:
    """There is no TRY_CAST. A cast of a trimmed text stands behind a pattern that admits nothing it could refuse; one
    of a number that would raise beyond 64 bits is NULL there.
    """
    plain, inner = exp.cast(node.this.copy(), node.args["to"]), node.this
    if isinstance(inner, exp.Trim):
        return plain
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DType.DECIMAL:
        ends: list[exp.Expr] = [exp.convert(_LEAST), exp.convert(_MOST)]
    else:
        ends = [_double(f"{sign}{_WIDEST_DOUBLE}") for sign in ("-", "")]
    inside = exp.Between(this=inner.copy(), low=ends[0], high=ends[1])
    return exp.Case(ifs=[exp.If(this=inside, true=plain)])


def _double(written: str) -> exp.Cast:
    return exp.cast(exp.Literal.string(written), "DOUBLE", dialect="duckdb")


def _careful_division(node: exp.Expr) -> exp.Expr:
    """A quotient of doubles that is too near 0 for them raises; what it is added to does not notice it."""
    nothing = exp.LT(this=exp.Abs(this=node.this.copy()), expression=_double(_NEARLY_NOTHING))
    return exp.Case(ifs=[exp.If(this=nothing, true=_double("0"))], default=node.copy())


def _limited_floor(node: exp.Expr) -> exp.Expr:
    """A FLOOR of a double is one of 64 bits, and raises beyond them in ANSI mode."""
    within = _limited(node.this.copy(), *(_double(f"{sign}{_WIDEST_DOUBLE}") for sign in ("-", "")))
    return exp.Floor(this=within)


def _limited_division(node: exp.Expr) -> exp.Expr:
    """A whole quotient has 64 bits, and wraps around beyond them: it is cut where no index reaches."""
    if _in_64_bits(node.this.unnest()) and _in_64_bits(node.expression.unnest()):
        return node
    divisor = next(iter(node.expression.find_all(exp.Literal)), None)
    if divisor is None or divisor.is_string:
        raise UnknownNodeError("a division by what is not written")
    most = int(divisor.this) * _LARGEST_QUOTIENT
    if most > _MOST_WIDE:
        return node
    ends = (exp.cast(exp.convert(end), _WIDE) for end in (-most, most))
    divided = node.copy()
    divided.set("this", _limited(node.this.copy(), *ends))
    return divided


def _limited(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """LEAST and GREATEST would make a number of NULL."""
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    below = exp.If(this=exp.LT(this=value.copy(), expression=low), true=low.copy())
    return exp.Case(ifs=[above, below], default=value)


def _matched(before: str, after: str, like: Callable[[exp.Expr, exp.Expr], exp.Expr]) -> Rule:
    """Whether a pattern matches the whole of a text; a point in it is anything but the end of a line."""

    def rule(node: exp.Expr) -> exp.Expr:
        assert isinstance(node.expression, exp.Literal)
        pattern = exp.Literal.string(f"{before}(?:{node.expression.this}){after}")
        return like(node.this.copy(), pattern)

    return rule


def _no_longer(value: exp.Expr) -> exp.Expr:
    """Patterns and lower case take four bytes for a letter, and raise where those are more than one gigabyte."""
    short = exp.LTE(this=exp.func("OCTET_LENGTH", value.copy()), expression=exp.convert(_MOST_BYTES))
    return exp.Case(ifs=[exp.If(this=short, true=value)])


def _not_a_number(node: exp.Expr) -> exp.Expr:
    """NaN equals itself there, as in DuckDB."""
    return exp.EQ(this=node.this.copy(), expression=exp.cast(exp.Literal.string("NaN"), "DOUBLE", dialect="duckdb"))


def _digest(node: exp.Expr) -> exp.Expr:
    """Hashes are of bytes, and hex digits are ordered as bytes, whatever the locale."""
    as_bytes = exp.func("CONVERT_TO", node.this.copy(), exp.Literal.string("UTF8"))
    hexadecimal = exp.func("ENCODE", exp.func("SHA256", as_bytes), exp.Literal.string("hex"))
    return exp.Collate(this=hexadecimal, expression=exp.column("C", quoted=True))


def _short_concat(node: exp.Expr) -> exp.Expr:
    """A function takes at most 100 arguments, and the order of a unit's rows is by all columns of a table."""
    parts: list[exp.Expr] = node.expressions
    while len(parts) > _MOST_ARGUMENTS:
        few = [parts[start : start + _MOST_ARGUMENTS] for start in range(0, len(parts), _MOST_ARGUMENTS)]
        parts = [exp.Concat(**{**node.args, "expressions": own}) for own in few]
    return exp.Concat(**{**node.args, "expressions": parts})


def _plain_like(node: exp.Expr) -> exp.Expr:
    """A backslash is a letter in a pattern, not an escape."""
    return exp.Escape(this=node.copy(), expression=exp.Literal.string(""))


def _doubled_like(node: exp.Expr) -> exp.Expr:
    """A backslash is an escape in every pattern: one that is a letter is written twice."""
    assert isinstance(node.expression, exp.Literal)
    doubled = node.copy()
    doubled.set("expression", exp.Literal.string(node.expression.this.replace("\\", "\\\\")))
    return doubled


def _lowered(collate: Callable[[exp.Expr, bool], exp.Expr], like: Rule, given: Rule) -> Rule:
    """ILIKE is LIKE in lower case, letter by letter: elsewhere Σ may become another one, and İ two.

    Whose lower case it is must be said: columns are compared as bytes, and Java may have been started in any language.
    """

    def rule(node: exp.Expr) -> exp.Expr:
        subject = exp.func("TRANSLATE", given(node.this.copy()), exp.Literal.string("Σİ"), exp.Literal.string("σi"))
        told = collate(exp.Lower(this=collate(subject, True)), False)
        assert isinstance(node.expression, exp.Literal)
        pattern = exp.Literal.string(lowered(node.expression.this))
        return like(exp.Like(**{**node.args, "this": told, "expression": pattern}))

    return rule


def _postgres_collated(value: exp.Expr, letters: bool) -> exp.Expr:
    return exp.Collate(this=value, expression=exp.column("und-x-icu" if letters else "C", quoted=True))


def _spark_collated(value: exp.Expr, letters: bool) -> exp.Expr:
    name = exp.Literal.string("UNICODE" if letters else "UTF8_BINARY")
    return exp.Anonymous(this="COLLATE", expressions=[value, name])


def _days(node: exp.Expr) -> exp.Expr:
    """date − 1970-01-01 is an interval, not a number."""
    inner = node.this
    if isinstance(inner, exp.Sub) and isinstance(inner.expression, exp.Cast) and inner.expression.this.name == EPOCH:
        days = exp.Anonymous(this="DATEDIFF", expressions=[inner.this.copy(), inner.expression.copy()])
        return exp.cast(days, "BIGINT")
    return node


def _wide_sum(node: exp.Expr) -> exp.Expr:
    """A sum of 64-bit integers is one of 64 bits and overflows: decimals do not."""
    if isinstance(node.this, exp.Distinct):
        (column,) = node.this.expressions
        return exp.Sum(this=exp.Distinct(expressions=[exp.cast(column.copy(), _WIDE)]))
    return exp.Sum(this=exp.cast(node.this.copy(), _WIDE))


def _halved_sum(node: exp.Expr) -> exp.Expr:
    """The same for integers of 62 bits in two halves, since decimals are slow; it raises from 2³² rows on. Halves of
    distinct numbers need not be distinct.
    """
    if isinstance(node.this, exp.Distinct):
        return _wide_sum(node)
    halves = (
        exp.func("SHIFTRIGHT", node.this.copy(), exp.Literal.number(_HALF)),
        exp.BitwiseAnd(this=exp.paren(node.this.copy()), expression=exp.Literal.number((1 << _HALF) - 1)),
    )
    high, low = (exp.cast(exp.Sum(this=half), _WIDE) for half in halves)
    return exp.paren(high * exp.Literal.number(1 << _HALF) + low)


def _absent(node: exp.Expr) -> exp.Expr:
    """NOT IN of a subquery is looked up row by row where it does not fit in memory; NOT EXISTS is a join.

    Ours are over columns without NULL, where both mean the same.
    """
    inside = node.this
    if not isinstance(inside, exp.In) or inside.args.get("query") is None:
        return node
    query = inside.args["query"].this.copy()
    column = query.expressions[0]
    source = query.args["from_"].this
    own = exp.column(column.name, source.alias_or_name)
    query.set("expressions", [exp.Literal.number(1)])
    return exp.Not(this=exp.Exists(this=query.where(exp.EQ(this=own, expression=inside.this.copy()))))


def _in_64_bits(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and bool(node.to.this == exp.DType.BIGINT)


def _whole_division(node: exp.Expr) -> exp.Expr:
    """DIV is of NUMERIC, and slow; what says that it has 64 bits is divided in them, which truncates as well."""
    left, right = node.this.unnest(), node.expression.unnest()
    if not _in_64_bits(left) or not (isinstance(right, exp.Literal) or _in_64_bits(right)):
        return node
    return exp.Div(this=node.this.copy(), expression=node.expression.copy(), typed=True, safe=False)


def _computed_once(node: exp.Expr) -> exp.Expr:
    """A subquery is put in place of its name wherever that stands, unless it has an OFFSET."""
    if node.alias == APART:
        node.this.set("offset", exp.Offset(expression=exp.Literal.number(0)))
    return node


def _ordered(node: exp.Expr) -> exp.Expr:
    """Rows are numbered in an order, or not at all: by the column beside the number, which is unique in ours.

    A part that is named is computed wherever it is used, so that an order left open could number rows twice.
    """
    if isinstance(node.this, exp.RowNumber) and node.args.get("order") is None:
        select = node.find_ancestor(exp.Select)
        assert select is not None
        beside = exp.Ordered(this=select.expressions[0].copy(), nulls_first=False)
        node.set("order", exp.Order(expressions=[beside]))
    return node


def _unhinted(node: exp.Expr) -> exp.Expr:
    """There is no word for a part that is computed once."""
    node.set("materialized", None)
    return node


def _same(node: exp.Expr) -> exp.Expr:
    return node


_POSTGRES: Final[Mapping[type[exp.Expr], Rule]] = {
    exp.DataType: _type(exp.DataType.build("DECIMAL")),
    exp.TryCast: _guarded_cast,
    exp.Cast: _same,
    exp.Div: _careful_division,
    exp.RegexpFullMatch: _matched(
        "(?p)^", "$", lambda value, pattern: exp.RegexpLike(this=_no_longer(value), expression=pattern)
    ),
    exp.IsNan: _not_a_number,
    exp.Not: _absent,
    exp.IntDiv: _whole_division,
    exp.SHA2: _digest,
    exp.Concat: _short_concat,
    exp.Subquery: _computed_once,
    exp.Like: _plain_like,
    exp.ILike: _lowered(_postgres_collated, _plain_like, _no_longer),
}
_SPARK: Final[Mapping[type[exp.Expr], Rule]] = {
    exp.DataType: _type(exp.DataType.build(_WIDE)),
    exp.TryCast: _same,
    exp.Cast: _days,
    exp.Floor: _limited_floor,
    exp.RegexpFullMatch: _matched("(?d)\\A", "\\z", lambda value, pattern: exp.func("REGEXP_LIKE", value, pattern)),
    exp.IsNan: _same,
    exp.Not: _absent,
    exp.IntDiv: _same,
    exp.SHA2: _same,
    exp.Like: _doubled_like,
    exp.ILike: _lowered(_spark_collated, _doubled_like, _same),
    exp.Sum: _halved_sum,
    exp.Window: _ordered,
    exp.CTE: _unhinted,
}
_SPARK_WIDE: Final[Mapping[type[exp.Expr], Rule]] = {**_SPARK, exp.Sum: _wide_sum, exp.IntDiv: _limited_division}
"""For statements in which anything has 128 bits."""
