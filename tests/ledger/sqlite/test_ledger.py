from pathlib import Path

import pytest

from confide.ledger import SqliteLedger
from tests.conformance.ledger import CHECKS, LedgerKind

SQLITE = LedgerKind(
    lambda folder, budget, caps: SqliteLedger.create(folder / "ledger", budget, caps, timeout=60),
    lambda folder: SqliteLedger.open(folder / "ledger", timeout=60),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conforms(check, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    check(SQLITE, tmp_path)
