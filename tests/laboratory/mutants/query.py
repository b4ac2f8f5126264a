"""Sensitivities, relations and what a question may say."""

from tests.laboratory.mutation import Mutant

_SENSITIVITY, _PAIRS, _CASES = (
    "tests/query/test_sensitivity.py",
    "tests/engine/test_neighbours.py",
    "tests/query/test_cases.py",
)

MUTANTS = (
    Mutant("a total changes by the width of its range", "query/sensitivity.py", "rows, largest = stability.rows, max(abs(low), abs(high))", "rows, largest = stability.rows, high - low", _SENSITIVITY),
    Mutant("a total changes by one row", "query/sensitivity.py", "return Sensitivity(rows * largest, (rows * largest) ** 2)", "return Sensitivity(largest, largest**2)", _SENSITIVITY),
    Mutant("rows of a unit fall into different groups", "query/sensitivity.py", "return Sensitivity(rows * largest, (rows * largest) ** 2)", "return Sensitivity(rows * largest, rows * largest**2)", _SENSITIVITY),
    Mutant("a replaced row stays in its group", "query/sensitivity.py", "return Sensitivity(rows * max(width, 2 * largest), rows**2 * max(width**2, 2 * largest**2))", "return Sensitivity(rows * width, rows**2 * width**2)", _SENSITIVITY),
    Mutant("a row is always there", "query/sensitivity.py", "width = max(high, 0) - min(low, 0) if optional or stability.grouped else high - low", "width = high - low", _SENSITIVITY),
    Mutant("distinct values as if replaced once", "query/sensitivity.py", "return Sensitivity(2 * l1, 2 * l2_squared)", "return Sensitivity(l1, l2_squared)", _SENSITIVITY),
    Mutant("distinct values of one group only", "query/sensitivity.py", "groups = min(stability.groups, rows) if stability.grouped else 1", "groups = 1", _SENSITIVITY),
    Mutant("public tables repeat nothing", "query/relation.py", "rows *= max(1, scope.catalog.multiplicity(node.right.table, columns))", "rows *= 1", f"{_CASES} {_PAIRS}"),
    Mutant("a public number of rows is ignored", "query/relation.py", "    neighbours: Neighbours = \"replace-one\" if table.rows == \"public\" else \"add-remove\"\n    complete", "    neighbours: Neighbours = \"add-remove\"\n    complete", f"{_CASES} {_PAIRS}"),
    Mutant("the smallest bound of joined tables", "query/relation.py", "rows, groups = max(limit.rows for limit in limits), max(limit.groups for limit in limits)", "rows, groups = min(limit.rows for limit in limits), min(limit.groups for limit in limits)", f"{_CASES} {_PAIRS}"),
    Mutant("private tables are joined under rows", "query/relation.py", "if len(private) > 1 or private[0].table is None:", "if private[0].table is None:", f"{_CASES} tests/query tests/release/test_joins.py"),
)  # fmt: skip
