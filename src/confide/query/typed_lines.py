"""Lines as they are typed at a prompt: which statements are ended by a semicolon, and what is still to come.

Semicolons in quotes and comments end nothing. What is typed may be in the middle of anything, so no dialect is asked
what its words are; a whole text is taken apart by the words of its own (`statement_text`).
"""

import re
from dataclasses import dataclass
from typing import Final

_MARKS: Final = re.compile(r"""['"`;]|--|/\*""")
_INSIDE: Final = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class PartedText:
    """The statements that were ended by a semicolon, and what follows the last one."""

    ended: tuple[str, ...]
    rest: str
    """What is not ended yet, as it was written: nothing but blanks and comments, or a statement."""
    inside: bool
    """Whether the rest ends in the middle of quotes or of a comment."""

    @property
    def all(self) -> tuple[str, ...]:
        """Every statement, the last one without a semicolon too."""
        return (*self.ended, self.rest.strip()) if says_something(self.rest) else self.ended


def parted(text: str) -> PartedText:
    """The statements of a text. Those of blanks and comments alone are none."""
    ended, begun, place, inside = [], 0, 0, False
    while (mark := _MARKS.search(text, place)) is not None:
        if mark[0] == ";":
            statement = text[begun : mark.start()]
            if says_something(statement):
                ended.append(statement.strip())
            begun = place = mark.end()
            continue
        place = _end(text, mark)
        if place < 0:
            inside, place = mark[0] != "--", len(text)
    return PartedText(tuple(ended), text[begun:], inside)


def says_something(statement: str) -> bool:
    """Whether there is more than blanks and comments."""
    place = 0
    while place < len(statement):
        if statement[place].isspace():
            place += 1
            continue
        mark = _MARKS.match(statement, place)
        if mark is None or mark[0] not in ("--", "/*"):
            return True
        place = _end(statement, mark)
        if place < 0:
            return False
    return False


def _end(text: str, mark: "re.Match[str]") -> int:
    """Where the quotes or the comment that begin at a mark end; -1 if they do not."""
    if mark[0] == "--":
        line = text.find("\n", mark.end())
        return line + 1 if line >= 0 else -1
    if mark[0] != "/*":
        # A quote that is doubled ends one text and begins another, which comes to the same.
        found = text.find(mark[0], mark.end())
        return found + 1 if found >= 0 else -1
    depth, place = 1, mark.end()
    while depth:
        inner = _INSIDE.search(text, place)
        if inner is None:
            return -1
        depth += 1 if inner[0] == "/*" else -1
        place = inner.end()
    return place
