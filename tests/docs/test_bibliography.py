"""Papers are cited by keys: every key that is cited has an entry in the bibliography, and every entry is cited."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.fences import ROOT

_BIBLIOGRAPHY = ROOT / "docs" / "bibliography.md"
_ENTRY = re.compile(r"^## (\w+)$", re.MULTILINE)
_KEY = re.compile(r"[A-Z][A-Za-z]*(?:19|20)\d\d")
_CITED = re.compile(rf"\[({_KEY.pattern})\]")
_LINKED = re.compile(rf"\[({_KEY.pattern})\]\(([^)]*)\)")


def _citations() -> Iterator[tuple[Path, str]]:
    """Every key in the brackets of a citation, in code and on pages; the bibliography cites nothing."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for file in [*(ROOT / "src").rglob("*.py"), *pages]:
        if file != _BIBLIOGRAPHY:
            for key in _CITED.findall(file.read_text()):
                yield file, key


def _entries() -> list[str]:
    return _ENTRY.findall(_BIBLIOGRAPHY.read_text())


def test_entries_are_keys_in_order_and_no_key_is_there_twice() -> None:
    entries = _entries()
    assert all(_KEY.fullmatch(key) for key in entries)
    assert entries == sorted(set(entries))


def test_every_key_that_is_cited_has_an_entry() -> None:
    unknown = {f"{file.relative_to(ROOT)}: {key}" for file, key in _citations() if key not in _entries()}
    assert not unknown


def test_every_entry_is_cited() -> None:
    assert set(_entries()) == {key for _, key in _citations()}


def test_pages_link_a_key_to_its_entry() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text()
        linked = [(key, place) for key, place in _LINKED.findall(text) if page != _BIBLIOGRAPHY]
        assert len(linked) == len(_CITED.findall(text)) or page == _BIBLIOGRAPHY, f"{page.name} cites without a link"
        for key, place in linked:
            target, _, anchor = place.partition("#")
            assert (page.parent / target).resolve() == _BIBLIOGRAPHY, f"{page.name}: {key} leads to {target}"
            assert anchor == key.lower(), f"{page.name}: {key} leads to {anchor}"
