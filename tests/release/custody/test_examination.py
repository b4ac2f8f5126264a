"""How a policy fits its data, in exact numbers: the same on every engine, and out of reach of analysts."""

import csv
import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.errors import SourceError
from confide.policy import Policy, load
from confide.release.custody.examination import FOR_WHOM, Examination, ExaminedColumn
from confide.release.custody.judgement import share
from confide.release.sql.purchases import purchases
from tests.engine.worlds import WORLDS, World, frames, private_tables, public_tables
from tests.servers import PostgresServer

SOURCE = Path(__file__).parents[3] / "src" / "confide"
PEOPLE, VISITS = 400, 1_500
TABLES: dict[str, Any] = {
    "person": {
        "size": PEOPLE,
        "columns": {
            "person_id": {"type": "id"},
            "sex": {"values": ["F", "M"]},
            "region": {"values": ["N", "E", "S"]},
            "kids": {"values": [0, 1, 2]},
            "age": {"range": [0, 90]},
            "share": {"range": [0, 1]},
            "income": {"range": [0, 1000], "grain": 0.01},
            "born": {"range": ["1950-01-01", "2000-12-31"]},
            "since": {"range": ["2000-01-01", "2020-12-31"]},
            "note": {"type": "text"},
        },
    },
    "visit": {
        "references": {"person_id": "person.person_id"},
        "at_most": {"rows": 4, "groups": 1},
        "columns": {"kind": {"values": ["a", "b"]}},
    },
    "town": {"public": True, "columns": {"code": {"values": [1, 2]}}},
}
TYPES = {
    "person": "person_id bigint, sex text, region text, kids text, age bigint, share double precision, "
    "income numeric(9,2), born date, since bigint, note text",
    "visit": "person_id bigint, kind text",
    "town": "code bigint",
}


def rules(**more: Any) -> Policy:
    return load({"budget": {"epsilon": 1}, "unit": "person.person_id", "tables": TABLES, **more})


def made() -> dict[str, dict[str, list[Any]]]:
    chance = Random(5)
    people = range(PEOPLE)
    return {
        "person": {
            "person_id": list(people),
            "sex": [chance.choice(["Female", "Male", None]) for _ in people],
            "region": [chance.choice(["N", "E", "n", "X"]) for _ in people],
            "kids": [chance.choice(["0", "1", "7", "many", None]) for _ in people],
            "age": [chance.randint(-5, 100) for _ in people],
            "share": [chance.random() for _ in people],
            "income": [float(chance.randint(0, 12) * 100) for _ in people],
            "born": [f"{chance.randint(1940, 2005)}-06-15" for _ in people],
            "since": [chance.choice([20100101, None]) for _ in people],
            "note": [chance.choice(["x", None]) for _ in people],
        },
        "visit": {
            "person_id": [chance.choice([None, *range(PEOPLE)]) for _ in range(VISITS)],
            "kind": [chance.choice("ab") for _ in range(VISITS)],
        },
        "town": {"code": [1, 2, 3]},
    }


def framed() -> dict[str, pa.Table]:
    frames = {label: pa.table(columns) for label, columns in made().items()}
    born = frames["person"].column("born").cast(pa.date32())
    return {**frames, "person": frames["person"].set_column(7, "born", born)}


def expected(data: dict[str, dict[str, list[Any]]]) -> dict[str, tuple[int, int, int, int]]:
    """Values, missing, unreadable and outside of each column, counted here one by one."""
    person = data["person"]

    def counted(column: str, readable: Any, inside: Any) -> tuple[int, int, int, int]:
        there = [value for value in person[column] if value is not None]
        read = [value for value in there if readable(value)]
        outside = [value for value in read if not inside(value)]
        return len(read), PEOPLE - len(there), len(there) - len(read), len(outside)

    return {
        "sex": counted("sex", lambda _: True, lambda value: value in "FM"),
        "region": counted("region", lambda _: True, lambda value: value in "NES"),
        "kids": counted("kids", str.isdigit, lambda value: int(value) < 3),
        "age": counted("age", lambda _: True, lambda value: 0 <= value <= 90),
        "share": counted("share", lambda _: True, lambda _: True),
        "income": counted("income", lambda _: True, lambda value: value <= 1000),
        "born": counted("born", lambda _: True, lambda value: "1950" <= value[:4] <= "2000"),
        "since": counted("since", lambda _: False, lambda _: True),
        "note": counted("note", lambda _: True, lambda _: True),
    }


