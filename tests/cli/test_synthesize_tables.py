"""The command `synthesize --children`."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import confide
from tests.cli.conftest import Run

ARGUMENTS = ("--children", "visit", "--columns", "region,sex,reason", "--marginals", "2", "--method", "mst")


def test_a_file_for_each_table_is_written(run: Run, policy: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "twin", tmp_path / "twin.synthetic"
    result = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--out", out, "--save", kept)
    assert result.exit_code == 0, result.output
    person, visit = (pq.read_table(out / f"{name}.parquet") for name in ("person", "visit"))
    assert person.column_names == ["person_id", "region", "sex"]
    assert set(visit["person_id"].to_pylist()) <= set(person["person_id"].to_pylist())
    twin = confide.load_synthetic_tables(kept)
    assert twin.tables["person"].num_rows == person.num_rows
    again = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--json")
    facts = json.loads(again.stdout)
    assert facts["stored"] is True
    assert facts["budget"]["spent"] == pytest.approx(0.5)
    assert (facts["parent"], facts["children"]) == ("person", ["visit"])
    some = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--out", tmp_path / "some", "--records", "7")
    assert some.exit_code == 0
    assert pq.read_table(tmp_path / "some" / "person.parquet").num_rows == 7


def test_a_plan_names_both_tables_and_costs_nothing(run: Run, policy: Path) -> None:
    result = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--plan", "--json")
    facts = json.loads(result.stdout)
    assert facts["table"] == "person, visit"
    assert facts["budget"]["spent"] == 0
    assert run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--plan").exit_code == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--table", "person"), "--table is for one table"),
        (("--table-rows", "5"), "--table-rows is for one table"),
        (("--report", "r.html"), "--report is of one table"),
        (("--records", "0"), "whole number from 1"),
        (("--out", "no/such/folder"), "it is a folder"),
        (("--children", "region_name"), "has no reference"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(
    run: Run, policy: Path, more: tuple[str, ...], words: str
) -> None:
    result = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, *more)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    spent = run("budget", policy, "--json")
    assert json.loads(spent.stdout)["spent"] == 0


def test_nothing_is_written_over(run: Run, policy: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "visit.parquet").write_bytes(b"")
    result = run("synthesize", policy, "-e", "0.5", *ARGUMENTS, "--out", tmp_path / "out")
    assert result.exit_code != 0
    assert "it is there already" in " ".join(result.output.split())
    assert (tmp_path / "out" / "visit.parquet").read_bytes() == b""
