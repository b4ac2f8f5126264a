"""Neighbours are told apart by noise alone: every product, every way of keeping data, every engine."""

import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import confide
from confide.mechanism.selection import privtree
from confide.release.sql import measuring
from confide.release.sql import request as asking
from confide.release.workload import net_price, partition_price
from confide.workload.strategy import block
from tests.engine.postgres_tables import create_schema
from tests.laboratory import worlds
from tests.laboratory.pairs import Findings, Open, alike, open_in_memory, try_pair
from tests.laboratory.report import note
from tests.laboratory.storing import STORES, Store, typed
from tests.laboratory.worlds import Call, Pair, plain_pair
from tests.servers import PostgresServer
from tests.spark import INTERPRETED

CALLS = 12
"""Of one pair of data sets."""
PART = 2_500


def run(first: int, asked: int, opened: Open = open_in_memory) -> Findings:
    """Pairs from consecutive seeds, until so many calls were made of both sides."""
    findings = Findings()
    for seed in count(first):
        if findings.asked >= asked:
            return findings
        findings.add(try_pair(seed, CALLS, opened))
    raise AssertionError


def check(audit: str, findings: Findings) -> None:
    note(audit, pairs=findings.asked, answered=findings.outcomes["answered"], violations=len(findings.violations))
    assert not findings.violations, "\n".join(findings.violations[:20])


def test_neighbours_differ_in_noise_alone() -> None:
    findings = run(0, 300)
    assert not findings.violations, "\n".join(findings.violations[:20])
    assert findings.outcomes["answered"] > 200


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_neighbours_differ_in_noise_alone_however_they_are_kept(store: Store) -> None:
    for seed in range(900, 903):
        assert not try_pair(seed, 6, store=store).violations


@pytest.mark.audit
@pytest.mark.parametrize("part", range(40))
def test_a_hundred_thousand_pairs(part: int) -> None:
    check("pairs-duckdb", run(1_000_000 * (part + 1), PART))


# --- servers ----------------------------------------------------------------------------------------------------------


def on_postgres(server: PostgresServer, database: str) -> Open:
    def opened(pair: Pair, tables: Any, store: Store, folder: Path, seed: int) -> Any:
        schema = create_schema(server, database, typed(pair.policy, tables, pair.types))
        policy = pair.policy.to_yaml()
        return alike(confide.testing.open(sourced(policy, server.url(database, schema=schema)), seed=seed))

    return opened


