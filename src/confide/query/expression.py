"""Row expressions: from the parser's nodes to ours, by a short whitelist. The rest is refused, with what works instead."""

from collections.abc import Callable, Iterator
from datetime import date
from fractions import Fraction
from re import DOTALL, IGNORECASE, escape, fullmatch
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier, Text
from confide.query import number as arithmetic
from confide.query.parse import conjuncts
from confide.query.scope import Scope, nearest
from confide.query.tree import (
    Always,
    Among,
    Both,
    Constant,
    Either,
    Field,
    Known,
    Number,
    Predicate,
    SameField,
    Span,
    TextIs,
    TextLike,
)

Operation = Literal["<", "<=", "=", "<>", ">=", ">"]
Value = str | int | bool

_COMPARISONS: dict[type[exp.Expr], Operation] = {
    exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>", exp.GTE: ">=", exp.GT: ">",
}  # fmt: skip
_NEGATED: dict[Operation, Operation] = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
_FLIPPED: dict[Operation, Operation] = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_HOLDS: dict[Operation, Callable[[Value, Value], bool]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
}
_LONGEST_PATTERN = 256
_EPOCH = date(1970, 1, 1)


# --- numbers ---------------------------------------------------------------------------------------------------------------


def number(node: exp.Expr, scope: Scope) -> Number:
    """A bounded number, or a refusal."""
    subject = scalar(node, scope)
    if isinstance(subject, Field):
        raise QueryError(_not_a_number(subject))
    return subject


def scalar(node: exp.Expr, scope: Scope) -> Field | Number:
    """A bounded number, or a column that is not one."""
    match node:
        case exp.Paren():
            return scalar(node.this, scope)
        case exp.Column():
            return scope.field(node)
        case exp.Literal() | exp.Cast() | exp.Neg(this=exp.Literal()) | exp.Date():
            return _constant(node)
        case exp.Neg():
            return arithmetic.negate(number(node.this, scope))
        case exp.Add():
            return arithmetic.add(number(node.this, scope), number(node.expression, scope))
        case exp.Sub():
            return arithmetic.subtract(number(node.this, scope), number(node.expression, scope))
        case exp.Mul():
            return arithmetic.multiply(number(node.this, scope), number(node.expression, scope))
        case exp.Div():
            return _quotient(number(node.this, scope), number(node.expression, scope))
        case exp.Abs():
            return arithmetic.absolute(number(node.this, scope))
        case exp.Least() | exp.Greatest():
            operation: Literal["least", "greatest"] = "least" if isinstance(node, exp.Least) else "greatest"
            result = number(node.this, scope)
            for other in node.expressions:
                result = arithmetic.extreme(operation, result, number(other, scope))
            return result
        case exp.Coalesce():
            return arithmetic.first_known(tuple(number(part, scope) for part in (node.this, *node.expressions)))
        case exp.Case() | exp.If():
            return _choice(node, scope)
    raise QueryError(_unknown(node))


def _quotient(dividend: Number, divisor: Number) -> Number:
    if not isinstance(divisor, Constant):
        raise QueryError(
            "division by a column is not answered, because a row may hold zero there; "
            "divide aggregates instead, SUM(a) / SUM(b), or divide by a constant"
        )
    if divisor.index == 0:
        raise QueryError("the query divides by zero")
    return arithmetic.times(dividend, 1 / (divisor.index * divisor.span.grain))


def _choice(node: exp.Expr, scope: Scope) -> Number:
    clauses = [node] if isinstance(node, exp.If) else node.args["ifs"]
    subject = None if isinstance(node, exp.If) else node.this
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    branches = []
    for clause in clauses:
        condition = exp.EQ(this=subject.copy(), expression=clause.this.copy()) if subject is not None else clause.this
        branches.append((predicate(condition, scope), number(clause.args["true"], scope)))
    otherwise = None if default is None or isinstance(default, exp.Null) else number(default, scope)
    return arithmetic.choice(tuple(branches), otherwise)


