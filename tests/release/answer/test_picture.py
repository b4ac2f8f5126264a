"""Charts in files and notebooks: nothing is fetched, and no value becomes more than text."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from confide.errors import ParameterError
from confide.release.answer import picture
from confide.release.answer.answer import KeyColumn, ValueColumn
from tests.release.answer.test_chart import COUNTS, REGION, SEX, answer

EVIL = "</script><script>alert(1)</script><svg onload=alert(2)>"


def hostile() -> Any:
    key = KeyColumn(EVIL, "text", (EVIL, "a", "b"))
    return answer(key, ValueColumn(EVIL, "integer", (1, 2, 3), (0, 0, 0), (9, 9, 9), "x", "always"))


def test_a_page_holds_all_it_needs(tmp_path: Path) -> None:
    page = tmp_path / "chart.html"
    answer(REGION, SEX, COUNTS).plot(page)
    text = page.read_text()
    assert not re.search(r"<script[^>]*src=|<link[^>]*href=", text), "it would be fetched"
    assert "n by region and sex" in text
    later = tmp_path / "later.html"
    answer(REGION, SEX, COUNTS).plot().save(str(later))
    assert not re.search(r"<script[^>]*src=", later.read_text())


@pytest.mark.parametrize(("name", "beginning"), [("c.png", b"\x89PNG"), ("c.SVG", b"<svg")])
def test_pictures(tmp_path: Path, name: str, beginning: bytes) -> None:
    answer(REGION, COUNTS).plot(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_a_notebook_shows_a_picture_without_a_network() -> None:
    shown = hostile().plot()._repr_mimebundle_()
    drawing = shown["image/svg+xml"]
    assert drawing.startswith("<svg")
    assert "<script" not in drawing
    assert "onload=alert" not in drawing.replace("&lt;", "<").split(">")[0]
    assert any(kind.startswith("application/vnd.vegalite.") for kind in shown)
    assert "text/html" not in shown, "it would fetch its drawing library"


def test_no_value_leaves_the_script_of_a_page(tmp_path: Path) -> None:
    hostile().plot(tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "<script>alert" not in text
    assert "<svg onload" not in text


@pytest.mark.parametrize(
    ("path", "words"),
    [("c.pdf", "drawn as .html, .png, .svg"), ("no/c.png", "no folder"), (3, "drawn as"), ("", "drawn as")],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: object, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=words):
        answer(REGION, COUNTS).plot(path)


def test_without_the_converter_pictures_are_refused_and_pages_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr(picture, "converts", lambda: False)
    with pytest.raises(ParameterError, match=r"confide\[plot\]"):
        answer(REGION, COUNTS).plot(tmp_path / "c.png")
    drawn = answer(REGION, COUNTS).plot(tmp_path / "c.html")
    assert "n by region" in (tmp_path / "c.html").read_text()
    assert "image/svg+xml" not in drawn._repr_mimebundle_()
