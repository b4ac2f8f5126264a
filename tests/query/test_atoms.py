"""Atoms of conditions: no row is in two, and what counts have of them is what they have of rows."""

from itertools import product
from typing import Any

import pytest

from confide.policy import load
from confide.query import bind
from confide.query.atoms import atoms_of
from confide.query.tree import (
    Always,
    Among,
    Both,
    Cell,
    Choice,
    Compare,
    Constant,
    Either,
    Field,
    Known,
    OneOf,
    Reading,
    Scaled,
)

POLICY = {
    "budget": {"epsilon": 9},
    "unit": "row",
    "tables": {
        "t": {
            "columns": {
                "s": {"values": ["F", "M"]},
                "k": {"values": [0, 1, 2]},
                "a": {"range": [0, 9]},
                "h": {"range": [-1, 1], "grain": 0.5},
                "w": {"type": "text"},
            }
        }
    },
}
MANY = ", ".join(
    [f"COUNT_IF(a = {a} AND k = {k} AND s = '{s}') x{a}{k}{s}" for a in range(10) for k in range(3) for s in "FM"]
    + [f"COUNT_IF(a = {a} AND h = {h / 2}) y{a}{h + 2}" for a in range(10) for h in range(-2, 3)]
)
ROWS = [dict(zip("ska", row, strict=True)) for row in product(["F", "M", None], [0, 1, 2, None], [*range(10), None])]


def question(select: str) -> Any:
    return bind(f"SELECT {select}", load(POLICY), None)  # type: ignore[arg-type]


def holds(node: Any, row: dict[str, Any]) -> bool:
    """A condition on a row, by the meaning of SQL."""
    match node:
        case Always(holds=own):
            return own
        case Both(parts):
            return all(holds(part, row) for part in parts)
        case Either(parts):
            return any(holds(part, row) for part in parts)
        case Known(subject, negated):
            return (number(subject, row) is None) == negated
        case Among(field, values):
            return row[field.name] is not None and row[field.name] in values
        case OneOf(subject, indices, negated):
            own = number(subject, row)
            return own is not None and (own in indices) != negated
        case Compare(operation, left, right):
            one, two = number(left, row), number(right, row)
            python = {"=": "==", "<>": "!="}.get(operation, operation)
            return one is not None and two is not None and eval(f"{one} {python} {two}")
    raise AssertionError(node)


def number(node: Any, row: dict[str, Any]) -> Any:
    match node:
        case Constant(index):
            return index
        case Field() | Reading():
            return row[node.name if isinstance(node, Field) else node.field.name]
        case Scaled(inner, factor, offset):
            own = number(inner, row)
            return None if own is None else own * factor + offset
        case Choice(branches, otherwise):
            found = next((value for condition, value in branches if holds(condition, row)), otherwise)
            return None if found is None else number(found, row)
    raise AssertionError(node)


def added(cell: Cell, row: dict[str, Any]) -> int:
    if not holds(cell.where, row):
        return 0
    if cell.kind == "rows":
        return 1
    own = number(cell.subject, row)
    return (own or 0) if cell.kind == "total" else int(own is not None)


@pytest.mark.parametrize(
    "select",
    [
        "COUNT(*) FILTER (WHERE a < 3) x, COUNT(*) FILTER (WHERE a < 7) y, COUNT(*) n FROM t",
        "COUNT_IF(a BETWEEN 2 AND 5 AND s = 'F') x, COUNT_IF(NOT s = 'F' OR a > 4) y, COUNT_IF(a IS NULL) z FROM t",
        "COUNT(a) x, COUNT(s) y, COUNT(k) FILTER (WHERE a IN (1, 3, 5)) z, COUNT_IF(a NOT IN (1, 9)) v FROM t",
        "SUM(CASE WHEN a < 4 THEN 1 WHEN s = 'M' THEN 3 END) x, SUM(CASE WHEN k = 1 THEN 2 ELSE -1 END) y FROM t",
        "COUNT(CASE WHEN a >= 5 THEN 1 END) x, COUNT_IF(2 * a + 1 <= 8) y, COUNT_IF(-a < -6) z FROM t",
        "COUNT_IF(a <> 4 AND k <> 0) x, COUNT_IF(s IS NOT NULL AND a = 4) y FROM t WHERE a < 6 AND (s = 'F' OR k = 2)",
        "COUNT_IF(a < 3 OR a > 7) x, COUNT_IF(k IN (0, 2)) y, COUNT_IF(a < 3.5) z FROM t WHERE s = 'F'",
    ],
)  # fmt: skip
def test_no_row_is_in_two_atoms_and_counts_add_up(select: str) -> None:
    summary = question(select).summary
    found = atoms_of(summary.cells, summary.where)
    assert found is not None
    seen = set()
    for row in ROWS:
        if not holds(summary.where, row):
            continue
        inside = [place for place, condition in enumerate(found.conditions) if holds(condition, row)]
        assert len(inside) <= 1
        told = [own[inside[0]] if inside else 0 for own in found.weights]
        assert told == [added(cell, row) for cell in summary.cells]
        assert inside or not found.whole
        seen |= set(inside)
    assert seen == set(range(len(found.conditions)))  # no atom is empty whatever the data are
    assert len(set(zip(*found.weights, strict=True))) == len(found.conditions)  # and no two say the same


@pytest.mark.parametrize(
    "select",
    [
        "COUNT(*) FILTER (WHERE a < 3) x, COUNT(*) FILTER (WHERE w = 'b') y FROM t",  # texts without a list
        "COUNT_IF(a % 3 = 1) x, COUNT(*) y FROM t",  # no range of the column
        "COUNT_IF(a < k) x, COUNT_IF(a < 3) y FROM t",  # two columns
        "SUM(a) x, COUNT_IF(a < 3) y FROM t",  # a number of its own in every row
        f"{MANY} FROM t",  # more atoms than are told
    ],
)  # fmt: skip
def test_what_is_not_told(select: str) -> None:
    summary = question(select).summary
    assert atoms_of(summary.cells, summary.where) is None


def test_grains_and_ends_of_a_range() -> None:
    summary = question(
        "COUNT_IF(h < 0.25) x, COUNT_IF(h <= -1) y, COUNT_IF(h > 5) z, COUNT_IF(h >= -7) v FROM t"
    ).summary
    found = atoms_of(summary.cells, summary.where)
    assert found is not None
    for index in (-2, -1, 0, 1, 2, None):
        row = {"h": index}
        inside = [place for place, condition in enumerate(found.conditions) if holds(condition, row)]
        assert len(inside) == (index is not None)
        told = [own[inside[0]] if inside else 0 for own in found.weights]
        assert told == [added(cell, row) for cell in summary.cells]