def _constant(node: exp.Expr) -> Constant:
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        if inner.span.date:
            raise QueryError("a date has no sign")
        return arithmetic.constant(-inner.index * inner.span.grain)
    if isinstance(node, exp.Date) and node.this is not None and not node.expressions:
        return _day(node.this)
    if isinstance(node, exp.Cast):
        if node.to.this not in (exp.DType.DATE, exp.DType.TIMESTAMP):
            raise QueryError(f"a cast to {node.to.sql()} is not answered; the policy gives every column its type")
        return _day(node.this)
    if node.is_string:
        raise QueryError(
            f"the text '{node.name[:40]}' stands where a number is needed; a date is written DATE '2024-01-31'"
        )
    return arithmetic.constant(literal_number(node))


def literal_number(node: exp.Expr) -> Fraction:
    """An exact number from its digits."""
    negative = isinstance(node, exp.Neg)
    digits = node.this if negative else node
    if not isinstance(digits, exp.Literal) or digits.is_string or len(digits.name) > 40:
        raise QueryError(f"{node.sql()[:60]} is not a number of at most 40 digits")
    try:
        mantissa, _, exponent = digits.name.replace("_", "").lower().partition("e")
        if abs(int(exponent or 0)) > 30:
            raise QueryError(f"the number {digits.name} is too large or too small")
        value = Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
    except ValueError:
        raise QueryError(f"{digits.name} is not a number") from None
    return -value if negative else value


def _day(node: exp.Expr) -> Constant:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise QueryError(
            "a date is written DATE '2024-01-31'; casts of columns are not needed, the policy gives their types"
        )
    try:
        days = (date.fromisoformat(node.name) - _EPOCH).days
    except ValueError:
        raise QueryError(f"'{node.name[:40]}' is not a date; write DATE '2024-01-31'") from None
    return Constant(days, Span(days, days, Fraction(1), nullable=False, date=True))


# --- predicates ------------------------------------------------------------------------------------------------------------


def predicate(node: exp.Expr, scope: Scope, negated: bool = False) -> Predicate:
    """A condition on a row, with negation pushed to its leaves."""
    match node:
        case exp.Paren():
            return predicate(node.this, scope, negated)
        case exp.Not():
            return predicate(node.this, scope, not negated)
        case exp.And() | exp.Or():
            parts = tuple(predicate(part, scope, negated) for part in conjuncts(node))
            return _join(parts, every=isinstance(node, exp.And) != negated)
        case exp.Boolean():
            return Always(bool(node.this) != negated)
        case exp.Between():
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
            parts = (predicate(low, scope, negated), predicate(high, scope, negated))
            return _join(parts, every=not negated)
        case exp.In():
            return _among(node, scope, negated)
        case exp.Is():
            return _is(node, scope, negated)
        case exp.Like() | exp.ILike():
            return _like(node, scope, negated)
        case exp.Column():
            field = scope.field(node)
            if isinstance(field, Field) and isinstance(field.column, Category) and field.column.kind is bool:
                return Among(field, (not negated,) if (not negated) in field.column.values else ())
            raise QueryError(f"{node.sql()} is not a condition; write a comparison, for example {node.sql()} > 0")
    if type(node) in _COMPARISONS:
        operation = _COMPARISONS[type(node)]
        return _comparison(_NEGATED[operation] if negated else operation, node.this, node.expression, scope)
    raise QueryError(_unknown(node))


def _join(parts: tuple[Predicate, ...], every: bool) -> Predicate:
    kept = tuple(part for part in parts if part != Always(every))
    if Always(not every) in kept:
        return Always(not every)
    if not kept:
        return Always(every)
    if len(kept) == 1:
        return kept[0]
    return Both(kept) if every else Either(kept)


