"""Aggregates by their other names: VAR is VARIANCE, APPROX_COUNT_DISTINCT a count of distinct values, SUMIF a FILTER.

Dialects have many spellings of one aggregate. Each is turned into the one that is bound, so that they are one question.
What is called approximate elsewhere is measured like everything else: its error is the noise, and the interval says it.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from sqlglot import exp

from confide.errors import QueryError
from confide.query.parse import shown

Query = TypeVar("Query", bound=exp.Query)

_UNARY: Final[dict[str, type[exp.Expr]]] = {
    "var": exp.Variance,
    "vars": exp.Variance,
    "varp": exp.VariancePop,
    "varsamp": exp.Variance,
    "varpop": exp.VariancePop,
    "variancesamp": exp.Variance,
    "variancepop": exp.VariancePop,
    "std": exp.Stddev,
    "stdev": exp.Stddev,
    "stdevs": exp.Stddev,
    "stdevp": exp.StddevPop,
    "stdpop": exp.StddevPop,
    "stdsamp": exp.StddevSamp,
    "stddevpop": exp.StddevPop,
    "stddevsamp": exp.StddevSamp,
    "mean": exp.Avg,
    "average": exp.Avg,
    "favg": exp.Avg,
    "fsum": exp.Sum,
    "sumkahan": exp.Sum,
    "kahansum": exp.Sum,
    "approxmedian": exp.Median,
    "every": exp.LogicalAnd,
    "booland": exp.LogicalAnd,
    "boolor": exp.LogicalOr,
    "boolandagg": exp.LogicalAnd,
    "booloragg": exp.LogicalOr,
    "logicaland": exp.LogicalAnd,
    "logicalor": exp.LogicalOr,
    "countif": exp.CountIf,
}
"""Aggregates of one expression, by their names in small letters and without underscores."""
_DISTINCT: Final = frozenset(
    ("ndv", "uniq", "uniqexact", "countdistinct", "approxdistinct", "approxcountdistinct", "approximatecountdistinct")
)
_SHARES: Final = frozenset(("percentile", "approxpercentile", "percentileapprox", "approxquantile"))
_FILTERED: Final[dict[str, type[exp.Expr]]] = {"sumif": exp.Sum, "avgif": exp.Avg}


def named_aggregates(select: Query) -> Query:
    """The query with every aggregate under the name that is bound; itself, if it is so already."""
    if not any(_standard(node) is not None for node in select.walk()):
        return select
    result = select.copy()
    # From the inside out, so that what is put in place of a call holds its parts in their final form.
    for node in reversed(list(result.walk())):
        build = _standard(node)
        if build is not None:
            node.replace(build())
    return result


def _standard(node: exp.Expr) -> Callable[[], exp.Expr] | None:
    """What makes the same aggregate under the name that is bound; None if a node is no other name of one."""
    match node:
        case exp.ApproxDistinct():
            return lambda: _distinct([node.this])
        case exp.SafeDivide():
            return lambda: exp.Div(this=exp.paren(node.this.copy()), expression=exp.paren(node.expression.copy()))
        case exp.Anonymous() | exp.AnonymousAggFunc() | exp.CombinedAggFunc():
            return _by_name(node, str(node.this).replace("_", "").casefold(), node.expressions)
    return None


def _by_name(node: exp.Expr, name: str, parts: list[exp.Expr]) -> Callable[[], exp.Expr] | None:
    if name in _UNARY:
        return lambda: _UNARY[name](this=_only(node, parts, 1)[0])
    if name == "countstar" and not parts:
        return lambda: exp.Count(this=exp.Star())
    if name in _DISTINCT:
        return lambda: _distinct(_only(node, parts, 1))
    if name in _SHARES:
        return lambda: _quantile(_only(node, parts, 2))
    if name in _FILTERED:
        return lambda: _filtered(_FILTERED[name], _only(node, parts, 2))
    return None


def _only(node: exp.Expr, parts: list[exp.Expr], count: int) -> list[exp.Expr]:
    if len(parts) != count:
        raise QueryError(f"{shown(node)} takes {count} argument{'s' * (count > 1)} here")
    return [part.copy() for part in parts]


def _distinct(parts: list[exp.Expr]) -> exp.Expr:
    return exp.Count(this=exp.Distinct(expressions=[part.copy() for part in parts]))


def _quantile(parts: list[exp.Expr]) -> exp.Expr:
    return exp.Quantile(this=parts[0], quantile=parts[1])


def _filtered(aggregate: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    return exp.Filter(this=aggregate(this=parts[0]), expression=exp.Where(this=parts[1]))
