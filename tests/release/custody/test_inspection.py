"""Schemas of files, and whether a policy fits its data."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.errors import SourceError
from confide.policy import Policy
from confide.release.custody.inspection import check_source, stored_table


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ("a", "b")),
        ("a;b;c\n1;2;3\n", ("a", "b", "c")),
        ("a\tb\n", ("a", "b")),
        ("a|b", ("a", "b")),
        ("\ufeffa,b\r\n1,2\r\n", ("a", "b")),
        ('"a, or b","c ""d"""\n1,2\n', ("a, or b", 'c "d"')),
        ("only\n1\n", ("only",)),
        (",a,b\n0,1,2\n", ("a", "b")),
    ],
)
def test_only_the_names_of_a_text_file_are_known(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    assert stored_table(path).columns == tuple((name, "") for name in names)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("People 2024.csv", "people_2024"),
        ("2024.csv", "table_2024"),
        ("a.b.csv", "a"),
        ("größe.csv", "größe"),
        ("-.csv", "data"),
    ],
)
def test_a_table_is_called_by_its_file(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text("x\n")
    assert stored_table(tmp_path / file).name == name
    assert stored_table(tmp_path / file, "given").name == "given"


def test_types_of_parquet_and_of_a_database(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.5], "d": pa.array([0], pa.date32())}), tmp_path / "t.parquet")
    assert stored_table(tmp_path / "t.parquet").columns == (("x", "double"), ("d", "date32[day]"))
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute('CREATE TABLE "odd name" (x DECIMAL(9, 2), s VARCHAR)')
        connection.execute("INSERT INTO \"odd name\" VALUES (1, 'CANARY')")
    found = stored_table(tmp_path / "t.duckdb")
    assert (found.name, found.columns) == ("odd name", (("x", "DECIMAL(9,2)"), ("s", "VARCHAR")))
    assert "CANARY" not in repr(found)


def test_a_database_without_tables(tmp_path: Path) -> None:
    duckdb.connect(tmp_path / "t.duckdb").close()
    with pytest.raises(SourceError, match="has no tables"):
        stored_table(tmp_path / "t.duckdb")


def test_a_place_with_a_quote_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "o'hare.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
    assert stored_table(path).columns == (("x", "INTEGER"),)


def test_a_policy_that_fits_its_data_and_one_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    text = "source: {t: t.csv}\nbudget: {epsilon: 1}\nunit: row\ntables: {t: {columns: {x: {range: [0, 1]}}}}\n"
    check_source(Policy.parse_text(text, base=tmp_path))
    with pytest.raises(SourceError, match="y"):
        check_source(Policy.parse_text(text.replace("{x:", "{y:"), base=tmp_path))
    with pytest.raises(SourceError, match="oracle is not known"):
        check_source(Policy.parse_text(text.replace("{t: t.csv}", "oracle://somewhere/x")))