def _comparison(operation: Operation, left: exp.Expr, right: exp.Expr, scope: Scope) -> Predicate:
    if _is_text_literal(left) and not _is_text_literal(right):
        left, right, operation = right, left, _FLIPPED[operation]
    if _is_text_literal(left):
        raise QueryError("two constants are compared; compare a column")
    if _is_text_literal(right):
        subject = scalar(left, scope)
        if isinstance(subject, Field):
            return _field_comparison(operation, subject, [right])
        if subject.span.date:
            return arithmetic.compare(operation, subject, _day(_bare(right)))
        raise QueryError(f"a number is compared with the text {right.sql()[:60]}; write the number without quotes")
    first, second = (
        scalar(left, scope) if not _is_literal(left) else None,
        scalar(right, scope) if not _is_literal(right) else None,
    )
    if isinstance(first, Field) and isinstance(second, Field):
        return _same(operation, first, second)
    if isinstance(first, Field) and second is None:
        return _field_comparison(operation, first, [right])
    if isinstance(second, Field) and first is None:
        return _field_comparison(_FLIPPED[operation], second, [left])
    return arithmetic.compare(operation, first_number(first, left, scope), first_number(second, right, scope))


def first_number(bound: Field | Number | None, node: exp.Expr, scope: Scope) -> Number:
    if isinstance(bound, Field):
        raise QueryError(_not_a_number(bound))
    return number(node, scope) if bound is None else bound


def _among(node: exp.Expr, scope: Scope, negated: bool) -> Predicate:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise QueryError("IN takes a list of constants; join a public table for a longer one")
    subject = scalar(node.this, scope)
    if not node.expressions:
        return Always(negated)
    if isinstance(subject, Field):
        return _field_comparison("<>" if negated else "=", subject, node.expressions)
    operation: Operation = "<>" if negated else "="
    options = [
        _day(_bare(option)) if subject.span.date and _is_text_literal(option) else number(option, scope)
        for option in node.expressions
    ]
    return _join(tuple(arithmetic.compare(operation, subject, option) for option in options), every=negated)


def _field_comparison(operation: Operation, field: Field, literals: list[exp.Expr]) -> Predicate:
    column = field.column
    if isinstance(column, Category):
        wanted = [_declared(column, literal) for literal in literals]
        holds = _HOLDS[operation]
        combine = all if operation == "<>" else any
        return Among(field, tuple(v for v in column.values if combine(holds(v, w) for w in wanted)))
    if isinstance(column, Text):
        if operation not in ("=", "<>"):
            raise QueryError(f"{column.name} is text: it is compared with = or <>, IN or LIKE")
        return TextIs(field, tuple(sorted({_text(literal) for literal in literals})), operation == "<>")
    raise QueryError(_not_a_number(field))


def _declared(column: Category, literal: exp.Expr) -> Value:
    """A constant that is one of the column's declared values."""
    value: Value
    bare = _bare(literal)
    if isinstance(bare, exp.Literal) and bare.is_string:
        value = bare.name
    elif isinstance(bare, exp.Boolean):
        value = bool(bare.this)
    else:
        exact = literal_number(bare)
        value = int(exact) if exact.denominator == 1 else str(exact)
    if column.kind is not type(value) and not (column.kind is str and isinstance(value, str)):
        raise QueryError(f"{column.name} holds {column.kind.__name__} values, {literal.sql()[:60]} is not one")
    if value not in column.values:
        listed = [str(v) for v in column.values]
        raise QueryError(
            f"{column.name} has no value {literal.sql()[:60]}; {nearest(str(value), listed, 'the policy declares')}"
        )
    return value


def _is(node: exp.Expr, scope: Scope, negated: bool) -> Predicate:
    if isinstance(node.expression, exp.Null):
        subject = scalar(node.this, scope)
        if isinstance(subject, Field) and isinstance(subject.column, Identifier):
            raise QueryError(_not_a_number(subject))
        return Known(subject, negated=not negated)
    if isinstance(node.expression, exp.Boolean):
        inner = predicate(node.this, scope)
        if isinstance(inner, Among) and inner.field.column.kind is bool:  # type: ignore[union-attr]
            wanted = bool(node.expression.this)
            if negated:
                return Either((Among(inner.field, (not wanted,)), Known(inner.field, negated=True)))
            return Among(inner.field, (wanted,))
    raise QueryError(f"{node.sql()[:60]}: IS is answered for NULL, NOT NULL, and TRUE or FALSE of a true/false column")


