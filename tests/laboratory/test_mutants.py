"""Every small wrong change of the source is caught by a named test."""

from collections import Counter

import pytest

from tests.laboratory.mutants import MUTANTS
from tests.laboratory.mutation import ROOT, Mutant, try_mutant
from tests.laboratory.report import note


def test_every_mutant_still_applies() -> None:
    for mutant in MUTANTS:
        assert mutant.applied() != mutant.path.read_text(), mutant.name


def test_names_are_used_once_and_tests_exist() -> None:
    assert not [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1]
    for mutant in MUTANTS:
        for test in mutant.caught_by.split():
            assert (ROOT / test.split("::", 1)[0]).is_file(), mutant.name


@pytest.mark.audit
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant: Mutant) -> None:
    catch = try_mutant(mutant)
    note("mutants", tried=1, caught=int(catch.caught))
    assert catch.caught, f"{mutant.name} survives {mutant.caught_by}\n{catch.words}"


@pytest.mark.audit
def test_a_change_that_breaks_nothing_survives() -> None:
    """Else the runner would call everything caught."""
    words = "Exact coins and dice of any size"
    harmless = Mutant("a word", "mechanism/noise/coin.py", words, f"{words},", "tests/mechanism/noise/test_coin.py")
    assert not try_mutant(harmless).caught
