"""What the command `synthesize --children` does: a table and those that refer to it, a file of records for each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confide.cli.console import say, show, show_json, waiting
from confide.cli.options import read_whole
from confide.cli.output import new_bytes, once_paid, require_free
from confide.cli.sql import budget_facts, opened
from confide.cli.synthesize import SynthesisCommand, arguments_of, workload_of
from confide.errors import ParameterError
from confide.release import Session

if TYPE_CHECKING:
    from confide.release.synthetic.related_tables import SyntheticTables

_TAKEN: Final = ("epsilon", "columns", "bins", "method", "select", "rounds", "inside")


def plan(options: SynthesisCommand, children: str, as_json: bool) -> None:
    """The forecast alone: free."""
    from confide.release.answer.rendering import table_of  # noqa: PLC0415  heavy

    arguments = _arguments(options)
    with opened(options.policy, options.ledger, options.analyst) as session:
        made = session.plan_synthesize_tables(workload_of(options, session), children=_named(children), **arguments)
    if as_json:
        show_json({**made.to_dict(), "budget": budget_facts(made.budget)})
        return
    show(table_of(*made.table_rows()))
    say(*made.lines(), style="dim")


def synthesize(
    options: SynthesisCommand,
    children: str,
    out: str | None,
    records: str | None,
    save: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    if report is not None:
        raise ParameterError("--report is of one table; leave it out beside --children")
    arguments, count = _arguments(options), read_whole(records, "--records")
    if count is not None and count < 1:
        raise ParameterError(f"--records {records} is not a number of records; write a whole number from 1")
    kept = None if save is None else Path(save)
    if kept is not None:
        require_free(kept, "--save")
    with opened(options.policy, options.ledger, options.analyst) as session:
        places = {} if out is None else _places(Path(out), session, _named(children))
        with waiting("opening") as progress:
            twin = session.synthesize_tables(
                workload_of(options, session), children=_named(children), progress=progress, **arguments
            )
        with once_paid():
            after = session.budget
            if places:
                _write(twin, places, count)
            if kept is not None:
                with new_bytes(kept, "choose another --save") as stream:
                    stream.write(twin.to_bytes())
            _tell(twin, budget_facts(after), str(after), places, kept, as_json)


def _write(twin: "SyntheticTables", places: dict[str, Path], count: int | None) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415  heavy, and loaded when used

    drawn = twin.tables if count is None else twin.sample(count)
    for name, place in places.items():
        place.parent.mkdir(exist_ok=True)
        with new_bytes(place, "choose another --out") as stream:
            pq.write_table(drawn[name], stream)


def _tell(
    twin: "SyntheticTables",
    budget: dict[str, Any],
    words: str,
    places: dict[str, Path],
    kept: Path | None,
    as_json: bool,
) -> None:
    if as_json:
        facts = {
            "parent": twin.parent,
            "children": list(twin.made),
            "drawn": twin.drawn,
            "left_out": twin.left_out,
            "records": len(twin),
            "cost": twin.cost.to_dict(),
            "out": {name: str(place) for name, place in places.items()},
            "saved": None if kept is None else str(kept),
            "stored": twin.stored,
            "budget": budget,
        }
        show_json({**facts, "test_noise": True} if twin.test_noise else facts)
        return
    say(*str(twin).splitlines())
    say("made before: this is the stored one, and it cost nothing" if twin.stored else f"budget: {words}", style="dim")
    for name, place in places.items():
        say(f"records of {name} in {place}", style="dim")
    if kept is not None:
        say(f"kept in {kept}", style="dim")
    if not places and kept is None:
        say("nothing was written; --out FOLDER writes a file for each table and --save FILE keeps it", style="dim")


def _arguments(options: SynthesisCommand) -> dict[str, Any]:
    arguments = arguments_of(options)
    plain = {"table": None, "picks": None, "rows": None, "start": None, "megabytes": None, "degree": None}
    for name, value in plain.items():
        if arguments[name] != value:
            option = {"rows": "table-rows"}.get(name, name)
            raise ParameterError(f"--{option} is for one table; leave it out beside --children")
    return {name: arguments[name] for name in _TAKEN}


def _named(children: str) -> list[str]:
    return [name.strip() for name in children.split(",")]


def _places(folder: Path, session: Session, children: list[str]) -> dict[str, Path]:
    """A file for each table, refused before anything is spent where there is something."""
    if folder.is_file() or not folder.parent.is_dir():
        raise ParameterError(f"--out {folder}: with --children it is a folder, in one that is there")
    parent = str(session.policy.unit).partition(".")[0]
    places = {name: folder / f"{name}.parquet" for name in (parent, *children)}
    for place in places.values():
        require_free(place, "--out")
    return places
