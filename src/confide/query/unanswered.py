"""What is said of an expression that is no aggregate we answer, and what to write instead."""

from sqlglot import exp

from confide.query.parse import shown


def unanswered(node: exp.Expr) -> str:
    """The words of a refusal."""
    what = shown(node)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return f"{what} is neither in GROUP BY nor inside an aggregate; rows never leave the data"
    if isinstance(node, exp.Star | exp.Column):
        return "SELECT * shows rows, which never leave the data; write COUNT(*) or aggregates of columns"
    if isinstance(node, exp.Window):
        return (
            f"{what}: window functions are not answered over rows of the data; GROUP BY first, and put the window over "
            "what is released: SUM(COUNT(*)) OVER ()"
        )
    if isinstance(node, exp.ApproxTopK | exp.ApproxTopSum):
        return (
            f"{what} is not answered: it is a list; write MODE(x), or GROUP BY the column with ORDER BY COUNT(*) DESC "
            "LIMIT 10"
        )
    if isinstance(node, exp.Interval):
        return f"{what}: a released date is not moved; move the column inside the aggregate, MAX(d + {what})"
    if isinstance(node, exp.Subquery | exp.Select):
        return (
            "a subquery stands only in FROM, as one row per unit: "
            "FROM (SELECT key, SUM(x) AS total FROM t GROUP BY key)"
        )
    return (
        f"{what} is not answered; the aggregates are COUNT, COUNT(DISTINCT x), SUM, AVG, VARIANCE, STDDEV, MEDIAN, "
        "MODE, QUANTILE, MIN, MAX, CORR, COVAR_POP, REGR_SLOPE, REGR_INTERCEPT, REGR_R2, BOOL_AND, BOOL_OR, and "
        "arithmetic on them"
    )
