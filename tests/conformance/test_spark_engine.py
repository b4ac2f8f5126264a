"""The Spark engine against the conformance suite, with ANSI mode on and off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from confide.engine import Engine
from confide.engine.spark.engine import SparkEngine
from confide.engine.sql.translation import Translator
from confide.policy import Policy
from tests.conformance.engine import CHECKS, EngineKind, Tables
from tests.engine.spark_tables import create_engine
from tests.spark import INTERPRETED

LOOKS_UP = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.sortMergeJoinExec.buffer.in.memory.threshold": "1",
}
"""Tasks that sort what they join see that they are cancelled; others keep the only core until they are done."""
PLANNING = 3.0
"""Seconds, in which Spark lists files and plans, so that a limit falls into the work itself."""
PLAIN = {"spark.sql.ansi.enabled": "false"}
LONG = {
    "every_question_reads_as_the_plain_reading",
    "neighbours_differ_by_no_more_than_the_sensitivity",
    "the_bound_is_keyed_and_blind_to_order",
    "a_unit_has_no_more_rows_and_groups_than_its_bound",
    "values_are_rounded_to_every_grain",
    "many_threads_ask_at_once",
    "tables_of_counts_equal_their_groups",
    "a_unit_of_a_hundred_thousand_rows_is_cut",
    "units_are_bounded_each_for_itself",
    "filters_come_before_the_bound_and_joins_too",
    "windows_show_the_ranks_in_them",
    "a_tally_changes_no_cell_and_no_cell_a_tally",
    "months_are_added_to_days_of_centuries",
}
"""Too long for an ordinary run, where each statement takes Spark a quarter of a second."""


def kind_with(spark: Any, folder: Path, settings: dict[str, str]) -> EngineKind:
    def create(policy: Policy, tables: Tables) -> Engine:
        return create_engine(spark, folder, policy, tables, settings=settings)

    def limited(policy: Policy, tables: Tables, seconds: float) -> Engine:
        engine = create_engine(spark, folder, policy, tables, settings=settings | LOOKS_UP)
        engine._session.limit_seconds = PLANNING + seconds
        return engine

    def lift(engine: Engine) -> None:
        cast(SparkEngine, engine)._session.limit_seconds = 600.0

    def damage(engine: Engine) -> None:
        """Every question then casts the texts of `s` to numbers, at which Spark fails and shows them."""
        own = cast(SparkEngine, engine)
        own._session.spark.conf.set("spark.sql.ansi.enabled", "true")
        own._translate = Translator("spark", {"t": "SELECT s, CAST(s AS BIGINT) AS x FROM confide_0"})

    return EngineKind(create, limited, live=True, damage=damage, lift_limit=lift)


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=[pytest.mark.audit] if check.__name__ in LONG else []) for check in CHECKS],
    ids=lambda check: check.__name__,
)
def test_spark(check: Callable[[EngineKind], Any], spark: Any, tmp_path: Path) -> None:
    check(kind_with(spark, tmp_path, INTERPRETED))


@pytest.mark.audit
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_spark_as_it_compiles(check: Callable[[EngineKind], Any], spark: Any, tmp_path: Path) -> None:
    check(kind_with(spark, tmp_path, {}))


@pytest.mark.audit
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_spark_without_ansi_mode(check: Callable[[EngineKind], Any], spark: Any, tmp_path: Path) -> None:
    check(kind_with(spark, tmp_path, PLAIN | INTERPRETED))