def columns_of(found: Examination) -> dict[str, ExaminedColumn]:
    return {column.name: column for column in found.tables[0].columns}


def numbers_of(found: Examination) -> dict[str, tuple[int, int, int, int]]:
    return {
        name: (column.values, column.missing, column.unreadable, column.outside)
        for name, column in columns_of(found).items()
        if name != "person_id"
    }


def assert_right(found: Examination) -> None:
    data = made()
    assert numbers_of(found) == expected(data)
    person, visit, town = found.tables
    columns = columns_of(found)
    assert columns["region"].absent == ("S",)
    assert dict(columns["sex"].common) == {
        name: number for name, number in Counter(data["person"]["sex"]).items() if name is not None
    }
    assert columns["share"].rounded == PEOPLE
    assert columns["income"].rounded == 0
    by_unit = Counter(unit for unit in data["visit"]["person_id"] if unit is not None)
    kinds = Counter(unit for unit, _ in {*zip(data["visit"]["person_id"], data["visit"]["kind"], strict=True)})
    assert (person.rows, person.units, person.beyond, person.cut) == (PEOPLE, PEOPLE, 0, 0)
    assert (visit.rows, visit.units) == (VISITS, len(by_unit))
    assert visit.beyond == sum(number > 4 for number in by_unit.values())
    assert visit.cut == sum(max(0, number - 4) for number in by_unit.values())
    assert any(
        f"{sum(number > 1 for unit, number in kinds.items() if unit is not None):,} of" in str(remark)
        for remark in found.remarks
        if remark.where == "visit.kind"
    )
    assert (town.rows, town.columns[0].outside) == (3, 1)


# --- where the data are -----------------------------------------------------------------------------------------------


def test_frames() -> None:
    assert_right(confide.check(rules(), framed()))


def test_files(tmp_path: Path) -> None:
    sources = {}
    for label, columns in made().items():
        sources[label] = f"{label}.csv"
        with (tmp_path / sources[label]).open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    policy = {"budget": {"epsilon": 1}, "unit": "person.person_id", "tables": TABLES, "source": sources}
    assert_right(confide.check(Policy.parse(policy, base=tmp_path)))
    for label, table in framed().items():
        pq.write_table(table, tmp_path / f"{label}.parquet")
    policy["source"] = {label: f"{label}.parquet" for label in sources}
    assert_right(confide.check(Policy.parse(policy, base=tmp_path)))


def test_postgres(postgres_server: PostgresServer, postgres_database: str) -> None:
    def spelled(value: Any) -> str:
        return "NULL" if value is None else f"'{value}'"

    for label, columns in made().items():
        postgres_server.run(f"CREATE TABLE {label} ({TYPES[label]})", postgres_database)
        rows = ", ".join(f"({', '.join(map(spelled, row))})" for row in zip(*columns.values(), strict=True))
        postgres_server.run(f"INSERT INTO {label} VALUES {rows}", postgres_database)
    assert_right(confide.check(rules(source=postgres_server.url(postgres_database))))


def test_spark(spark: Any, tmp_path: Path) -> None:
    for label, table in framed().items():
        pq.write_table(table, tmp_path / f"{label}.parquet")
    source = {label: f"spark:{label}.parquet" for label in TABLES}
    policy = {"budget": {"epsilon": 1}, "unit": "person.person_id", "tables": TABLES, "source": source}
    assert_right(confide.check(Policy.parse(policy, base=tmp_path)))


