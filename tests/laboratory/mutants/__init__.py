"""The wrong changes, by the part of the package that they are in."""

from importlib import import_module
from pathlib import Path

from tests.laboratory.mutation import Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    mutant
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py"))
    for mutant in import_module(f"{__name__}.{path.stem}").MUTANTS
)
