from pathlib import Path

import pytest

from confide.ledger import Ledger, MemoryLedger
from confide.privacy.budget import Budget
from tests.conformance.ledger import CHECKS, LedgerKind, check_ledger

MEMORY = LedgerKind(lambda folder, budget, caps: MemoryLedger(budget, caps))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conforms(check, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    check(MEMORY, tmp_path)


def test_the_whole_suite_runs_as_one(tmp_path: Path) -> None:
    check_ledger(MEMORY, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(CHECKS)


def test_says_that_it_is_not_durable() -> None:
    ledger: Ledger = MemoryLedger(Budget.of(1))
    assert not ledger.durable
    assert ledger.secret != MemoryLedger(Budget.of(1)).secret
