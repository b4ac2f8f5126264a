"""A release as a folder: Parquet files, a data card, and what it takes to load it again."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from confide.errors import ConfideError, ParameterError, SourceError
from confide.fit import METHODS, Certificate, Fit, FitProblem, Public
from confide.release.microdata.arrow import Records, cells_of, noisy_table
from confide.release.microdata.card import card_facts, card_html
from confide.release.microdata.microdata import Microdata, problem_of
from confide.release.microdata.store import Measurements

RELEASE: Final = "release.json"
TABLE: Final = "table.parquet"
NOISY: Final = "noisy"
ZEROS: Final = "zeros.parquet"


def write_folder(made: Microdata, folder: Path, records: bool, about: Mapping[str, str]) -> Path:
    """Writes into a folder that is not there yet or is empty; all of it, or nothing."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(f"{folder} is there already and is not overwritten; name a new folder")
    if not folder.parent.is_dir():
        raise ParameterError(f"there is no folder {folder.parent} to put {folder.name} into; make it first")
    report = made.report()
    rounded = made.records() if records and made.method != "ols" else None
    facts = card_facts(made, report, about)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as place:
        draft = Path(place) / "release"
        draft.mkdir()
        _write_tables(made, draft, rounded)
        (draft / RELEASE).write_text(json.dumps(_facts(made), ensure_ascii=False, indent=1), encoding="utf-8")
        (draft / "card.html").write_text(card_html(made, report, about, rounded), encoding="utf-8")
        text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=100)
        (draft / "card.yaml").write_text(text, encoding="utf-8")
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    return folder


def read_folder(folder: Path) -> Microdata:
    """What `write_folder` wrote. The files hold released numbers only."""
    try:
        facts = json.loads((folder / RELEASE).read_text(encoding="utf-8"))
        counts = [
            pq.read_table(folder / NOISY / f"{place:03}.parquet")
            for place in range(len(facts["measured"]["marginals"]))
        ]
        name = facts["count"]
        parts = [np.asarray(table[name].to_numpy(), dtype=np.int64) for table in counts]
        measured = Measurements.from_facts(facts["measured"], parts)
        table = pq.read_table(folder / TABLE)
        return _restored(facts, measured, table, folder)
    except ConfideError:
        raise
    except Exception as error:  # what files say may be wrong in any way
        raise SourceError(
            f"{folder} does not hold microdata as to_parquet writes them: {type(error).__name__}"
        ) from None


def _restored(facts: dict[str, Any], measured: Measurements, table: pa.Table, folder: Path) -> Microdata:
    problem = problem_of(measured)
    zeros = None
    if facts["zeros"]:
        zeros = np.zeros(measured.domain.cells, dtype=bool)
        zeros[pq.read_table(folder / ZEROS)["cell"].to_numpy()] = True
    totals = tuple(
        (measured.group(each["columns"]), np.array(each["counts"], dtype=np.float64)) for each in facts["totals"]
    )
    problem = FitProblem(problem.domain, problem.measured, Public(zeros, (*problem.public.totals, *totals)))
    fit = facts["fit"]
    if fit["method"] not in METHODS:
        raise ValueError("no such method")
    certificate = Certificate(fit["gap"], fit["violation"], fit["steps"])
    fitted = Fit(fit["method"], problem.domain, cells_of(measured, table), certificate, np.zeros(0))
    priority = facts["priority"]
    stages = None if priority is None else tuple(tuple(tuple(each) for each in stage) for stage in priority)
    return Microdata(measured, problem, fitted, facts["confidence"], stages, tuple(facts["notes"]))


def _write_tables(made: Microdata, draft: Path, records: Records | None) -> None:
    noisy = draft / NOISY
    noisy.mkdir()
    for place, each in enumerate(made.measured.marginals):
        pq.write_table(noisy_table(made.measured, each, made.confidence), noisy / f"{place:03}.parquet")
    pq.write_table(made.to_arrow(), draft / TABLE)
    if records is not None:
        pq.write_table(records.to_arrow(), draft / "records.parquet")
    zeros = made.problem.public.zeros
    if zeros is not None:
        pq.write_table(pa.table({"cell": np.flatnonzero(zeros)}), draft / ZEROS)


def _facts(made: Microdata) -> dict[str, Any]:
    certificate, public = made.fitted.certificate, made.problem.public
    exact = {each.marginal for each in made.measured.marginals} - {
        getattr(item.group, "attributes", None) for item in made.problem.measured
    }
    stated = [(group, values) for group, values in public.totals if getattr(group, "attributes", None) not in exact]
    return {
        "measured": made.measured.facts(),
        "count": made.measured.count_name,
        "files": {f"{NOISY}/{place:03}.parquet": list(name) for place, name in enumerate(made.marginals)},
        "confidence": made.confidence,
        "fit": {
            "method": made.method,
            "gap": certificate.gap,
            "violation": certificate.violation,
            "steps": certificate.steps,
        },
        "priority": None if made.priority is None else [[list(each) for each in stage] for stage in made.priority],
        "zeros": public.zeros is not None,
        "totals": [
            {"columns": list(getattr(group, "attributes", ())), "counts": [float(value) for value in values]}
            for group, values in stated
        ],
        "notes": list(made.notes),
    }
