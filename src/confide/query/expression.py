"""Row expressions: from the parser's nodes to ours, by a short whitelist; the rest is refused, with what works."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category, Identifier
from confide.query import calendar, day_arithmetic, row_cast, text_condition, whole_numbers
from confide.query import number as arithmetic
from confide.query.comparison import (
    Operation,
    compare_field,
    compare_fields,
    joined,
    like,
    not_a_number,
)
from confide.query.curve import curve_of
from confide.query.literal import bare, constant, day, is_literal, is_text
from confide.query.parse import conjuncts, shown
from confide.query.quotient import quotient
from confide.query.scope import Scope
from confide.query.text_change import is_change
from confide.query.tree import Always, Among, Constant, Field, Known, Number, Predicate
from confide.query.typed_division import cuts

COMPARISONS: dict[type[exp.Expr], Operation] = {
    exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>", exp.GTE: ">=", exp.GT: ">",
}  # fmt: skip
NEGATED: dict[Operation, Operation] = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
FLIPPED: dict[Operation, Operation] = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_MOMENTS = (
    exp.CurrentDate,
    exp.CurrentTimestamp,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Localtimestamp,
    exp.Localtime,
)


_TRUTHS: tuple[type[exp.Expr], ...] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.In,
    exp.Is,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.Boolean,
    *COMPARISONS,
)


# --- numbers ----------------------------------------------------------------------------------------------------------


def number(node: exp.Expr, scope: Scope) -> Number:
    """A bounded number, or a refusal."""
    return _as_number(scalar(node, scope), scope)


def _as_number(subject: Field | Number, scope: Scope) -> Number:
    """A column with a list of whole numbers is a number too."""
    if not isinstance(subject, Field):
        return subject
    column = subject.column
    if not isinstance(column, Category) or column.kind is not int:
        raise QueryError(not_a_number(subject))
    scope.room.take(2 * len(column.values))
    constants = ((value, arithmetic.constant(Fraction(value))) for value in column.values)
    return arithmetic.choice(tuple((Among(subject, (value,)), constant) for value, constant in constants), None)


def scalar(node: exp.Expr, scope: Scope) -> Field | Number:
    """A bounded number, or a column that is not one. Each part of the text is bound once."""
    scope.room.take(1)
    match node:
        case exp.Paren():
            return scalar(node.this, scope)
        case exp.Column():
            return scope.field(node)
        case exp.Literal():
            return constant(node)
        case exp.Cast() | exp.Date():
            return _cast(node, scope)
        case exp.Neg():
            return arithmetic.negate(number(node.this, scope))
        case exp.Add() | exp.Sub() | exp.DateAdd() | exp.DateSub() if _interval(node) is not None:
            return _moved(node, scope)
        case exp.Add():
            return arithmetic.add(number(node.this, scope), number(node.expression, scope))
        case exp.Sub():
            return arithmetic.subtract(number(node.this, scope), number(node.expression, scope))
        case exp.Mul():
            return arithmetic.multiply(number(node.this, scope), number(node.expression, scope))
        case exp.Div():
            dividend, divisor = number(node.this, scope), number(node.expression, scope)
            return _quotient(node, dividend, divisor, scope)
        case exp.Abs():
            return arithmetic.absolute(number(node.this, scope))
        case exp.Least() | exp.Greatest():
            operation: Literal["least", "greatest"] = "least" if isinstance(node, exp.Least) else "greatest"
            parts = [number(part, scope) for part in (node.this, *node.expressions)]
            if not node.args.get("ignore_nulls") and any(part.span.nullable for part in parts):
                raise QueryError(
                    f"{shown(node)} is NULL in this dialect if one part is; write COALESCE around each part"
                )
            return reduce(lambda result, part: arithmetic.extreme(operation, result, part), parts)
        case exp.Coalesce():
            return arithmetic.first_known(tuple(number(part, scope) for part in (node.this, *node.expressions)))
        case exp.Case() | exp.If():
            return _choice(node, scope)
        case exp.Floor():
            return whole_numbers.floor_of(number(node.this, scope))
        case exp.Ceil():
            return whole_numbers.ceiling_of(number(node.this, scope))
        case exp.Round() | exp.Trunc():
            return whole_numbers.rounded(node, number(node.this, scope), scope)
        case exp.Sign():
            return whole_numbers.sign_of(number(node.this, scope), scope)
        case exp.IntDiv() | exp.Mod():
            return whole_numbers.divided(node, number(node.this, scope), number(node.expression, scope), scope)
        case exp.Nullif():
            return _null_where(node, scope)
        case exp.DateDiff():
            first, last = number(node.expression, scope), number(node.this, scope)
            return day_arithmetic.between(node, first, last, scope)
        case exp.LastDay():
            return calendar.last_day_of("MONTH", number(node.this, scope), scope)
        case exp.Length():
            return text_condition.length_of(node, scope)
        case exp.StrPosition():
            return text_condition.position_of(node, scope)
    curve = curve_of(node, lambda inner: number(inner, scope), scope)
    if curve is not None:
        return curve
    part = calendar.part_asked_for(node)
    if part is not None:
        return calendar.part_of(part, number(part.day, scope), scope)
    raise QueryError(_unknown(node))


def _cast(node: exp.Cast | exp.Date, scope: Scope) -> Field | Number:
    inner = bare(node.this) if node.this is not None else None
    if inner is None or is_text(inner):
        known = row_cast.constant_in_cast(node) if isinstance(node, exp.Cast) else None
        return constant(node if known is None else known)
    if isinstance(node, exp.Date):
        if node.expressions:
            raise QueryError(f"{shown(node)}: a date is written DATE '2024-01-31'")
        node = exp.Cast(this=node.this, to=exp.DataType.build("date"))
    if is_literal(inner) and not isinstance(inner, exp.Boolean):
        known = row_cast.constant_in_cast(node)
        return constant(node if known is None else known)
    if isinstance(inner, _TRUTHS) and row_cast.is_number_type(node.to):
        one, zero = (arithmetic.constant(Fraction(value)) for value in (1, 0))
        return arithmetic.choice(((predicate(inner, scope), one), (predicate(inner, scope, True), zero)), None)
    return row_cast.cast_of(node, scalar(inner, scope), scope)


def _interval(node: exp.Expr) -> exp.Expr | None:
    """The interval that a date is moved by."""
    moved = bare(node.expression)
    if isinstance(moved, exp.Interval):
        return moved
    if isinstance(node, exp.Add) and isinstance(bare(node.this), exp.Interval):
        return bare(node.this)
    return exp.Interval(this=moved, unit=node.args.get("unit")) if isinstance(node, exp.DateAdd | exp.DateSub) else None


def _moved(node: exp.Expr, scope: Scope) -> Number:
    interval = _interval(node)
    assert interval is not None
    day = node.expression if isinstance(bare(node.this), exp.Interval) else node.this
    sign: Literal[1, -1] = -1 if isinstance(node, exp.Sub | exp.DateSub) else 1
    return day_arithmetic.moved(node, number(day, scope), interval, sign, scope)


def _null_where(node: exp.Nullif, scope: Scope) -> Number:
    """NULLIF(x, y): x, but NULL where it is y."""
    first, second = number(node.this, scope), number(node.expression, scope)
    if second.span.nullable:
        raise QueryError(f"{shown(node)}: NULLIF takes a constant, or COALESCE of what may be NULL")
    scope.room.repeat(first, 1)
    return arithmetic.choice(((arithmetic.compare("<>", first, second), first),), None)


def _quotient(node: exp.Div, dividend: Number, divisor: Number, scope: Scope) -> Number:
    if not isinstance(divisor, Constant):
        return quotient(node, dividend, divisor, scope, cuts(node, scope))
    if divisor.index == 0:
        raise QueryError("the query divides by zero")
    found = arithmetic.times(dividend, 1 / arithmetic.value_of(divisor))
    return whole_numbers.truncated(found, scope) if cuts(node, scope) else found


def choices(node: exp.Case | exp.If, scope: Scope) -> tuple[Sequence[Predicate], list[exp.Expr], exp.Expr | None]:
    """The conditions of a CASE, what it is where each is the first to hold, and what it is otherwise, if not NULL."""
    clauses = [node] if isinstance(node, exp.If) else node.args["ifs"]
    subject = None if isinstance(node, exp.If) else node.this
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    conditions = (
        [predicate(clause.this, scope) for clause in clauses]
        if subject is None
        else _comparisons([("=", clause.this) for clause in clauses], subject, scope)
    )
    last = None if default is None or isinstance(bare(default), exp.Null) else default
    return conditions, [clause.args["true"] for clause in clauses], last


def _choice(node: exp.Case | exp.If, scope: Scope) -> Number:
    conditions, results, default = choices(node, scope)
    branches = []
    for condition, result in zip(conditions, results, strict=True):
        with scope.where(condition):
            branches.append((condition, number(result, scope)))
    if default is None:
        return arithmetic.choice(tuple(branches), None)
    with scope.where(*_otherwise(node, scope)):
        return arithmetic.choice(tuple(branches), number(default, scope))


def _otherwise(node: exp.Case | exp.If, scope: Scope) -> list[Predicate]:
    """What is known where no condition of a CASE holds, if anything in it asks: a division, a logarithm."""
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    if (isinstance(node, exp.Case) and node.this is not None) or not isinstance(default, exp.Expr):
        return []
    if default.find(exp.Div, exp.IntDiv, exp.Ln, exp.Log, exp.Sqrt, exp.Pow) is None:
        return []
    clauses = [node] if isinstance(node, exp.If) else node.args["ifs"]
    return [predicate(clause.this, scope, negated=True) for clause in clauses]


# --- predicates -------------------------------------------------------------------------------------------------------


def predicate(node: exp.Expr, scope: Scope, negated: bool = False) -> Predicate:
    """A condition on a row, with negation pushed to its leaves."""
    scope.room.take(1)
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
            if node.args.get("symmetric"):
                raise QueryError("BETWEEN SYMMETRIC is not answered; write BETWEEN low AND high")
            ends: list[tuple[Operation, exp.Expr]] = [(">=", node.args["low"]), ("<=", node.args["high"])]
            if negated:
                ends = [(NEGATED[operation], end) for operation, end in ends]
            return joined(tuple(_comparisons(ends, node.this, scope)), every=not negated)
        case exp.In():
            return _among(node, scope, negated)
        case exp.Exists():
            return _semi_join(node, scope, negated)
        case exp.Is():
            return _is(node, scope, negated != bool(node.args.get("negate")))
        case exp.StartsWith() | exp.EndsWith() | exp.Contains():
            return text_condition.affix(node, negated, scope)
        case exp.Like() | exp.ILike() if is_change(node.this):
            return text_condition.like_text(node, negated != bool(node.args.get("negate")), scope)
        case exp.Like() | exp.ILike():
            return like(node, scalar(node.this, scope), negated != bool(node.args.get("negate")), scope)
        case exp.Column():
            flag = flag_of(node, scope)
            if flag is None:
                raise QueryError(f"{shown(node)} is not a condition; write a comparison, for example {shown(node)} > 0")
            return _flag_is(flag, not negated)
    if type(node) in COMPARISONS:
        operation = COMPARISONS[type(node)]
        return _comparison(NEGATED[operation] if negated else operation, node.this, node.expression, scope)
    raise QueryError(_unknown(node))


def _comparisons(sides: Sequence[tuple[Operation, exp.Expr]], subject: exp.Expr, scope: Scope) -> list[Predicate]:
    """One subject compared with several others: it is bound once, and stands in the tree as often as it is compared."""
    if is_change(subject):
        return [text_condition.compared(operation, subject, [other], scope) for operation, other in sides]
    if is_literal(subject) or isinstance(bare(subject), exp.Null):
        return [_comparison(operation, subject, other, scope) for operation, other in sides]
    first = scalar(subject, scope)
    scope.room.repeat(first, len(sides) - 1)
    scope.room.take(len(sides))
    return [_compared(operation, first, other, scope) for operation, other in sides]


def _comparison(operation: Operation, left: exp.Expr, right: exp.Expr, scope: Scope) -> Predicate:
    if isinstance(bare(left), exp.Null) or isinstance(bare(right), exp.Null):
        known = right if isinstance(bare(left), exp.Null) else left
        raise QueryError(f"nothing equals NULL; write {shown(known)} IS NULL or IS NOT NULL")
    if is_literal(left) and not is_literal(right):
        left, right, operation = right, left, FLIPPED[operation]
    if is_text(left):
        raise QueryError("two constants are compared; compare a column")
    if is_change(left) or is_change(right):
        if not is_change(left):
            left, right, operation = right, left, FLIPPED[operation]
        return text_condition.compared(operation, left, [right], scope)
    return _compared(operation, scalar(left, scope), right, scope)


def _compared(operation: Operation, first: Field | Number, right: exp.Expr, scope: Scope) -> Predicate:
    if isinstance(bare(right), exp.Null):
        raise QueryError("nothing equals NULL; write IS NULL or IS NOT NULL")
    if isinstance(first, Field) and is_literal(right):
        return compare_field(operation, first, [right], scope)
    if not isinstance(first, Field) and is_text(right):
        if first.span.date:
            return arithmetic.compare(operation, first, day(right))
        raise QueryError(f"a number is compared with the text {shown(right)}; write the number without quotes")
    second = scalar(right, scope)
    if isinstance(first, Field) and isinstance(second, Field):
        return compare_fields(operation, first, second, scope)
    return arithmetic.compare(operation, _as_number(first, scope), _as_number(second, scope))


def _among(node: exp.In, scope: Scope, negated: bool) -> Predicate:
    if node.args.get("query") is not None:
        return _semi_join(node, scope, negated)
    if node.args.get("unnest") or node.args.get("field"):
        raise QueryError("IN takes a list of constants, or a query: IN (SELECT key FROM t WHERE ...)")
    if any(isinstance(bare(option), exp.Null) for option in node.expressions):
        raise QueryError("nothing equals NULL, so it does not belong into an IN list; write OR x IS NULL")
    operation: Operation = "<>" if negated else "="
    if node.expressions and is_change(node.this):
        return text_condition.compared(operation, node.this, node.expressions, scope)
    subject = scalar(node.this, scope)
    if not node.expressions:
        return Always(negated)
    if isinstance(subject, Field):
        return compare_field(operation, subject, node.expressions, scope)
    options = [_option(option, subject, scope) for option in node.expressions]
    constants = [option for option in options if isinstance(option, Constant)]
    if len(constants) == len(options):
        scope.room.take_listed(len(options))
        return arithmetic.one_of(subject, constants, negated)
    scope.room.repeat(subject, len(options) - 1)
    return joined(tuple(arithmetic.compare(operation, subject, option) for option in options), every=negated)


def _semi_join(node: exp.Exists | exp.In, scope: Scope, negated: bool) -> Predicate:
    from confide.query.semi_join import matched  # noqa: PLC0415  conditions of its inner query are conditions again

    return matched(node, scope, negated)


def _option(node: exp.Expr, subject: Number, scope: Scope) -> Number:
    if is_text(node) and subject.span.date:
        return day(node)
    return constant(node) if is_literal(node) else number(node, scope)


def _is(node: exp.Is, scope: Scope, negated: bool) -> Predicate:
    wanted = bare(node.expression)
    if isinstance(wanted, exp.Null) and is_change(node.this):
        return text_condition.known_text(node.this, not negated, scope)
    if isinstance(wanted, exp.Null):
        subject = scalar(node.this, scope)
        if isinstance(subject, Field) and isinstance(subject.column, Identifier):
            raise QueryError(not_a_number(subject))
        if not isinstance(subject, Field) and not subject.span.nullable:
            return Always(negated)
        return Known(subject, negated=not negated)
    flag = flag_of(node.this, scope)
    if isinstance(wanted, exp.Boolean) and flag is not None:
        if not negated:
            return _flag_is(flag, bool(wanted.this))
        return joined((_flag_is(flag, not wanted.this), Known(flag, negated=True)), every=False)
    raise QueryError(f"{shown(node)}: IS is answered for NULL, NOT NULL, and TRUE or FALSE of a true/false column")


def flag_of(node: exp.Expr, scope: Scope) -> Field | None:
    """A column of true and false."""
    inner = bare(node)
    field = scope.field(inner) if isinstance(inner, exp.Column) else None
    if isinstance(field, Field) and isinstance(field.column, Category) and field.column.kind is bool:
        return field
    return None


def _flag_is(flag: Field, wanted: bool) -> Predicate:
    assert isinstance(flag.column, Category)
    return Among(flag, (wanted,) if wanted in flag.column.values else ())


# --- words ------------------------------------------------------------------------------------------------------------


def _unknown(node: exp.Expr) -> str:
    what = node.name.upper()[:60] if isinstance(node, exp.Anonymous) else shown(node)
    if isinstance(node, exp.AggFunc):
        where = "" if node.find_ancestor(exp.Where) is None else (
            "; what groups are kept by stands in HAVING, after GROUP BY, and a number to compare rows with in a "
            f"sub-query, (SELECT {what} FROM t)"
        )  # fmt: skip
        return (
            f"{what} stands inside a row expression; an aggregate goes around the whole expression: SUM(a + b){where}"
        )
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return (
            "a subquery stands only in FROM, as one row per unit: "
            "FROM (SELECT key, SUM(x) AS total FROM t GROUP BY key)"
        )
    if isinstance(node, _MOMENTS) or what in ("NOW", "TODAY", "GET_CURRENT_TIMESTAMP"):
        return f"{what} would change from day to day; write the date itself, DATE '2024-01-31'"
    if (
        isinstance(node, exp.Boolean | exp.Not | exp.And | exp.Or | exp.In | exp.Is | exp.Like)
        or type(node) in COMPARISONS
    ):
        return f"{shown(node)} is a condition, not a number; write CASE WHEN {shown(node)} THEN 1 ELSE 0 END"
    if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.RegexpFullMatch | exp.SimilarTo | exp.RegexpExtract):
        return (
            f"{what} is not answered in a row expression: regular expressions differ between databases; write LIKE, "
            "STARTS_WITH, ENDS_WITH or CONTAINS"
        )
    if isinstance(node, exp.Window):
        return f"{what}: window functions are not answered of rows; GROUP BY the partition instead"
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return f"{what} stands for a value that is given elsewhere; write the value itself"
    if isinstance(node, exp.Star):
        return "* is all columns; write COUNT(*) for the number of rows, or name one column"
    return (
        f"{what} is not answered in a row expression; these are: + - * /, ABS, LEAST, GREATEST, COALESCE, NULLIF, "
        "CASE, FLOOR, CEIL, ROUND, TRUNC, SIGN, SQRT, LN, EXP, POWER, // and % by a constant, LENGTH, parts of dates, "
        "DATE_TRUNC, DATE_DIFF, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL"
    )
