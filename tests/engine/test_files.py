"""Files as sources: what they hold is read as the policy says, and what they cannot hold is said without showing it."""

import gzip
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from time import sleep
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import EngineError, SourceError
from confide.policy import Category, Date, Number, Policy, load
from confide.query import bind
from confide.release.custody.inspection import check_source
from tests.engine.worlds import CHARGE, SECRET

COLUMNS = {
    "id": {"type": "id"},
    "age": {"range": [0, 115]},
    "height": {"range": [0, 2.5], "grain": 0.01},
    "region": {"values": ["N", "E"]},
    "kids": {"values": [0, 1, 2]},
    "member": {"values": [True, False]},
    "born": {"range": ["1990-01-01", "1999-12-31"]},
    "note": {"type": "text"},
}
SECRET_VALUE = "canary-77af"


def policy(folder: Path, source: Any, columns: dict[str, Any] | None = None, **more: Any) -> Policy:
    tables = {"person": {"columns": columns or COLUMNS}, **more}
    facts = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "source": source, "tables": tables}
    return Policy.parse(facts, base=folder)


def ask(rules: Policy, text: str) -> list[int]:
    engine = DuckDBEngine(rules)
    try:
        exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, SECRET)
        return [int(value) for cell in exact.cells for value in cell]
    finally:
        engine.close()


def refused(rules: Policy, *words: str) -> str:
    with pytest.raises(SourceError) as caught:
        DuckDBEngine(rules).close()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert SECRET_VALUE not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return text


# --- text files -------------------------------------------------------------------------------------------------------

TEXT = (
    "id,age,height,region,kids,member,born,note\n"
    "1,30,1.75,N,0,true,1990-05-01,plain\n"
    '2,40,1.8,E,1,false,1991-01-01,"with, comma and ""quotes"""\n'
    '3,,,,,,,"over\ntwo lines"\n'
    "4,old,tall,Q,many,maybe,1990-13-77,\n"
    "5,1e2,-1,N,2,t,1995-01-01,last\n"
)
ANSWERS = (
    "SELECT COUNT(*) AS n, SUM(age) AS a, SUM(height) AS h, COUNT(region) AS r, COUNT(kids) AS k, COUNT(member) AS m, "
    "COUNT(born) AS b, COUNT(note) AS t FROM person"
)
EXPECTED = [5, 30 + 40 + 100, 175 + 180 + 0, 3, 3, 3, 3, 4]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("p.csv", lambda path: path.write_text(TEXT)),
        ("p.csv.gz", lambda path: path.write_bytes(gzip.compress(TEXT.encode()))),
        ("crlf.csv", lambda path: path.write_bytes(TEXT.replace("\n", "\r\n").encode())),
        ("bom.csv", lambda path: path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())),
        ("no end.csv", lambda path: path.write_text(TEXT.rstrip("\n"))),
        ('p\'s "odd" näme.csv', lambda path: path.write_text(TEXT)),
    ],
)
def test_a_text_file_is_read_as_the_policy_says(tmp_path: Path, name: str, write: Callable[[Path], Any]) -> None:
    write(tmp_path / name)
    assert ask(policy(tmp_path, {"person": name}), ANSWERS) == EXPECTED


@pytest.mark.parametrize(("name", "mark"), [("p.tsv", "\t"), ("p.csv", ";"), ("p.csv", "|"), ("p.csv", "\t")])
def test_the_delimiter_is_told_by_the_first_line(tmp_path: Path, name: str, mark: str) -> None:
    (tmp_path / name).write_text(f"age{mark}region\n30{mark}N\n41{mark}E,x\n")
    columns = {"age": COLUMNS["age"], "region": COLUMNS["region"]}
    assert ask(policy(tmp_path, {"person": name}, columns), "SELECT SUM(age) AS s, COUNT(region) AS r FROM person") == [
        71,
        1,
    ]


