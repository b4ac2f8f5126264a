"""Random bits come from few modules, each for a stated reason; every other use in the source is found here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import confide

SOURCE = Path(confide.__file__).parent
ALLOWED = {
    "mechanism/noise/randomness.py": "the noise of every release",
    "privacy/public_randomness.py": "chance that protects nobody",
    "ledger/durable.py": "the identity and the secret of a new ledger",
    "ledger/memory.py": "the same of one in memory",
    "ledger/sqlite/creation.py": "the name of a file that is not yet a ledger",
}
_MODULES = {"random", "secrets", "opendp", "numpy.random", "jax.random"}
_FUNCTIONS = {
    ("os", "urandom"), ("os", "getrandom"), ("uuid", "uuid1"), ("uuid", "uuid4"), ("ssl", "RAND_bytes"),
    ("numpy", "random"), ("np", "random"), ("jax", "random"), ("pc", "random"), ("compute", "random"),
}  # fmt: skip
_METHODS = {"default_rng", "RandomState", "SystemRandom", "rvs", "random_state", "urandom", "getrandbits", "uuid4"}
_TYPES = {("np", "Generator"), ("numpy", "Generator")}


def uses(tree: ast.AST) -> Iterator[str]:
    """Every mention of a source of random bits. `np.random.Generator` is a type: whoever is given one may use it."""
    types = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_type(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in _MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module in _MODULES:
                    yield module
                yield from (
                    f"{module}.{alias.name}"
                    for alias in names
                    if (module, alias.name) in _FUNCTIONS or f"{module}.{alias.name}" in _MODULES
                )
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if (owner, attribute) in _FUNCTIONS:
                if id(node) not in types:
                    yield f"{owner}.{attribute}"
            case ast.Attribute(attr=attribute) if attribute in _METHODS:
                yield attribute
            case ast.keyword(arg=str(name)) if name in _METHODS:
                yield name
            case _:
                continue


def _is_type(node: ast.Attribute) -> bool:
    inner = node.value
    if not (isinstance(inner, ast.Attribute) and inner.attr == "random" and isinstance(inner.value, ast.Name)):
        return False
    return (inner.value.id, node.attr) in _TYPES


def found(path: Path) -> list[str]:
    return list(uses(ast.parse(path.read_text())))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_random_bits_come_from_few_modules(path: Path) -> None:
    assert bool(found(path)) is (str(path.relative_to(SOURCE)) in ALLOWED)


def test_every_module_that_is_allowed_is_there() -> None:
    assert all((SOURCE / name).is_file() for name in ALLOWED)


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "import secrets as s",
        "from random import Random",
        "from secrets import token_bytes",
        "from os import urandom",
        "import os\nos.urandom(8)",
        "from uuid import uuid4",
        "import uuid\nuuid.uuid4()",
        "import numpy as np\nnp.random.default_rng(1)",
        "import numpy as np\nnp.random.seed(1)",
        "import numpy as np\nnp.random.Generator(np.random.PCG64(1))",
        "import numpy as np\nmake = np.random",
        "import numpy.random as chance",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import jax\njax.random.key(0)",
        "from jax import random",
        "from scipy import stats\nstats.norm.rvs(size=3)",
        "fit(random_state=1)",
    ],
)
def test_a_planted_use_is_found(planted: str) -> None:
    assert list(uses(ast.parse(planted)))


@pytest.mark.parametrize(
    "innocent",
    ["def draw(generator: np.random.Generator) -> None: generator.random(3)", "from uuid import UUID", "import os"],
)
def test_what_draws_nothing_is_not_found(innocent: str) -> None:
    assert not list(uses(ast.parse(innocent)))
