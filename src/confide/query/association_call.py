"""Calls that ask how two numbers go together: CORR, COVAR_POP, REGR_SLOPE and the like."""

from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query.parse import shown

Kind = Literal["corr", "r2", "covariance", "slope", "intercept", "count", "mean of x", "mean of y"]

_CALLS: Final[dict[type[exp.Expr], Kind]] = {
    exp.Corr: "corr",
    exp.CovarPop: "covariance",
    exp.CovarSamp: "covariance",
    exp.RegrR2: "r2",
    exp.RegrSlope: "slope",
    exp.RegrIntercept: "intercept",
    exp.RegrCount: "count",
    exp.RegrAvgx: "mean of x",
    exp.RegrAvgy: "mean of y",
}


@dataclass(frozen=True, slots=True)
class AssociationCall:
    """What is asked of y, the first argument, and x, the second; it is computed over rows where both are known."""

    kind: Kind
    y: exp.Expr
    x: exp.Expr
    sample: bool


def association_call(node: exp.Expr) -> AssociationCall | None:
    """What a call asks of two numbers; None if it is no such call."""
    kind = _CALLS.get(type(node))
    if kind is not None and node.args.get("expression") is None:
        raise QueryError(f"{shown(node)} takes two numbers: CORR(x, y), REGR_SLOPE(y, x)")
    return None if kind is None else AssociationCall(kind, node.this, node.expression, isinstance(node, exp.CovarSamp))
