"""The fenced examples of the README and the documentation."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REFUSED = re.compile(r";\s*--\s*refused: *(.*)$")


@dataclass(frozen=True, slots=True)
class Fence:
    """One example: where it stands, its language and its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement; `refused` holds words of the message it must be refused with, None if it is answered."""

    sql: str
    refused: str | None


@dataclass(frozen=True, slots=True)
class Command:
    """One line at the terminal, and the lines that it is said to print."""

    line: str
    output: tuple[str, ...]


def fences(language: str, page: Path | None = None) -> list[Fence]:
    found: list[Fence] = []
    for place in PAGES if page is None else (page,):
        text = place.read_text()
        found += [
            Fence(place, text.count("\n", 0, match.start()) + 1, match[1], match[2])
            for match in _FENCE.finditer(text)
            if match[1] == language
        ]
    return found


def runnable(page: Path) -> list[Fence]:
    """The examples of a page that are programs, in its order."""
    return sorted([*fences("python", page), *fences("console", page)], key=lambda fence: fence.line)


def statements(fence: Fence) -> list[Statement]:
    """The statements of an SQL example, each up to a semicolon at the end of a line."""
    found, lines = [], []
    for line in fence.text.splitlines():
        refused = _REFUSED.search(line)
        lines.append(line[: refused.start()] if refused else line.rstrip().removesuffix(";"))
        if refused or line.rstrip().endswith(";"):
            found.append(Statement("\n".join(lines).strip(), refused[1].strip() if refused else None))
            lines = []
    assert not "".join(lines).strip(), f"{fence}: an SQL example ends with a semicolon"
    return found


def commands(fence: Fence) -> list[Command]:
    """The commands of a console example: lines after `$ `, each followed by what it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in fence.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> "):
            command, output = found[-1]
            assert not output, f"{fence}: a continued command comes before its output"
            found[-1] = (f"{command}\n{line[2:]}", output)
        else:
            found[-1][1].append(line)
    return [Command(command, tuple(output)) for command, output in found]
