"""The spellings of quantiles: MEDIAN, QUANTILE, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX."""

from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query.literal import literal_number
from confide.query.parse import shown


def quantile_call(node: exp.Expr) -> tuple[exp.Expr, Fraction] | None:
    """The number and the share below it that a call asks for; None if the call is not of a quantile."""
    match node:
        case exp.Median():
            return _plain(node, node.this), Fraction(1, 2)
        case exp.Min():
            return _plain(node, node.this), Fraction(0)
        case exp.Max():
            return _plain(node, node.this), Fraction(1)
        case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc()):
            order = node.args.get("expression")
            ordered = order.expressions if isinstance(order, exp.Order) else []
            if len(ordered) != 1 or node.this.args.get("expression"):
                raise QueryError(f"{shown(node)}: write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)")
            share = _share(node.this.this)
            return ordered[0].this, 1 - share if ordered[0].args.get("desc") else share
        case exp.Quantile() | exp.PercentileCont() | exp.PercentileDisc() | exp.ApproxQuantile():
            given = node.args.get("quantile") or node.args.get("expression")
            if given is None:
                raise QueryError(f"{shown(node)}: write QUANTILE(x, 0.9)")
            return _plain(node, node.this), _share(given)
    return None


def _plain(node: exp.Expr, subject: exp.Expr | None) -> exp.Expr:
    extras = [value for name, value in node.args.items() if value and name not in ("this", "quantile", "expression")]
    if subject is None or extras or isinstance(subject, exp.Distinct | exp.Order):
        raise QueryError(f"{shown(node)}: a quantile takes one number, and a share: QUANTILE(x, 0.9)")
    return subject


def _share(node: exp.Expr) -> Fraction:
    if not isinstance(node, exp.Literal | exp.Neg):
        raise QueryError(
            f"the share of a quantile is a number from 0 to 1, not {shown(node)}; ask for one share at a time"
        )
    share = literal_number(node)
    if not 0 <= share <= 1:
        raise QueryError(
            f"the share {shown(node)} of a quantile is not between 0 and 1; the median is QUANTILE(x, 0.5)"
        )
    return share
