"""Row expressions: from the parser's nodes to ours, by a short whitelist. The rest is refused, with what works instead."""

from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier
from confide.query import number as arithmetic
from confide.query.comparison import Operation, compare_field, compare_fields, joined, like, not_a_number
from confide.query.literal import bare, constant, day, is_literal, is_text_literal
from confide.query.parse import conjuncts
from confide.query.scope import Scope
from confide.query.tree import Always, Among, Constant, Either, Field, Known, Number, Predicate

_COMPARISONS: dict[type[exp.Expr], Operation] = {
    exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>", exp.GTE: ">=", exp.GT: ">",
}  # fmt: skip
_NEGATED: dict[Operation, Operation] = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
_FLIPPED: dict[Operation, Operation] = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}


def number(node: exp.Expr, scope: Scope) -> Number:
    """A bounded number, or a refusal."""
    subject = scalar(node, scope)
    if isinstance(subject, Field):
        raise QueryError(not_a_number(subject))
    return subject


def scalar(node: exp.Expr, scope: Scope) -> Field | Number:
    """A bounded number, or a column that is not one."""
    match node:
        case exp.Paren():
            return scalar(node.this, scope)
        case exp.Column():
            return scope.field(node)
        case exp.Literal() | exp.Cast() | exp.Neg(this=exp.Literal()) | exp.Date():
            return constant(node)
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


# --- predicates ---------------------------------------------------------------------------------------------------


def predicate(node: exp.Expr, scope: Scope, negated: bool = False) -> Predicate:
    """A condition on a row, with negation pushed to its leaves."""
    match node:
        case exp.Paren():
            return predicate(node.this, scope, negated)
        case exp.Not():
            return predicate(node.this, scope, not negated)
        case exp.And() | exp.Or():
            parts = tuple(predicate(part, scope, negated) for part in conjuncts(node))
            return joined(parts, every=isinstance(node, exp.And) != negated)
        case exp.Boolean():
            return Always(bool(node.this) != negated)
        case exp.Between():
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
            parts = (predicate(low, scope, negated), predicate(high, scope, negated))
            return joined(parts, every=not negated)
        case exp.In():
            return _among(node, scope, negated)
        case exp.Is():
            return _is(node, scope, negated)
        case exp.Like() | exp.ILike():
            return like(node, scalar(node.this, scope), negated)
        case exp.Column():
            field = scope.field(node)
            if isinstance(field, Field) and isinstance(field.column, Category) and field.column.kind is bool:
                return Among(field, (not negated,) if (not negated) in field.column.values else ())
            raise QueryError(f"{node.sql()} is not a condition; write a comparison, for example {node.sql()} > 0")
    if type(node) in _COMPARISONS:
        operation = _COMPARISONS[type(node)]
        return _comparison(_NEGATED[operation] if negated else operation, node.this, node.expression, scope)
    raise QueryError(_unknown(node))


def _comparison(operation: Operation, left: exp.Expr, right: exp.Expr, scope: Scope) -> Predicate:
    if is_text_literal(left) and not is_text_literal(right):
        left, right, operation = right, left, _FLIPPED[operation]
    if is_text_literal(left):
        raise QueryError("two constants are compared; compare a column")
    if is_text_literal(right):
        subject = scalar(left, scope)
        if isinstance(subject, Field):
            return compare_field(operation, subject, [right])
        if subject.span.date:
            return arithmetic.compare(operation, subject, day(bare(right)))
        raise QueryError(f"a number is compared with the text {right.sql()[:60]}; write the number without quotes")
    first, second = (
        scalar(left, scope) if not is_literal(left) else None,
        scalar(right, scope) if not is_literal(right) else None,
    )
    if isinstance(first, Field) and isinstance(second, Field):
        return compare_fields(operation, first, second)
    if isinstance(first, Field) and second is None:
        return compare_field(operation, first, [right])
    if isinstance(second, Field) and first is None:
        return compare_field(_FLIPPED[operation], second, [left])
    return arithmetic.compare(operation, first_number(first, left, scope), first_number(second, right, scope))


def first_number(bound: Field | Number | None, node: exp.Expr, scope: Scope) -> Number:
    if isinstance(bound, Field):
        raise QueryError(not_a_number(bound))
    return number(node, scope) if bound is None else bound


def _among(node: exp.Expr, scope: Scope, negated: bool) -> Predicate:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise QueryError("IN takes a list of constants; join a public table for a longer one")
    subject = scalar(node.this, scope)
    if not node.expressions:
        return Always(negated)
    if isinstance(subject, Field):
        return compare_field("<>" if negated else "=", subject, node.expressions)
    operation: Operation = "<>" if negated else "="
    options = [
        day(bare(option)) if subject.span.date and is_text_literal(option) else number(option, scope)
        for option in node.expressions
    ]
    return joined(tuple(arithmetic.compare(operation, subject, option) for option in options), every=negated)


def _is(node: exp.Expr, scope: Scope, negated: bool) -> Predicate:
    if isinstance(node.expression, exp.Null):
        subject = scalar(node.this, scope)
        if isinstance(subject, Field) and isinstance(subject.column, Identifier):
            raise QueryError(not_a_number(subject))
        return Known(subject, negated=not negated)
    if isinstance(node.expression, exp.Boolean):
        inner = predicate(node.this, scope)
        if isinstance(inner, Among) and inner.field.column.kind is bool:  # type: ignore[union-attr]
            wanted = bool(node.expression.this)
            if negated:
                return Either((Among(inner.field, (not wanted,)), Known(inner.field, negated=True)))
            return Among(inner.field, (wanted,))
    raise QueryError(f"{node.sql()[:60]}: IS is answered for NULL, NOT NULL, and TRUE or FALSE of a true/false column")


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
