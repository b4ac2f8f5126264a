"""Functions that one family of databases calls by names of its own, and days that it writes as texts."""

import re
from datetime import date, datetime
from typing import Final

from sqlglot import exp

from confide.errors import QueryError

_DAY: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T]00:00(?::00(?:\.0+)?)?Z?)?")
_TIMES: Final = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME)
_STRICT: Final = re.compile(r"(%-?[A-Za-z])strict")
_NUMBERS: Final = re.compile("(%[Ymd]|[^%A-Za-z])+")
"""Formats of dates that are read here: a year, a month and a day in digits, in any order."""
_CLICKHOUSE: Final[dict[str, type[exp.Func]]] = {
    "toyear": exp.Year,
    "tomonth": exp.Month,
    "toquarter": exp.Quarter,
    "todayofmonth": exp.Day,
    "todayofyear": exp.DayOfYear,
    "lengthutf8": exp.Length,
    "lowerutf8": exp.Lower,
    "upperutf8": exp.Upper,
}
_SPARK: Final = ("spark", "spark2", "databricks", "hive")
_POSTGRES: Final = ("postgres", "redshift", "materialize", "risingwave")
_TO_CHAR: Final = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d"}
_FREE_LETTERS: Final = ("duckdb", "sqlite", "mysql", "clickhouse", "bigquery", "doris", "starrocks", "singlestore")
"""Dialects in whose formats of dates a letter without a sign before it is itself."""


def written_day(node: exp.Expr) -> exp.Expr | None:
    """A text that says a day, at midnight or without a time, as that day; None of anything else."""
    found = _DAY.fullmatch(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    try:
        day = date.fromisoformat(found[1]) if found is not None else None
    except ValueError:
        return None
    return None if day is None else exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType.build("date"))


def at_midnight(node: exp.Expr, dialect: str) -> exp.Expr:
    """TIMESTAMP '2024-04-01 00:00:00' is a day; of any other time nothing is made."""
    day = written_day(node.this) if node.to.this in _TIMES else None  # type: ignore[attr-defined]
    return node if day is None else day


def read_day(node: exp.Expr, dialect: str) -> exp.Expr:
    """DATE 'YYYY-MM-DD' of Oracle, and TO_DATE('01.03.2024', 'DD.MM.YYYY') of a day that stands in the text."""
    subject, form = node.this, node.args.get("format")
    if not isinstance(subject, exp.Literal) or not subject.is_string:
        return node
    text = subject.name
    if form is not None:
        codes = _STRICT.sub(r"\1", form.name)
        if not isinstance(form, exp.Literal) or _NUMBERS.fullmatch(codes) is None:
            raise QueryError(f"the day {text} in a format of its own is not answered; write DATE '2024-12-31'")
        try:
            text = datetime.strptime(text, codes).date().isoformat()  # noqa: DTZ007  a day has no zone
        except ValueError:
            raise QueryError(f"{text} is no day in the format that is given for it; write DATE '2024-12-31'") from None
    return written_day(exp.Literal.string(text)) or node


def days_moved(node: exp.Expr, dialect: str) -> exp.Expr:
    """DATEADD, DATEDIFF and their kin with days in quotes."""
    for side in ("this", "expression"):
        part = node.args.get(side)
        day = written_day(part) if isinstance(part, exp.Expr) else None
        if day is not None:
            node.set(side, day)
    return node


def plain_format(node: exp.Expr, dialect: str) -> exp.Expr:
    """The format of a date in the codes of STRFTIME. A letter that none of them stands for is itself in some dialects,
    and a code that is not known here in others.
    """
    form = node.args.get("format")
    if not isinstance(form, exp.Literal) or not form.is_string:
        return node
    text = _STRICT.sub(r"\1", form.name)
    if dialect in _POSTGRES:  # the parser knows neither Mon nor Dy there, and counts D from Monday
        text = re.sub("Mon(?!t)", "%b", text).replace("%uy", "%a").replace("%u", "D")
    if dialect not in _FREE_LETTERS and re.search(r"(?<![%-])[A-Za-z]", text):
        raise QueryError(
            "a format of a date holds a code that is not answered in this dialect; years, months and days are, as in "
            "YYYY-MM-DD. For others write QUARTER(d), DAYNAME(d) or MONTHNAME(d)"
        )
    if text != form.name:
        node.set("format", exp.Literal.string(text))
    return node


def to_char(node: exp.Expr, dialect: str) -> exp.Expr:
    """TO_CHAR(day, 'YYYY-MM') of Oracle and Snowflake, of the codes that are numbers."""
    form = node.args.get("format")
    if not isinstance(form, exp.Literal) or not form.is_string or dialect not in ("oracle", "snowflake"):
        return node
    text = re.sub("YYYY|YY|MM|DDD|DD", lambda code: _TO_CHAR[code[0].upper()], form.name, flags=re.IGNORECASE)
    told = exp.TimeToStr(this=node.this, format=exp.Literal.string(text))
    return plain_format(told, dialect)


def any_as_or(node: exp.Expr, dialect: str) -> exp.Expr:
    """ANY(p) of Spark is the aggregate BOOL_OR; `= ANY (...)` is not meant."""
    aggregate = dialect in _SPARK and isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Binary)
    return exp.LogicalOr(this=node.this.this) if aggregate else node


def without_notes(node: exp.Expr, dialect: str) -> exp.Expr:
    """What a parser notes of a dialect, and changes no answer here, is left out."""
    for name in ("zero_on_all_null", "input_type_preserved"):
        if name in node.args:
            node.set(name, None)
    return node


def share_of_all(node: exp.Expr, dialect: str) -> exp.Expr:
    """RATIO_TO_REPORT(x) OVER (...) is x / SUM(x) OVER (...)."""
    inner = node.this
    if not isinstance(inner, exp.Anonymous) or inner.name.upper() != "RATIO_TO_REPORT" or len(inner.expressions) != 1:
        return node
    part = inner.expressions[0]
    node.set("this", exp.Sum(this=part.copy()))
    return exp.Paren(
        this=exp.Div(this=exp.Mul(this=part, expression=exp.Literal.number("1.0")), expression=node.copy())
    )


def by_name(node: exp.Expr, dialect: str) -> exp.Expr:
    """A function that the parser of a dialect knows no class for."""
    if dialect == "clickhouse" and str(node.this).casefold() == "intdiv" and len(node.expressions) == 2:
        return exp.IntDiv(this=exp.paren(node.expressions[0]), expression=exp.paren(node.expressions[1]))
    kind = _CLICKHOUSE.get(str(node.this).casefold()) if dialect == "clickhouse" else None
    return node if kind is None or len(node.expressions) != 1 else kind(this=node.expressions[0])
