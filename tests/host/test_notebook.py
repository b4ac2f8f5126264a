"""HTML for notebooks: nothing that is shown can be more than text."""

from html.parser import HTMLParser

import pytest

from confide.host import notebook

EVIL = "<script>alert(1)</script>'\"><img src=x onerror=alert(2)>&amp;\x1b[2J\u202e"


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "part",
    [
        notebook.title(EVIL),
        notebook.lines([EVIL]),
        notebook.grid([EVIL], [(EVIL,)]),
        notebook.grid([EVIL], [(EVIL,)], words=(0,)),
        notebook.facts([(EVIL, EVIL)]),
    ],
)
def test_no_text_becomes_markup(part: str) -> None:
    page = Tags(notebook.framed(part))
    assert page.tags <= {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "b"}
    assert page.attributes <= {"class"}
    assert "<script>alert(1)</script>" in page.text
    assert "\\x1b[2J\\x202e" in page.text


def test_a_frame_fetches_nothing_and_takes_the_colours_of_its_page() -> None:
    page = notebook.framed(notebook.meter(1, 3), notebook.grid(["a"], [("1",)]))
    assert "http" not in page
    assert "#" not in page, "no colour of its own, which would be right on light or on dark pages only"
    assert "width:33.3%" in page


@pytest.mark.parametrize(("part", "whole", "share"), [(0, 0, "100.0"), (5, 3, "100.0"), (-1, 3, "0.0"), (1, 4, "25.0")])
def test_a_meter_is_never_fuller_than_full(part: float, whole: float, share: str) -> None:
    assert f"width:{share}%" in notebook.meter(part, whole)


def test_long_tables_are_cut() -> None:
    assert notebook.grid(["a"], [("1",)] * 500).count("<tr>") == notebook.MOST_ROWS + 1
