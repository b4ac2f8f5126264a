"""Answers in files: what a spreadsheet would run as a formula is text, and numbers are numbers."""

from pathlib import Path

import pyarrow as pa
import pytest

from confide.errors import ParameterError
from confide.release.answer.answer import KeyColumn, ValueColumn
from confide.release.answer.answer_file import write_csv
from tests.release.answer.test_chart import COUNTS, REGION, answer

FORMULAS = ("=1+1", "+1", "-1", "@a", "\tb", "\rc", "plain", "a=b", None, "'=quoted")


def test_texts_that_begin_like_formulas_are_marked(tmp_path: Path) -> None:
    count = len(FORMULAS)
    keys = KeyColumn("=HYPERLINK(1)", "text", FORMULAS)
    numbers = ValueColumn("-n", "integer", (-3,) * count, (-4,) * count, (-2,) * count, "x", "always")
    text = answer(keys, numbers).to_file(tmp_path / "a.csv").read_bytes().decode()
    head, *lines = text.split("\n")
    assert head == '"\'=HYPERLINK(1)","\'-n","\'-n_low","\'-n_high"'
    assert lines[0] == '"\'=1+1",-3,-4,-2'
    for line, key in zip(lines, FORMULAS, strict=False):
        shown = line.rsplit(",", 3)[0].strip('"')
        assert not shown.startswith(("=", "+", "-", "@", "\t", "\r")), key
        assert line.endswith(",-3,-4,-2"), "numbers stay numbers"
    assert '"plain",-3' in text
    assert ",-3,-4,-2" in lines[8]
    assert lines[8].startswith(","), "NULL is nothing"


@pytest.mark.parametrize("text", ["\n=1", "＝1", "＋1", "－1", "＠a"])
def test_formulas_of_other_scripts_and_after_a_new_line(tmp_path: Path, text: str) -> None:
    """Some programs take wide signs for plain ones, and pass over a new line."""
    place = tmp_path / "t.csv"
    write_csv(pa.table({"k": [text]}), str(place))
    assert place.read_bytes().decode() == f'"k"\n"\'{text}"\n'


def test_large_texts_too(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    write_csv(pa.table({"k": pa.array(["=1"], pa.large_string())}), str(place))
    assert place.read_text() == '"k"\n"\'=1"\n'


@pytest.mark.parametrize("path", ["a.txt", "", 3, "nowhere/a.csv"])
def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: object) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError):
        answer(REGION, COUNTS).to_file(path)
