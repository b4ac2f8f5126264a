"""What `plan` accepts `sql` answers, and what one refuses so does the other: generated questions, a fixed seed."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.laboratory.plan_and_answer import Outcome, run_all
from tests.laboratory.report import note


def failures(seed: int, count: int) -> tuple[Counter[str], list[Outcome]]:
    kinds: Counter[str] = Counter()
    wrong = []
    for outcome in run_all(seed, count):
        kinds[outcome.kind] += 1
        kinds["forecasts"] += len(outcome.ratios)
        off = {name: ratio for name, ratio in outcome.ratios.items() if not 0.499999 <= ratio <= 2.000001}
        if outcome.kind == "wrong":
            wrong.append(outcome)
        elif off:
            wrong.append(replace(outcome, detail=f"half-widths over their forecasts: {off}"))
    return kinds, wrong


def shown(wrong: list[Outcome]) -> str:
    return "\n\n".join(f"{outcome.detail}\n{outcome.case}" for outcome in wrong[:5])


def test_what_is_planned_is_answered() -> None:
    kinds, wrong = failures(1, 100)
    assert not wrong, shown(wrong)
    assert kinds["answered"] >= 40
    assert kinds["forecasts"] >= 10


@pytest.mark.audit
@pytest.mark.parametrize("part", range(40))
def test_what_is_planned_is_answered_in_20_000_questions(part: int) -> None:
    """In parts of 500."""
    kinds, wrong = failures(1_000 + part, 500)
    note("plan-and-answer", questions=500, **kinds)
    assert not wrong, shown(wrong)


def test_a_refusal_of_a_small_epsilon_says_what_is_enough() -> None:
    """And it is: questions at ε = 10^-18 and below that are refused for that are answered at what is said."""
    told = [o for o in run_all(3, 100) if "is enough here" in o.detail and "no epsilon is" not in o.detail]
    assert len(told) >= 3
    for outcome in told:
        assert re.search(r"epsilon=[0-9.e-]+ is enough here", outcome.detail)