def test_rows_do_not_change_how_others_are_read(tmp_path: Path) -> None:
    """A sniffing reader takes a file full of semicolons for one that they part."""
    (tmp_path / "p.csv").write_text("age,note\n" + "1,a;b;c;d\n" * 50)
    columns = {"age": COLUMNS["age"], "note": COLUMNS["note"]}
    assert ask(
        policy(tmp_path, {"person": "p.csv"}, columns), "SELECT SUM(age) AS s, COUNT(note) AS n FROM person"
    ) == [50, 50]


def test_a_file_of_a_header_alone_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("age,region\n")
    columns = {"age": COLUMNS["age"], "region": COLUMNS["region"]}
    assert ask(
        policy(tmp_path, {"person": "p.csv"}, columns), "SELECT region, COUNT(*) AS n FROM person GROUP BY region"
    ) == [0, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("p.csv is empty",)),
        (b"   \n\n", ("p.csv is empty",)),
        (b"age,note\n1,a\n2\n", ("cannot be read as CSV", "as many fields as the first")),
        (b"age,note\n1,a\n2,b,c\n", ("cannot be read as CSV",)),
        (b'age,note\n1,"canary-77af\n2,b\n', ("cannot be read as CSV",)),
        (b"age,note\n1,\xff\xfecanary-77af\n", ("cannot be read as CSV", "UTF-8")),
        (b"age,age,note\n1,2,a\n", ("names the column 'age' twice",)),
        (b"age,note,NOTE\n1,2,a\n", ("names the column 'note' twice",)),
        (b"AGE,note\n1,a\n", ("has no column age", "it has AGE")),
        (b"years,note\n1,canary-77af\n", ("p.csv has no column age, which the policy names for person", "years")),
        (b"age~note\n1~canary-77af\n", ("has no column age", "age~note")),
    ],
)
def test_a_text_file_that_cannot_be_read(tmp_path: Path, content: bytes, words: tuple[str, ...]) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    refused(policy(tmp_path, {"person": "p.csv"}, {"age": COLUMNS["age"], "note": COLUMNS["note"]}), *words)


BROKEN = (
    b"age,note\n1,a\n2\n",
    b"age,note\n1,a\n2,b,c\n",
    b'age,note\n1,a\n2,"b"c\n',
    b'age,note\n1,a\n2,"b\n',
    b"age,note\n1,a\n2,\xff\n",
    b"age,note\n1,a\n2," + b"b" * 3_000_000 + b"\n",
)


def test_where_a_text_file_is_broken_is_told_to_its_custodian_alone(tmp_path: Path) -> None:
    """A row decides on which line it is, so no question and no opening says it; `confide check` does."""
    rules = policy(tmp_path, {"person": "p.csv"}, {"age": COLUMNS["age"], "note": COLUMNS["note"]})
    told = set()
    for content in BROKEN:
        (tmp_path / "p.csv").write_bytes(content)
        with pytest.raises(SourceError) as caught:
            DuckDBEngine(rules)
        told.add(str(caught.value))
        with pytest.raises(SourceError, match=r"line 3"):
            check_source(rules)
    assert len(told) == 1
    assert "line 3" not in told.pop()


ODD = (
    "unknown",
    "12.5",
    "1e400",
    "2024-02-30",
    "2024-02-29T1",
    "NaN",
    "x" * 100_000,
    "9" * 60,
    "TRUE ",
    " 7 ",
    "12:30",
    "a\x00b",
    "é",
)


KINDS: dict[str, tuple[Any, set[str]]] = {
    "number": ({"range": [0, 9]}, {"12.5", "9" * 60, " 7 "}),
    "fraction": ({"range": [0, 9], "grain": 0.25}, {"12.5", "9" * 60, " 7 "}),
    "unbounded": ({"range": "unbounded", "grain": 1}, {"12.5", "9" * 60, " 7 "}),
    "date": ({"range": ["2020-01-01", "2024-12-31"]}, {"2024-02-29T1"}),
    "whole": ({"values": [1, 7]}, {" 7 "}),
    "truth": ({"values": [True, False]}, {"TRUE "}),
    "word": ({"values": ["a", "unknown"]}, {"unknown"}),
    "text": ({"type": "text"}, set(ODD)),
}
"""And which of the odd values fit."""