def _like(node: exp.Expr, scope: Scope, negated: bool) -> Predicate:
    subject, pattern = scalar(node.this, scope), _bare(node.expression)
    if not isinstance(subject, Field) or not isinstance(subject.column, Text | Category):
        raise QueryError("LIKE is for columns of text")
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise QueryError("LIKE takes a constant pattern with % and _")
    if len(pattern.name) > _LONGEST_PATTERN or "\\" in pattern.name:
        raise QueryError(f"a LIKE pattern has at most {_LONGEST_PATTERN} characters and no backslash")
    ignore_case = isinstance(node, exp.ILike)
    if isinstance(subject.column, Category):
        fits = like_matcher(pattern.name, ignore_case)
        return Among(subject, tuple(v for v in subject.column.values if fits(str(v)) != negated))
    return TextLike(subject, pattern.name, negated, ignore_case)


def like_matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """SQL's LIKE, evaluated on public values."""
    parts = (".*" if c == "%" else "." if c == "_" else escape(c) for c in pattern)
    expression, flags = "".join(parts), DOTALL | (IGNORECASE if ignore_case else 0)
    return lambda value: fullmatch(expression, value, flags) is not None


def _same(operation: Operation, first: Field, second: Field) -> Predicate:
    if operation not in ("=", "<>"):
        raise QueryError("two columns of text are compared with = or <>")
    if isinstance(first.column, Text) and isinstance(second.column, Text):
        return SameField(first, second, operation == "<>")
    if isinstance(first.column, Category) and isinstance(second.column, Category):
        pairs = tuple(_pairs(operation, first, second, first.column, second.column))
        if len(pairs) > 1_000:
            raise QueryError(f"{first.name} and {second.name} have too many values to be compared")
        return _join(pairs, every=False)
    raise QueryError(f"{first.name} and {second.name} are of different kinds and are not compared")


def _pairs(operation: Operation, first: Field, second: Field, left: Category, right: Category) -> Iterator[Predicate]:
    for value in left.values:
        others = tuple(other for other in right.values if _HOLDS[operation](other, value))
        if others:
            yield Both((Among(first, (value,)), Among(second, others)))


# --- words -----------------------------------------------------------------------------------------------------------------


def _is_literal(node: exp.Expr) -> bool:
    bare = _bare(node)
    return isinstance(bare, exp.Literal | exp.Boolean) or (
        isinstance(bare, exp.Neg) and isinstance(bare.this, exp.Literal)
    )


def _is_text_literal(node: exp.Expr) -> bool:
    bare = _bare(node)
    return isinstance(bare, exp.Literal) and bool(bare.is_string)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _text(node: exp.Expr) -> str:
    bare = _bare(node)
    if not (isinstance(bare, exp.Literal) and bare.is_string):
        raise QueryError(f"{node.sql()[:60]} stands where a text in quotes is needed")
    return bare.name


def _not_a_number(field: Field) -> str:
    column = field.column
    if isinstance(column, Identifier):
        return f"{column.name} is an id: it joins tables and is counted, COUNT(DISTINCT {column.name}), but is not filtered, grouped or summed"
    if isinstance(column, Category):
        return f"{column.name} is a category, not a number; count it, or write CASE WHEN {column.name} = ... THEN 1 ELSE 0 END"
    if isinstance(column, Text):
        return f"{column.name} is text, not a number; count it, or compare it with = or LIKE"
    return f"{column.name} has no bounds in the policy (range: unbounded); give it a range to use it here"


def _unknown(node: exp.Expr) -> str:
    what = node.name.upper() if isinstance(node, exp.Anonymous) else node.key.upper()
    if isinstance(node, exp.AggFunc):
        return f"{what} stands inside a row expression; an aggregate goes around the whole expression: SUM(a + b)"
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return "a subquery stands only in FROM, as one row per unit: FROM (SELECT key, SUM(x) AS total FROM t GROUP BY key)"
    return (
        f"{what} is not answered in a row expression; these are: + - *, / by a constant, ABS, LEAST, GREATEST, COALESCE, CASE, "
        "comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL"
    )
