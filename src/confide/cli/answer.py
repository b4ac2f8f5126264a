"""What the command `answer` does."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.console import say, show, show_json
from confide.cli.options import read_share, read_whole
from confide.cli.output import new_bytes, once_paid, require_free
from confide.cli.sql import budget_facts, opened
from confide.errors import ParameterError
from confide.release import BudgetState

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers
    from confide.workload import Workload

_KINDS = (".parquet", ".csv")


@dataclass(frozen=True, slots=True)
class AnswerCommand:
    """A workload, as it was typed."""

    policy: str
    ranges: list[str]
    prefixes: list[str]
    marginals: str | None
    columns: str | None
    by: str | None
    bins: str | None
    epsilon: str | None
    within: str | None
    strategy: str
    confidence: str
    table: str | None
    analyst: str
    ledger: str | None
    goal: str = "typical"


def plan(options: AnswerCommand, as_json: bool) -> None:
    """The forecast alone: free."""
    from confide.release.answer.rendering import table_of  # noqa: PLC0415  heavy

    workload, arguments = _workload(options), _arguments(options)
    if (options.epsilon is None) == (options.within is None):
        raise ParameterError("give --epsilon, or --within to find the least one that gives it; not both")
    with opened(options.policy, options.ledger, options.analyst) as session:
        made = session.plan_answer(workload, options.epsilon, within=options.within, **arguments)
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(table_of(*made.table_rows()))
    say(*made.lines(), style="dim")


def answer(options: AnswerCommand, out: str | None, as_json: bool) -> None:
    workload, arguments = _workload(options), _arguments(options)
    if options.epsilon is None:
        raise ParameterError("give --epsilon, what the whole answer may cost; --plan shows what it gives, for free")
    if options.within is not None:
        raise ParameterError("--within is for --plan, which finds the epsilon to give here")
    place = None if out is None else _place(out)
    with opened(options.policy, options.ledger, options.analyst) as session:
        found = session.answer(workload, options.epsilon, **arguments)
        with once_paid():
            _give(found, session.budget, place, as_json)


def _give(found: "WorkloadAnswers", after: BudgetState, place: Path | None, as_json: bool) -> None:
    """What was answered, written and shown."""
    if place is not None:
        _write(found, place)
    if as_json:
        facts: dict[str, Any] = {
            "table": found.table.name,
            "workload": found.linear.describe(),
            "answers": len(found),
            "strategy": found.strategy,
            "mechanism": found.mechanism,
            "confidence": found.confidence,
            "cost": found.cost.to_dict(),
            "unit": found.unit,
            "out": None if place is None else str(place),
            "stored": found.stored,
            "budget": budget_facts(after),
        }
        if place is None:
            facts["rows"] = found.to_arrow().to_pylist()
        show_json({**facts, "test_noise": True} if found.test_noise else facts)
        return
    say(*str(found).splitlines())
    say(
        "answered before: these are the stored ones, and cost nothing" if found.stored else f"budget: {after}",
        style="dim",
    )
    if place is not None:
        say(f"all {len(found):,} answers in {place}", style="dim")


def _workload(options: AnswerCommand) -> "Workload":
    from confide.workload import marginals, prefixes, ranges  # noqa: PLC0415  loaded when used

    by = _names(options.by, "--by")
    parts = [ranges(*_names(text, "--ranges"), by=by) for text in options.ranges]
    parts += [prefixes(*_names(text, "--prefixes"), by=by) for text in options.prefixes]
    k = read_whole(options.marginals, "--marginals", 3)
    if k is not None:
        parts.append(marginals(k, None if options.columns is None else _names(options.columns, "--columns")))
    elif options.columns is not None:
        raise ParameterError("--columns are those of --marginals; say how many are taken together: --marginals 2")
    if not parts:
        raise ParameterError("say what to count: --ranges age, --prefixes income, or --marginals 2")
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def _arguments(options: AnswerCommand) -> dict[str, Any]:
    return {
        "confidence": read_share(options.confidence, "--confidence"),
        "strategy": options.strategy,
        "goal": options.goal,
        "table": options.table,
        "bins": _widths(options.bins),
    }


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(f"{option} {text!r} has a column without a name; write for example age,sex")
    return names


def _widths(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and sign and width.strip() for name, sign, width in pairs):
        raise ParameterError(f"--bins {text!r} is not by column; write for example income=1000,age=5")
    return {name.strip(): width.strip() for name, _, width in pairs}


def _place(out: str) -> Path:
    """Where to write, refused before anything is spent."""
    path = Path(out)
    if path.suffix not in _KINDS:
        raise ParameterError(f"--out {out}: answers are written as .parquet or .csv")
    require_free(path, "--out")
    if not path.parent.is_dir():
        raise ParameterError(f"--out {out}: there is no folder {path.parent}; make it first")
    return path


def _write(found: Any, place: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415  heavy, and loaded when used

    from confide.release.answer.answer_file import write_csv  # noqa: PLC0415  heavy, and loaded when used

    with new_bytes(place, "choose another --out") as stream:
        (write_csv if place.suffix == ".csv" else parquet.write_table)(found.to_arrow(), stream)
