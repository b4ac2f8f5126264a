"""Identities and keys that never change: a ledger outlives the program that wrote it.

Whoever changes one of these makes every stored answer of that kind unreachable, and lets the same question be paid for
twice. A deliberate change needs another version in `confide.privacy.identity`.
"""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import EngineError, ParameterError
from confide.mechanism import TestRandomness
from confide.privacy.identity import digest_of, written
from confide.release import Session
from confide.release.holdings import Holdings
from confide.workload import Workload
from confide.workload.workload import Counting
from tests.release.samples import APPROXIMATE, PURE, frames, policy, row_policy, rows_frame

Call = Callable[[Session], Any]
SEALED = re.compile('"[0-9a-f]{64}"')
PAIRS = confide.marginals(2, ["sex", "region"])


def sql(text: str, **more: Any) -> Call:
    return lambda session: session.sql(text, epsilon=1, **more)


PEOPLE: dict[str, Call] = {
    "count": sql("SELECT COUNT(*) AS n FROM person"),
    "filtered": sql("SELECT COUNT(*) AS n FROM person WHERE age BETWEEN 20 AND 40 AND sex = 'F' OR NOT town = 'Bern'"),
    "grouped": sql("SELECT region, AVG(income) AS a, SUM(income) AS s FROM person GROUP BY region ORDER BY a LIMIT 2"),
    "binned": sql("SELECT BIN(age, 20) AS b, COUNT(*) AS n FROM person GROUP BY 1 HAVING n > 5"),
    "quantiles": sql("SELECT MEDIAN(age) AS m, QUANTILE(income, 0.9) AS q FROM person", mechanism={"q": "em"}),
    "open keys": sql("SELECT town, COUNT(*) AS n FROM person WHERE town LIKE 'A%' GROUP BY town"),
    "per unit": sql(
        "SELECT AVG(total) AS a FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) AS v",
        bounds={"total": [0, 500]},
    ),
    "arithmetic": sql("SELECT ROUND(2 * COUNT(*) / ABS(SUM(CASE WHEN age > 3 THEN age ELSE -1 END)), 2) AS x FROM person"),  # noqa: E501
    "spread": sql("SELECT VAR_SAMP(age) AS v, STDDEV(COALESCE(income, 3)) AS d FROM person", split={"v": 2}),
    "association": sql("SELECT CORR(age, income) AS c, REGR_SLOPE(income, age) AS s, COVAR_SAMP(age, income) AS v FROM person"),  # noqa: E501
    "occurs": sql("SELECT BOOL_OR(age > 90) AS o, BOOL_AND(age < 90) AS e FROM person"),
    "joined": sql("SELECT COUNT(*) AS n FROM visit JOIN person ON visit.person_id = person.person_id WHERE sex = 'F'"),
    "truncated": sql("SELECT COUNT(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward", mechanism="truncate"),
    "microdata": lambda session: session.microdata(["sex", ("sex", "BIN(age, 20)"), ()], epsilon=1),
    "summary": lambda session: session.summary(1, "person"),
    "synthesis": lambda session: session.synthesize(PAIRS, 1, table="person", rows=10),
    "verdict": lambda session: session.trust(
        "SELECT COUNT(*) AS n FROM person WHERE sex = 'F'", pl.DataFrame({"sex": ["F", "M"]}), within=5, epsilon=1
    ),
    "triangles": lambda session: session.graph("visit", "person_id", "ward").triangles(epsilon=1),
    "rectangles": lambda session: session.graph("visit", "person_id", "ward").rectangles(epsilon=1),
    "cliques": lambda session: session.graph("visit", "person_id", "ward").cliques(4, epsilon=1, at_most=20),
}  # fmt: skip

GOLDEN: dict[str, list[str]] = {
    "count": ["01c294b764920975"],
    "filtered": ["fd7daf714f200e42"],
    "grouped": ["919380436e992c21"],
    "binned": ["179ae2db2625e16b"],
    "quantiles": ["06dba9c2d39242bd"],
    "open keys": ["5a051c4e73f2a662"],
    "per unit": ["021284f7a2124deb"],
    "arithmetic": ["6ced622e957a3358"],
    "spread": ["039bddb7b0fdd295"],
    "association": ["3d0b92c069fcaf6f"],
    "occurs": ["8d13115f072a0d2c"],
    "joined": ["a4075ef4be0da5ba"],
    "truncated": ["dfb4c0fd9383ecfd"],
    "microdata": ["2943e0a867c08cd6"],
    "summary": ["c21b66eedf3920fe"],
    "synthesis": ["51acc007d8c5da10", "9a33a3fc031ba0cf", "9b8a7c0ca853b6ad"],
    "verdict": ["d9284a69de822f49"],
    "triangles": ["32116891c294d215"],
    "rectangles": ["dffe02414e91e6b7"],
    "cliques": ["a9e0ec9b9484376f"],
}


