"""Every `match` ends in `assert_never`, which a type checker proves, in a refusal, or has its reason listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import confide

SOURCE = Path(confide.__file__).parent
NODES = "nodes of SQL are without end, and what is none of these is looked at below"
AS_STORED = "what needs no change is read as it is stored"
OPEN = {
    "cli/boundary.py": {"_outcome": "any error at all"},
    "cli/synthesize.py": {"_write_report": "kinds of files, of which the rest are pictures"},
    "engine/duckdb/objects.py": {"_text": "any value of Python"},
    "engine/postgres/engine.py": {"complaint": "any error of the driver"},
    "engine/postgres/types.py": {"plain": "pairs; all others are given as texts"},
    "engine/read/public_facts.py": {"infer_column": "with conditions on values; what fits none of them is an id"},
    "engine/sql/schema.py": {"_number": AS_STORED, "_date": AS_STORED, "_listed_number": AS_STORED},
    "engine/spark/types.py": {"plain": "with conditions on the column; all others are given as texts"},
    "mechanism/interval/ratio.py": {"_guessed": "pairs of laws; of all others nothing is guessed"},
    "policy/node.py": {"_python_leaf": "any value of Python"},
    "policy/smartnoise.py": {"_column": "words of another format"},
    "policy/yaml_text.py": {"compose": "events of another library, of which some mean nothing"},
    "query/affine.py": {"multiples": "with conditions on the arithmetic; all else is no multiple"},
    "query/aggregate.py": {"aggregate": NODES},
    "query/atoms.py": {"_cuts": "whether a value is known cuts no range", "holds": "all else is one condition"},
    "query/calendar.py": {"part_asked_for": NODES, "part_of": "parts of which the rest are stretches"},
    "query/derivation/released_expression.py": {"_aggregate": NODES},
    "query/curve.py": {"curve_of": NODES},
    "query/derivation/public_rows.py": {"_kind": "with a condition on the values; all other ids are whole numbers"},
    "query/dialect.py": {"_repeated": NODES},
    "query/expression.py": {"predicate": NODES, "scalar": NODES},
    "query/label.py": {"_written": "letters of a format; the last is %", "labels_of": NODES},
    "query/possible_groups.py": {
        "_may_pass": "with conditions on what is compared; what is measured may be anything",
        "_values_of": "with conditions on how many there are; of all others too many",
    },
    "query/quantile.py": {"quantile_call": NODES},
    "query/released.py": {"composed": NODES, "condition": NODES},
    "query/rewrite/aggregate_names.py": {"_standard": NODES},
    "query/rewrite/units_by_key.py": {"replaced": NODES},
    "query/row_facts.py": {
        "_always": "the last operation of six",
        "_ends": "the last operation of six",
        "_short": "few kinds are short",
    },
    "query/sample_means.py": {"_combined": "with conditions on the arithmetic; all else is no sum of means"},
    "query/scope.py": {"not_zero": "one kind of comparison; no other says so"},
    "query/text_change.py": {"change_of": NODES},
    "release/count_questions.py": {"cut_columns": "all other conditions cut nothing"},
    "release/synthetic/drawing.py": {"left_out": "kinds of columns, of which the rest have no range"},
    "release/answer/derived/cell_evaluation.py": {"_pieces": "what is left is linear, or a number of its own"},
    "release/answer/derived/derived_answer.py": {"_leaves": "what is public is made of nothing"},
    "release/answer/derived/ranking.py": {"rank_range": "the last kind is a truth, and longer"},
    "release/answer/evaluation.py": {"_linear_arithmetic": "with conditions on what is known; all else is not linear"},
    "release/summary/counted_columns.py": {"_columns": "with a condition on how many values there are"},
    "release/verdict/subject.py": {"answer_reading": "with conditions on the mechanism; all others read values"},
}


def open_matches(tree: ast.AST) -> Iterator[str]:
    """The functions with a `match` that something may fall through."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        inner = {id(node) for part in function.body for node in ast.walk(part) if isinstance(part, ast.FunctionDef)}
        for node in ast.walk(function):
            for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
                for place, statement in enumerate(block if isinstance(block, list) else []):
                    if isinstance(statement, ast.Match) and id(statement) not in inner:
                        after = block[place + 1] if place + 1 < len(block) else None
                        if not _closed(statement) and not _ends(after):
                            yield function.name


def _closed(statement: ast.Match) -> bool:
    last = statement.cases[-1]
    wild = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    return wild and _ends(last.body[0])


def _ends(statement: ast.stmt | None) -> bool:
    match statement:
        case ast.Raise() | ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case _:
            return False


def paths() -> list[str]:
    found = (str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))
    return sorted(found)


def test_every_match_is_closed_or_has_a_reason() -> None:
    found = {path: sorted(set(open_matches(ast.parse((SOURCE / path).read_text())))) for path in paths()}
    assert {path: names for path, names in found.items() if names} == {
        path: sorted(reasons) for path, reasons in OPEN.items()
    }


CLOSED = """
def f(x):
    match x:
        case 1:
            return 2
        case _:
            {end}
    {after}
"""


@pytest.mark.parametrize(
    ("end", "after", "names"),
    [
        ("assert_never(x)", "", []),
        ("raise TypeError", "", []),
        ("pass", "raise TypeError", []),
        ("return None", "", ["f"]),
        ("pass", "return 3", ["f"]),
    ],
)
def test_a_planted_default_is_found(end: str, after: str, names: list[str]) -> None:
    assert list(open_matches(ast.parse(CLOSED.format(end=end, after=after)))) == names


def test_a_planted_match_without_an_end_is_found() -> None:
    planted = "def f(x):\n    if x:\n        match x:\n            case 1:\n                return 2\n    return 3\n"
    assert list(open_matches(ast.parse(planted))) == ["f"]
