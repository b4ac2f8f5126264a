"""What the command `microdata` does."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.console import say, show, show_json, waiting
from confide.cli.options import read_share, read_whole
from confide.cli.output import once_paid
from confide.cli.sql import budget_facts, opened
from confide.errors import ParameterError
from confide.release import BudgetState

if TYPE_CHECKING:
    from confide.release.microdata.microdata import Microdata
    from confide.release.microdata.report import MicrodataReport

_TOTAL = "*"


@dataclass(frozen=True, slots=True)
class MicrodataCommand:
    """A request for microdata, as it was typed."""

    policy: str
    marginals: list[str]
    epsilon: str | None
    fit: str
    priority: str | None
    confidence: str
    table: str | None
    public: str | None
    rows: str | None
    analyst: str
    ledger: str | None


def plan(options: MicrodataCommand, as_json: bool) -> None:
    """The forecast alone: free."""
    from confide.release.answer.rendering import table_of  # noqa: PLC0415  heavy
    from confide.release.microdata.rendering import plan_lines, plan_rows  # noqa: PLC0415  heavy

    arguments = _arguments(options)
    with opened(options.policy, options.ledger, options.analyst) as session:
        made = session.plan_microdata(
            **{name: arguments[name] for name in ("marginals", "epsilon", "priority", "confidence", "table")},
            rows=read_whole(options.rows, "--rows"),
        )
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(table_of(*plan_rows(made)))
    say(*plan_lines(made), style="dim")


def microdata(options: MicrodataCommand, out: str | None, report: bool, as_json: bool) -> None:
    folder = None if out is None else _folder(out)
    arguments = _arguments(options)
    facts = _public(options.public)
    with opened(options.policy, options.ledger, options.analyst) as session, waiting("opening") as progress:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            made = session.microdata(**arguments, **facts, fit=options.fit, progress=progress)
        told = [str(each.message) for each in caught if each.category is UserWarning]
        with once_paid():
            findings = made.report() if report else None
            if folder is not None:
                if progress is not None:
                    progress(f"writing {folder}", 1, 1)
                made.to_parquet(folder)
            after = session.budget
    with once_paid():
        _give(made, findings, told, folder, after, as_json)


def _give(
    made: "Microdata",
    findings: "MicrodataReport | None",
    told: list[str],
    folder: Path | None,
    after: BudgetState,
    as_json: bool,
) -> None:
    """The release, shown."""
    from confide.release.answer.rendering import table_of  # noqa: PLC0415  heavy
    from confide.release.microdata.rendering import marginal_rows, microdata_lines  # noqa: PLC0415  heavy

    if as_json:
        shown: dict[str, Any] = {
            "table": made.measured.table,
            "cells": made.problem.domain.cells,
            "fit": made.method,
            "cost": made.cost.to_dict(),
            "confidence": made.confidence,
            "unit": made.measured.unit,
            "marginals": [
                {
                    "columns": list(each.marginal),
                    "counts": len(each.counts),
                    "mechanism": each.mechanism,
                    "half_width": each.law.half_width(made.confidence),
                }
                for each in made.measured.marginals
            ],
            "warnings": told,
            "out": None if folder is None else str(folder),
            "stored": made.stored,
            "budget": budget_facts(after),
        }
        if findings is not None:
            shown["report"] = findings.to_dict()
        if made.measured.test_noise:
            shown["test_noise"] = True
        show_json(shown)
        return
    for warning in told:
        say(warning, label="warning", errors=True)
    show(table_of(*marginal_rows(made)))
    say(*(line for line in microdata_lines(made) if "to_polars()" not in line), style="dim")
    if findings is not None:
        say("", *str(findings).splitlines(), "")
    free = "measured before: the noisy counts are the stored ones, and cost nothing"
    say(free if made.stored else f"budget: {after}", style="dim")
    if folder is not None:
        say(f"written to {folder}: noisy counts, fitted table, records, card.html and card.yaml", style="dim")
    else:
        say("nothing was written; --out DIR writes it, for free", style="dim")


def _arguments(options: MicrodataCommand) -> dict[str, Any]:
    if not options.marginals:
        raise ParameterError(
            "name what to count by --marginal, once for each marginal: --marginal sex --marginal age,sex; "
            "* is the total"
        )
    if options.epsilon is None:
        raise ParameterError("give --epsilon, what the whole release may cost; --plan shows what it gives, for free")
    return {
        "marginals": [_marginal(text) for text in options.marginals],
        "epsilon": options.epsilon,
        "priority": _priority(options.priority),
        "confidence": read_share(options.confidence, "--confidence"),
        "table": options.table,
    }


def _marginal(text: str) -> tuple[str, ...]:
    """Columns between commas, those of BIN(age, 10) left alone."""
    if text.strip() in ("", _TOTAL):
        return ()
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    names = tuple(part.strip() for part in (*parts, current))
    if not all(names):
        raise ParameterError(f"--marginal {text!r} has a column without a name; write for example age,sex")
    return names


def _priority(text: str | None) -> list[list[tuple[str, ...]]] | None:
    """Stages between >, marginals of a stage between |: '* > sex | age > age,sex'."""
    if text is None:
        return None
    return [[_marginal(part) for part in stage.split("|")] for stage in text.split(">")]


def _public(path: str | None) -> dict[str, Any]:
    """Structural zeros and public totals from a JSON file: {"zeros": [...], "totals": [[columns, counts], ...]}."""
    if path is None:
        return {}
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON in UTF-8"
        raise ParameterError(f"--public {path} cannot be read: {reason}") from None
    example = '{"zeros": [{"age": 0, "status": "married"}], "totals": [[["sex"], [["F", 510], ["M", 490]]]]}'
    if not isinstance(facts, dict) or set(facts) - {"zeros", "totals"}:
        raise ParameterError(f"--public {path} holds zeros and totals, as in {example}")
    try:
        totals = {tuple(columns): _counts(columns, counts) for columns, counts in facts.get("totals", [])}
    except (TypeError, ValueError):
        raise ParameterError(f"--public {path}: totals are pairs of columns and counts, as in {example}") from None
    return {"zeros": facts.get("zeros"), "totals": totals or None}


def _counts(columns: list[str], counts: Any) -> Any:
    if not columns:
        return counts
    return {(tuple(key) if isinstance(key, list) else key): count for key, count in counts}


def _folder(out: str) -> Path:
    """Where to write, refused before anything is spent."""
    path = Path(out)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ParameterError(f"--out {out}: it is there already and is not overwritten; name a new folder")
    if not path.parent.is_dir():
        raise ParameterError(f"--out {out}: there is no folder {path.parent}; make it first")
    return path
