"""The identity of a question: every part that tells two apart is in it, and nothing of how the program is written."""

import json
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import pytest

from confide.errors import ParameterError
from confide.policy import Category
from confide.privacy.identity import form_of, kept_form, nodes, spelled, written
from confide.query import conjunction, grid, question, tabulation, tree, weight
from confide.query.bind import bind
from confide.query.derivation import derivation
from confide.query.identity import LEFT_OUT, SPELLING, spelled_question, spoken_of
from confide.workload import asked as asked_workload
from confide.workload import domain, workload
from confide.workload.identity import WORKLOAD_LEFT_OUT, WORKLOAD_SPELLING
from tests.query.samples import CATALOG, POLICIES

EVERY = SPELLING | WORKLOAD_SPELLING
OUT = LEFT_OUT | WORKLOAD_LEFT_OUT
NO_PART = {workload.Threshold, workload.Every, workload.Sql, workload.Workload}
"""What is gone once a workload is bound."""


class Watched:
    """Remembers which of its fields were looked at."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.seen.add(name)
        if name == "field":
            return tree.Field("t", Category("c", ("a",), nulls=False))
        return ()


@pytest.mark.parametrize("kind", list(EVERY), ids=lambda kind: kind.__name__)
def test_every_field_is_spelled_or_left_out_for_a_reason(kind: type) -> None:
    watched = Watched()
    EVERY[kind][1](watched)
    own = {field.name for field in fields(kind)}
    assert own - watched.seen == set(OUT.get(kind, ()))


def test_every_class_of_a_question_has_a_spelling() -> None:
    modules = (tree, question, conjunction, derivation, grid, tabulation, weight, domain, workload, asked_workload)
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    parts = {kind for kind in kinds if is_dataclass(kind) and kind.__module__.startswith("confide.")}
    own = {kind for kind in parts if any(kind.__module__ == module.__name__ for module in modules)}
    assert own - NO_PART == set(EVERY)


def test_no_two_classes_share_a_tag() -> None:
    tags = [tag for tag, _ in EVERY.values()]
    assert len(set(tags)) == len(tags)
    assert not {"list", "ratio", "double", "date", "request", "long"} & set(tags)


def test_plain_values_are_told_apart() -> None:
    values = [
        1,
        True,
        "1",
        None,
        "None",
        1.0,
        (1,),
        ("list", 1),
        ((1,),),
        (),
        "",
        ("ratio", 1, 1),
        Fraction(1),
        ("double", "1.0"),
        0,
        False,
        -0.0,
        0.0,
    ]
    assert len({written("x", value) for value in values}) == len(values)
    assert written("x", "a", "b") != written("x", "ab") != written("xa", "b")


@pytest.mark.parametrize("strange", [object(), [1], {"a": 1}, {1}, b"x", type])
def test_what_has_no_spelling_is_refused(strange: object) -> None:
    with pytest.raises(ParameterError, match="cannot be part of a request"):
        form_of(strange, SPELLING)


@dataclass(frozen=True)
class Renamed:
    """A comparison, after somebody found better names."""

    how: str
    one: object
    other: object


def test_names_of_classes_and_fields_are_not_in_it() -> None:
    asked = bind("SELECT COUNT(*) AS n FROM person WHERE age > 3", POLICIES["row"], CATALOG)
    where = asked.summary.where
    assert isinstance(where, tree.Compare)
    renamed = Renamed(where.operation, where.left, where.right)
    spelling = {**SPELLING, Renamed: ("compare", lambda n: (n.how, n.one, n.other))}
    assert written("x", renamed, spelling=spelling) == written("x", where, spelling=SPELLING)


def test_what_follows_from_the_policy_is_left_out() -> None:
    """A column may declare a hundred thousand values; a key over a part of them would be another key."""
    column = Category("c", tuple(f"value {number}" for number in range(1_000)), nulls=True)
    field = tree.Field("t", column)
    whole = tree.DeclaredKey("c", field, (*column.values, None))
    part = tree.DeclaredKey("c", field, column.values[:2])
    assert len(written("x", whole, spelling=SPELLING)) < 100
    assert written("x", whole, spelling=SPELLING) != written("x", part, spelling=SPELLING)


def test_a_very_long_request_is_kept_by_its_digest() -> None:
    long = written("x", "a" * 2**21)
    kept = kept_form(long)
    assert json.loads(kept)[:3] == ["long", 1, len(long)]
    assert kept != kept_form(written("x", "a" * 2**21 + "b"))
    assert kept_form(kept) == kept


def test_the_columns_of_a_question_are_read_from_its_form() -> None:
    asked = bind("SELECT sex, AVG(income) AS a FROM person WHERE age > 3 GROUP BY sex", POLICIES["row"], CATALOG)
    tables, columns = spoken_of(json.loads(written("x", asked, spelling=SPELLING))[3])
    assert (tables, columns) == (("person",), {"sex", "income", "age"})


def test_nodes_are_found_by_their_tags_and_not_by_what_is_written_in_them() -> None:
    assert list(nodes(form_of(("column", ("column", 1)), SPELLING), "column")) == []


def test_a_part_that_is_written_out_stands_where_it_would() -> None:
    parts = ("a", ("b", 1.5, None), Fraction(1, 3), True)
    out = [part if place % 2 else spelled(part) for place, part in enumerate(parts)]
    assert written("kind", *out) == written("kind", *parts)
    assert json.loads(written("kind")) == ["request", 1, "kind"]
    assert written("kind", spelled("a")) != written("kind", str(spelled("a"))), "a text is no part that is written out"


def test_a_question_that_is_remembered_is_not_taken_for_another() -> None:
    texts = set()
    for limit in range(300):  # more than are remembered, and each at the place in memory of one that is gone
        one = question.FixedNumber(Fraction(limit))
        assert spelled_question(one) == spelled(one, SPELLING) == spelled_question(one)  # type: ignore[arg-type]
        texts.add(spelled_question(one))  # type: ignore[arg-type]
    assert len(texts) == 300