def on_spark(spark: Any, settings: Mapping[str, str] | None = None) -> Open:
    """`settings`: of the session that is there; statements are run under those that hold when they are run."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    for name, value in (settings or {}).items():
        spark.conf.set(name, value)

    def opened(pair: Pair, tables: Any, store: Store, folder: Path, seed: int) -> Any:
        for name, table in typed(pair.policy, tables, pair.types).items():
            pq.write_table(table, folder / f"{name}.parquet")
        files = {name: f"spark:{folder}/{name}.parquet" for name in tables}
        return alike(confide.testing.open(sourced(pair.policy.to_yaml(), files), seed=seed))

    return opened


def sourced(policy: str, source: Any) -> confide.Policy:
    return confide.Policy.parse_text(policy, also={"source": source})


def test_neighbours_on_postgres(postgres_server: PostgresServer, postgres_database: str) -> None:
    findings = run(51, 24, on_postgres(postgres_server, postgres_database))
    assert not findings.violations, "\n".join(findings.violations[:20])


@pytest.mark.audit
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_pairs_on_postgres(part: int, postgres_server: PostgresServer, postgres_database: str) -> None:
    check("pairs-postgres", run(100_000_000 + 100_000 * part, 500, on_postgres(postgres_server, postgres_database)))


@pytest.mark.audit
@pytest.mark.parametrize("part", range(50))
def test_five_thousand_pairs_on_spark(part: int, spark: Any) -> None:
    """Four fifths of them without the code that Spark writes for each statement, which takes most of the time of small
    data; a fifth with it, for it is part of what runs.
    """
    settings = INTERPRETED if part % 5 else {}
    check("pairs-spark", run(200_000_000 + 100_000 * part, 100, on_spark(spark, settings)))


# --- controls ---------------------------------------------------------------------------------------------------------


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = measuring._combine
    monkeypatch.setattr(measuring, "_combine", lambda terms, cells: plain(terms, cells) * 2)
    assert any("was paid" in found for found in run(0, 60).violations)


def of_workloads(monkeypatch: pytest.MonkeyPatch, *strategies: str) -> list[str]:
    """What is found where workloads alone are asked, by these strategies."""
    if strategies:
        monkeypatch.setattr(worlds, "_ONE_COLUMN", strategies)
        monkeypatch.setattr(worlds, "_ALL", strategies)
    for seed in range(40 if strategies else 3):
        found = try_pair(
            seed,
            4,
            store=STORES[0],
            make=lambda rng: plain_pair(rng.choice(["rows", "keys", "public rows"]), rng),
            ask=lambda pair, rng, count: [worlds._workload_call(pair, rng) for _ in range(count)],
        ).violations
        if found:
            return found
    return []


def test_workloads_cost_what_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_workloads(monkeypatch) == []


def test_syntheses_by_every_name_cost_what_is_paid() -> None:
    def asked(pair: Pair, rng: Random, count: int) -> list[tuple[str, Call]]:
        named = (worlds._synthesis_call(pair, rng) for _ in range(100))
        return [own for own in named if "'method'" in own[0]][:count]

    def made(rng: Random) -> Pair:
        return plain_pair(rng.choice(["rows", "keys", "public rows", "public keys"]), rng)

    findings = Findings()
    for seed in range(8):
        findings.add(try_pair(seed, 3, store=STORES[0], make=made, ask=asked))
    assert not findings.violations
    assert findings.outcomes["answered"] > 10


def test_a_tree_with_half_its_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = partition_price.privtree
    monkeypatch.setattr(partition_price, "privtree", lambda epsilon, changes, ratio: plain(2 * epsilon, changes, ratio))
    assert any("was paid" in found for found in of_workloads(monkeypatch, "privtree"))


def test_a_tree_without_its_floor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then every level adds to the loss."""

    def splits(tree: Any, counts: Any, depth: int, randomness: Any) -> Any:
        return counts * privtree.FINE - depth + privtree.draw(tree.law, counts.shape, randomness) > 0

    monkeypatch.setattr(privtree.PrivTree, "splits", splits)
    assert any("was paid" in found for found in of_workloads(monkeypatch, "privtree"))


def test_even_parts_with_half_their_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = partition_price.even_parts
    monkeypatch.setattr(partition_price, "even_parts", lambda epsilon, *rest: plain(2 * epsilon, *rest))
    assert any("was paid" in found for found in of_workloads(monkeypatch, "dawa"))


def test_a_workload_of_half_its_sensitivity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = block.UnitChange.l1, block.UnitChange.l2_squared
    monkeypatch.setattr(block.UnitChange, "l1", lambda *given: -(-plain[0](*given) // 2))
    monkeypatch.setattr(block.UnitChange, "l2_squared", lambda *given: plain[1](*given) / 4)
    assert any("was paid" in found for found in of_workloads(monkeypatch))


def test_a_table_chosen_at_twice_its_cost_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = net_price.net
    monkeypatch.setattr(worlds, "FEW", 1)
    monkeypatch.setattr(net_price, "net", lambda epsilon, *rest: plain(2 * epsilon, *rest))
    assert any("was paid" in found for found in of_workloads(monkeypatch, "net"))


def test_words_on_stderr_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = measuring._combine

    def loud(terms: Any, cells: Any) -> Any:
        print("a line of a library", file=sys.__stderr__, flush=True)
        return plain(terms, cells)

    monkeypatch.setattr(measuring, "_combine", loud)
    assert any("words beside" in found for found in run(0, 60).violations)


def test_a_fact_of_the_data_in_a_note_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, combine, seen = asking._release, measuring._combine, [0]

    def summing(terms: Any, cells: Any) -> Any:
        seen[0] = sum(int(cell.sum()) for cell in cells)
        return combine(terms, cells)

    def telling(*parts: Any) -> Any:
        answer = plain(*parts)
        object.__setattr__(answer, "notes", (*answer.notes, f"{seen[0]} in all"))
        return answer

    monkeypatch.setattr(measuring, "_combine", summing)
    monkeypatch.setattr(asking, "_release", telling)
    assert any("notes" in found for found in run(0, 120).violations)


def test_a_failure_that_follows_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = measuring._combine

    def failing(terms: Any, cells: Any) -> Any:
        if any(int(cell.sum()) % 2 for cell in cells):
            raise OverflowError("odd")
        return plain(terms, cells)

    monkeypatch.setattr(measuring, "_combine", failing)
    assert any("failure after" in found or "BROKEN" in found for found in run(0, 60).violations)
