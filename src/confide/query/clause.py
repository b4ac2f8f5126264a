"""Which parts of a query may be there. What sqlglot parses beyond them is refused here: nothing is silently ignored."""

from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query.literal import literal_number
from confide.query.parse import shown

_OUTER = frozenset(
    ("with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
)  # fmt: skip
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(names.split())
    for kinds, names in (
        ((exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop), "this"),
        ((exp.Count,), "this big_int"),
        ((exp.Mode,), "this"),
        ((exp.CountIf, exp.Abs, exp.Neg, exp.Not, exp.Paren, exp.Boolean, exp.Where, exp.Having, exp.From), "this"),
        ((exp.Min, exp.Max), "this expressions"),
        ((exp.LogicalAnd, exp.LogicalOr), "this"),
        ((exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept), "this expression"),
        ((exp.RegrR2, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy), "this expression"),
        ((exp.Filter, exp.Nullif, exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul), "this expression"),
        ((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), "this expression"),
        ((exp.Is, exp.Like, exp.ILike), "this expression negate"),
        ((exp.Div,), "this expression typed safe"),
        ((exp.Distinct, exp.Order), "expressions"),
        ((exp.Column,), "this table db catalog"),
        ((exp.Literal,), "this is_string"),
        ((exp.Case,), "this ifs default"),
        ((exp.If,), "this true false"),
        ((exp.Coalesce,), "this expressions is_null is_nvl"),
        ((exp.Anonymous,), "this expressions"),
        ((exp.Least, exp.Greatest), "this expressions ignore_nulls"),
        ((exp.Round,), "this decimals casts_non_integer_decimals"),
        ((exp.Cast, exp.TryCast), "this to safe"),
        ((exp.Between,), "this low high symmetric"),
        ((exp.In,), "this expressions query unnest field"),
        ((exp.Alias,), "this alias"),
        ((exp.Ordered,), "this desc nulls_first with_fill"),
        ((exp.TableAlias,), "this columns"),
        ((exp.Identifier,), "this quoted"),
        ((exp.With,), "expressions recursive"),
        ((exp.CTE,), "this alias scalar materialized"),
        ((exp.Date,), "this expressions"),
        ((exp.Floor, exp.Ceil, exp.Sign, exp.Trunc, exp.Lower, exp.Upper, exp.TsOrDsToDate, exp.LastDay), "this"),
        ((exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Minute, exp.Second), "this"),
        ((exp.Week, exp.WeekOfYear, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear), "this"),
        ((exp.Length,), "this encoding"),
        ((exp.Trim,), "this expression position"),
        ((exp.StartsWith, exp.EndsWith, exp.Contains), "this expression"),
        ((exp.Replace,), "this expression replacement"),
        ((exp.StrPosition,), "this substr"),
        ((exp.Concat,), "expressions safe coalesce"),
        ((exp.Sqrt, exp.Ln, exp.Exp), "this"),
        ((exp.Pow, exp.Log), "this expression"),
        ((exp.TimeToStr,), "this format"),
        ((exp.Dayname, exp.Monthname), "this abbreviated"),
        ((exp.DateDiff,), "this expression unit date_part_boundary big_int"),
        ((exp.DateAdd, exp.DateSub, exp.Interval), "this expression unit"),
        ((exp.Extract, exp.IntDiv, exp.Mod, exp.Left, exp.Right), "this expression"),
        ((exp.DPipe,), "this expression safe"),
        ((exp.TimestampTrunc, exp.DateTrunc), "this unit"),
        ((exp.Substring,), "this start length"),
        ((exp.Star,), ""),
    )
    for kind in kinds
}
"""The parts of each kind of node that the binder reads; other kinds it knows are checked where they are bound."""
_INNER = frozenset(("expressions", "from_", "joins", "where", "group"))
_ADVICE = {
    "distinct": "SELECT DISTINCT shows raw values; GROUP BY a declared column, or write COUNT(DISTINCT x)",
    "qualify": "QUALIFY is not answered over rows of the data; filter released numbers with HAVING or QUALIFY",
    "windows": "window functions are not answered over rows of the data; GROUP BY first, and put them over aggregates",
    "sample": "sampling is not answered: what it draws is not bounded; ask the whole table",
    "laterals": "LATERAL is not answered; join a table with ON a.key = b.key",
    "pivots": "PIVOT is not answered; GROUP BY both columns",
    "kind": "SELECT AS STRUCT or VALUE is not answered; list the columns",
    "exclude": "SELECT * shows rows, which never leave the data; write aggregates of columns",
    "hint": "hints are not answered; leave them out",
    "sort": "SORT BY is not answered; use ORDER BY",
    "prewhere": "PREWHERE is not answered; use WHERE",
}


