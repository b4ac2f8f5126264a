import ast
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import confide
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


def test_only_ledgers_make_charges() -> None:
    """Elsewhere the class is a type and nothing else: one that was not paid for would open the door to private rows."""
    package = Path(confide.__file__).parent
    sources = {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    assert {name for name, text in sources.items() if any(makings(text))} == {"ledger/record/entry.py"}


@pytest.mark.parametrize(
    "text",
    [
        "from confide.privacy.charge import Charge\nNOTHING = Charge(0, '', None, '', '', '')",
        "from confide.privacy.charge import Charge as Paid\nNOTHING = Paid(0, '', None, '', '', '')",
        "from confide.privacy import charge\nNOTHING = charge.Charge(0, '', None, '', '', '')",
        "from confide.privacy.charge import Charge\nNOTHING = object.__new__(Charge)",
        "from confide.privacy.charge import Charge\nmake = Charge\nNOTHING = make(0, '', None, '', '', '')",
        "from dataclasses import replace\ndef f(charge: 'Charge'): return replace(charge, sequence=0)",
        "from copy import replace as other\ndef f(charge: 'Charge'): return other(charge, sequence=0)",
    ],
)
def test_a_charge_that_is_made_is_found(text: str) -> None:
    assert list(makings(text))


def test_a_charge_that_is_named_is_no_charge() -> None:
    text = (
        "from confide.privacy.charge import Charge\nOpen = Callable[[Charge], bytes]\n"
        "def f(charge: Charge, other: list[Charge]) -> Charge:\n"
        "    assert isinstance(charge, Charge) and isinstance(other, Charge | None)\n    paid: Charge = charge\n"
    )
    assert not list(makings(text))


def makings(text: str) -> Iterator[ast.AST]:
    """Uses of the class but as a type, in annotations, brackets and `isinstance`; and changed copies of a charge."""
    tree = ast.parse(text)
    names = {"Charge"} | {
        one.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names
        if one.name == "Charge" and one.asname
    }  # fmt: skip
    copying = {"replace"} | {
        one.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names
        if one.name == "replace" and one.asname
    }  # fmt: skip
    types: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        match node:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                parts = [annotation]
            case ast.FunctionDef(returns=returns):
                parts = [returns]
            case ast.Subscript(slice=inner):
                parts = [inner]
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
                parts = [kind]
        types |= {inner for part in parts if part is not None for inner in ast.walk(part)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in names and node not in types:
                yield node
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Name(id="charge"), *_]):
                if name in copying:
                    yield node
