"""The strongest test: two data sets that differ in one unit, one question, every measure against its sensitivity.

Also the same data in other orders of rows and with other numbers of threads, which must not change a single integer.
Each check is run against careless engines too, which it must catch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import EngineError, QueryError
from confide.query import Measure, Question, bind
from tests.engine.reference import Naive, Reference
from tests.engine.test_reference import as_groups, as_tallies
from tests.engine.worlds import (
    WORLDS,
    Create,
    Tables,
    World,
    engine,
    evaluate,
    neighbour,
    private_tables,
    public_tables,
    questions,
)

Groups = dict[tuple[Any, ...], tuple[Any, ...]]
Evaluator = Callable[[World, Tables, Question], Groups]


@dataclass
class Findings:
    """What a run saw: violations, and how near to its sensitivity each kind of measure came."""

    violations: list[str] = field(default_factory=list)
    nearness: dict[str, Fraction] = field(default_factory=dict)
    asked: int = 0


def measured(measure: Measure, cells: tuple[Any, ...]) -> Any:
    return sum(coefficient * cells[place] for coefficient, place in measure.terms)


def compare(question: Question, first: Groups, second: Groups, findings: Findings, where: str) -> None:
    nothing = (0,) * len(question.summary.cells)
    every = {*first, *second}
    if not question.summary.open_keys and first.keys() != second.keys():
        findings.violations.append(f"{where}: the groups differ")
    for measure in (*question.measures, *((question.threshold,) if question.threshold else ())):
        changes = [
            measured(measure, first.get(key, nothing)) - measured(measure, second.get(key, nothing)) for key in every
        ]
        l1, l2 = sum(map(abs, changes)), sum(change**2 for change in changes)
        if not l1 <= measure.l1 or not l2 <= measure.l2_squared:  # a NaN is a violation too
            findings.violations.append(
                f"{where}: {measure.label} changes by {l1} > {measure.l1} or {l2} > {measure.l2_squared}"
            )
        elif measure.l1:
            near = Fraction(l1) / measure.l1
            findings.nearness[measure.label] = max(findings.nearness.get(measure.label, Fraction(0)), near)


def compare_tallies(question: Question, first: Any, second: Any, findings: Findings, where: str) -> None:
    """A statistic counts on how many rows of a tally one unit can add or take away."""
    for statistic in question.statistics:
        left, right = first[statistic.tally], second[statistic.tally]
        changed = 0
        for key in {*left, *right}:
            a, b = left.get(key, {}), right.get(key, {})
            changed += sum(abs(a.get(value, 0) - b.get(value, 0)) for value in {*a, *b})
        allowed = statistic.rows * (2 if statistic.neighbours == "replace-one" else 1)
        if changed > allowed:
            findings.violations.append(f"{where}: {statistic.kind} sees {changed} rows change, {allowed} are allowed")
        if statistic.neighbours == "replace-one" and _size(left) != _size(right):
            findings.violations.append(f"{where}: {statistic.kind} was promised a public number of rows")


def _size(tally: Any) -> dict[Any, int]:
    return {key: sum(counts.values()) for key, counts in tally.items()}


def pairs(
    world: World,
    seed: int,
    asked: int | Sequence[str],
    evaluator: Evaluator | None = None,
    create: Create = DuckDBEngine,
) -> Findings:
    """Ask the same questions, given or so many random ones, of a data set and its neighbour."""
    rng, findings = Random(seed), Findings()
    public = public_tables(rng)
    private = private_tables(world, rng)
    other = neighbour(world, private, rng)
    if other is None:
        return findings
    left, right = {**private, **public}, {**other, **public}
    # The neighbour's rows come in another order: nothing may hang on that either.
    engines = engine(world, left, create=create), engine(world, right, Random(seed), create)
    try:
        for text in questions(world, rng, asked) if isinstance(asked, int) else asked:
            outcomes: list[Any] = []
            question = None
            for source in engines:
                try:
                    question = bind(text, world.policy, source)
                    outcomes.append(question)
                except QueryError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1], f"the refusal or the plan depends on the data: {text}"
            if question is None or isinstance(outcomes[0], str):
                continue
            findings.asked += 1
            where = f"{world.name}, seed {seed}: {text}"
            tallies: list[Any] = []
            if evaluator is not None:
                results = [evaluator(world, tables, question) for tables in (left, right)]
            else:
                results = []
                for source in engines:
                    try:
                        exact = evaluate(source, question.summary)
                        results.append(as_groups(exact, question.summary))
                        tallies.append(as_tallies(exact, question.summary))
                    except EngineError:
                        findings.violations.append(f"{where}: the engine failed")
            if len(results) == 2:
                compare(question, *results, findings, where)
            if len(tallies) == 2:
                compare_tallies(question, *tallies, findings, where)
    finally:
        for source in engines:
            source.close()
    return findings


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(5))
def test_one_unit_changes_no_measure_by_more_than_its_sensitivity(name: str, seed: int) -> None:
    findings = pairs(WORLDS[name], seed, 10)
    assert not findings.violations, findings.violations


@pytest.mark.audit
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(5000, 5150))
def test_one_unit_changes_no_measure_by_more_than_its_sensitivity_at_length(name: str, seed: int) -> None:
    findings = pairs(WORLDS[name], seed, 25)
    assert not findings.violations, findings.violations


_POINTED = (
    "SELECT COUNT(*) AS n, SUM(cost) AS s, COUNT(cost) AS k, AVG(cost) AS m FROM visit",
    "SELECT kind, COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT pid) AS d FROM visit GROUP BY kind",
    "SELECT kind, COUNT(DISTINCT vid) AS d FROM visit GROUP BY kind",
    "SELECT ward, COUNT(*) AS n FROM visit GROUP BY ward",
    "SELECT tag, COUNT(*) AS n, SUM(cost) AS s FROM visit JOIN label ON visit.kind = label.kind GROUP BY tag",
    "SELECT COUNT(*) AS n FROM visit AS a JOIN visit AS b ON a.pid = b.pid",
)


def test_the_pairs_come_up_to_the_sensitivities() -> None:
    """Else the tests above would pass with sensitivities that are far too large, and prove little."""
    reached: dict[str, Fraction] = {}
    for seed in (*range(12), 30):
        found = pairs(WORLDS["keys"], seed, _POINTED)
        assert not found.violations
        for label, near in found.nearness.items():
            reached[label] = max(reached.get(label, Fraction(0)), near)
    for label in ("rows", "known values", "distinct values", "units per key"):
        assert reached[label] == 1, (label, reached)
    assert reached["total"] > Fraction(1, 2)


# --- careless engines -------------------------------------------------------------------------------------------------


def _reference(naive: Naive) -> Evaluator:
    def evaluator(world: World, tables: Tables, question: Question) -> Groups:
        return Reference(tables, naive).evaluate(question.summary)

    return evaluator


@pytest.mark.parametrize(
    "naive",
    [
        Naive(no_rows_bound=True, no_groups_bound=True),
        Naive(no_rows_bound=True),
        Naive(no_groups_bound=True),
        Naive(bound_before_join=True),
        Naive(no_clamp=True),
    ],
    ids=str,
)
def test_a_careless_engine_is_caught(naive: Naive) -> None:
    assert any(pairs(WORLDS["keys"], seed, _POINTED, _reference(naive)).violations for seed in range(40))


def test_the_plain_reading_itself_passes() -> None:
    for name, world in WORLDS.items():
        for seed in range(2):
            assert not pairs(world, seed, 10, _reference(Naive())).violations, name


# --- order and threads ------------------------------------------------------------------------------------------------


def orders(
    world: World, seed: int, shuffles: int, evaluator: Evaluator | None = None, texts: Sequence[str] = ()
) -> list[str]:
    """Questions whose integers change with the order of the rows."""
    rng = Random(seed)
    tables = {**private_tables(world, rng), **public_tables(rng)}
    base = engine(world, tables)
    asked = []
    for text in texts or questions(world, rng, 6):
        try:
            asked.append((text, bind(text, world.policy, base)))
        except QueryError:
            continue
    changed = []
    first = [_ask(world, tables, base, question, evaluator) for _, question in asked]
    base.close()
    for place in range(shuffles):
        order = Random(seed * 1000 + place)
        mixed = {name: order.sample(rows, len(rows)) for name, rows in tables.items()}
        source = engine(world, mixed)
        for (text, question), expected in zip(asked, first, strict=True):
            if _ask(world, mixed, source, question, evaluator) != expected:
                changed.append(text)
        source.close()
    return changed


def _ask(world: World, tables: Tables, source: Any, question: Question, evaluator: Evaluator | None) -> Groups:
    if evaluator is not None:
        return evaluator(world, tables, question)
    return as_groups(evaluate(source, question.summary), question.summary)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_rows_changes_nothing(name: str, seed: int) -> None:
    assert not orders(WORLDS[name], seed, 3)


def test_the_order_of_rows_chooses_none_of_a_unit() -> None:
    """Questions in which units have more rows than are kept of them."""
    for seed in range(6):
        assert not orders(WORLDS["keys"], seed, 3, texts=_POINTED)


@pytest.mark.audit
@pytest.mark.parametrize("name", WORLDS)
def test_a_thousand_orders_of_rows_change_nothing(name: str) -> None:
    assert not orders(WORLDS[name], 7, 1000)


@pytest.mark.parametrize("naive", [Naive(by_row_order=True), Naive(float_sums=True)], ids=str)
def test_an_engine_that_heeds_the_order_is_caught(naive: Naive) -> None:
    assert any(orders(WORLDS["keys"], seed, 3, _reference(naive), _POINTED) for seed in range(30))
