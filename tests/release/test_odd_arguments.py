"""Arguments of odd kinds: each is looked at once, or refused in words before anything is charged."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide
import confide.testing
from confide.errors import ParameterError, QueryError
from confide.privacy.amount import parse_amount, shown_value, whole_number
from confide.privacy.loss import PureDP

POLICY = {
    "budget": {"epsilon": 100},
    "unit": "person.id",
    "tables": {
        "person": {"columns": {"id": {"type": "id"}, "age": {"range": [0, 100]}}},
        "visit": {
            "references": {"who": "person.id"},
            "at_most": {"rows": 3, "groups": 1},
            "columns": {"cost": {"range": [0, 10]}},
        },
        "edge": {
            "references": {"a": "person.id"},
            "at_most": {"rows": 3, "groups": 1},
            "columns": {"b": {"type": "id"}},
        },
    },
}
DATA: dict[str, Any] = {
    "person": {"id": [1, 2, 3], "age": [20, 30, 40]},
    "visit": {"who": [1, 1, 2], "cost": [1, 2, 3]},
    "edge": {"a": [1, 2, 3], "b": [2, 3, 1]},
}
SQL = "SELECT COUNT(*) AS n, AVG(age) AS mean FROM person"
JOIN = "SELECT COUNT(*) AS n FROM person p JOIN visit v ON p.id = v.who"
VIEW = "SELECT p.age AS age, v.cost AS cost FROM person p JOIN visit v ON p.id = v.who"


class LyingShare(Fraction):
    """Little when it is charged, and much when noise is made for it."""

    def __mul__(self, other: object) -> Fraction:  # type: ignore[override]
        return Fraction(10**5)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Fraction:  # type: ignore[override]
        return Fraction(10**5)


class LyingWhole(int):
    """Within all bounds, and written as another number."""

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __le__

    def __str__(self) -> str:
        return "2"

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        return "2"


class LyingText(str):
    """Equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def strip(self, characters: str | None = None, /) -> str:
        return "something harmless"


class Changing(Mapping[str, object]):
    """Another value each time it is looked at."""

    def __init__(self, *values: object) -> None:
        self.values_left = list(values)

    def __getitem__(self, name: str) -> object:
        return self.values_left.pop(0) if len(self.values_left) > 1 else self.values_left[0]

    def __iter__(self) -> Iterator[str]:
        return iter(["n"])

    def __len__(self) -> int:
        return 1


