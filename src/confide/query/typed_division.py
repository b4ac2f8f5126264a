"""Division in dialects that cut the quotient of two whole numbers: PostgreSQL, SQL Server, SQLite, Trino and others.

Of rows it is cut as they cut it, towards zero. Of released numbers it is refused: what is cut tells less than what was
paid for. Whether a part is whole follows from the text and the policy; where that cannot be told it is refused too.
"""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Category
from confide.query.literal import bare
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.tree import Field

_ALL_PARTS: Final = (
    exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Coalesce, exp.Least, exp.Greatest, exp.Nullif,
    exp.Sum, exp.Min, exp.Max, exp.Filter, exp.Div,
)  # fmt: skip
"""Whole where all of their parts are."""
_WHOLE: Final = (exp.Count, exp.CountIf, exp.Length, exp.StrPosition, exp.DateDiff)
_REAL: Final = (
    exp.Avg, exp.Median, exp.Quantile, exp.PercentileCont, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Sqrt, exp.Ln, exp.Exp, exp.Log,
)  # fmt: skip
_ADVICE: Final = "write CAST(x AS DOUBLE) / y, or x * 1.0 / y, for the real quotient"


def cuts(node: exp.Div, scope: Scope) -> bool:
    """Whether a division of rows cuts its quotient, in the dialect that it was written in."""
    if not node.args.get("typed"):
        return False
    sides = [_whole(side, scope, {}) for side in (node.this, node.expression)]
    if False in sides:
        return False
    if None in sides:
        raise QueryError(
            f"{shown(node)}: whether `/` cuts this quotient depends on types that are not known here; {_ADVICE}"
        )
    return True


def check_released_division(select: exp.Select, scope: Scope) -> None:
    """No two whole numbers that are released are divided where the dialect would cut the quotient."""
    divisions = [node for node in select.find_all(exp.Div) if node.args.get("typed")]
    aliases = {item.alias.casefold(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for node in divisions:
        if node.find_ancestor(exp.AggFunc, exp.Where, exp.Group, exp.From, exp.Join, exp.Subquery) is not None:
            continue
        if _of_keys(node, scope, aliases):
            continue
        if False not in (_whole(side, scope, aliases) for side in (node.this, node.expression)):
            raise QueryError(f"{shown(node)}: in this dialect `/` cuts the quotient of two whole numbers; {_ADVICE}")


def _of_keys(node: exp.Div, scope: Scope, aliases: Mapping[str, exp.Expr]) -> bool:
    """Whether a division in the SELECT list or in GROUP BY is one of rows: of columns of tables, without aggregates."""
    item = node.find_ancestor(exp.Ordered)
    if item is not None:
        select = item.find_ancestor(exp.Select)
        group = None if select is None else select.args.get("group")
        return group is not None and item.this in group.expressions
    if node.find_ancestor(exp.Having, exp.Qualify) is not None or node.find(exp.AggFunc) is not None:
        return False
    columns = list(node.find_all(exp.Column))
    named = [aliases[own.name.casefold()] for own in columns if own.name.casefold() in aliases]
    columns += [column for own in named for column in own.find_all(exp.Column)]
    return bool(columns) and all(map(scope.holds, columns)) and not any(own.find(exp.AggFunc) for own in named)


def _whole(node: exp.Expr, scope: Scope, aliases: dict[str, exp.Expr]) -> bool | None:
    """Whether an expression is of an integer type; None if that cannot be told."""
    node = bare(node)
    if isinstance(node, exp.Literal):
        return None if node.is_string else node.name.isdigit()
    if isinstance(node, exp.Column):
        return _column(node, scope, aliases)
    if isinstance(node, exp.Cast):
        kinds = (exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL, exp.DType.BIGDECIMAL)
        return True if node.to.is_type(*exp.DataType.INTEGER_TYPES) else False if node.to.this in kinds else None
    if isinstance(node, exp.Case | exp.If):
        clauses = [node] if isinstance(node, exp.If) else node.args["ifs"]
        last = node.args.get("false" if isinstance(node, exp.If) else "default")
        results = [clause.args["true"] for clause in clauses] + ([] if last is None else [last])
        return _all(results, scope, aliases)
    if isinstance(node, _WHOLE):
        return True
    if isinstance(node, _REAL):
        return False
    if isinstance(node, _ALL_PARTS):
        this = [part for part in (node.this, node.args.get("expression")) if isinstance(part, exp.Expr)]
        return _all(
            [part for part in (*this, *(node.expressions or ())) if not isinstance(part, exp.Where)], scope, aliases
        )
    return None


def _all(parts: list[exp.Expr], scope: Scope, aliases: dict[str, exp.Expr]) -> bool | None:
    told = [_whole(part, scope, aliases) for part in parts if not isinstance(bare(part), exp.Null)]
    return False if False in told else None if None in told else True


def _column(node: exp.Column, scope: Scope, aliases: dict[str, exp.Expr]) -> bool | None:
    """A column of a table is whole if its grain is; dates count, since days between them are whole."""
    if isinstance(node.this, exp.Star) or not scope.holds(node):
        meant = None if node.table else aliases.get(node.name.casefold())
        rest = {name: own for name, own in aliases.items() if name != node.name.casefold()}
        return None if meant is None else _whole(meant, scope, rest)
    subject = scope.field(node)
    if isinstance(subject, Field):
        return isinstance(subject.column, Category) and subject.column.kind is int
    return subject.span.grain.denominator == 1