# --- what is said -----------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_loudly() -> None:
    found = confide.check(rules(), framed())
    loud = "\n".join(map(str, found.loud))
    assert re.search(r"person\.sex: NONE of the 2 declared values \(F, M\) occurs, .* often: '(Female|Male)'", loud)
    assert "person.since: " in loud
    assert "whole numbers where the policy says days" in loud
    assert "person.region: declared, but never occurs: S" in loud
    assert "person.share: 400 values (100 %) are rounded to the grain 1, which leaves hardly any" in loud
    assert "(at_most), up to" in loud
    quiet = [str(remark) for remark in found.remarks if not remark.loud]
    assert any("no value needs a grain finer than 10, and the policy says 0.01" in remark for remark in quiet)
    assert str(found).startswith(FOR_WHOM)
    assert FOR_WHOM in json.dumps(found.to_dict(), ensure_ascii=False)
    assert "WARNING" in found._repr_html_()


def test_a_policy_that_fits_has_nothing_to_hear() -> None:
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": {"x": {"range": [0, 9]}}}}}
    found = confide.check(policy, {"x": [1, 2, 3, 9, 0]})
    assert found.remarks == ()
    assert found.tables[0].units is None


def test_sizes_and_empty_tables() -> None:
    def said(size: int, rows: int) -> list[str]:
        columns = {"x": {"range": [0, 9]}}
        policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"size": size, "columns": columns}}}
        return [str(remark) for remark in confide.check(policy, {"x": [1] * rows}).remarks]

    assert said(100, 150) == []
    assert "size: 100, but there are 300 rows" in said(100, 300)[0]
    assert said(100, 0) == ["t: the table has no rows"]


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [(0, 9, "0 %"), (9, 9, "100 %"), (1, 10**6, "below 0.01 %"), (10**6 - 1, 10**6, "above 99.99 %"), (1, 3, "33.3 %")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(part: int, whole: int, words: str) -> None:
    assert share(part, whole) == words


@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_whatever_a_policy_and_its_data_are_they_are_held_against_each_other(world: World) -> None:
    """Data full of traps, under policies of every shape: what is counted adds up, and a budget buys something."""
    rng = Random(2)
    tables = {**public_tables(rng), **private_tables(world, rng)}
    data = {label: frame for label, frame in frames(tables, world.policy, rng).items() if label in world.policy.tables}
    found = confide.check(world.policy, data)
    for table in found.tables:
        assert table.rows == data[table.name].num_rows
        for column in table.columns:
            assert column.values + column.missing + column.unreadable == table.rows
            assert 0 <= column.outside <= column.values
            assert min(column.missing, column.unreadable) >= 0
        assert not any("-" in str(remark).split(" rows")[0].split(": ")[-1] for remark in table.remarks)
    assert str(found)
    assert purchases(world.policy).offered


# --- for whom ---------------------------------------------------------------------------------------------------------


def test_no_session_can_examine(tmp_path: Path) -> None:
    """Whoever holds a session asks questions; to examine takes the policy and the data themselves."""
    with confide.open(rules(), framed(), ledger=tmp_path / "people.ledger", create=True) as people:
        names = {name for name in dir(people) if not name.startswith("_")}
    assert not {name for name in names if "check" in name or "examin" in name or "inspect" in name}
    with pytest.raises(SourceError):
        confide.check(people.policy)  # a policy alone holds no data


def test_nothing_but_the_examination_reads_without_a_charge() -> None:
    """One module calls what an engine gives without a charge, and no product of a release imports that module."""
    callers = [path for path in SOURCE.rglob("*.py") if re.search(r"\.examine\(", path.read_text())]
    assert [path.name for path in callers] == ["examination.py"]
    importers = {
        str(path.relative_to(SOURCE)).split("/")[0]
        for path in SOURCE.rglob("*.py")
        if "custody.examination import" in path.read_text()
    }
    assert importers <= {"cli", "release", "__init__.py"}
    products = [SOURCE / "release" / name for name in ("sql", "join", "graph", "microdata", "synthetic", "verdict")]
    reach = [path for product in products for path in product.rglob("*.py") if "examin" in path.read_text()]
    assert not reach
    assert "examin" not in (SOURCE / "release" / "session.py").read_text()


def test_it_touches_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    confide.check(rules(ledger="people.ledger"), framed())
    assert not list(tmp_path.iterdir())
