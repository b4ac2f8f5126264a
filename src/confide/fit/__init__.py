"""From noisy answers to a table without negative counts, and what that costs. Pure functions of released numbers."""

from confide.fit.adaptive import Screening, adaptive, screen
from confide.fit.choose import METHODS, fit
from confide.fit.domain import Domain
from confide.fit.error import Estimate, error, estimates
from confide.fit.fitted import Fit, Method
from confide.fit.group import TOTAL, Group, Marginal, Sparse, Subtotal
from confide.fit.maxfit import maxfit
from confide.fit.nnls import nnls
from confide.fit.ols import ols
from confide.fit.price import Guarantee, Price, price
from confide.fit.problem import Measured, Problem, Public
from confide.fit.program import Certificate
from confide.fit.records import Rounded, round_controlled
from confide.fit.reweighted import reweighted
from confide.fit.risk import Report, Risk, Sacrifice, report
from confide.fit.sequential import pinned, sequential

__all__ = [
    "METHODS",
    "TOTAL",
    "Certificate",
    "Domain",
    "Estimate",
    "Fit",
    "Group",
    "Guarantee",
    "Marginal",
    "Measured",
    "Method",
    "Price",
    "Problem",
    "Public",
    "Report",
    "Risk",
    "Rounded",
    "Sacrifice",
    "Screening",
    "Sparse",
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
