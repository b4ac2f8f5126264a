"""Every long audit is in one part of `make audit`."""

import subprocess
import sys

import pytest

from tests.laboratory.audit import PARTS, ROOT


def test_every_part_names_what_there_is() -> None:
    for part in PARTS.values():
        assert all((ROOT / path).exists() for path in part.paths), part


def test_no_file_of_audits_is_left_out() -> None:
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.audit" in path.read_text() and path.name != "test_audit.py"
    }
    named = {path for part in PARTS.values() for path in part.paths}
    left_out = {path for path in marked if not any(path == one or path.startswith(f"{one}/") for one in named)}
    assert not left_out


@pytest.mark.parametrize("words", [["nowhere"], []])
def test_wrong_parts_are_told(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.laboratory.audit", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "pairs-spark" in done.stdout + done.stderr) == (2 if words else 0, True)
