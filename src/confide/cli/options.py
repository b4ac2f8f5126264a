"""The arguments that commands share, and how their texts are read."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from confide.errors import ParameterError

_LONGEST_SQL = 10 * 2**20

PolicyPath = Annotated[str, typer.Argument(metavar="POLICY", help="The policy file.", show_default=False)]
Sql = Annotated[
    str,
    typer.Argument(metavar="SQL", help="The question; - reads it from standard input, @FILE from a file.",
                   show_default=False),
]  # fmt: skip
Epsilon = Annotated[str | None, typer.Option("--epsilon", "-e", metavar="ε", help="What the whole call may cost.")]
Within = Annotated[
    str | None,
    typer.Option("--within", "-w", metavar="WIDTH",
                 help="Find the smallest ε that gives ±WIDTH: 50, 5%, or n=50,avg=2%."),
]  # fmt: skip
Confidence = Annotated[
    str, typer.Option("--confidence", "-c", metavar="SHARE", help="How often an interval holds the exact answer.")
]
Rows = Annotated[
    str | None, typer.Option("--rows", metavar="N", help="How many rows to expect, where a width depends on that.")
]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="SHARES", help="How columns share ε: n=1,avg=3. Even errors if not given."),
]
Bounds = Annotated[
    str | None,
    typer.Option("--bounds", metavar="RANGES", help="Bounds of the columns of an inner query: total=0:500,n=0:20."),
]
Mechanism = Annotated[
    str,
    typer.Option(
        "--mechanism", metavar="NAME", help="How a statistic is measured, for all columns or by column: med=pair."
    ),
]
Dialect = Annotated[
    str,
    typer.Option("--dialect", metavar="NAME", help="How the question is written: duckdb, postgres, tsql, ..."),
]
Account = Annotated[
    str,
    typer.Option("--account", metavar="NAME", help="Where either may hold: pure, concentrated, or auto, the narrower."),
]
Analyst = Annotated[
    str, typer.Option("--analyst", "-a", metavar="NAME", help="Who asks: caps and stored answers are theirs.")
]
LedgerFile = Annotated[
    str | None, typer.Option("--ledger", "-l", metavar="FILE", help="The ledger, if it is not where the policy says.")
]
Population = Annotated[
    bool,
    typer.Option("--population", help="Intervals for the population of which the rows are a random sample."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def read_sql(text: str) -> str:
    """The question itself: as given, from standard input, or from a file."""
    if text == "-":
        return _decoded(sys.stdin.buffer.read(_LONGEST_SQL), "standard input")
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    try:
        with path.open("rb") as file:
            return _decoded(file.read(_LONGEST_SQL), str(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise ParameterError(f"the query file {path} cannot be read: {reason}") from None


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ParameterError(f"the query in {source} is not UTF-8 text") from None


def read_share(text: str, option: str) -> float:
    """A share such as 0.95 or 95%."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ParameterError(f"{option} {text!r} is not a number; write for example 0.95") from None
    if share > 1:
        raise ParameterError(f"{option} {text} is more than all; write for example 0.95, or 95%")
    return share


def read_whole(text: str | None, option: str, example: int = 100_000) -> int | None:
    if text is None:
        return None
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise ParameterError(f"{option} {text!r} is not a whole number; write for example {example}") from None


def read_within(text: str | None) -> str | dict[str, str] | None:
    """One width for all columns, or one for each that is named."""
    if text is None or "=" not in text:
        return text
    return dict(_pairs(text, "--within", "n=50,avg=2%"))


def read_mechanism(text: str) -> str | dict[str, str]:
    """One mechanism for all columns, or one for each that is named."""
    return text if "=" not in text else dict(_pairs(text, "--mechanism", "med=auto"))


def read_split(text: str | None) -> dict[str, str] | None:
    return None if text is None else dict(_pairs(text, "--split", "n=1,avg=3"))


def read_bounds(text: str | None) -> dict[str, list[str]] | None:
    """Two ends for each column that is named."""
    if text is None:
        return None
    bounds = {}
    for name, ends in _pairs(text, "--bounds", "total=0:500"):
        bounds[name] = ends.split(":")
        if len(bounds[name]) != 2:
            raise ParameterError(f"--bounds {name}={ends} must be a low and a high end; write for example {name}=0:500")
    return bounds


def _pairs(text: str, option: str, example: str) -> list[tuple[str, str]]:
    pairs = [tuple(part.strip() for part in item.partition("=")) for item in text.split(",")]
    names = [name for name, _, _ in pairs]
    if not all(name and sign for name, sign, _ in pairs) or len(set(names)) < len(names):
        raise ParameterError(f"{option} {text!r} does not name each column once; write for example {option} {example}")
    return [(name, value) for name, _, value in pairs]
