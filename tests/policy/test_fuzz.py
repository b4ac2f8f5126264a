"""Whatever stands in a policy, reading it ends in a policy or in one PolicyError, with lines that exist."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import PolicyError, Problem
from confide.policy import load
from confide.policy.describe import describe
from tests.policy.samples import METADATA, PEOPLE

BITS = [
    *"[]{}:,-?&*!|>'\"#%@`\n\t ",
    "\n  ",
    ": ",
    "____",
    "1e-9",
    ".nan",
    "null",
    "true",
    "2020-01-01",
    "&a",
    "*a",
    "<<: ",
]
WORDS = [
    "confide",
    "source",
    "budget",
    "epsilon",
    "delta",
    "analysts",
    "unit",
    "tables",
    "public",
    "references",
    "at_most",
]
WORDS += [
    "rows",
    "groups",
    "size",
    "columns",
    "type",
    "values",
    "nulls",
    "range",
    "grain",
    "bins",
    "row",
    "t",
    "t.id",
    "id",
]


@st.composite
def spoiled_texts(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from((PEOPLE, METADATA)))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 12))
        text = text[:start] + draw(st.sampled_from(BITS + WORDS) | st.text(max_size=3)) + text[start + cut :]
    return text


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.sampled_from(WORDS) | st.text(max_size=4)
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)


def problems_or_policy(source: str | dict[str, Any]) -> tuple[Problem, ...]:
    """The problems of a document; a policy that loads can also be described, and loads again from its own text."""
    try:
        policy = load(source)
    except PolicyError as error:
        return error.problems or (Problem("nowhere", "an error without problems"),)
    assert str(describe(policy))
    assert load(policy.to_yaml()) == policy
    return ()


@settings(max_examples=300, deadline=None)
@given(spoiled_texts())
def test_spoiled_texts(text: str) -> None:
    problems = problems_or_policy(text + "\n")
    breaks = sum(text.count(character) for character in "\n\r\x85\u2028\u2029")
    assert all(problem.line is None or 1 <= problem.line <= breaks + 2 for problem in problems)
    assert all(problem.where != "nowhere" for problem in problems)
    assert len(set(problems)) == len(problems)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), documents, max_size=8))
def test_random_dicts(document: dict[str, Any]) -> None:
    assert all(problem.line is None and problem.where != "nowhere" for problem in problems_or_policy(document))


@settings(max_examples=150, deadline=None)
@given(documents, documents)
def test_random_columns_and_tables(column: Any, table: Any) -> None:
    document = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": {"x": column}}, "u": table}}
    assert all(problem.where.startswith("tables") for problem in problems_or_policy(document))