def requests(session: Session) -> list[str]:
    """As the ledger keeps them; synthetic data are named under its secret, which is another for each ledger."""
    kept = [entry.body["request"] for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
    return [re.sub(SEALED, '""', text) if '1,"trust"' in text else text for text in kept]


@pytest.mark.parametrize("name", list(PEOPLE))
def test_what_is_asked_has_the_same_identity_for_good(name: str) -> None:
    with confide.testing.open(policy(APPROXIMATE), frames(60), seed=1) as session:
        PEOPLE[name](session)
        found = requests(session)
    assert [digest_of(text)[:16] for text in found] == GOLDEN[name], found


class NoEngine:
    version = "1"


class NoLedger:
    secret = bytes(range(32))


def test_what_is_asked_has_the_same_key_for_good() -> None:
    rules = confide.Policy.parse(row_policy())
    holdings = Holdings(rules, NoEngine(), NoLedger(), TestRandomness(1), "ann")  # type: ignore[arg-type]
    assert (
        holdings.key(written("sql", "a", 1, None)) == "a4c802006887a3e842b13308bd2862432c107c2c96b019389ad36cd92c42e2be"
    )


JOINED = "SELECT COUNT(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward"


@pytest.mark.parametrize(
    "more",
    [{"split": {"n": 7}}, {"bounds": {"n": [0, 2**20]}}, {"mechanism": "truncate", "split": {"n": "0.1"}}],
)
def test_what_buys_the_same_over_a_join_is_the_same_request(more: dict[str, Any]) -> None:
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        session.sql(JOINED, epsilon=1, mechanism="truncate")
        assert session.sql(JOINED, epsilon=1, **{"mechanism": "truncate", **more}).stored
        assert not session.sql(JOINED, epsilon=1, mechanism="truncate", bounds={"n": [0, 10]}).stored
        assert session.sql(JOINED, epsilon=1, mechanism="truncate", bounds={"n": [0, "10.5"]}).stored


@pytest.mark.parametrize(("epsilon", "named"), [(1, "smooth"), ("1e-4", "smooth")])
@pytest.mark.parametrize("budget", [PURE, APPROXIMATE])
def test_auto_and_what_it_stands_for_are_one_request(budget: dict[str, Any], epsilon: Any, named: str) -> None:
    rules: dict[str, Any] = {"confide": 1, "budget": budget, "unit": "row"}
    rules["tables"] = {"f": {"columns": {"a": {"type": "id"}, "b": {"type": "id"}}}}
    data = {"f": pl.DataFrame({"a": [1, 2, 3, 4], "b": [2, 3, 1, 5]})}
    with confide.testing.open(rules, data, seed=1) as session:
        graph = session.graph("f", "a", "b")
        for ask in (graph.triangles, lambda *given, **more: graph.stars(2, *given, **more)):
            first = ask(epsilon)
            assert first.mechanism == {first.columns[-1].name: named}
            assert ask(epsilon, mechanism=named).stored
        assert not graph.stars(4, 1).stored
        assert graph.stars(4, 1, mechanism="smooth").stored


def test_values_of_other_classes_are_taken_or_refused_in_words() -> None:
    twin = pl.DataFrame({"sex": ["F", "M"]})
    text = np.str_
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        sql = "SELECT COUNT(*) AS n FROM person WHERE sex = 'F'"
        session.trust(sql, twin, within=5, epsilon=1, mechanism=text("auto"), prefer=text("balanced"))
        assert session.trust(sql, twin, within=5, epsilon=1).stored
        made = session.synthesize(PAIRS, 1, table="person", select=text("closure"), rows=np.int64(10))  # type: ignore[arg-type]
        assert session.synthesize(PAIRS, 1, table="person", select="closure", rows=10).stored
        assert not made.stored
        listed = Workload((Counting(["sex"], [[np.int64(0)]], 1),))  # type: ignore[arg-type, list-item]
        session.synthesize(listed, 1, table="person", rows=5)
        assert session.synthesize(Workload((Counting(("sex",), ((0,),), 1),)), 1, table="person", rows=5).stored
        with pytest.raises(ParameterError, match="not a distance"):
            session.trust(sql, twin, within=Fraction(10**5000 + 1, 10**5000), epsilon=1)


def test_a_table_that_is_fitted_anew_was_paid_for_before() -> None:
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        made = session.microdata(["sex"], epsilon=1)
        assert (made.stored, made.refit("nnls").stored) == (False, True)


# --- what the ledger keeps of it --------------------------------------------------------------------------------------


def test_a_long_question_and_one_in_another_dialect_count_in_the_history(tmp_path: Path) -> None:
    ages = " OR ".join(f"age = {age % 100}" for age in range(600))
    long = f"SELECT COUNT(*) AS n FROM person WHERE region = 'N' AND ({ages})"
    assert len(long) > 6_000
    with confide.testing.open(policy(), frames(50), seed=1) as session:
        session.sql(long, epsilon=1)
        session.sql('SELECT COUNT(*) AS `n` FROM `person` WHERE `sex` = "F"', epsilon=1, dialect="mysql")
        columns = {part.columns for part in session.history("person", pad=0).parts}  # type: ignore[union-attr]
        bodies = [entry.body for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
    assert columns == {("region", "age"), ("sex",)}
    assert [body["purpose"] for body in bodies] == [
        f"sql: {long}",
        'sql in mysql: SELECT COUNT(*) AS `n` FROM `person` WHERE `sex` = "F"',
    ]
    assert all(json.loads(body["request"])[:3] == ["request", 1, "sql"] for body in bodies)


def test_what_the_ledger_keeps_of_a_request_does_not_depend_on_the_data() -> None:
    found = []
    for seed in (1, 2):
        with confide.testing.open(policy(APPROXIMATE), frames(60, seed), seed=1) as session:
            for name in ("grouped", "truncated", "microdata", "verdict"):
                PEOPLE[name](session)
            found.append(requests(session))
    assert found[0] == found[1]


def test_a_history_reads_no_other_tables_and_no_other_requests() -> None:
    with confide.testing.open(policy(), frames(50), seed=1) as session:
        session.sql("SELECT COUNT(*) AS n FROM visit WHERE ward = 1", epsilon=1)
        session.microdata(["sex"], epsilon=1)
        assert not [part for part in session.history("person", pad=1).parts if len(part.columns) < 2]  # type: ignore[union-attr]
        assert {part.columns for part in session.history("visit", pad=0).parts} == {("ward",)}  # type: ignore[union-attr]


# --- whether a result was stored --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["count", "truncated", "microdata", "synthesis", "verdict"])
def test_a_first_result_is_not_stored_and_the_second_is(name: str) -> None:
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        first, second = PEOPLE[name](session), PEOPLE[name](session)
    assert (first.stored, second.stored) == (False, True)


def test_a_question_that_no_row_changes_is_not_called_asked_before() -> None:
    """Its charge is next to nothing, so that no reading of the budget could tell."""
    with confide.testing.open(row_policy(rows="public"), rows_frame(), seed=1) as session:
        session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 3", epsilon=1)
        before = session.budget.spent
        first, second = (session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1) for _ in range(2))
        assert session.budget.spent == before
    assert (first.stored, second.stored) == (False, True)
    assert first == second


def test_verdicts_of_a_list_say_so_one_by_one() -> None:
    twin = pl.DataFrame({"sex": ["F", "M"]})
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        texts = [f"SELECT COUNT(*) AS n FROM person WHERE sex = '{sex}'" for sex in "FM"]
        first, second = (session.trust(texts, twin, within=5, epsilon=1) for _ in range(2))
    assert [one.stored for one in (*first, *second)] == [False, False, True, True]  # type: ignore[misc]


def test_a_failure_that_is_kept_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with confide.testing.open(policy(), frames(60), seed=1) as session:
        with monkeypatch.context() as patched:
            patched.setattr(type(session._holdings.engine), "evaluate", lambda *_: 1 / 0)
            with pytest.raises(EngineError):
                PEOPLE["count"](session)
        with pytest.raises(EngineError):
            PEOPLE["count"](session)


# --- how often the books are read -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "reads"),
    [
        (lambda session: session.plan("SELECT COUNT(*) AS n FROM person", within=50), 1),
        (lambda session: session.plan(PEOPLE_JOIN, epsilon=1, mechanism="truncate"), 1),
        (lambda session: session.plan_microdata(["sex"], 1), 1),
        (lambda session: session.plan_synthesize(PAIRS, 1, table="person"), 1),
        (lambda session: session.plan_trust("SELECT COUNT(*) AS n FROM person", TWIN, within=5), 1),
        (lambda session: session.budget, 1),
        (PEOPLE["count"], 4),
        (PEOPLE["microdata"], 4),
        (PEOPLE["verdict"], 4),
    ],
)
def test_the_books_are_read_once(call: Call, reads: int, tmp_path: Path) -> None:
    """A plan is one reading; an answer looks for what is stored, reads the terms, charges and stores."""
    with confide.open(policy(), frames(50), tmp_path / "l", create=True) as session:
        transactions = session._holdings.ledger._transactions  # type: ignore[attr-defined]
        counted = [0]

        def counting(work: Callable[..., Any]) -> Callable[..., Any]:
            def run(*given: Any) -> Any:
                counted[0] += 1
                return work(*given)

            return run

        for name in ("read", "write"):
            setattr(transactions, name, counting(getattr(transactions, name)))
        call(session)
        assert counted[0] == reads


PEOPLE_JOIN = "SELECT COUNT(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward"
TWIN = pl.DataFrame({"sex": ["F", "M"]})
