"""Functions of released numbers and keys: which there are, and what kind of value each makes of which."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query.comparison import like_pattern
from confide.query.derivation.derivation import Called, ColumnKind, DerivedExpression, Fixed
from confide.query.derivation.shape import REALS, is_zero
from confide.query.literal import bare, is_text, literal_number, text
from confide.query.parse import shown

MOST_DIGITS: Final = 12
MOST_DEPTH: Final = 60
"""Functions in each other, over all the tables that a column is made of."""
NUMERIC: Final = ("integer", "number", None)
_INTEGERS = (
    exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128, exp.DType.UINT,
    exp.DType.UBIGINT, exp.DType.USMALLINT, exp.DType.UTINYINT,
)  # fmt: skip
_TEXTS = (exp.DType.VARCHAR, exp.DType.TEXT, exp.DType.CHAR, exp.DType.NVARCHAR)
_ONE_NUMBER: Final[dict[type[exp.Expr], str]] = {
    exp.Abs: "abs", exp.Sign: "sign", exp.Sqrt: "sqrt", exp.Cbrt: "cbrt", exp.Ln: "ln", exp.Exp: "exp",
    exp.Floor: "floor", exp.Ceil: "ceil",
}  # fmt: skip
_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_COMPARED: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_OF_TEXT: Final[dict[type[exp.Expr], str]] = {exp.Upper: "upper", exp.Lower: "lower", exp.Trim: "trim"}
_OF_DATE: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Day: "day",
}  # fmt: skip
_READ: Final[dict[type[exp.Expr], tuple[str, ...]]] = {
    exp.Round: ("this", "decimals", "casts_non_integer_decimals"),
    exp.Trunc: ("this", "decimals"),
    exp.Div: ("this", "expression", "typed", "safe"),
    exp.Log: ("this", "expression"),
    exp.Least: ("this", "expressions", "ignore_nulls"),
    exp.Greatest: ("this", "expressions", "ignore_nulls"),
    exp.Coalesce: ("this", "expressions"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Cast: ("this", "to", "safe"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Substring: ("this", "start", "length"),
    exp.Is: ("this", "expression", "negate"),
    exp.Like: ("this", "expression", "negate"),
    exp.ILike: ("this", "expression", "negate"),
    exp.DPipe: ("this", "expression", "safe"),
    exp.Concat: ("expressions", "safe", "coalesce"),
}
"""Parts that are read, beside `this` and `expression`."""


_KNOWN: Final = frozenset(
    (
        *_ONE_NUMBER, *_ARITHMETIC, *_COMPARED, *_OF_TEXT, *_OF_DATE, *_READ, exp.Neg, exp.Not, exp.And, exp.Or,
        exp.Pow, exp.Mod, exp.IntDiv, exp.Nullif, exp.Left, exp.Right, exp.Extract,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meant:
    """An expression with what is known of it from the text. `kind` is None for NULL."""

    expression: DerivedExpression
    kind: ColumnKind | None
    public: bool
    depth: int = 0
    label: bool = False


Read = Callable[[exp.Expr], Meant]


def only(node: exp.Expr, names: Sequence[str]) -> None:
    """Nothing that stands in a text is silently ignored."""
    for name, value in node.args.items():
        if value and name not in names:
            raise QueryError(f"{name.strip('_').upper()} in {shown(node)} is not answered; leave it out")


def deeper(depth: int) -> int:
    """One function more."""
    if depth >= MOST_DEPTH:
        raise QueryError(f"more than {MOST_DEPTH} functions stand in each other; write it in fewer steps")
    return depth + 1


def called(function: str, parts: Sequence[Meant], kind: ColumnKind | None) -> Meant:
    depth = deeper(max((part.depth for part in parts), default=0))
    expression = Called(function, tuple(part.expression for part in parts))
    return Meant(expression, kind, all(part.public for part in parts), depth)


def constant(node: exp.Expr) -> Meant | None:
    """A constant of the text; None if it is none."""
    inner = bare(node)
    if isinstance(inner, exp.Null):
        return Meant(Fixed(None), None, public=True)
    if isinstance(inner, exp.Boolean):
        return Meant(Fixed(bool(inner.this)), "boolean", public=True)
    if is_text(inner):
        return Meant(Fixed(inner.name), "text", public=True)
    number = inner
    while isinstance(number, exp.Neg):
        number = bare(number.this)
    if isinstance(number, exp.Literal) and not number.is_string:
        value = literal_number(inner)
        return Meant(Fixed(value), "integer" if value.denominator == 1 else "number", public=True)
    days = isinstance(inner, exp.Cast) and inner.to.this == exp.DType.DATE and is_text(inner.this)
    if days or (isinstance(inner, exp.Date) and not inner.expressions and is_text(inner.this)):
        return Meant(Fixed(_day(inner.this)), "date", public=True)
    return None


def function_of(node: exp.Expr, read: Read) -> Meant:  # noqa: PLR0915  one case after the other
    """A call with its arguments, each read by `read`; or a refusal that says what there is."""
    kind = type(node)
    if kind in _KNOWN:
        only(node, _READ.get(kind, ("this", "expression")))
    if kind in _ONE_NUMBER:
        whole = kind in (exp.Sign, exp.Floor, exp.Ceil)
        return called(_ONE_NUMBER[kind], [_number(node.this, read)], "integer" if whole else "number")
    if kind in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[kind], _number(node.this, read), _number(node.expression, read))
    if kind in _COMPARED:
        return compared(_COMPARED[kind], read(node.this), read(node.expression), node)
    if kind in _OF_TEXT:
        return called(_OF_TEXT[kind], [_key(node.this, read, "text")], "text")
    if kind in _OF_DATE:
        return called(_OF_DATE[kind], [_key(node.this, read, "date")], "integer")
    match node:
        case exp.Neg():
            return called("neg", [_number(node.this, read)], "number")
        case exp.Not():
            return called("not", [_condition(node.this, read)], "boolean")
        case exp.And() | exp.Or():
            return called(kind.__name__.lower(), [_condition(part, read) for part in _chain(node)], "boolean")
        case exp.Round() | exp.Trunc():
            name = "round" if isinstance(node, exp.Round) else "trunc"
            return called(name, [_number(node.this, read), _digits(node.args.get("decimals"))], "number")
        case exp.Log():
            return _logarithm(node, read)
        case exp.Pow():
            base, power = _number(node.this, read), _number(node.expression, read)
            if not isinstance(power.expression, Fixed) and not isinstance(base.expression, Fixed):
                raise QueryError(f"{shown(node)}: the power is a constant; write EXP(y * LN(x)) for other powers")
            return called("power", [base, power], "number")
        case exp.Mod():
            divisor = _number(node.expression, read)
            if not isinstance(divisor.expression, Fixed) or not divisor.expression.value:
                raise QueryError(f"{shown(node)}: % takes a constant other than zero")
            return called("%", [_number(node.this, read), divisor], "number")
        case exp.IntDiv():
            quotient = _arithmetic("/", _number(node.this, read), _number(node.expression, read))
            return called("trunc", [quotient, Meant(Fixed(Fraction(0)), "integer", public=True)], "integer")
        case exp.Least() | exp.Greatest() | exp.Coalesce():
            parts = [read(part) for part in (node.this, *node.expressions)]
            if not isinstance(node, exp.Coalesce) and any(part.kind not in NUMERIC for part in parts):
                raise QueryError(f"{shown(node)} takes numbers")
            return called(kind.__name__.lower(), parts, _common([part.kind for part in parts], node))
        case exp.Nullif():
            return _nullif(node, read)
        case exp.Case() | exp.If():
            return _case(node, read)
        case exp.Between():
            subject = read(node.this)
            ends = [
                compared(sign, subject, read(node.args[end]), node) for sign, end in ((">=", "low"), ("<=", "high"))
            ]
            return called("and", ends, "boolean")
        case exp.In() if node.expressions:
            subject = read(node.this)
            return called("or", [compared("=", subject, read(part), node) for part in node.expressions], "boolean")
        case exp.Is(expression=exp.Null()):
            found = called("is null", [read(node.this)], "boolean")
            return called("not", [found], "boolean") if node.args.get("negate") else found
        case exp.Like() | exp.ILike() if is_text(node.expression):
            parts = [_key(node.this, read, "text"), Meant(Fixed(like_pattern(node)), "text", public=True)]
            found = called("like" if isinstance(node, exp.Like) else "ilike", parts, "boolean")
            return called("not", [found], "boolean") if node.args.get("negate") else found
        case exp.Cast() | exp.TryCast():
            return _cast(node, read)
        case exp.DPipe():
            return called("||", [_key(part, read, None) for part in (node.this, node.expression)], "text")
        case exp.Concat():
            return _concatenated([_key(part, read, None) for part in node.expressions])
        case exp.Left() | exp.Right():
            parts = [_key(node.this, read, "text"), _number(node.expression, read)]
            return called(kind.__name__.lower(), _public(parts, node), "text")
        case exp.Substring():
            own = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
            parts = [_key(node.this, read, "text"), *[_number(part, read) for part in own]]
            return called("substring", _public(parts, node), "text")
        case exp.Extract():
            wanted = node.this.name.lower()
            if wanted in _OF_DATE.values():
                return called(wanted, [_key(node.expression, read, "date")], "integer")
    raise QueryError(
        f"{shown(node)} is not computed of released numbers; there are + - * / %, ROUND, FLOOR, CEIL, TRUNC, ABS, "
        "SIGN, "
        "SQRT, LN, LOG, EXP, POWER, LEAST, GREATEST, COALESCE, NULLIF, CASE, CAST and comparisons"
    )


def compared(operation: str, left: Meant, right: Meant, node: exp.Expr) -> Meant:
    """A comparison of two values of one kind; a day may be written as a text."""
    for one, other in ((left, right), (right, left)):
        if one.kind == "date" and isinstance(other.expression, Fixed) and isinstance(other.expression.value, str):
            day = Meant(Fixed(_date(other.expression.value)), "date", public=True)
            left, right = (left, day) if other is right else (day, right)
    kinds = {"number" if kind == "integer" else kind for kind in (left.kind, right.kind) if kind is not None}
    if len(kinds) > 1:
        raise QueryError(f"{shown(node)} compares a {left.kind} with a {right.kind}; write a constant of the same kind")
    if operation not in ("=", "<>") and kinds & {"text", "boolean"} and not (left.public and right.public):
        raise QueryError(f"{shown(node)}: texts and truths that follow from released numbers are compared by = and <>")
    return called(operation, [left, right], "boolean")


def _arithmetic(operation: str, left: Meant, right: Meant) -> Meant:
    if operation == "/" and isinstance(right.expression, Fixed) and right.expression.value == 0:
        raise QueryError("the query divides by zero")
    whole = operation != "/" and left.kind == right.kind == "integer"
    return called(operation, [left, right], "integer" if whole else "number")


def _number(node: exp.Expr, read: Read) -> Meant:
    found = read(node)
    if found.kind not in NUMERIC:
        raise QueryError(f"{shown(node)} is a {found.kind}, and a number is needed here")
    return found


def _condition(node: exp.Expr, read: Read) -> Meant:
    found = read(node)
    if found.kind not in ("boolean", None):
        raise QueryError(f"{shown(node)} is no condition; compare it with something")
    return found


def _key(node: exp.Expr, read: Read, kind: ColumnKind | None) -> Meant:
    found = read(node)
    if not found.public:
        raise QueryError(f"{shown(node)} follows from released numbers, and this function is for keys")
    if kind is not None and found.kind not in (kind, None):
        raise QueryError(f"{shown(node)} is a {found.kind}, and a {kind} is needed here")
    return found


def _public(parts: list[Meant], node: exp.Expr) -> list[Meant]:
    if not all(part.public for part in parts):
        raise QueryError(f"{shown(node)} takes keys and constants")
    return parts


def _digits(node: exp.Expr | None) -> Meant:
    digits = Fraction(0) if node is None else literal_number(node)
    if digits.denominator != 1 or not -MOST_DIGITS <= digits <= MOST_DIGITS:
        raise QueryError(f"numbers are rounded to at most {MOST_DIGITS} digits")
    return Meant(Fixed(digits), "integer", public=True)


def _logarithm(node: exp.Log, read: Read) -> Meant:
    base = Meant(Fixed(Fraction(10)), "integer", public=True)
    inner = node.this
    if node.args.get("expression") is not None:
        base, inner = read(node.this), node.expression
    value = base.expression.value if isinstance(base.expression, Fixed) else None
    if not isinstance(value, Fraction) or value <= 0 or value == 1:
        raise QueryError(f"{shown(node)}: the base of a logarithm is a constant above zero, and not one")
    return called("log", [_number(inner, read), base], "number")


def _concatenated(parts: list[Meant]) -> Meant:
    """Texts of keys one after the other; NULL is nothing."""
    nothing = Meant(Fixed(""), "text", public=True)
    found = nothing
    for part in parts:
        known = called("coalesce", [called("text", [part], "text"), nothing], "text")
        found = called("||", [found, known], "text")
    return found


def _nullif(node: exp.Nullif, read: Read) -> Meant:
    subject = read(node.this)
    if is_zero(node.expression) and not subject.public:
        return subject  # the usual guard of a ratio: ours has no failing division to guard
    nothing = Meant(Fixed(None), None, public=True)
    equal = compared("=", subject, read(node.expression), node)
    return called("case", [equal, nothing, subject], subject.kind)


def _case(node: exp.Case | exp.If, read: Read) -> Meant:
    branches = [node] if isinstance(node, exp.If) else node.args.get("ifs") or []
    last = node.args.get("false" if isinstance(node, exp.If) else "default")
    subject = node.args.get("this") if isinstance(node, exp.Case) else None
    against = None if subject is None else read(subject)
    parts: list[Meant] = []
    for branch in branches:
        if against is not None:
            parts.append(compared("=", against, read(branch.this), node))
        else:
            parts.append(_condition(branch.this, read))
        parts.append(read(branch.args["true"]))
    parts.append(Meant(Fixed(None), None, public=True) if last is None else read(last))
    return called("case", parts, _common([part.kind for part in (*parts[1::2], parts[-1])], node))


def _common(kinds: Sequence[ColumnKind | None], node: exp.Expr) -> ColumnKind | None:
    """The one kind of several values; a whole number is a number where others are not whole."""
    known = {kind for kind in kinds if kind is not None}
    if known == {"integer", "number"}:
        return "number"
    if len(known) > 1:
        raise QueryError(f"{shown(node)} has values of several kinds ({', '.join(sorted(known))}); give all one kind")
    return next(iter(known), None)


def _cast(node: exp.Cast, read: Read) -> Meant:
    found, to = read(node.this), node.to
    if to.this in REALS and found.kind in NUMERIC:
        return found
    if to.this in _INTEGERS and found.kind in NUMERIC:
        return called("round", [found, _digits(None)], "integer")
    if to.this == exp.DType.DECIMAL and found.kind in NUMERIC:
        own = [part.this for part in to.expressions]
        digits = _digits(own[1]) if len(own) > 1 else _digits(exp.Literal.number(0 if own else 3))
        return called("round", [found, digits], "number")
    if to.this in _TEXTS:
        # The text of a released number would lose its interval: it stays the number.
        return called("text", [found], "text") if found.public else found
    if to.this == exp.DType.BOOLEAN and found.kind == "boolean":
        return found
    if to.this == exp.DType.DATE and found.kind == "date":
        return found
    raise QueryError(f"{shown(node)}: released numbers are cast to whole numbers, DECIMAL(p, s) and DOUBLE")


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of AND or of OR, without recursion along the chain."""
    kind, pending, found = type(node), [node], []
    while pending:
        part = bare(pending.pop())
        if type(part) is kind:
            pending += [part.args["expression"], part.args["this"]]
        else:
            found.append(part)
    return found


def _day(node: exp.Expr) -> date:
    return _date(text(node))


def _date(written: str) -> date:
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise QueryError(f"'{written[:40]}' is not a date; write DATE '2024-01-31'") from None
