"""One list of kinds: a file that is taken somewhere is taken wherever a table is, and what it holds is the same."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import confide
from confide.cli.app import app
from confide.cli.synthesize import _place
from confide.errors import SourceError
from confide.policy import Policy
from confide.policy.file_kind import endings, is_tabbed, kind_of, packing_of
from confide.query import bind
from confide.release.custody.inspection import check_source, stored_table
from confide.release.custody.sources import open_engine
from confide.release.custody.spark_place import spark_place
from tests.engine.worlds import CHARGE, SECRET
from tests.release.samples import row_policy, rows_frame

TEXTS = [f"t{ending}" for ending in endings("text").split(", ")]
PARQUETS = [f"t{ending}" for ending in endings("parquet").split(", ")]
DATABASES = [f"t{ending}" for ending in endings("duckdb").split(", ")]
TABLES = [*TEXTS, *PARQUETS]
EITHER_CASE = [*TABLES, *map(str.upper, TABLES), *DATABASES, *map(str.upper, DATABASES)]
COLUMNS = {"a": {"range": [0, 9]}, "b": {"values": ["x", "y"]}}
FRAME = {"a": [1, 2, 3], "b": ["x", "y", "x"]}
OTHERS = ["t.txt", "t.json.gz", "t.parquet.gz", "t"]


def written(path: Path) -> Path:
    match kind_of(path):
        case "text":
            mark = "\t" if is_tabbed(path) else ","
            lines = [mark.join(FRAME), *(mark.join(map(str, row)) for row in zip(*FRAME.values(), strict=True))]
            with pa.output_stream(path, compression=packing_of(path)) as stream:
                stream.write("".join(f"{line}\n" for line in lines).encode())
        case "parquet":
            pq.write_table(pa.table(FRAME), path)
        case "duckdb":
            with duckdb.connect(path) as connection:
                connection.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
                connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')")
        case None:
            path.write_bytes(b"a,b\n1,x\n")
    return path


def policy(folder: Path, source: object) -> Policy:
    tables = {"t": {"columns": COLUMNS}}
    return Policy.parse(
        {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "source": source, "tables": tables}, base=folder
    )


def exact(rules: Policy) -> list[int]:
    engine = open_engine(rules)
    try:
        question = bind("SELECT COUNT(*) AS n, SUM(a) AS s, COUNT(b) AS m FROM t", rules, engine)
        return [int(value) for cell in engine.evaluate(question.summary, CHARGE, SECRET).cells for value in cell]
    finally:
        engine.close()


@pytest.mark.parametrize("name", EITHER_CASE)
def test_every_kind_is_read_from_a_policy(tmp_path: Path, name: str) -> None:
    written(tmp_path / name)
    for source in (name, {"t": name}):
        rules = policy(tmp_path, source)
        assert (rules.source == {"t": name}) is (isinstance(source, dict) or kind_of(name) != "duckdb")
        check_source(rules)
        assert exact(rules) == [3, 6, 3]


@pytest.mark.parametrize("name", EITHER_CASE)
def test_a_policy_is_drafted_from_every_kind(tmp_path: Path, name: str) -> None:
    assert [column for column, _ in stored_table(written(tmp_path / name)).columns] == ["a", "b"]
    done = CliRunner().invoke(app, ["init", str(tmp_path / name), "-o", str(tmp_path / "p.yaml")])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", [*TABLES, *map(str.upper, TABLES)])
def test_a_copy_is_opened_from_every_kind_that_holds_one_table(tmp_path: Path, name: str) -> None:
    rules = policy(tmp_path, {"t": "t.csv"})
    written(tmp_path / "t.csv")
    with confide.testing.open(rules, seed=1) as session, session.open_copy(written(tmp_path / name), "t") as copy:
        assert copy.columns == {"t": {"a", "b"}}


@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds_are_refused_everywhere_with_the_same_list(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    with pytest.raises(SourceError, match="not of a known kind") as caught:
        open_engine(policy(tmp_path, {"t": name}))
    assert endings() in str(caught.value)
    with pytest.raises(SourceError, match="not of a known kind") as caught:
        stored_table(path)
    assert endings() in str(caught.value)
    session = confide.testing.open(row_policy(), rows_frame(), seed=1)
    with session, pytest.raises(SourceError, match="not of a known kind") as caught:
        session.open_copy(path, "t")
    assert endings("text", "parquet") in str(caught.value)


def test_a_folder_holds_parquet_files_of_every_name(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.parquet", "b.PQ"):
        written(folder / name)
    (folder / "_SUCCESS").touch()
    assert exact(policy(tmp_path, {"t": "parts"})) == [6, 12, 6]


@pytest.mark.parametrize("name", [*PARQUETS, "T.PARQUET"])
def test_spark_knows_parquet_by_the_same_names(tmp_path: Path, name: str) -> None:
    place = spark_place(policy(tmp_path, {"t": f"spark:{name}"}))
    assert place is not None
    assert place.files == {"t"}


@pytest.mark.parametrize("name", [*PARQUETS, "T.PARQUET"])
def test_records_are_written_under_the_same_names(tmp_path: Path, name: str) -> None:
    assert _place(str(tmp_path / name), "--out", records=True) == tmp_path / name
