"""From noisy answers to a table without negative counts, and what that costs. Pure functions of released numbers."""

from confide.fit.adaptive import Screening, adaptive, screen
from confide.fit.choose import METHODS, fit
from confide.fit.error import LinearEstimate, error, estimates
from confide.fit.fitted import Fit, Method
from confide.fit.group import TOTAL, CellDomain, Group, Marginal, SparseGroup, Subtotal
from confide.fit.least_squares import nnls, ols
from confide.fit.maxfit import maxfit
from confide.fit.price import Guarantee, Price, price
from confide.fit.problem import FitProblem, MeasuredGroup, Public
from confide.fit.program import Certificate
from confide.fit.reweighted import reweighted
from confide.fit.risk import Report, Risk, Sacrifice, report
from confide.fit.rounding import RoundedFit, round_controlled
from confide.fit.sequential import pinned, sequential

__all__ = [
    "METHODS",
    "TOTAL",
    "CellDomain",
    "Certificate",
    "Fit",
    "FitProblem",
    "Group",
    "Guarantee",
    "LinearEstimate",
    "Marginal",
    "MeasuredGroup",
    "Method",
    "Price",
    "Public",
    "Report",
    "Risk",
    "RoundedFit",
    "Sacrifice",
    "Screening",
    "SparseGroup",
    "Subtotal",
    "adaptive",
    "error",
    "estimates",
    "fit",
    "maxfit",
    "nnls",
    "ols",
    "pinned",
    "price",
    "report",
    "reweighted",
    "round_controlled",
    "screen",
    "sequential",
]
