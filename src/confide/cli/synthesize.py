"""What the command `synthesize` does."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confide.cli.console import say, show, show_json, waiting
from confide.cli.options import read_sql, read_whole
from confide.cli.output import new_bytes, once_paid, require_free
from confide.cli.sql import budget_facts, opened
from confide.errors import ParameterError
from confide.policy.file_kind import endings, kind_of
from confide.release import Session
from confide.release.answer.picture import place_for
from confide.release.frame_check import read_file
from confide.release.synthetic.synthetic import load_synthetic
from confide.workload import Workload, from_sql, marginals, thresholds

if TYPE_CHECKING:
    from confide.release.synthetic.synthetic import Synthetic

_CARDS: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class SynthesisCommand:
    """A request for synthetic data, as it was typed."""

    policy: str
    epsilon: str | None
    marginals: str | None
    thresholds: str | None
    sql: list[str]
    history: bool
    table: str | None
    columns: str | None
    bins: str | None
    method: str
    select: str
    rounds: str | None
    picks: str | None
    rows: str | None
    inside: str
    start: str | None
    megabytes: str | None
    degree: str | None
    analyst: str
    ledger: str | None


def plan(options: SynthesisCommand, as_json: bool) -> None:
    """The forecast alone: free."""
    from confide.release.answer.rendering import table_of  # noqa: PLC0415  heavy

    arguments = arguments_of(options)
    with opened(options.policy, options.ledger, options.analyst) as session:
        made = session.plan_synthesize(workload_of(options, session), **arguments)
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(table_of(*made.table_rows()))
    say(*made.lines(), style="dim")


def synthesize(
    options: SynthesisCommand,
    out: str | None,
    records: str | None,
    save: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    arguments, count = arguments_of(options), read_whole(records, "--records")
    parquet = None if out is None else _place(out, "--out", records=True)
    kept = None if save is None else _place(save, "--save")
    told = None if report is None else _report_place(report)
    if count is not None and count < 1:
        raise ParameterError(f"--records {records} is not a number of records; write a whole number from 1")
    with opened(options.policy, options.ledger, options.analyst) as session:
        with waiting("opening") as progress:
            twin = session.synthesize(workload_of(options, session), progress=progress, **arguments)
        with once_paid():
            after = session.budget
            if parquet is not None:
                with new_bytes(parquet, "choose another --out") as stream:
                    twin.write_parquet(stream, count)
            if kept is not None:
                with new_bytes(kept, "choose another --save") as stream:
                    stream.write(twin.to_bytes())
            if told is not None:
                _write_report(twin, told)
            _tell(twin, budget_facts(after), str(after), parquet, kept, told, as_json)


def _tell(
    twin: "Synthetic",
    budget: dict[str, Any],
    words: str,
    parquet: Path | None,
    kept: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    if as_json:
        facts = {
            "table": twin.table.name,
            "columns": list(twin.domain.names),
            "drawn": twin.drawn,
            "left_out": twin.left_out,
            "records": len(twin),
            "workload": twin.workload,
            "method": twin.method,
            "loss": twin.loss,
            "cost": twin.cost.to_dict(),
            "unit": twin.unit,
            "out": None if parquet is None else str(parquet),
            "saved": None if kept is None else str(kept),
            "report": twin.report().to_dict() if report is not None else None,
            "stored": twin.stored,
            "budget": budget,
        }
        show_json({**facts, "test_noise": True} if twin.test_noise else facts)
        return
    say(*str(twin).splitlines())
    say("made before: this is the stored one, and it cost nothing" if twin.stored else f"budget: {words}", style="dim")
    if parquet is not None:
        say(f"records in {parquet}", style="dim")
    if kept is not None:
        say(f"kept in {kept}", style="dim")
    if report is not None:
        say(*twin.report().lines())
        say(f"report in {report}", style="dim")
    if parquet is None and kept is None and report is None:
        say("nothing was written; --out FILE.parquet writes records and --save FILE keeps it, for free", style="dim")


def _report_place(text: str) -> Path:
    """Where the report is written: as a page, a picture, or a card for machines."""
    place = _place(text, "--report")
    if place.suffix.lower() not in (".html", *_CARDS):
        return place_for(text, "--report")
    return place


def _write_report(twin: "Synthetic", place: Path) -> None:
    report = twin.report()
    match place.suffix.lower():
        case ".html":
            with new_bytes(place, "choose another --report") as stream:
                stream.write(report.page().encode())
        case ".yaml" | ".yml":
            with new_bytes(place, "choose another --report") as stream:
                stream.write(report.card_text().encode())
        case _:
            report.plot(place)


def workload_of(options: SynthesisCommand, session: Session) -> Workload:
    parts: list[Workload] = []
    if options.marginals is not None:
        parts.append(marginals(read_whole(options.marginals, "--marginals", 3) or 0))
    if options.thresholds is not None:
        need, word, k = options.thresholds.partition("-of-")
        if not word or not need.isdecimal() or not k.isdecimal():
            raise ParameterError(f"--thresholds {options.thresholds} is not r-of-k; write for example 2-of-3")
        parts.append(thresholds(int(need), int(k)))
    if options.sql:
        parts.append(from_sql([read_sql(text) for text in options.sql]))
    if options.history:
        parts.append(session.history(options.table, columns=_names(options.columns)))
    if not parts:
        raise ParameterError(
            "say what the data are for: --marginals 3, --thresholds 2-of-3, --sql 'SELECT COUNT(*) ...' or --history"
        )
    return sum(parts[1:], parts[0])


def arguments_of(options: SynthesisCommand) -> dict[str, Any]:
    if options.epsilon is None:
        raise ParameterError("give --epsilon, what the whole call may cost; --plan shows what it gives, for free")
    bins: dict[str, str] = {}
    for item in options.bins.split(",") if options.bins else []:
        name, sign, width = (part.strip() for part in item.partition("="))
        if not name or not sign or not width:
            raise ParameterError(f"--bins {options.bins} does not give widths; write for example --bins age=10")
        bins[name] = width
    return {
        "epsilon": options.epsilon,
        "table": options.table,
        "columns": _names(options.columns),
        "bins": bins or None,
        "method": options.method,
        "select": options.select,
        "rounds": read_whole(options.rounds, "--rounds", 5),
        "picks": read_whole(options.picks, "--picks", 10),
        "rows": read_whole(options.rows, "--table-rows", 200),
        "inside": options.inside,
        "start": _start(options.start),
        "megabytes": read_whole(options.megabytes, "--megabytes", 80),
        "degree": read_whole(options.degree, "--degree", 2),
    }


def _start(text: str | None) -> Any:
    """Rows to begin with: synthetic data that were saved, a file of rows, or the name of a public table."""
    if text is None or not Path(text).is_file():
        return text
    if kind_of(Path(text)) in ("parquet", "text"):
        return read_file(Path(text), "--start")
    return load_synthetic(text)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _place(text: str, option: str, *, records: bool = False) -> Path:
    """Where to write, refused before anything is spent."""
    path = Path(text)
    if records and kind_of(path) != "parquet":
        raise ParameterError(f"{option} {text}: records are written as {endings('parquet')}")
    if path.is_dir() or not path.parent.is_dir():
        raise ParameterError(f"{option} {text}: there is no folder {path.parent}, or the file is one")
    require_free(path, option)
    return path