def test_an_odd_value_in_a_text_file_is_a_value_that_is_missing(tmp_path: Path) -> None:
    """It fails nothing, and changes no row beside it."""
    place = tmp_path / "p.csv"
    rules = policy(tmp_path, {"person": "p.csv"}, {label: column for label, (column, _) in KINDS.items()})
    question = f"SELECT COUNT(*) AS n, {', '.join(f'COUNT({label}) AS n_{label}' for label in KINDS)} FROM person"
    plain = ["1", "2", "true", "2024-01-31", "a"]

    def known(values: list[str]) -> list[int]:
        lines = (",".join([f'"{value}"'] * len(KINDS)) for value in values)
        place.write_text("\n".join([",".join(KINDS), *lines, ""]))
        return ask(rules, question)

    alone = known(plain)
    for odd in ODD:
        more = [1, *(int(odd in fitting) for _, fitting in KINDS.values())]
        assert known([*plain, odd]) == [before + one for before, one in zip(alone, more, strict=True)], odd[:20]


def test_a_truncated_archive(tmp_path: Path) -> None:
    packed = gzip.compress((TEXT * 500).encode())
    (tmp_path / "p.csv.gz").write_bytes(packed[: len(packed) // 2])
    refused(policy(tmp_path, {"person": "p.csv.gz"}), "p.csv.gz cannot be read")


def test_numbers_in_text_are_rounded_once_and_half_up(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "a,b\n2.5,14.6\n-2.5,-14.6\n0.49999,5\n 7 ,4.999\n1e1,1e1\nnan,nan\ninf,inf\n-inf,-inf\n"
    )
    columns = {"a": {"range": [-100, 100]}, "b": {"range": [-100, 100], "grain": 10}}
    totals = ask(
        policy(tmp_path, {"person": "p.csv"}, columns),
        "SELECT SUM(a) AS a, COUNT(a) AS n, SUM(b) AS b, COUNT(b) AS m FROM person",
    )
    assert totals == [3 - 2 + 0 + 7 + 10 + 100 - 100, 7, 1 - 1 + 1 + 0 + 1 + 10 - 10, 7]


def test_large_whole_numbers_in_text_stay_exact(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"a\n{2**60 + 1}\n{2**60 + 3}\n")
    columns = {"a": {"range": [0, 2**61]}}
    assert ask(policy(tmp_path, {"person": "p.csv"}, columns), "SELECT SUM(a) AS s FROM person") == [2**61 + 4]


# --- Parquet ----------------------------------------------------------------------------------------------------------


def people(**changes: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "id": pa.array([1, 2, None], pa.int64()),
        "age": pa.array([30, 200, None], pa.int32()),
        "height": pa.array([1.75, None, 9.0], pa.float32()),
        "region": pa.array(["N", "Z", None], pa.string()),
        "kids": pa.array([0, 1, 5], pa.int8()),
        "member": pa.array([True, None, False], pa.bool_()),
        "born": pa.array([date(1990, 1, 1), date(1800, 1, 1), None], pa.date32()),
        "note": pa.array(["a", SECRET_VALUE, None], pa.string()),
    }
    return pa.table({**columns, **changes})


WANTED = [3, 30 + 115, 175 + 250, 1, 2, 2, 2, 2]


def test_a_long_text_does_not_change_how_the_lines_around_it_are_read(tmp_path: Path) -> None:
    """A reader that begins in the middle of a file, of a text that looks like lines, would take them for such."""
    columns = {"age": COLUMNS["age"], "note": COLUMNS["note"]}
    lines = "7," + "z" * 97 + "\n"
    before, after = lines * 79_965, lines * 10_000  # a piece of the file that is read at a time has 8 million bytes
    odd = '"' + "7,ab\n" * 2_000 + '"'
    found = []
    for note in ("plain", odd):
        (tmp_path / "p.csv").write_text(f"age,note\n{before}5,{note}\n{after}")
        rules = policy(tmp_path, {"person": "p.csv"}, columns)
        found.append(ask(rules, "SELECT COUNT(*) AS n, SUM(age) AS s, COUNT(note) AS t FROM person"))
    assert found == [[89_966, 89_965 * 7 + 5, 89_966]] * 2


def test_a_parquet_file_is_read_as_the_policy_says(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "p.parquet")
    assert ask(policy(tmp_path, {"person": "p.parquet"}), ANSWERS) == WANTED


def test_a_folder_of_parts(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for place in range(3):
        pq.write_table(people().slice(place, 1), tmp_path / "parts" / f"{place}.parquet")
    (tmp_path / "parts" / "readme.txt").write_text("not a part")
    assert ask(policy(tmp_path, {"person": "parts"}), ANSWERS) == WANTED


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_names_of_files_and_folders_are_no_patterns_and_no_columns(tmp_path: Path, kind: str) -> None:
    """The database reads every file that a pattern means, and takes `age=99` for the age of all rows."""

    def put(table: pa.Table, place: Path) -> None:
        place.parent.mkdir(exist_ok=True)
        if kind == "parquet":
            pq.write_table(table, place)
        else:
            table.to_pandas().to_csv(place, index=False)

    columns = {"age": {"range": [0, 100]}}
    mine, other = (pa.table({"age": ages}) for ages in ([1, 2], [90]))
    for name in ("p*", "p?", "p[1]", "p", "pq", "p1"):
        put(other, tmp_path / f"{name}.{kind}")
    for name in ("p*", "p?", "p[1]"):
        put(mine, tmp_path / f"{name}.{kind}")
        rules = policy(tmp_path, {"person": f"{name}.{kind}"}, columns)
        assert ask(rules, "SELECT COUNT(*) AS n, SUM(age) AS s FROM person") == [2, 3]
        put(other, tmp_path / f"{name}.{kind}")
    put(mine, tmp_path / "age=99" / f"p.{kind}")
    sources = [f"age=99/p.{kind}"] + ["age=99"] * (kind == "parquet")
    for source in sources:
        assert ask(policy(tmp_path, {"person": source}, columns), "SELECT SUM(age) AS s FROM person") == [3]


def test_parts_that_differ(tmp_path: Path) -> None:
    """One missing value makes floats of a part's whole numbers: it is read as the others are."""
    (tmp_path / "parts").mkdir()
    halves = {
        "id": pa.array([1.0, 2.0, None]),
        "age": pa.array([30.0, 200.0, None]),
        "height": pa.array(["1.75", None, "9"]),
        "kids": pa.array([0.0, 1.0, 5.0]),
        "born": pa.array(["1990-01-01", "1800-01-01", None]),
    }
    pq.write_table(people(), tmp_path / "parts" / "a.parquet")
    pq.write_table(people(**halves), tmp_path / "parts" / "b.parquet")
    rules = policy(tmp_path, {"person": "parts"})
    assert ask(rules, ANSWERS) == [2 * value for value in WANTED]
    assert ask(rules, "SELECT COUNT(DISTINCT id) AS n FROM person") == [2]
    public = {"extra": {"public": True, "columns": {"id": COLUMNS["id"]}}}
    refused(
        policy(tmp_path, {"person": "parts", "extra": "parts"}, **public), "the part b.parquet stores a column unlike"
    )


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    refused(policy(tmp_path, {"person": "parts"}), "holds no Parquet files (.parquet, .pq)")


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for content in (b"", b"x", whole[:100], whole[:-1], whole[: len(whole) // 2], b"PAR1" + b"\0" * 40 + b"PAR1"):
        (tmp_path / "p.parquet").write_bytes(content)
        refused(policy(tmp_path, {"person": "p.parquet"}), "p.parquet")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": pa.array([date(1990, 1, 1)] * 3)}, ("p.parquet, column age is stored as DATE", "a number")),
        ({"height": pa.array([time(8, 30)] * 3)}, ("column height is stored as TIME", "a number")),
        ({"kids": pa.array([date(1990, 1, 1)] * 3)}, ("column kids is stored as DATE", "a category of whole numbers")),
        ({"member": pa.array([date(1990, 1, 1)] * 3)}, ("member is stored as DATE", "a category of true/false")),
        ({"born": pa.array([1, 2, 3], pa.uint64())}, ("column born is stored as UBIGINT", "a date")),
        ({"born": pa.array([True, False, None])}, ("column born is stored as BOOLEAN", "a date")),
        ({"age": pa.array([[1], [2], [3]])}, ("column age is stored as BIGINT[]", "a number")),
        ({"born": pa.array([[datetime(2020, 1, 1, tzinfo=UTC)]] * 3)}, ("born is stored as TIMESTAMP", "a date")),
        ({"note": pa.array([["a"], ["b"], None])}, ("column note is stored as VARCHAR[]", "text")),
        ({"id": pa.array([b"a", b"b", None])}, ("column id is stored as BLOB", "an id")),
        ({"region": pa.array([b"N", b"E", None])}, ("column region is stored as BLOB", "a category of texts")),
        ({"age": pa.array([{"x": 1}, {"x": 2}, {"x": 3}])}, ("column age is stored as STRUCT", "a number")),
    ],
)
def test_a_wrong_type_is_named(tmp_path: Path, change: dict[str, Any], words: tuple[str, ...]) -> None:
    pq.write_table(people(**change), tmp_path / "p.parquet")
    refused(policy(tmp_path, {"person": "p.parquet"}), *words, "change one of them")


def test_text_that_is_not_utf8_is_found_before_anything_is_charged(tmp_path: Path) -> None:
    raw = pa.array([b"ok", b"\xff\xfe canary-77af", b"x"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(people(note=broken), tmp_path / "p.parquet")
    refused(policy(tmp_path, {"person": "p.parquet"}), "p.parquet holds text that is not UTF-8")


def test_a_moment_that_cannot_be_read_is_found_before_anything_is_charged(tmp_path: Path) -> None:
    """Milliseconds reach further than the database does, whose reader raises on them."""
    far = pa.array([0, 1, 253402300800000000]).cast(pa.timestamp("ms"))
    pq.write_table(people(born=far), tmp_path / "p.parquet")
    refused(policy(tmp_path, {"person": "p.parquet"}), "p.parquet holds", "a moment or time that is none")
    pq.write_table(people(note=pa.array([1, 2, 2**62]).view(pa.time64("us"))), tmp_path / "p.parquet")
    refused(policy(tmp_path, {"person": "p.parquet"}), "p.parquet holds", "a moment or time that is none")


def test_a_private_column_that_nobody_described_is_not_looked_at(tmp_path: Path) -> None:
    """Whatever is in it: here moments that the database's reader raises on."""
    far = pa.array([0, 1, 253402300800000000]).cast(pa.timestamp("ms"))
    pq.write_table(people().append_column("more", far), tmp_path / "p.parquet")
    rules = policy(tmp_path, {"person": "p.parquet"})
    engine = DuckDBEngine(rules)
    found = engine.evaluate(bind(ANSWERS, rules, engine).summary, CHARGE, SECRET)
    assert len(found.cells[0])
    engine.close()


def test_a_file_that_changes_under_us_is_noticed(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "p.parquet")
    rules = policy(tmp_path, {"person": "p.parquet"})
    engine = DuckDBEngine(rules)
    summary = bind(ANSWERS, rules, engine).summary
    engine.evaluate(summary, CHARGE, SECRET)
    pq.write_table(people().slice(0, 1), tmp_path / "p.parquet")
    with pytest.raises(EngineError):
        engine.evaluate(summary, CHARGE, SECRET)
    engine.close()
    assert DuckDBEngine(rules).version != engine.version


def test_a_file_of_equal_size_and_time_is_noticed(tmp_path: Path) -> None:
    """What was learnt of the one, such as how many rows a unit has, would be believed of the other."""
    place, other = tmp_path / "p.parquet", tmp_path / "other.parquet"
    pq.write_table(people(), place)
    rules = policy(tmp_path, {"person": "p.parquet"})
    engine = DuckDBEngine(rules)
    engine.ready()
    shutil.copy2(place, other)
    sleep(0.05)  # as fine as the clock of a file system is
    shutil.copy2(other, place)
    assert (place.stat().st_size, place.stat().st_mtime_ns) == (other.stat().st_size, other.stat().st_mtime_ns)
    with pytest.raises(SourceError, match="have changed"):
        engine.ready()
    assert DuckDBEngine(rules).version == engine.version
    engine.close()


def test_the_version_of_a_file_changes_with_it_unless_the_policy_names_one(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "p.parquet")
    rules = policy(tmp_path, {"person": "p.parquet"})
    first = DuckDBEngine(rules).version
    assert DuckDBEngine(rules).version == first
    pq.write_table(people().slice(0, 1), tmp_path / "p.parquet")
    assert DuckDBEngine(rules).version != first


# --- DuckDB files -----------------------------------------------------------------------------------------------------


def test_a_duckdb_file(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "p.duckdb"))
    connection.register("frame", people())
    connection.execute("CREATE TABLE person AS SELECT * FROM frame")
    connection.close()
    assert ask(policy(tmp_path, "p.duckdb"), ANSWERS) == WANTED
    assert ask(policy(tmp_path, {"person": "p.duckdb"}), ANSWERS) == WANTED


def test_texts_of_a_duckdb_file_are_compared_as_bytes_whatever_their_collation(tmp_path: Path) -> None:
    """Else a group has the spelling of one of its rows, and a join finds rows that no bound has counted."""
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.execute("CREATE TABLE person(region VARCHAR COLLATE NOCASE, note VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO person VALUES ('N', 'SMITH'), ('n', 'smith'), ('E', 'smith')")
        connection.execute("CREATE TABLE tag(note VARCHAR COLLATE NOACCENT)")
        connection.execute("INSERT INTO tag VALUES ('smith'), ('smíth'), ('SMITH')")
    columns = {"region": {"values": ["N", "E"]}, "note": {"type": "text"}}
    rules = policy(tmp_path, "p.duckdb", columns, tag={"public": True, "columns": {"note": {"type": "text"}}})
    assert ask(rules, "SELECT region, COUNT(*) AS n FROM person GROUP BY region") == [1, 1]
    assert ask(rules, "SELECT COUNT(*) AS n FROM person WHERE note = 'SMITH'") == [1]
    assert ask(rules, "SELECT COUNT(DISTINCT note) AS n FROM person") == [2]
    assert ask(rules, "SELECT COUNT(*) AS n FROM person JOIN tag USING (note)") == [3]
    engine = DuckDBEngine(rules)
    assert engine.multiplicity("tag", ("note",)) == 1
    engine.close()


def test_two_duckdb_files_and_a_text_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        connection = duckdb.connect(str(tmp_path / f"{name}.duckdb"))
        connection.execute(f"CREATE TABLE {'person' if name == 'a' else 'other'} AS SELECT {len(name)} + 4 AS age")
        connection.close()
    (tmp_path / "c.csv").write_text("age\n7\n")
    columns = {"age": COLUMNS["age"]}
    rules = policy(
        tmp_path,
        {"person": "a.duckdb", "other": "b.duckdb", "third": "c.csv"},
        columns,
        other={"columns": columns},
        third={"columns": columns},
    )
    for table, total in (("person", 5), ("other", 5), ("third", 7)):
        assert ask(rules, f"SELECT SUM(age) AS s FROM {table}") == [total]


def test_a_duckdb_file_without_the_table(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "p.duckdb")).execute("CREATE TABLE other AS SELECT 1 AS x").close()
    refused(policy(tmp_path, "p.duckdb"), "p.duckdb, table person", "no such table")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 100, b"canary-77af" * 1000])
def test_what_is_not_a_duckdb_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.duckdb").write_bytes(content)
    refused(policy(tmp_path, "p.duckdb"), "not a DuckDB file")


# --- any file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"person": "gone.csv"}, ("person: gone.csv does not exist", "looked for")),
        ("gone.duckdb", ("source gone.duckdb does not exist",)),
        ("p.xlsx", ("is not",)),
        ({"person": "p.xlsx"}, ("is not of a known kind", ".parquet")),
        ({"person": "p.json.gz"}, ("is not of a known kind",)),
    ],
)
def test_a_source_that_is_not_there(tmp_path: Path, source: Any, words: tuple[str, ...]) -> None:
    for name in ("p.csv", "p.xlsx", "p.json.gz"):
        (tmp_path / name).write_text("age\n1\n")
    refused(policy(tmp_path, source, {"age": COLUMNS["age"]}), *words)


