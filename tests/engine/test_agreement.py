"""Every engine gives the same integers: generated questions on DuckDB, PostgreSQL and Spark, before noise.

The questions go over every kind of aggregate, predicate, grouping, join and unit; the data hold NULL, NaN, infinities,
empty and odd texts, dates, decimals, ties and extreme values. Contribution bounds stay as the policy states them: all
engines must keep the same rows of a unit.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from confide.engine import Engine, Exact
from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import QueryError
from confide.policy import Policy, load
from confide.query import Summary, bind
from tests.docs.fences import fences, statements
from tests.engine import postgres_tables, spark_tables
from tests.engine.sessions import QUESTIONS, REFUSED, census_tables, differing, sessions_of
from tests.engine.worlds import CHARGE, SECRET, WORLDS, Asker, World, evaluate, frames, private_tables, public_tables
from tests.release.sql import derived_questions
from tests.servers import PostgresServer
from tests.spark import INTERPRETED

ODD = ["straße", "STRASSE", "ǅ", "é", "é", "🙂", "a_b", "a%b", "\\", "${x}", "'; --", "İ", " x", "x ", "x\ty", "ﬀ"]
"""Texts whose order, case, length or spelling differ between careless databases."""


class WideAsker(Asker):
    """Also the aggregates that are read from tallies, and patterns of odd texts."""

    def aggregate(self) -> str:
        if self.rng.random() < 0.8:
            return super().aggregate()
        form = self.rng.choice(["QUANTILE({}, 0.9)", "MIN({})", "MAX({})", "STDDEV({})", "MEDIAN({})"])
        return form.format(self._one("number") or self.number())

    def predicate(self, depth: int = 0) -> str:
        column = self._one("text")
        if column is None or self.rng.random() < 0.85:
            return super().predicate(depth)
        odd = self.rng.choice(ODD).replace("'", "''")
        forms = ["{} = '{}'", "{} <> '{}'", "{} LIKE '{}%'", "{} NOT LIKE '_{}'", "{} ILIKE '%{}'", "{} IN ('{}', 'x')"]
        return self.rng.choice(forms).format(column, odd)


def odd_tables(world: World, rng: Random) -> dict[str, Any]:
    """The data of a world, with more odd texts and more rows alike."""
    tables: dict[str, Any] = {**private_tables(world, rng), **public_tables(rng)}
    for label, rows in tables.items():
        for row in rows if not world.policy.tables[label].public else ():
            for column in ("job", "ward"):
                if column in row and rng.random() < 0.5:
                    row[column] = rng.choice(ODD)
    return tables


def readable(exact: Exact) -> Any:
    """What was found, as plain numbers: cells, keys, and how many rows have each value."""
    cells = [[int(value) for value in cell] for cell in exact.cells]
    tallies = [
        [list(zip(map(int, values), map(int, counts), strict=True)) for values, counts in tally]
        for tally in exact.tallies
    ]
    return cells, exact.keys, tallies


def both_ways(engine: Engine, summary: Summary) -> Any:
    """A summary read whole, and with its tallies through narrow windows, for which wide columns are read in passes."""
    windows = {place: [lambda count: (count // 2 - 1, count // 2 + 2)] for place in range(len(summary.tallies))}
    whole = readable(evaluate(engine, summary))
    return (whole, readable(engine.evaluate(summary, CHARGE, SECRET, None, windows))) if windows else whole


class Sources:
    """The same tables on every engine."""

    def __init__(self, server: PostgresServer, database: str, spark: Any, folder: Path) -> None:
        self._place = server, database
        self._spark = spark
        self._folder = folder

    def open(
        self, stack: ExitStack, policy: Policy, tables: Mapping[str, pa.Table], settings: Mapping[str, str]
    ) -> dict[str, Engine]:
        created: dict[str, Engine] = {
            "DuckDB": DuckDBEngine(policy, tables),
            "PostgreSQL": postgres_tables.create_engine(*self._place, policy, tables),
            "Spark": spark_tables.create_engine(self._spark, self._folder, policy, tables, settings=settings),
        }
        return {label: stack.enter_context(closing(engine)) for label, engine in created.items()}  # type: ignore[type-var]


@pytest.fixture
def sources(postgres_server: PostgresServer, postgres_database: str, spark: Any, tmp_path: Path) -> Sources:
    return Sources(postgres_server, postgres_database, spark, tmp_path)


def differences(
    sources: Sources, world: World, seed: int, wanted: int, settings: Mapping[str, str]
) -> tuple[int, list[str]]:
    """How many questions were asked, and those whose answers differ."""
    rng = Random(seed)
    tables = frames(odd_tables(world, rng), world.policy)
    different: list[str] = []
    asked = 0
    with ExitStack() as stack:
        engines = sources.open(stack, world.policy, tables, settings)
        while asked < wanted:
            text = WideAsker(world, rng).question()
            plans: list[Any] = []
            for engine in engines.values():
                try:
                    plans.append(bind(text, world.policy, engine))
                except QueryError as error:
                    plans.append(str(error))
            if any(plan != plans[0] for plan in plans):
                different.append(f"{text}: the plans differ")
            if isinstance(plans[0], str):
                continue
            asked += 1
            found = {label: both_ways(engine, plans[0].summary) for label, engine in engines.items()}
            wrong = [label for label, answer in found.items() if answer != found["DuckDB"]]
            if wrong:
                different.append(f"{', '.join(wrong)} in {world.name}, seed {seed}: {text}: {found}")
    return asked, different


@pytest.mark.parametrize("name", WORLDS)
def test_engines_agree(sources: Sources, name: str) -> None:
    asked, different = differences(sources, WORLDS[name], 11, 6, INTERPRETED)
    assert asked == 6
    assert not different, "\n".join(different)


MODES = {
    "compiled": {},
    "interpreted, not ANSI": {"spark.sql.ansi.enabled": "false", **INTERPRETED},
}


@pytest.mark.audit
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(100, 105))
def test_engines_agree_at_length(sources: Sources, name: str, seed: int, mode: str) -> None:
    """2,000 questions: 4 worlds × 5 data sets × 2 modes of Spark × 50."""
    asked, different = differences(sources, WORLDS[name], seed + 1000 * (mode == "compiled"), 50, MODES[mode])
    assert asked == 50
    assert not different, "\n".join(different)


@pytest.mark.audit
def test_answers_agree_at_length(postgres_server: PostgresServer, spark: Any, tmp_path: Path) -> None:
    """Every question of `asked.sql` and every example of the documentation, with test noise, to the letter."""
    examples = [own for fence in fences("sql") for own in statements(fence)]
    asked = [*((sql, False) for sql in QUESTIONS), *((sql, True) for sql in REFUSED)]
    asked += [(own.sql, own.refused is not None) for own in examples]
    assert_same_answers(census_tables(300), asked, 1, postgres_server, spark, tmp_path)


@pytest.mark.audit
def test_answers_of_released_rows_agree(postgres_server: PostgresServer, spark: Any, tmp_path: Path) -> None:
    asked = [(sql, False) for sql in derived_questions.EVERY]
    world = load(derived_questions.POLICY), derived_questions.world(300)
    assert_same_answers(world, asked, 50, postgres_server, spark, tmp_path)


def assert_same_answers(
    world: tuple[Policy, Mapping[str, pa.Table]],
    asked: Sequence[tuple[str, bool]],
    epsilon: float,
    server: PostgresServer,
    spark: Any,
    folder: Path,
) -> None:
    """Texts, each with whether it is refused."""
    with sessions_of(*world, server, spark, folder) as sessions:
        different = [
            text
            for sql, refused in dict(asked).items()
            for text in differing(sessions, lambda own, sql=sql: own.sql(sql, epsilon=epsilon), sql, refused=refused)
        ]
    assert len(asked) > 50
    assert not different, "\n".join(different)
