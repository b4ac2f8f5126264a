import pytest

from confide.policy.file_kind import endings, is_tabbed, kind_of, packing_of


@pytest.mark.parametrize(
    ("name", "kind", "packing", "tabbed"),
    [
        ("p.csv", "text", None, False),
        ("p.csv.gz", "text", "gzip", False),
        ("p.csv.zst", "text", "zstd", False),
        ("p.tsv", "text", None, True),
        ("P.TSV.GZ", "text", "gzip", True),
        ("p.Tsv.Zst", "text", "zstd", True),
        ("p.tsv.2024.csv", "text", None, False),
        ("folder.csv/p.parquet", "parquet", None, False),
        ("p.PQ", "parquet", None, False),
        ("p.duckdb", "duckdb", None, False),
        ("p.db", "duckdb", None, False),
        ("p.DDB", "duckdb", None, False),
    ],
)
def test_a_name_says_what_a_file_holds(name: str, kind: str, packing: str | None, tabbed: bool) -> None:
    assert (kind_of(name), packing_of(name), is_tabbed(name)) == (kind, packing, tabbed)


@pytest.mark.parametrize("name", ["", "p", "csv", "p.gz", "p.parquet.gz", "p.json", "p.csv.bz2", "p.xlsx", "p.csv/"])
def test_other_names_say_nothing(name: str) -> None:
    assert kind_of(name) is None


def test_endings_are_listed_for_messages() -> None:
    assert endings("parquet") == ".parquet, .pq"
    assert endings("text") == ".csv, .csv.gz, .csv.zst, .tsv, .tsv.gz, .tsv.zst"
    assert endings() == f"{endings('text')}, {endings('parquet')}, {endings('duckdb')}"
