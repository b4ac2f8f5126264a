"""Lists of values in a file beside the policy."""

from pathlib import Path

import pytest

from confide.errors import PolicyError
from confide.policy import Category, Policy, load

TEXT = "budget: {{epsilon: 1}}\nunit: row\ntables:\n  t:\n    columns:\n      code: {{values: {values}, nulls: true}}\n"
CANARY = "CANARY-5511"


def column(folder: Path, content: str | bytes, file: str = "codes.csv") -> Category:
    (folder / "codes.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    found = Policy.parse_text(TEXT.format(values=f"@{file}"), base=folder).tables["t"].columns["code"]
    assert isinstance(found, Category)
    return found


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("N\nE\n", ("N", "E")),
        ("code\nN\nE", ("N", "E")),
        ("Code\r\nN\r\nE\r\n\r\n", ("N", "E")),
        ("\ufeff1\n2\n3\n", (1, 2, 3)),
        ("01067\n01069\n", ("01067", "01069")),
        ("1\n2\nA\n", ("1", "2", "A")),
        ("true\nfalse\n", (True, False)),
        ('"a, b"\n"c ""d"""\n', ("a, b", 'c "d"')),
        ("1.5\n2024-01-31\n", ("1.5", "2024-01-31")),
        (" N\nN\n", (" N", "N")),
    ],
)
def test_a_file_lists_values(tmp_path: Path, content: str, values: tuple[object, ...]) -> None:
    assert column(tmp_path, content).values == values
    assert column(tmp_path, content).nulls


def test_a_list_in_a_file_is_the_same_policy_as_the_list_itself(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("N\nE\n")
    (tmp_path / "p.yaml").write_text(TEXT.format(values="@codes.csv"))
    (tmp_path / "q.yaml").write_text(TEXT.format(values="[N, E]"))
    one, other = Policy.load(tmp_path / "p.yaml"), Policy.load(tmp_path / "q.yaml")
    assert one == other
    assert (one.fingerprint, one.facts_fingerprint) == (other.fingerprint, other.facts_fingerprint)
    assert load(one.to_yaml()) == one
    (tmp_path / "codes.csv").write_text("N\nW\n")
    assert Policy.load(tmp_path / "p.yaml").facts_fingerprint != other.facts_fingerprint


def test_paths_start_at_the_policy_and_quotes_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "codes.csv").write_text("N\n E\n")
    (tmp_path / "p.yaml").write_text(TEXT.format(values="'@lists/codes.csv'"))
    monkeypatch.chdir(tmp_path / "lists")
    assert Policy.load(tmp_path / "p.yaml").tables["t"].columns["code"] == Category("code", ("N", " E"), True)
    columns = {"code": {"values": "@codes.csv"}}
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}
    assert load(policy).tables["t"].columns["code"] == Category("code", ("N", " E"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "lists no values"),
        ("code\n", "lists no values"),
        ("N\n\nE\n", "has nothing on line 2"),
        (f"N\n{CANARY},2\n", "has 2 fields on line 2"),
        (f"{CANARY}\nN\n{CANARY}\n", "line 3 of codes.csv lists the value of line 1 again"),
        (f'"{CANARY}\nN\n', "a quote that is not closed"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        ("\n".join(map(str, range(100_001))), "lists 100,001 values"),
        (f"{CANARY}\n" * 400_000, "is larger than 4 MB"),
    ],
)
def test_what_is_no_list_is_refused_without_its_words(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        column(tmp_path, content)
    assert words in str(caught.value)
    assert "line 6, tables.t.columns.code.values" in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("other.csv", "is not there (looked for"),
        (".", "cannot be read: Is a directory"),
        ("~nobody-here/x", "it is no path"),
    ],
)
def test_files_that_are_not_there(tmp_path: Path, file: str, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        column(tmp_path, "N\n", file)
    assert words in str(caught.value)


def test_a_mark_without_a_file_and_one_in_a_list() -> None:
    with pytest.raises(PolicyError, match="no file is named after @"):
        load(TEXT.format(values="'@'"))
    assert load(TEXT.format(values="['@home', away]")).tables["t"].columns["code"] == Category(
        "code", ("@home", "away"), True
    )
