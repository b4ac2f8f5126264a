"""How things show themselves in a notebook: one small frame of HTML, plain on light and on dark pages.

Every text is escaped here, and what would not print is spelled out: keys come from data, names from whoever asks. There
is no script, nothing is fetched, and colours are those of the page that it stands on.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Final

MOST_ROWS: Final = 60

_STYLE: Final = (
    "<style>"
    ".confide{color:inherit;line-height:1.45;max-width:72em}"
    ".confide table{border-collapse:collapse;margin:.3em 0 .5em;color:inherit;background:none}"
    ".confide th,.confide td{padding:.15em 1.1em .15em 0;text-align:left;vertical-align:top;background:none;border:0;"
    "font-variant-numeric:tabular-nums}"
    ".confide th{font-weight:600;border-bottom:1px solid;white-space:nowrap}"
    ".confide .number{text-align:right;white-space:nowrap}"
    ".confide .title{font-weight:600;margin:.2em 0}"
    ".confide .small{font-size:85%;opacity:.75;margin:.1em 0}"
    ".confide .meter{display:block;width:18em;height:.55em;margin:.35em 0;border:1px solid;border-radius:.3em;"
    "overflow:hidden}"
    ".confide .meter span{display:block;height:100%;background:currentColor;opacity:.6}"
    "</style>"
)  # fmt: skip


def framed(*parts: str) -> str:
    """Parts of this module in one frame, with their looks."""
    return f"<div class='confide'>{_STYLE}{''.join(parts)}</div>"


def shown(text: str) -> str:
    """A text as HTML, on one line."""
    return escape("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text))


def title(text: str) -> str:
    return f"<div class='title'>{shown(text)}</div>"


def lines(texts: Iterable[str]) -> str:
    """What stands below: one line for each."""
    return "".join(f"<div class='small'>{shown(text)}</div>" for text in texts)


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int] = ()) -> str:
    """A table of texts. Columns are numbers, and stand to the right, but for those at the places of `words`."""
    kinds = ["" if place in words else " class='number'" for place in range(len(head))]
    heads = "".join(f"<th{kind}>{shown(name)}</th>" for name, kind in zip(head, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{shown(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows[:MOST_ROWS]
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names, and what is said of each."""
    rows = "".join(f"<tr><td><b>{shown(name)}</b></td><td>{shown(value)}</td></tr>" for name, value in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def meter(part: float, whole: float) -> str:
    """A bar that is filled as far as `part` goes."""
    share = min(1.0, max(0.0, part / whole)) if whole > 0 else 1.0
    return (
        f"<span class='meter' role='img' aria-label='{share:.0%}'><span style='width:{100 * share:.1f}%'></span></span>"
    )
