"""Every long call tells how far it is, and nothing else: the same whatever the data are."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import confide

POLICY = {
    "confide": 1,
    "budget": {"epsilon": 1000},
    "unit": "person.id",
    "tables": {
        "person": {"columns": {"id": {"type": "id"}, "sex": {"values": ["F", "M"]}, "age": {"range": [0, 115]}}},
        "knows": {
            "references": {"one": "person.id"},
            "at_most": {"rows": 100},
            "columns": {"one": {"type": "id"}, "other": {"type": "id"}},
        },
    },
}
PAIRS = [(1, 2), (2, 3), (1, 3), (3, 4), (4, 5), (2, 5)]
TRIANGLES = (
    "SELECT COUNT(*) AS n FROM knows AS a JOIN knows AS b ON a.other = b.one JOIN knows AS c ON b.other = c.one "
    "WHERE c.other = a.one"
)
MEDIAN = "SELECT sex, MEDIAN(age) AS m FROM person GROUP BY sex"
FRIENDS = "SELECT p.sex, COUNT(*) AS n FROM person AS p JOIN knows AS k ON k.one = p.id GROUP BY p.sex"


def tables(people: int, pairs: list[tuple[int, int]]) -> dict[str, pl.DataFrame]:
    identity = list(range(1, people + 1))
    return {
        "person": pl.DataFrame(
            {"id": identity, "sex": ["FM"[i % 2] for i in identity], "age": [i % 90 for i in identity]},
            schema={"id": pl.Int64, "sex": pl.String, "age": pl.Int64},
        ),
        "knows": pl.DataFrame(
            {"one": [a for a, _ in pairs], "other": [b for _, b in pairs]}, schema={"one": pl.Int64, "other": pl.Int64}
        ),
    }


def by_row() -> dict[str, Any]:
    tables: Any = POLICY["tables"]
    plain = {"columns": tables["knows"]["columns"]}
    return POLICY | {"unit": "row", "tables": tables | {"knows": plain}}


CALLS: dict[str, tuple[dict[str, Any], Callable[..., object]]] = {
    "count": (POLICY, lambda session, **how: session.sql("SELECT COUNT(*) AS n FROM person", 1, **how)),
    "median": (POLICY, lambda session, **how: session.sql(MEDIAN, 1, **how)),
    "truncate": (POLICY, lambda session, **how: session.sql(FRIENDS, 1, mechanism="truncate", **how)),
    "r2t": (POLICY, lambda session, **how: session.sql(FRIENDS, 1, mechanism="r2t", **how)),
    "shared": (POLICY, lambda session, **how: session.sql(TRIANGLES, 1, mechanism="r2t", **how)),
    "elastic": (by_row(), lambda session, **how: session.sql(TRIANGLES, 1, mechanism="elastic", **how)),
    "residual": (by_row(), lambda session, **how: session.sql(TRIANGLES, 1, mechanism="residual", **how)),
    "graph": (POLICY, lambda session, **how: session.graph("knows", "one", "other", **how).triangles(1)),
    "stars": (POLICY, lambda session, **how: session.graph("knows", "one", "other", **how).stars(2, 1)),
    "edges": (by_row(), lambda session, **how: session.graph("knows", "one", "other", **how).triangles(1)),
    "microdata": (POLICY, lambda session, **how: session.microdata(["sex"], 1, table="person", **how)),
    "trust": (
        POLICY,
        lambda session, **how: session.trust(
            "SELECT sex, COUNT(*) AS n FROM person GROUP BY sex", tables(20, PAIRS)["person"], 5, 1, **how
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_told_is_the_same_whatever_the_data_are(name: str) -> None:
    policy, call = CALLS[name]
    told = []
    for data in (tables(20, PAIRS), tables(0, []), tables(400, [(a, b) for a in range(20) for b in range(20)])):
        heard: list[tuple[str, float, int]] = []
        with confide.testing.open(policy, data, seed=1) as session:
            call(session, progress=lambda *step, into=heard: into.append(step))
            first = len(heard)
            call(session, progress=lambda *step, into=heard: into.append(step))
            if name != "microdata":  # which is fitted again
                assert len(heard) == first  # a stored answer takes no time
        told.append(heard[:first])
    assert told[0] == told[1] == told[2]
    whats, dones, steps = zip(*told[0], strict=True)
    assert whats[0] == "reading"
    assert dones[0] == 0
    assert list(dones) == sorted(dones)
    assert len(set(steps)) == 1
    assert dones[-1] == steps[-1]


@pytest.mark.parametrize("name", CALLS)
def test_whoever_tells_may_stop_a_call_and_make_it_again(name: str) -> None:
    policy, call = CALLS[name]

    def stop(*_: object) -> None:
        raise LookupError("mine")

    with confide.testing.open(policy, tables(20, PAIRS), seed=1) as session:
        with pytest.raises(LookupError, match="mine") as stopped:
            call(session, progress=stop)
        assert stopped.value.__context__ is None
        spent = session.budget.spent
        call(session)
        assert session.budget.spent == spent == 1


def test_a_call_inside_of_what_is_told_is_told_to_nobody() -> None:
    """The function that hears of one call makes another: it does not hear of that."""
    with confide.testing.open(POLICY, tables(20, PAIRS), seed=1) as session:
        heard: list[str] = []

        def asking(what: str, done: float, steps: int) -> None:
            heard.append(what)
            session.sql("SELECT COUNT(*) AS inner FROM person", 1)

        session.sql("SELECT SUM(age) AS outer FROM person", 1, progress=asking)
    assert heard == ["reading", "measuring", "measuring"]