def test_no_source_at_all() -> None:
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": COLUMNS}}})
    with pytest.raises(SourceError, match="write `source:` in the policy, or give data"):
        DuckDBEngine(rules)


def test_an_unreadable_file(tmp_path: Path) -> None:
    place = tmp_path / "p.csv"
    place.write_text("age\n1\n")
    place.chmod(0)
    try:
        place.read_text()
    except PermissionError:
        refused(policy(tmp_path, {"person": "p.csv"}, {"age": COLUMNS["age"]}), "p.csv")


# --- public tables ----------------------------------------------------------------------------------------------------


def test_a_public_text_file_is_read_with_the_types_it_shows(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("region,kids\nN,1\nE,2\n")
    (tmp_path / "area.csv").write_text(
        "region,code,zip,size,since,kids\nN,10,007,1.5,2020-01-01,1\nE,20,008,2.5,2021-01-01,2\n"
    )
    columns = {"region": COLUMNS["region"], "kids": COLUMNS["kids"]}
    rules = policy(tmp_path, {"person": "p.csv", "area": "area.csv"}, columns, area={"public": True})
    engine = DuckDBEngine(rules)
    found = engine.columns("area")
    assert found["code"] == Category("code", (10, 20))
    assert found["zip"] == Category("zip", ("007", "008"))
    assert isinstance(found["size"], Number)
    assert isinstance(found["since"], Date)
    engine.close()
    assert ask(rules, "SELECT SUM(code) AS s FROM person JOIN area ON person.kids = area.kids") == [30]
    with pytest.raises(Exception, match="zip is a category"):
        ask(rules, "SELECT SUM(zip) AS s FROM person JOIN area ON person.kids = area.kids")
    assert ask(rules, "SELECT zip, COUNT(*) AS n FROM person JOIN area USING (kids) GROUP BY zip") == [1, 1]


def test_wide_public_numbers_and_decimals(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2]}), tmp_path / "p.parquet")
    public = pa.table(
        {
            "k": [1, 2],
            "big": pa.array([2**64 - 1, 5], pa.uint64()),
            "money": pa.array([Decimal("1.25"), Decimal("-3.50")], pa.decimal128(10, 2)),
            "one": [0.5, 0.5],
            "huge": [1e299, -1e299],
        }
    )
    pq.write_table(public, tmp_path / "q.parquet")
    rules = policy(tmp_path, {"person": "p.parquet", "q": "q.parquet"}, {"k": {"type": "id"}}, q={"public": True})
    engine = DuckDBEngine(rules)
    found = engine.columns("q")
    assert isinstance(found["money"], Number)
    assert found["money"].low <= Decimal("-3.5")
    assert found["money"].high >= Decimal("1.25")
    assert isinstance(found["one"], Number)
    assert isinstance(found["huge"], Number)
    assert engine.multiplicity("q", ("one",)) == 2
    engine.close()
    assert ask(rules, "SELECT COUNT(*) AS n FROM person JOIN q ON person.k = q.k WHERE money > 0 AND huge > 0") == [1]


