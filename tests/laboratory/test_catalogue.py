"""Every attack of the catalogue is held by tests that exist, and has a control that falls for it."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.laboratory.catalogue import CATALOGUE, Attack, table
from tests.laboratory.mutants import MUTANTS
from tests.laboratory.mutation import ROOT

NAMES = {mutant.name for mutant in MUTANTS}


@cache
def functions(path: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))


def is_test(name: str) -> bool:
    file, _, function = name.partition("::")
    return (ROOT / "tests" / file).is_file() and function in functions(ROOT / "tests" / file)


@pytest.mark.parametrize("attack", CATALOGUE, ids=lambda attack: attack.name)
def test_it_has_tests_and_a_control(attack: Attack) -> None:
    assert attack.held_by
    assert attack.controls
    assert all(is_test(name) for name in attack.held_by), attack.held_by
    for control in attack.controls:
        assert control in NAMES or is_test(control), control


def test_no_attack_is_listed_twice() -> None:
    assert len({attack.name for attack in CATALOGUE}) == len(CATALOGUE)


def test_the_page_shows_the_catalogue() -> None:
    assert table() in (ROOT / "docs" / "audits.md").read_text()
