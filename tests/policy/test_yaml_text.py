import time

import pytest
import yaml

from confide.policy.findings import Findings
from confide.policy.node import Block, Leaf, Listing, Node, UnreadableError
from confide.policy.yaml_text import compose
from confide.privacy.limits import LONGEST_POLICY


@pytest.fixture(autouse=True, params=["libyaml", "python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers of PyYAML: the second is all there is where libyaml is missing."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


def read(text: str) -> Node | None:
    findings = Findings()
    root = compose(text, findings)
    assert not findings, findings.problems()
    return root


def plain(node: Node | None) -> object:
    if isinstance(node, Block):
        return {key: plain(item) for key, item in node.entries.items()}
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return None if node is None else node.value


def test_a_document_with_its_lines() -> None:
    root = read("a: 1\nb:\n  c: [x,\n      y]\n  d: 'no'\n")
    assert plain(root) == {"a": 1, "b": {"c": ["x", "y"], "d": "no"}}
    assert isinstance(root, Block)
    inner = root.entries["b"]
    assert isinstance(inner, Block)
    assert dict(inner.key_lines) == {"c": 3, "d": 5}
    listing = inner.entries["c"]
    assert isinstance(listing, Listing)
    assert [item.line for item in listing.items] == [3, 4]


def test_quotes_make_strings_and_never_blanks() -> None:
    root = read("a: '1'\nb: \"true\"\nc: '____'\nd: ____\n")
    assert plain(root) == {"a": "1", "b": "true", "c": "____", "d": "____"}
    assert isinstance(root, Block)
    assert [isinstance(node, Leaf) and node.blank for node in root.entries.values()] == [False, False, False, True]


def test_keys_are_text_as_written() -> None:
    assert plain(read("2019: 1\nno: 2\nnull: 3\n1.50: 4\n")) == {"2019": 1, "no": 2, "null": 3, "1.50": 4}


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n"])
def test_nothing(text: str) -> None:
    root = read(text)
    assert root is None or (isinstance(root, Leaf) and root.value is None)


def test_duplicate_keys_are_found_and_reading_goes_on() -> None:
    findings = Findings()
    root = compose("a: 1\nb:\n  - c: 2\n    c: [3, 4]\n    d: 5\na: 6\n", findings)
    assert [(problem.where, problem.line) for problem in findings.problems()] == [("b[1].c", 4), ("a", 6)]
    assert "line 3" in findings.problems()[0].advice
    assert plain(root) == {"a": 1, "b": [{"c": 2, "d": 5}]}


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("a: [1, 2\nb: 3\n", "not valid YAML", 2),
        ("a: 1\n\tb: 2\n", "not valid YAML", 2),
        ("a: !!python/object:os.system x\n", "tag", 1),
        ("a: !!str 5\n", "tag", 1),
        ("a: 1\nb: !own {c: 1}\n", "tag", 2),
        ("a: 1\n---\nb: 2\n", "second document", 2),
        ("a: *unknown\n", "named", 1),
        ("a: &loop [*loop]\n", "loop", 1),
        ("a: 1\n? [x, y]\n: 3\n", "single word", 2),
        ("a: 'x\x00'\n", "character", 1),
        ("\n\na: \x07\n", "character", 3),
        ("a: 'open\n", "not valid YAML", 2),
    ],
)
def test_what_cannot_be_read(text: str, word: str, line: int) -> None:
    with pytest.raises(UnreadableError, match=word) as caught:
        read(text)
    assert caught.value.line == line


def test_aliases_stand_for_their_value() -> None:
    assert plain(read("a: &list [x, y]\nb: *list\n")) == {"a": ["x", "y"], "b": ["x", "y"]}


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    start = time.monotonic()
    with pytest.raises(UnreadableError, match="aliases"):
        read("\n".join(levels))
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("text", ["[" * 10_000, "{a: " * 10_000, "\n".join("  " * i + "a:" for i in range(1_000))])
def test_deep_nesting_is_refused_and_not_a_recursion(text: str) -> None:
    with pytest.raises(UnreadableError, match="deep"):
        read(text)


def test_a_huge_text_is_refused() -> None:
    with pytest.raises(UnreadableError, match="longer"):
        read("a: " + "x" * LONGEST_POLICY)


def test_lines_hold_with_windows_ends_and_names_of_all_scripts() -> None:
    root = read("größe: 1\r\n名前: 2\r\n😀: 3\r\n")
    assert isinstance(root, Block)
    assert dict(root.key_lines) == {"größe": 1, "名前": 2, "😀": 3}
