"""What other dialects call by other names, in one way of saying it; and what means something else in them.

A text is parsed in the dialect it names. Here the few things are mended that the parser leaves as that dialect says
them: a DECODE is a CASE, a day of the week is counted from where that dialect begins. What cannot be told is refused.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from sqlglot import exp

from confide.errors import QueryError
from confide.privacy.limits import LONGEST_QUERY
from confide.query.common_words import all_keys, rows_compared, told_apart
from confide.query.dialect_words import (
    any_as_or,
    at_midnight,
    by_name,
    days_moved,
    plain_format,
    read_day,
    share_of_all,
    to_char,
    without_notes,
)

Query = TypeVar("Query", bound=exp.Query)

_WRAPPED: Final = (exp.TsOrDsToDate, exp.TimeStrToTime, exp.TsOrDsToTimestamp)
"""What a parser puts around a day that may be a text."""
_FROM_ZERO: Final = ("duckdb", "postgres", "redshift", "materialize", "risingwave", "sqlite", "snowflake")
_FROM_ONE: Final = ("mysql", "spark", "spark2", "databricks", "hive", "bigquery", "doris", "starrocks", "singlestore")
_ISO_WEEKS: Final = (
    "duckdb", "postgres", "redshift", "materialize", "risingwave", "spark", "spark2", "databricks", "hive", "presto",
    "trino", "athena", "snowflake",
)  # fmt: skip
"""Dialects in which WEEK is that of ISO 8601."""
_BOUNDARIES: Final = ("tsql", "fabric", "redshift")
"""Dialects in which DATEDIFF counts how often a month begins, though their parser does not say so."""


_SHORT_UNITS: Final = {
    "MM": "MONTH", "MON": "MONTH", "YYYY": "YEAR", "YY": "YEAR", "Q": "QUARTER", "QQ": "QUARTER", "DD": "DAY",
    "IW": "WEEK",
}  # fmt: skip
"""Units of DATE_TRUNC and TRUNC by their short names, which mean one thing wherever they are known."""


def in_common_words(select: Query, dialect: str) -> Query:
    """The query with what this dialect says in its own way as everybody says it.

    Some rules repeat a part, and a part within a part would be repeated as often as all of them together: what is
    repeated has room for as many things as a text may have characters.
    """
    pending, room = [node for node in select.walk() if type(node) in _RULES], LONGEST_QUERY
    for node in reversed(pending):  # from the inside out
        room -= _repeated(node)
        if room < 0:
            raise QueryError(
                "the query is too large when IS DISTINCT FROM, DECODE and comparisons of rows are written out; write "
                "it with shorter parts, or with fewer within each other"
            )
        found = _RULES[type(node)](node, dialect)
        if found is not node:
            node.replace(found)
    return select


def _repeated(node: exp.Expr) -> int:
    """How many things a rule writes again."""
    match node:
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return 3 * _things(node)
        case exp.EQ(this=exp.Tuple()):
            return 3 * _things(node)
        case exp.In(this=exp.Tuple()):
            return 3 * (_things(node.this) * len(node.expressions) + sum(map(_things, node.expressions)))
        case exp.DecodeCase():
            return _things(node.expressions[0]) * (len(node.expressions) // 2) if node.expressions else 0
    return 0


def _things(node: exp.Expr) -> int:
    return sum(1 for _ in node.walk())


def _unwrapped(node: exp.Expr, dialect: str) -> exp.Expr:
    inner = node.this
    if node.args.get("format") is not None and isinstance(inner, exp.Literal):
        return read_day(node, dialect)
    if isinstance(inner, exp.Literal) and inner.is_string:
        return exp.Cast(this=inner, to=exp.DataType.build("date"))
    return inner  # type: ignore[no-any-return]


def _decoded(node: exp.Expr, dialect: str) -> exp.Expr:
    """DECODE(x, a, b, c, d, e): NULL is a value that is like NULL there."""
    subject, *rest = node.expressions
    pairs = [(rest[place], rest[place + 1]) for place in range(0, len(rest) - 1, 2)]
    if not pairs:
        raise QueryError("DECODE lacks a part; write DECODE(x, 1, 'one', 'other'), or CASE x WHEN 1 THEN 'one' END")
    branches = []
    for value, result in pairs:
        kind = exp.Is if isinstance(value, exp.Null) else exp.EQ
        branches.append(exp.If(this=kind(this=subject.copy(), expression=value), true=result))
    last = rest[-1] if len(rest) % 2 else None
    return exp.Case(ifs=branches, **({} if last is None else {"default": last}))


def _second_if_null(node: exp.Expr, dialect: str) -> exp.Expr:
    """NVL2(x, where it is known, where it is not)."""
    known = exp.Is(this=node.this, expression=exp.Null())
    other = node.args.get("false")
    branches = [exp.If(this=exp.Not(this=known), true=node.args["true"])]
    return exp.Case(ifs=branches, **({} if other is None else {"default": other}))


def _converted(node: exp.Expr, dialect: str) -> exp.Expr:
    if node.args.get("style") is not None:
        raise QueryError("CONVERT with a style is not answered; write CAST(x AS type)")
    return exp.Cast(this=node.expression, to=node.this)


def _difference(node: exp.Expr, dialect: str) -> exp.Expr:
    days_moved(node, dialect)
    unit = node.args.get("unit")
    weeks = unit is not None and unit.name.upper().startswith("WEEK")
    if dialect not in _BOUNDARIES and isinstance(node, exp.DateDiff) and not weeks:
        return node
    told = exp.DateDiff(**{name: node.args.get(name) for name in ("this", "expression", "unit")})
    # Weeks begin on Sunday in some dialects, and with the first of the two days in others.
    told.set("date_part_boundary", not weeks or dialect == "duckdb")
    return told


def _elapsed(node: exp.Expr, dialect: str) -> exp.Expr:
    """TIMESTAMPDIFF counts what has wholly passed: of days, that is the difference."""
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper().removesuffix("S") == "DAY":
        return _difference(node, dialect)
    name = "MONTH" if unit is None else unit.name.upper()
    raise QueryError(
        f"TIMESTAMPDIFF({name}, a, b) counts those that have wholly passed, which is not answered; write "
        "TIMESTAMPDIFF(DAY, a, b), or YEAR(b) - YEAR(a)"
    )


def _day_of_week(node: exp.Expr, dialect: str) -> exp.Expr:
    if isinstance(node, exp.Extract) and node.this.name.upper() not in ("DAYOFWEEK", "DOW", "WEEKDAY"):
        return _week(node, dialect) if node.this.name.upper() == "WEEK" else node
    day = node.expression if isinstance(node, exp.Extract) else node.this
    from_sunday = exp.Anonymous(this="WEEKDAY", expressions=[day])
    if dialect in _FROM_ZERO:
        return from_sunday
    if dialect in _FROM_ONE:
        return exp.Paren(this=exp.Add(this=from_sunday, expression=exp.Literal.number(1)))
    if dialect in ("presto", "trino", "athena"):
        return exp.Anonymous(this="ISODOW", expressions=[day])
    raise QueryError(
        f"which day is the first of a week is not fixed in the dialect {dialect}; ask in DuckDB's, where ISODOW(d) is "
        "1 on Monday and DAYOFWEEK(d) 0 on Sunday"
    )


def _week(node: exp.Expr, dialect: str) -> exp.Expr:
    if dialect not in _ISO_WEEKS:
        raise QueryError(
            f"weeks are counted in another way in the dialect {dialect}; ask in DuckDB's, where WEEK(d) is that of ISO "
            "8601, or write BIN(d, 7)"
        )
    return node


def _truncated(node: exp.Expr, dialect: str) -> exp.Expr:
    without_notes(node, dialect)
    unit = node.args.get("unit")
    name = "" if unit is None else unit.name.upper()
    if dialect == "oracle" and name in ("DAY", "DY", "D"):
        raise QueryError(
            "TRUNC(d, 'DAY') is the first day of a week in the dialect oracle, and which day that is depends on the "
            "session; write TRUNC(d, 'IW') for the Monday, or the day itself"
        )
    if name == "WEEK" and dialect in ("bigquery", "tsql", "fabric"):
        return _week(node, dialect)
    if name in _SHORT_UNITS:
        node.set("unit", exp.var(_SHORT_UNITS[name]))
    return node


def _moved(node: exp.Expr, dialect: str) -> exp.Expr:
    return days_moved(exp.DateAdd(**{name: node.args.get(name) for name in ("this", "expression", "unit")}), dialect)


_RULES: Final[dict[type[exp.Expr], Callable[[exp.Expr, str], exp.Expr]]] = {
    exp.NullSafeEQ: told_apart,
    exp.NullSafeNEQ: told_apart,
    exp.EQ: rows_compared,
    exp.In: rows_compared,
    exp.Select: all_keys,
    **dict.fromkeys(_WRAPPED, _unwrapped),
    exp.DecodeCase: _decoded,
    exp.Nvl2: _second_if_null,
    exp.Convert: _converted,
    exp.DateDiff: _difference,
    exp.TsOrDsDiff: _difference,
    exp.TimestampDiff: _elapsed,
    exp.Window: share_of_all,
    exp.TsOrDsAdd: _moved,
    exp.DateAdd: days_moved,
    exp.DateSub: days_moved,
    exp.Cast: at_midnight,
    exp.DateStrToDate: read_day,
    exp.StrToDate: read_day,
    exp.TimeToStr: plain_format,
    exp.ToChar: to_char,
    exp.CountIf: without_notes,
    exp.Any: any_as_or,
    exp.Anonymous: by_name,
    exp.DayOfWeek: _day_of_week,
    exp.Extract: _day_of_week,
    exp.Week: _week,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}
