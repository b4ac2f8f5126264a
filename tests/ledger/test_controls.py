"""The important checks, run against a naive ledger: each must find it out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from confide.privacy.budget import Budget
from tests.conformance import ledger as checks
from tests.conformance.ledger import LedgerKind
from tests.ledger.naive import NaiveLedger

NAIVE = LedgerKind(
    lambda folder, budget, caps: NaiveLedger(folder, budget),
    lambda folder: NaiveLedger(folder, Budget.of(1)),
)

CAUGHT = [
    (checks.check_exact, None),
    (checks.check_refusals, "is not in 'the budget is exhausted'"),
    (checks.check_caps, None),
    (checks.check_answers, "took the place of the first"),
    (checks.check_chain, None),
    (checks.check_thread_race, "charges were acknowledged where 10 fit"),
    (checks.check_process_race, "processes were charged for the last unit"),
    (checks.check_one_key, "different outcomes for one key"),
    (checks.check_against_model, None),
]


@pytest.mark.parametrize(("check", "reason"), CAUGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_finds_a_naive_ledger_out(
    check: Callable[[LedgerKind, Path], None], reason: str | None, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, ExceptionGroup), match=reason):
        check(NAIVE, tmp_path)


def test_the_naive_ledger_works_for_one_careful_client(tmp_path: Path) -> None:
    with NAIVE.create(tmp_path, Budget.of(1), None) as ledger:
        first = ledger.charge(checks.pure("0.5"), "a count", "key")
        assert ledger.charge(checks.pure("0.5"), "a count", "key") == first
        assert ledger.spent() == checks.pure("0.5")
