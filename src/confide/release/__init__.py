"""Sessions and what they release."""

from confide.release.answer import Answer
from confide.release.cost import BudgetState, Cost
from confide.release.ledgers import ledger_place
from confide.release.opening import open_for_tests, open_session, read_policy
from confide.release.plan import Plan
from confide.release.session import Session

__all__ = [
    "Answer",
    "BudgetState",
    "Cost",
    "Plan",
    "Session",
    "ledger_place",
    "open_for_tests",
    "open_session",
    "read_policy",
]
