import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from confide.errors import ConfideError, PolicyError
from confide.policy import Policy, load
from confide.privacy.limits import LONGEST_POLICY
from tests.policy.samples import PEOPLE, only_problem, people


def write(folder: Path, content: bytes) -> Path:
    path = folder / "people.yaml"
    path.write_bytes(content)
    return path


def test_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE.encode())
    policy = load(path)
    assert policy == load(str(path)) == Policy.load(path) == load(people())
    assert (policy.base, policy.path) == (tmp_path, path)


def test_a_file_with_a_byte_order_mark_and_windows_ends(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf" + PEOPLE.replace("\n", "\r\n").encode())
    assert load(path) == load(people())


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        (b"", "found nothing", None),
        (b"PAR1\x00\x01\xff\xfe\x80", "not UTF-8 text", 1),
        (b"a: 1\nb: \xff\n", "not UTF-8 text", 2),
        (b"a: 1\nb: \x00\n", "character that no text file has", 2),
        (b"x" * (5 * 1024 * 1024), "larger than 4 MB", None),
        (b"id,age\n1,20\n2,30\n", "found other text", 1),
        (PEOPLE.encode()[:-40] + b"[", "not valid YAML", 18),
    ],
)
def test_files_that_are_no_policies(tmp_path: Path, content: bytes, what: str, line: int | None) -> None:
    path = write(tmp_path, content)
    problem = only_problem(lambda: load(path))
    assert what in problem.what
    assert problem.line == line


def test_the_error_names_the_file_and_counts(tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE.replace("[0, 115]", "[115, 0]").encode())
    with pytest.raises(PolicyError) as caught:
        load(path)
    assert isinstance(caught.value, ConfideError)
    assert str(caught.value).startswith(f"{path} has 1 problem:\n  line 11, tables.person.columns.age.range: ")


def test_no_file(tmp_path: Path) -> None:
    assert only_problem(lambda: load(tmp_path / "none.yaml")).what == "there is no such file"


def test_a_folder(tmp_path: Path) -> None:
    assert only_problem(lambda: load(tmp_path)).what == "this is a folder"


def test_a_name_that_no_file_can_have() -> None:
    assert "cannot be read" in only_problem(lambda: load("a\x00b")).what


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE.encode())
    path.chmod(stat.S_IWUSR)
    assert "cannot be read" in only_problem(lambda: load(path)).what


def test_the_longest_file_is_read(tmp_path: Path) -> None:
    filler = "# " + "x" * 98 + "\n"
    content = PEOPLE + filler * ((LONGEST_POLICY - len(PEOPLE)) // len(filler))
    assert load(write(tmp_path, content.encode())) == load(people())


def test_keys_beside_the_file(tmp_path: Path) -> None:
    text = PEOPLE.replace("budget: {epsilon: 3, delta: 1e-9}\n", "")
    path = write(tmp_path, text.encode())
    assert load(path, also={"budget": {"epsilon": 3, "delta": 1e-9}}) == load(people())
    assert load(text, also={"budget": {"epsilon": 3, "delta": 1e-9}}) == load(people())
    problem = only_problem(lambda: load(PEOPLE, also={"unit": "row"}))
    assert (problem.where, problem.line) == ("unit", 4)
    assert only_problem(lambda: load(people(), also={"nonsense": 1})).where == "nonsense"


@pytest.mark.parametrize("value", [{"tables": {1, 2}}, {"tables": object()}, {("a",): 1}])
def test_dicts_with_strange_content(value: dict[str, object]) -> None:
    assert only_problem(lambda: load(value)).line is None


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("yaml", "numpy", "scipy", "hashlib", "confide.policy.parsing")
    code = f"import sys, confide.policy; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
