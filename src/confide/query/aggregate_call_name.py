"""Names of aggregates that the parser knows no class for, in small letters and without underscores."""

from typing import Final

from sqlglot import exp

UNARY: Final[dict[str, type[exp.Expr]]] = {
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
    "total": exp.Sum,
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
    "statsmode": exp.Mode,
}
"""Aggregates of one expression."""
DISTINCT: Final = frozenset(
    ("ndv", "uniq", "uniqexact", "countdistinct", "approxdistinct", "approxcountdistinct", "approximatecountdistinct")
)
SHARES: Final = frozenset(("percentile", "approxpercentile", "percentileapprox", "approxquantile"))
FILTERED: Final[dict[str, type[exp.Expr]]] = {"sumif": exp.Sum, "avgif": exp.Avg}


def plain_name(node: exp.Anonymous | exp.AnonymousAggFunc | exp.CombinedAggFunc) -> str:
    """What a call is named, in small letters and without underscores."""
    return str(node.this).replace("_", "").casefold()


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate is in an expression, by whatever name."""
    names = UNARY.keys() | DISTINCT | SHARES | FILTERED.keys() | {"countstar"}
    return node.find(exp.AggFunc) is not None or any(plain_name(own) in names for own in node.find_all(exp.Anonymous))
