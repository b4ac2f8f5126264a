"""The same rows, kept in every way that people keep them. What a value means must not hang on it."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from confide.policy import Policy
from tests.engine.worlds import Rows, Tables

Types = Mapping[str, pa.DataType]
Kept = tuple[Policy, Any]
"""A policy, and the frames to open it with; None where the policy names files."""


@dataclass(frozen=True)
class Store:
    """A way of keeping tables. `guesses`: how columns are stored follows from their values."""

    name: str
    keep: Callable[[Policy, Tables, Types, Path], Kept]
    guesses: bool = False


def columns_of(policy: Policy, table: str, rows: Rows) -> dict[str, list[Any]]:
    """Column by column; the columns of a public table are those that its rows have."""
    own = policy.tables[table]
    names = sorted({name for row in rows for name in row}) if own.public else list(own.columns)
    return {name: [row[name] for row in rows] for name in names}


def _in_memory(build: Callable[[dict[str, list[Any]]], Any]) -> Callable[[Policy, Tables, Types, Path], Kept]:
    def keep(policy: Policy, tables: Tables, _: Types, __: Path) -> Kept:
        return policy, {name: build(columns_of(policy, name, rows)) for name, rows in tables.items()}

    return keep


def typed(policy: Policy, tables: Tables, types: Types) -> dict[str, pa.Table]:
    """Arrow tables, every column of its declared type."""
    return {
        name: pa.table({c: pa.array(values, types[c]) for c, values in columns_of(policy, name, rows).items()})
        for name, rows in tables.items()
    }


def _arrow(policy: Policy, tables: Tables, types: Types, _: Path) -> Kept:
    return policy, typed(policy, tables, types)


def _named(policy: Policy, files: Mapping[str, str] | str, folder: Path) -> Kept:
    return replace(policy, source=files, base=folder), None


def _csv(policy: Policy, tables: Tables, _: Types, folder: Path) -> Kept:
    for name, rows in tables.items():
        columns = columns_of(policy, name, rows)
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return _named(policy, {name: f"{name}.csv" for name in tables}, folder)


def _parquet(policy: Policy, tables: Tables, types: Types, folder: Path) -> Kept:
    for name, table in typed(policy, tables, types).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return _named(policy, {name: f"{name}.parquet" for name in tables}, folder)


def _duckdb(policy: Policy, tables: Tables, types: Types, folder: Path) -> Kept:
    with duckdb.connect(folder / "all.duckdb") as database:
        for name, table in typed(policy, tables, types).items():
            database.register("given", table)
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
            database.unregister("given")
    return _named(policy, "all.duckdb", folder)


def _polars(columns: dict[str, list[Any]]) -> Any:
    return pl.DataFrame({name: pl.Series(name, values, strict=False) for name, values in columns.items()})


STORES = (
    Store("arrow", _arrow),
    Store("pandas", _in_memory(pd.DataFrame), guesses=True),
    Store("pandas objects", _in_memory(lambda columns: pd.DataFrame(columns, dtype=object))),
    Store("pandas nullable", _in_memory(lambda columns: pd.DataFrame(columns).convert_dtypes()), guesses=True),
    Store("polars", _in_memory(_polars), guesses=True),
    Store("dict", _in_memory(dict), guesses=True),
    Store("csv", _csv),
    Store("parquet", _parquet),
    Store("duckdb", _duckdb),
)


def choose(rng: Random) -> Store:
    """Frames whose types are guessed are where storage follows from data, so they come more often."""
    return rng.choice([*STORES, *(store for store in STORES if store.guesses)])