@pytest.mark.parametrize("stored", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize(
    "others",
    [
        [],
        [1.0],
        [4.0, 4.0],
        [500.0],
        [-99.0],
        [0.5, 0.5],
        [1.0, 400.0, 500.0],
        [1.25, 1.75],
        [2.0**52],
        [1e30, float("inf")],
    ],
    ids=str,
)
def test_a_nan_in_parquet_is_no_number_whatever_stands_beside_it(
    others: list[float], stored: Any, tmp_path: Path
) -> None:
    """Statistics in such files leave NaN out, and an optimiser believes them."""
    columns = {
        "x": {"range": [-50, 400]},
        "wide": {"range": [0, 10**15], "grain": "1/1000"},
        "u": {"range": "unbounded", "grain": 1},
        "name": {"type": "text"},
        "flag": {"values": [True, False]},
        "code": {"values": [0, 1]},
        "word": {"values": ["1", "0.5", "nan"]},
    }
    found = []
    for values in (others, [*others, float("nan")]):
        column = pa.array(values, pa.float64()).cast(stored, safe=False)
        pq.write_table(pa.table(dict.fromkeys(columns, column)), tmp_path / "person.parquet")
        rules = policy(tmp_path, "person.parquet", columns)
        engine = DuckDBEngine(rules)
        text = (
            "SELECT COUNT(x) AS a, SUM(x) AS b, COUNT(*) FILTER (WHERE x > 3) AS c, "
            "COUNT(*) FILTER (WHERE x <= 3) AS d, COUNT(u) AS e, COUNT(name) AS f, "
            "COUNT(*) FILTER (WHERE x IS NOT NULL) AS g, COUNT(DISTINCT name) AS h, COUNT(flag) AS i, "
            "COUNT(code) AS j, COUNT(word) AS k, COUNT(wide) AS l, SUM(wide) AS m FROM person"
        )
        exact = engine.evaluate(bind(text, rules, engine).summary, CHARGE, SECRET)
        found.append([int(cell[0]) for cell in exact.cells])
        engine.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("stored", [pa.float64(), pa.float32()], ids=str)
def test_a_nan_in_a_public_parquet_file_is_passed_over(stored: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2, 3]}), tmp_path / "p.parquet")
    public = pa.table({"k": [1, 2, 3], "v": pa.array([1.5, 2.5, float("nan")], stored)})
    pq.write_table(public, tmp_path / "q.parquet")
    rules = policy(tmp_path, {"person": "p.parquet", "q": "q.parquet"}, {"k": {"type": "id"}}, q={"public": True})
    assert ask(rules, "SELECT COUNT(*) AS n FROM person JOIN q ON person.k = q.k WHERE v > 1") == [2]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW visit AS SELECT p, x FROM base USING SAMPLE 50%",
        "CREATE VIEW visit AS SELECT p, CAST(FLOOR(RANDOM() * 10) AS INTEGER) AS x FROM base",
        "CREATE TABLE visit (p INTEGER, x DOUBLE GENERATED ALWAYS AS (RANDOM() * 10))",
    ],
)
def test_what_reads_otherwise_each_time_is_read_once(made: str, tmp_path: Path) -> None:
    """A bound reads rows twice: of a view that gives others each time, a unit may pass with all that it has."""
    connection = duckdb.connect(str(tmp_path / "d.duckdb"))
    connection.execute("CREATE TABLE base AS SELECT i // 10 AS p, i % 10 AS x FROM range(1000) AS t(i)")
    connection.execute("CREATE TABLE person AS SELECT DISTINCT p FROM base")
    connection.execute(made)
    if "TABLE visit" in made:
        connection.execute("INSERT INTO visit (p) SELECT p FROM base")
    connection.close()
    visit = {"references": {"p": "person.p"}, "at_most": {"rows": 2}, "columns": {"x": {"range": [0, 9]}}}
    tables = {"person": {"columns": {"p": {"type": "id"}}}, "visit": visit}
    facts = {"confide": 1, "budget": {"epsilon": 1}, "unit": "person.p", "source": "d.duckdb", "tables": tables}
    rules = Policy.parse(facts, base=tmp_path)
    engine = DuckDBEngine(rules)
    summary = bind("SELECT COUNT(*) AS n FROM visit WHERE x > 6", rules, engine).summary
    found = {int(engine.evaluate(summary, CHARGE, SECRET).cells[0][0]) for _ in range(8)}
    engine.close()
    assert len(found) == 1
    assert max(found) <= 200