class Loud:
    """Raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("of the caller's own")

    __str__ = __eq__ = __repr__  # type: ignore[assignment]
    __hash__ = object.__hash__


@pytest.fixture
def session() -> confide.Session:
    return confide.testing.open(POLICY, DATA, seed=1)


def spent(session: confide.Session) -> Any:
    return session._holdings.ledger.spent()


@pytest.mark.parametrize("value", [LyingShare(1, 2), np.float64(0.5), np.float32(0.5), Decimal("0.5"), "0.5"])
def test_an_amount_is_of_pythons_own_type(value: object) -> None:
    exact = parse_amount(value, "epsilon")
    assert type(exact) is Fraction
    assert {type(exact.numerator), type(exact.denominator)} == {int}
    assert exact == Fraction(1, 2)


def test_whole_numbers_are_of_pythons_own_type() -> None:
    assert [type(whole_number(value)) for value in (3, np.int64(3), LyingWhole(3))] == [int] * 3
    assert [whole_number(value) for value in (True, np.bool_(True), 3.0, "3", None, Loud())] == [None] * 6


def test_numbers_that_lie_about_their_size_are_refused(session: confide.Session) -> None:
    graph = session.graph("edge", "a", "b")
    with pytest.raises(ParameterError, match="at_most"):
        graph.degree_histogram(1, 3, at_most=LyingWhole(2**40))
    with pytest.raises(ParameterError, match="up_to"):
        graph.degree_histogram(1, LyingWhole(10**9))
    with pytest.raises(ParameterError, match="leaves"):
        graph.stars(LyingWhole(99), epsilon=1)
    with pytest.raises(ParameterError, match="at_most"):
        session.view("v", VIEW, at_most={"rows": LyingWhole(0)})
    assert spent(session) == PureDP(Fraction(0))


def test_answers_of_two_numbers_that_read_alike_have_two_keys(session: confide.Session) -> None:
    graph = session.graph("edge", "a", "b")
    graph.degree_histogram(1, 2, at_most=2)
    graph.degree_histogram(1, 2, at_most=LyingWhole(3))
    assert spent(session) == PureDP(Fraction(2))


def test_a_mechanism_is_named_by_what_it_reads_as(session: confide.Session) -> None:
    with pytest.raises(QueryError, match="no mechanism"):
        session.sql(JOIN, epsilon=1, mechanism=LyingText("residual"))
    with pytest.raises(ParameterError, match="no mechanism"):
        session.graph("edge", "a", "b").triangles(1, mechanism=LyingText("anything"))
    assert spent(session) == PureDP(Fraction(0))


def test_the_purpose_on_record_is_the_question(session: confide.Session) -> None:
    session.sql(LyingText("SELECT COUNT(*) AS n FROM person"), epsilon=1)
    purposes = [entry.body.get("purpose") for entry in session._holdings.ledger.entries()]
    assert "sql: SELECT COUNT(*) AS n FROM person" in purposes


def test_bounds_that_change_are_looked_at_once(session: confide.Session) -> None:
    first = session.sql(JOIN, epsilon=1, mechanism="truncate", bounds=Changing((0, 4), (0, 10**6)))
    same = session.sql(JOIN, epsilon=1, mechanism="truncate", bounds={"n": iter((0, 4))})  # type: ignore[dict-item]
    assert same.to_bytes() == first.to_bytes()
    assert spent(session) == PureDP(Fraction(1))


ODD: list[Any] = [
    -1, "n", [1], {1, 2}, np.array([1, 2]), {1: 2, "n": 3}, {None: 1}, {("n",): 1}, {"n": None}, {"n": Loud()}, Loud(),
    {"n": 10**5000}, {"n": [0]}, {"n": (0, 10**5000)}, {"n": float("nan")}, {Loud(): 1},
]  # fmt: skip
CALLS: list[Callable[[confide.Session, Any], object]] = [
    lambda session, odd: session.sql(SQL, epsilon=1, split=odd),
    lambda session, odd: session.sql(SQL, epsilon=1, bounds=odd),
    lambda session, odd: session.sql(JOIN, epsilon=1, mechanism="truncate", split=odd),
    lambda session, odd: session.sql(JOIN, epsilon=1, mechanism="truncate", bounds=odd),
    lambda session, odd: session.sql(SQL, epsilon=1, mechanism=odd),
    lambda session, odd: session.sql(SQL, epsilon=1, dialect=odd),
    lambda session, odd: session.sql(SQL, epsilon=1, confidence=odd),
    lambda session, odd: session.sql(SQL, epsilon=odd),
    lambda session, odd: session.plan(SQL, within=odd),
    lambda session, odd: session.plan(SQL, epsilon=1, rows=odd),
    lambda session, odd: session.view("v", VIEW, at_most=odd),
    lambda session, odd: session.graph("edge", "a", odd),
    lambda session, odd: session.graph("edge", "a", "b", unit=odd),
    lambda session, odd: session.graph("edge", "a", "b").triangles(1, mechanism=odd),
    lambda session, odd: session.graph("edge", "a", "b").stars(odd, epsilon=1),
    lambda session, odd: session.graph("edge", "a", "b").degree_histogram(1, 2, at_most={"n": odd}),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_what_is_of_no_use_is_refused_in_words(session: confide.Session, place: int) -> None:
    for odd in ODD:
        with pytest.raises((ParameterError, QueryError)) as refused:
            CALLS[place](session, odd)
        assert len(str(refused.value)) < 500
    assert spent(session) == PureDP(Fraction(0))


def test_a_history_is_padded_with_a_number_that_ends(session: confide.Session) -> None:
    for pad in (10**400, 10**5, -1, True, 2.5, None):
        with pytest.raises(ParameterError, match="number of marginals"):
            session.history("person", pad, columns=["age"])  # type: ignore[arg-type]
    for columns in (5, "age", ["ages"], [["age"]], {"age": 1}, [Loud()]):
        with pytest.raises(ParameterError, match="column"):
            session.history("person", 1, columns=columns)  # type: ignore[arg-type]
    for table in ("people", 5, ["person"], {}, Loud()):
        with pytest.raises(ParameterError, match="no private table"):
            session.history(table, 1)  # type: ignore[arg-type]


def test_what_cannot_be_shown_is_named_by_its_type() -> None:
    assert shown_value(Loud()) == "a Loud"
    assert shown_value([10**5000]) == "a list"


def test_whoever_tells_how_far_it_is_can_be_called(session: confide.Session) -> None:
    for progress in (True, "print", 5):
        with pytest.raises(ParameterError, match="progress"):
            session.microdata(["age"], epsilon=1, table="person", progress=progress)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="progress"):
            session.synthesize(confide.marginals(k=1), 50, table="person", columns=["age"], progress=progress)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="progress"):
            session.sql("SELECT COUNT(*) AS n FROM person", 1, progress=progress)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="progress"):
            session.trust("SELECT COUNT(*) AS n FROM person", None, 5, 1, progress=progress)  # type: ignore[arg-type]
    assert spent(session) == PureDP(Fraction(0))


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_a_call_that_its_caller_stops_can_be_made_again(session: confide.Session, error: type[BaseException]) -> None:
    def progress(*_: object) -> None:
        raise error

    with pytest.raises(error) as stopped:
        session.microdata(["age"], epsilon=50, table="person", progress=progress)
    assert stopped.value.__context__ is None
    assert session.microdata(["age"], epsilon=50, table="person").marginals == (("age",),)
    assert spent(session) == PureDP(Fraction(50))


HUGE = "1e99999999"


def test_numbers_are_refused_by_their_length_before_they_are_built(session: confide.Session) -> None:
    sql, twin = "SELECT COUNT(*) AS n FROM person", {"person": DATA["person"]}
    calls: list[Callable[[Any], object]] = [
        lambda odd: session.plan_trust(sql, twin, within=5, gap=odd),
        lambda odd: session.plan_synthesize(
            confide.marginals(k=1), 50, table="person", columns=["age"], bins={"age": odd}
        ),
        lambda odd: session.plan_microdata(["age"], 50, table="person", rows=odd),
    ]
    for call in calls:
        for odd in (HUGE, 10**400, 10**5000, True, Loud()):
            with pytest.raises(ParameterError):
                call(odd)


def test_columns_and_bins_of_a_synthesis_are_named(session: confide.Session) -> None:
    for odd in (5, {1: 2}, {"ages": 5}, [["age"]], "age", [Loud()], Loud()):
        with pytest.raises(ParameterError):
            session.plan_synthesize(confide.marginals(k=1), 50, table="person", columns=odd)  # type: ignore[arg-type]
    for odd in (5, {1: 2}, {"ages": 5}, ["age"], "age", Loud()):
        with pytest.raises(ParameterError):
            session.plan_synthesize(confide.marginals(k=1), 50, table="person", columns=["age"], bins=odd)  # type: ignore[arg-type]
