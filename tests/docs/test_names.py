"""One vocabulary: no two classes share a name, modules that share one mean the same by it, and words are explained."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "confide"

SAME: dict[str, str] = {
    "answer": "what a question, or a workload, is answered by: the result, and its command",
    "card": "the data card of a release",
    "catalogue": "the tables that a server has, by names and types",
    "chart": "a picture of a result",
    "choice": "which mechanism, or decider, is taken",
    "curator": "who charges, reads and noises the steps of a synthesis: the protocol, and the one with a ledger",
    "engine": "a database as an engine",
    "identity": "how things are spelled in the identity of a request",
    "ledger": "a ledger in one place or the other; in the command line, the commands about it",
    "microdata": "noisy marginals with a fitted table: the result, and its command",
    "plan": "the forecast of a call",
    "protocol": "what every engine, or every ledger, does",
    "rendering": "how a result looks in print",
    "report": "what a release is good for, told from what was released",
    "request": "what a product is asked by",
    "schema": "how stored columns are read as what the policy says they are",
    "summary": "the first look at a table: the result, and its command",
    "transaction": "a piece of work on a ledger, whole or not at all",
    "types": "the types of a database that a policy's columns may have",
}
"""Module names that occur more than once, and what each means wherever it does."""


def modules() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "__init__.py":
            found[path.stem].append(str(path.relative_to(SOURCE)))
    return found


def classes(sources: dict[str, str]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def shared(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_classes_share_a_name() -> None:
    sources = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    assert len(sources) > 300
    assert shared(classes(sources)) == {}


def test_two_classes_of_one_name_would_be_found() -> None:
    assert shared(classes({"a": "class X: ...", "b": "class X: ...", "c": "class _X: ..."})) == {"X": ["a", "b"]}


def test_modules_that_share_a_name_mean_the_same_by_it() -> None:
    assert set(shared(modules())) == set(SAME)


@pytest.mark.parametrize("package", ["engine", "ledger", "mechanism", "release"])
def test_no_name_of_a_module_is_a_folder_in_disguise(package: str) -> None:
    """`microdata_plan.py` is `microdata/plan.py`."""
    disguised = [
        path.stem
        for path in (SOURCE / package).rglob("*.py")
        if "_" in path.stem.strip("_") and (path.parent / path.stem.split("_")[0]).is_dir()
    ]
    assert set(disguised) <= {"sql_engine"}, "an engine that speaks SQL is not part of writing it"


def test_the_words_of_the_glossary_are_explained_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    words = [word.strip() for line in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for word in line.split(",")]
    words = [word for word in words if word not in ("word", "---")]
    assert len(words) > 70
    assert [word for word in words if words.count(word) > 1] == []
    for marked in re.findall(r"\*(\w+)\*", text.split("\n\n", 2)[2]):
        assert {marked, marked.rstrip("s"), re.sub("ies$", "y", marked)} & set(words), marked
