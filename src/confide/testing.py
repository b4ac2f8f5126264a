"""For tests of code that uses Confide: repeatable TEST NOISE, which protects nobody.

Answers carry a watermark, and the ledger lives in memory only: test noise never spends, or pretends to spend, a budget.
"""

from confide.release.opening import open_for_tests as open  # noqa: A004

__all__ = ["open"]
