"""Sessions and what they release."""

from confide.release.answer.answer import Answer
from confide.release.answer.plan import Plan
from confide.release.cost import BudgetState, Cost
from confide.release.custody.ledgers import ledger_place
from confide.release.opening import open_for_tests, open_session, read_policy
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
