"""What the site needs of the pages, and the pages of the code."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

import confide
from confide.errors import CUSTODIAN
from tests.docs.fences import ROOT

DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
_PAGES = (*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")))
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PACKED = re.compile(r"^(?![-|>]|\d+\. |  )\S.*\n(?:- |\d+\. |\|)", re.MULTILINE)
_DOTTED = re.compile(r"`(confide(?:\.\w+)+)`")
_NAMED = re.compile(r"`((?:\w+/)+\w+\.py)(?:::\w+)?`")


def _slug(heading: str) -> str:
    """The anchor of a heading, as forges and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_decision_is_in_the_index() -> None:
    pages = [page for page in sorted(DECISIONS.glob("*.md")) if page.name != "README.md"]
    wanted = {page.name for page in pages}
    for page in pages:
        wanted |= {f"{page.name}#{_slug(title)}" for title in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)}
    index = set(re.findall(r"\]\(([\w.-]+\.md(?:#[\w-]+)?)\)", (DECISIONS / "README.md").read_text()))
    assert index == wanted


def test_every_page_is_in_the_navigation() -> None:
    def places(item: object) -> Iterator[str]:
        match item:
            case str():
                yield item
            case dict():
                for value in item.values():
                    yield from places(value)
            case list():
                for value in item:
                    yield from places(value)

    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    assert sorted(places(nav)) == sorted(str(page.relative_to(ROOT)) for page in _PAGES)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lists_and_tables_follow_an_empty_line(page: Path) -> None:
    """Else the site shows them as text."""
    packed = _PACKED.search(_CODE.sub("", page.read_text()))
    assert packed is None, packed


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_code_that_a_page_names_are_there(page: Path) -> None:
    folders = (ROOT, ROOT / "src", ROOT / "src" / "confide")
    for name in _NAMED.findall(page.read_text()):
        assert any((folder / name).exists() for folder in folders), f"{page.name} names {name}"


def test_names_of_the_package_that_pages_name_are_there() -> None:
    for page in _PAGES:
        for name in set(_DOTTED.findall(page.read_text())) - {CUSTODIAN}:
            resolve_name(name)  # raises if there is none


def test_tests_that_a_page_names_are_there() -> None:
    files = list((ROOT / "tests").rglob("*.py"))
    known = {file.stem for file in files}
    for file in files:
        known |= set(re.findall(r"def (test_\w+)", file.read_text()))
    for page in DOCS.rglob("*.md"):
        unknown = set(re.findall(r"\btest_\w+", page.read_text())) - known
        assert not unknown, f"{page.name} names {unknown}"


def test_the_map_is_of_the_packages_that_are_there() -> None:
    source = ROOT / "src" / "confide"
    _, _, section = (DOCS / "index.md").read_text().partition("## The map of the code")
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    rooms = {room for row in rows for room in re.findall(r"`([\w/]+)`", row)}
    packages = {str(file.parent.relative_to(source)) for file in source.rglob("__init__.py")} - {"."}
    assert rooms - {"errors", "testing"} == packages


def test_every_public_name_is_in_the_reference() -> None:
    shown = set(re.findall(r"^::: confide\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE))
    assert shown == set(confide.__all__) - {"__version__"}
