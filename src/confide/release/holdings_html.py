"""How a session looks in a notebook: who asks, what is left, and what is public."""

from confide.errors import ConfideError
from confide.host.notebook import framed, lines, title
from confide.policy.describe import describe
from confide.policy.policy_html import description_parts
from confide.release.cost import budget_state
from confide.release.holdings import Holdings


def session_html(holdings: Holdings) -> str:
    """Free: the policy and the books. A ledger that cannot be read, or is closed, says so in place of the budget."""
    try:
        budget = budget_state(holdings.standing()).parts()
    except ConfideError as error:
        budget = [lines([f"the budget cannot be read: {error}"])]
    asking = f"open for {holdings.analyst}" if holdings.analyst else "open for questions"
    return framed(title(asking), *budget, *description_parts(describe(holdings.policy).for_analysts()))
