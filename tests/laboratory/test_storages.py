"""What a value means does not depend on how it is stored: the same integers before noise, however a table came."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import confide.testing
from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import Policy
from confide.query import bind
from tests.engine.worlds import CHARGE, SECRET
from tests.laboratory.storages import AT_MOST, KINDS, ROWS, Kind, known, repeated, rest, stored

OBJECTS = ("list", "pandas objects", "numpy objects")
FEW = {
    "number": ("pandas objects", "pandas float64", "arrow decimal", "csv", "duckdb UHUGEINT"),
    "switch": ("pandas boolean", "pandas objects"),
    "whole": ("pandas float64", "pandas category", "duckdb DECIMAL(12,4)", "csv"),
    "truth": ("arrow int16", "csv"),
    "numbered word": ("pandas float64", "duckdb BIGINT"),
    "text": ("pandas float64", "polars", "arrow decimal", "parquet arrow string", "duckdb HUGEINT"),
    "id": ("pandas float64", "pandas objects", "arrow string", "polars Decimal", "duckdb DECIMAL(38,0)", "csv"),
    "day": ("pandas moments", "csv", "arrow moments"),
    "day as id": ("duckdb TIMESTAMP_S", "arrow moments", "arrow date32"),
}


def check(kind: Kind, columns: dict[str, list[Any]], storages: dict[str, str], folder: Path) -> None:
    """All tables give the integers of the first."""
    data: dict[str, Any] = {"p": {"k": pa.array([0, 1, 2])}}
    source: dict[str, str] = {}
    for table, values in columns.items():
        if storages[table] == "plain":
            data[table] = {**rest(len(values)), "x": pa.array(values, kind.plain[0])}
            continue
        frame, place = stored(storages[table], values, folder, table)
        if place is None:
            data[table] = frame
        else:
            source[table] = place
    own = {"columns": {"x": kind.column, "y": {"range": [0, 1000]}}, "references": {"k": "p.k"}}
    own["at_most"] = {"rows": AT_MOST, "groups": AT_MOST}
    facts = {
        "confide": 1,
        "budget": {"epsilon": 1, "delta": 1e-6},
        "unit": "p.k",
        "tables": {"p": {"columns": {"k": {"type": "id"}}}, **dict.fromkeys(columns, own)},
    }
    rules = Policy.parse(facts | ({"source": source} if source else {}), base=folder)
    engine = DuckDBEngine(rules, data)
    grouped = " GROUP BY x" if kind.shown.startswith("x,") else ""
    try:
        found = {}
        for table in columns:
            texts = (f"SELECT COUNT(*) AS n, SUM(y) AS s FROM {table}", f"SELECT {kind.shown} FROM {table}{grouped}")
            summaries = [bind(text, rules, engine).summary for text in texts]
            exact = [engine.evaluate(summary, CHARGE, SECRET) for summary in summaries]
            found[table] = [[int(value) for value in cell] for part in exact for cell in part.cells]
    finally:
        engine.close()
    first = next(iter(found))
    for table, integers in found.items():
        assert integers == found[first], storages[table]


def all_of(kind: Kind, folder: Path, few: tuple[str, ...] | None) -> None:
    columns, storages = {"t": repeated(kind.plain[1])}, {"t": "plain"}
    for place, (storage, convert) in enumerate(kind.storages):
        if few is None or storage in few:
            label = f"t{place}"
            columns[label], storages[label] = [convert(value) for value in columns["t"]], storage
    assert few is None or set(few) <= set(storages.values())
    check(kind, columns, storages, folder)


@pytest.mark.parametrize("name", FEW)
def test_values_mean_the_same_in_some_storages(name: str, tmp_path: Path) -> None:
    all_of(KINDS[name], tmp_path, FEW[name])


@pytest.mark.audit
@pytest.mark.parametrize("name", KINDS)
def test_values_mean_the_same_in_every_storage(name: str, tmp_path: Path) -> None:
    all_of(KINDS[name], tmp_path, None)


def odd_rows(kind: Kind, folder: Path, storages: tuple[str, ...], odd: tuple[tuple[Any, Any], ...]) -> None:
    """An odd value makes a column one of objects: the others mean what they did, and it means what it says itself."""
    for value, meaning in odd:
        columns, used = {"t": [*repeated(kind.plain[1]), meaning]}, {"t": "plain"}
        for place, storage in enumerate(storages):
            columns[f"t{place}"], used[f"t{place}"] = [*repeated(kind.plain[1]), value], storage
        check(kind, columns, used, folder)


@pytest.mark.parametrize("name", KINDS)
def test_an_odd_value_changes_no_other(name: str, tmp_path: Path) -> None:
    odd_rows(KINDS[name], tmp_path, ("pandas objects",), KINDS[name].odd[:1])


@pytest.mark.audit
@pytest.mark.parametrize("name", KINDS)
def test_no_odd_value_changes_another(name: str, tmp_path: Path) -> None:
    odd_rows(KINDS[name], tmp_path, OBJECTS, KINDS[name].odd)


@pytest.mark.parametrize("name", KINDS)
def test_no_value_decides_whether_a_column_is_accepted(name: str, tmp_path: Path) -> None:
    """Columns without rows, without values, and of nothing but odd values: all are opened."""
    kind = KINDS[name]
    nothing: list[Any] = [None] * ROWS
    columns = {"t": nothing} | {f"t{place}": nothing for place in range(4)}
    check(
        kind,
        columns,
        dict(zip(columns, ("plain", "list", "pandas objects", "pandas float64", "polars"), strict=True)),
        tmp_path,
    )
    check(
        kind,
        {"t": [], "t0": [], "t1": [], "t2": []},
        {"t": "plain", "t0": "list", "t1": "pandas objects", "t2": "polars"},
        tmp_path,
    )
    check(kind, {"t": nothing, "t0": [object()] * ROWS}, {"t": "plain", "t0": "list"}, tmp_path)


def test_the_control_tells_storages_apart(tmp_path: Path) -> None:
    """Were a text column read as it is printed, 12345.0 would be another text: the check sees that."""
    kind = KINDS["text"]
    values = repeated(kind.plain[1])
    printed = [known(lambda v: f"{v}.0")(value) for value in values]
    with pytest.raises(AssertionError):
        check(kind, {"t": values, "t0": printed}, {"t": "plain", "t0": "list"}, tmp_path)


@pytest.mark.parametrize("name", ["number", "whole", "text", "id", "day"])
def test_status_shape_and_charge_do_not_tell_an_odd_row(name: str) -> None:
    kind = KINDS[name]
    columns = {"x": kind.column, "y": {"range": [0, 1000]}}
    rules = {
        "confide": 1,
        "budget": {"epsilon": 1, "delta": 1e-6},
        "unit": "row",
        "tables": {"t": {"columns": columns}},
    }
    grouped = " GROUP BY x" if kind.shown.startswith("x,") else ""
    seen = set()
    odd = [value for value, _ in kind.odd if value != "\ud800"]  # of which pandas itself makes nothing
    for more in ([], *([value] for value in odd), [None]):
        values = [*repeated(kind.plain[1]), *more]
        with confide.testing.open(
            rules, {"t": pd.DataFrame({"x": values, "y": range(len(values))})}, seed=1
        ) as session:
            answer = session.sql(f"SELECT {kind.shown} FROM t{grouped}", epsilon=0.5).to_arrow()
            shape = (tuple(answer.column_names), answer.num_rows if grouped else 1)
            seen.add((shape, str(session.budget.spent)))
    assert len(seen) == 1
