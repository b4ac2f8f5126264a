import dataclasses
import subprocess
import sys
from fractions import Fraction

import pytest

from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, ApproxDP, PureDP


def test_a_charge_cannot_be_changed() -> None:
    charge = Charge(2, "key", PureDP(Fraction(1)), "a count", "alice", "ledger")
    with pytest.raises(dataclasses.FrozenInstanceError):
        charge.loss = PureDP(Fraction(2))  # type: ignore[misc]


@pytest.mark.parametrize("build", [PureDP, lambda amount: ZCDP(Fraction(0), amount)])
def test_losses_are_exact_and_not_negative(build: object) -> None:
    with pytest.raises(TypeError, match="exact"):
        build(0.1)  # type: ignore[operator]
    with pytest.raises(ValueError, match="negative"):
        build(Fraction(-1))  # type: ignore[operator]
    assert ApproxDP(Fraction(1), Fraction(0)).delta == 0


def test_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, confide.privacy.budget, confide.privacy.charge\n"
        "print([name for name in ('numpy', 'scipy', 'duckdb', 'pyarrow') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