def check_parts(root: exp.Expr) -> None:
    """Every node of a kind we know has only parts that we read."""
    for node in root.walk():
        if isinstance(node, exp.Window) and isinstance(node.this, exp.AggFunc) and node.this.args.get("this") is None:
            raise QueryError(f"{shown(node)}: {_ADVICE['windows']}")
        if isinstance(node, exp.Count) and node.expressions:
            raise QueryError(f"{shown(node)} names several columns; write COUNT(*), COUNT(x) or COUNT(DISTINCT x)")
        if isinstance(node, exp.Grouping | exp.GroupingId):
            raise QueryError(f"{shown(node)} is not answered: a key that is summed over is NULL in the answer")
        if isinstance(node, exp.AggFunc) and node.args.get("this") is None:
            raise QueryError(f"{shown(node)} has nothing to aggregate; write COUNT(*), or name a column")
        allowed = _PARTS.get(type(node))
        if allowed is None:
            continue
        if any(node.args.get(name) is None for name, required in node.arg_types.items() if required):
            raise QueryError(f"{shown(node)} lacks a part; write it out")
        for name, value in node.args.items():
            if value and name not in allowed:
                raise QueryError(f"{name.strip('_').upper()} in {shown(node)} is not answered; leave it out")


def check_clauses(select: exp.Select) -> None:
    """The SELECT of a question."""
    _check(
        select, _OUTER, "{} is not answered; a query has SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"
    )


def check_inner_clauses(select: exp.Select) -> None:
    """The SELECT of an inner query."""
    _check(select, _INNER, "{} is not answered in an inner query; put conditions into its WHERE")


def check_subquery(node: exp.Subquery) -> None:
    for name, value in node.args.items():
        if value and name not in ("this", "alias"):
            raise QueryError(_ADVICE.get(name, f"{name.strip('_').upper()} after an inner query is not answered"))
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise QueryError("name the columns inside the inner query: SELECT key, SUM(x) AS total")


def whole_number(select: exp.Select, clause: str) -> int | None:
    """The number after LIMIT or OFFSET."""
    node = select.args.get(clause)
    if node is None:
        return None
    number = node.args.get("count") if isinstance(node, exp.Fetch) else node.args.get("expression")
    options = node.args.get("limit_options")
    extras = [name for name, value in (options.args.items() if options is not None else ()) if value and name != "rows"]
    extras += [name for name in ("offset", "expressions", "this") if node.args.get(name)]
    if extras or not isinstance(number, exp.Literal) or number.is_string:
        raise QueryError(f"{clause.upper()} takes a plain whole number, for example {clause.upper()} 10")
    value: Fraction = literal_number(number)
    if value.denominator != 1 or value >= 2**62:
        raise QueryError(f"{clause.upper()} takes a plain whole number, for example {clause.upper()} 10")
    if clause == "limit" and not value:
        raise QueryError("LIMIT 0 shows nothing, and would be charged; write LIMIT 1 or more, or leave it out")
    return int(value)


def _check(select: exp.Select, allowed: frozenset[str], otherwise: str) -> None:
    for name, value in select.args.items():
        if value and name not in allowed:
            raise QueryError(_ADVICE.get(name, otherwise.format(name.strip("_").upper())))
