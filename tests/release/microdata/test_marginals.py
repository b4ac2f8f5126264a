"""Requests for microdata: what is refused before anything is charged, with what to write instead."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

import confide
from confide.errors import ConfideError, ParameterError
from confide.mechanism import NoNoise, TestRandomness, laplace
from confide.privacy.budget import Budget
from confide.release.microdata.marginals import bind_marginals, noise_for
from confide.release.session import Session
from tests.release.samples import frames, policy, row_policy, rows_frame


@pytest.fixture(scope="module")
def people() -> Iterator[Session]:
    with confide.testing.open(policy(), frames(50), seed=1) as session:
        yield session


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"marginals": "sex"}, "marginals is a list of columns"),
    ({"marginals": []}, "marginals is a list of columns"),
    ({"marginals": [()]}, "at least one column"),
    ({"marginals": [3]}, "a marginal is a column or a tuple"),
    ({"marginals": [("sex", "")]}, "a marginal is a column or a tuple"),
    ({"marginals": ["sex"] * 501}, "501 marginals are too many"),
    # the same marginal twice, however it is written; overlapping ones are fine
    ({"marginals": ["sex", "sex"]}, "the marginal sex is named twice"),
    ({"marginals": [("sex", "region"), ("region", "sex")]}, "region × sex is named twice; it would be paid for twice"),
    ({"marginals": [("sex", "sex")]}, "a column is named twice in the marginal"),
    # columns without a declared domain
    ({"marginals": ["town"]}, "town has no declared domain.*declare its `values`"),
    ({"marginals": ["income"]}, "income has 500,001 possible values.*BIN"),
    ({"marginals": ["person_id", "sex"], "table": "person"}, "person_id has no domain to count over"),
    ({"marginals": ["job"]}, "no private table has all of job: person has .*; visit has"),
    ({"marginals": ["job"], "table": "person"}, "person has no column job; it has person_id, region"),
    ({"marginals": ["sex"], "table": "region_name"}, "is not a private table.*person, visit"),
    ({"marginals": ["BIN(sex, 2)"]}, "sex has declared values"),
    ({"marginals": ["BIN(age, 10)", ("BIN(age, 20)", "sex")]}, "two widths"),
    ({"marginals": ["BIN(age, 0.5)"]}, "not a positive multiple of the grain"),
    # too large
    (
        {"marginals": [("sex", "age"), "BIN(income, 100)", "born"], "table": "person"},
        "born has 45,656 possible values",
    ),
    (
        {"marginals": [("sex", "age"), "BIN(income, 100)", "BIN(born, 10)"], "table": "person"},
        "2 × 116 × 5,001 × 4,566 = 5,297,619,312 cells cannot be fitted .*without income",
    ),
    ({"marginals": [("age", "BIN(income, 50)")]}, "the keys make 1,160,116 groups"),
    # priorities, shares
    ({"marginals": ["sex", "region"], "priority": [["sex"]]}, "not named: region"),
    ({"marginals": ["sex", "region"], "priority": [["sex"], ["sex", "region"]]}, "named more than once: sex"),
    ({"marginals": ["sex", "region"], "priority": [["sex", "region"], []]}, "a stage is empty"),
    ({"marginals": ["sex", "region"], "priority": [["sex"], ["age"]]}, "age is no column of this release"),
    ({"marginals": ["sex", "region"], "priority": [["sex"], [("sex", "region")]]}, "region × sex is not measured"),
    ({"marginals": ["sex"], "priority": "sex"}, "priority is a list of stages"),
    ({"marginals": ["sex"], "priority": [["sex"]], "shares": {"sex": 1}}, "shares or a priority, not both"),
    ({"marginals": ["sex"], "shares": {"sex": 0}}, "above 0"),
    ({"marginals": ["sex"], "shares": [1]}, "shares is a mapping"),
    # public facts
    ({"marginals": ["sex"], "totals": {"sex": {"F": 3}}}, "1 of 2 counts missing, such as that of M"),
    ({"marginals": ["sex"], "totals": {"sex": {"F": 3, "M": -1}}}, "from 0 to 10¹⁵"),
    ({"marginals": ["sex"], "totals": {(): 10, "sex": {"F": 3, "M": 4}}}, "the public totals contradict each other"),
    ({"marginals": ["sex"], "totals": {"sex": 4}}, "maps values to counts"),
    ({"marginals": ["sex"], "totals": [4]}, "totals maps marginals to counts"),
    ({"marginals": ["sex"], "totals": {"sex": {("F", "N"): 4}}}, "one value for each of sex"),
    ({"marginals": ["sex"], "zeros": {"sex": "F"}}, "zeros is a list of selections"),
    ({"marginals": ["sex"], "zeros": [{}]}, "every cell is a structural zero"),
    ({"marginals": ["sex"], "zeros": [{"sex": "X"}]}, "'X' is no value of sex"),
    (
        {"marginals": ["sex"], "zeros": [{"sex": "F"}], "totals": {"sex": {"F": 3, "M": 4}}},
        "where every cell is a structural zero",
    ),
    # the rest
    ({"marginals": ["sex"], "fit": "best"}, "there is no fit 'best'; there are auto, ols"),
    ({"marginals": ["sex"], "confidence": 1}, "confidence=1 is not between 0 and 1"),
    ({"marginals": ["sex"], "epsilon": 0}, "it must be above 0"),
    ({"marginals": ["sex"], "epsilon": "1e-20"}, "too small for 1 marginals"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_is_wrong_is_refused_before_anything_is_charged(
    people: Session, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfideError, match=message):
        people.microdata(**{"epsilon": 1, **arguments})
    assert people.budget.spent == 0


def test_a_domain_of_ten_to_the_twelve_is_refused_with_what_to_drop() -> None:
    columns = {f"c{place}": {"range": [0, 999]} for place in range(4)}
    rules = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}
    frame = rows_frame(10)["t"].select(**dict.fromkeys(columns, "x"))
    with confide.testing.open(rules, {"t": frame}, seed=1) as session:
        with pytest.raises(ParameterError, match=r"1,000,000,000,000 cells cannot be fitted .*without c0 .* and c1"):
            session.microdata(["c0", "c1", "c2", "c3"], epsilon=1)
        assert session.budget.spent == 0


def test_overlapping_marginals_are_fine(people: Session) -> None:
    plan = people.plan_microdata(["sex", ("sex", "region"), ("region", "BIN(age, 50)")], epsilon=1)
    assert [each.marginal for each in plan.marginals] == [("sex",), ("region", "sex"), ("region", "age")]
    assert people.budget.spent == 0


def test_a_table_is_found_by_its_columns_or_named() -> None:
    rules = policy()
    rules["tables"]["visit"]["columns"]["sex"] = {"values": ["F", "M"]}
    data = frames(50)
    data["visit"] = data["visit"].with_columns(sex=data["visit"]["ward"].cast(str))
    with confide.testing.open(rules, data, seed=1) as session:
        with pytest.raises(ParameterError, match="person, visit have these columns; say which"):
            session.plan_microdata(["sex"], epsilon=1)
        assert session.plan_microdata(["sex"], epsilon=1, table="VISIT").table == "visit"
        assert session.plan_microdata(["ward"], epsilon=1).table == "visit"


def test_names_that_need_quotes_and_names_of_ours() -> None:
    columns = {'a "b", c': {"values": ["x", "y"]}, "count": {"values": [1, 2]}, "weight": {"values": [True, False]}}
    rules = {"confide": 1, "budget": {"epsilon": 10}, "unit": "row", "tables": {"order": {"columns": columns}}}
    frame = pl.DataFrame({'a "b", c': ["x", "y"] * 9, "count": [1, 2, 2] * 6, "weight": [True, False, False] * 6})
    with confide.testing.open(rules, {"order": frame}, seed=1) as session:
        made = session.microdata([('a "b", c', "count", "weight")], epsilon=9)
        assert made.to_polars().columns == ['a "b", c', "count", "weight", "weight_"]
        assert [key.name for key in made.noisy(('a "b", c', "count", "weight")).columns][-1] == "count_"


def _exact_counts(rules: dict[str, Any], rows: list[tuple[Any, ...]], marginals: list[Any]) -> list[Any]:
    """Counts without noise to speak of, in tests only: at ε = 10⁵ a scale of Laplace noise is some 10⁻⁵."""
    frame = pl.DataFrame(rows, schema={"unit": pl.Int64, "g": pl.String, "h": pl.String}, orient="row")
    with confide.testing.open(rules, {"t": frame}, seed=1) as session:
        made = session.microdata(marginals, epsilon=10**5)
        return [(each.counts, each.law) for each in made.measured.marginals]


@pytest.mark.parametrize(
    ("unit", "most", "rows"), [("row", None, "private"), ("row", None, "public"), ("t.unit", 2, "private")]
)
def test_no_unit_changes_counts_by_more_than_the_noise_is_made_for(unit: str, most: int | None, rows: str) -> None:
    """By brute force: every data set of up to two units beside all its neighbours, unknown values included."""
    columns = {"unit": {"type": "id"}, "g": {"values": ["a", "b"]}, "h": {"values": ["x"], "nulls": True}}
    table = {"columns": columns, "rows": rows, **({} if most is None else {"at_most": {"rows": most, "groups": 1}})}
    rules = {"confide": 1, "budget": {"epsilon": 10**6}, "unit": unit, "tables": {"t": table}}
    marginals = [(), "g", ("g", "h")]
    kinds = [("a", "x"), ("b", None), (None, "x")]
    if most is None:
        whole = [[(place, *kind) for place, kind in enumerate(pair)] for pair in product(kinds, repeat=2)]
        pairs = [(one, one[:1]) for one in whole] if rows == "private" else list(product(whole[:4], whole[4:8]))
        pairs = [pair for pair in pairs if rows == "private" or sum(a != b for a, b in zip(*pair, strict=True)) == 1]
    else:
        others = [(1, "a", "x"), (1, "b", "x")]
        pairs = [(others + [(7, *kind) for kind in owned], others) for owned in product(kinds[:2], repeat=3)]
    reached = [0] * len(marginals)
    for first, second in pairs:
        before, after = _exact_counts(rules, first, marginals), _exact_counts(rules, second, marginals)
        for place, ((one, law), (other, _)) in enumerate(zip(before, after, strict=True)):
            moved = int(abs(one - other).sum())
            reached[place] = max(reached[place], moved)
            assert moved == 0 if isinstance(law, NoNoise) else moved <= round(float(law.scale * 10**5) / 3)
    scales = [round(float(law.scale * 10**5) / 3) for _, law in before]
    tight = reached if rows == "private" else [2 * reached[0], *reached[1:]]  # a filter under replace-one counts twice
    assert tight == scales  # otherwise the claim is no looser than it must be


@pytest.mark.parametrize("table", ["visit", "person"])
@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("rows", ["public", "private"])
def test_a_key_that_is_replaced_changes_the_total(table: str, nulls: bool, rows: str) -> None:
    """By brute force over what two units have: their rows may be any number, though the number of keys is public."""
    column = {"values": ["a", "b"], "nulls": nulls}
    people = {"rows": rows, "columns": {"id": {"type": "id"}, "ward": column}}
    visits: dict[str, Any] = {"references": {"id": "person.id"}, "at_most": {"rows": 2, "groups": 2}}
    visits["columns"] = {"id": {"type": "id"}, "ward": column}
    rules: dict[str, Any] = {"confide": 1, "budget": {"epsilon": 10**6}, "unit": "person.id"}
    rules["tables"] = {"person": people, "visit": visits}
    owned: list[tuple[str | None, ...]] = [(), ("a",), ("a", "b"), ("b", None), ("a", "a", "b")]
    found = []
    for own in owned:
        frame = pl.DataFrame({"id": [1] * len(own) + [2], "ward": [*own, "a"]}, {"id": pl.Int64, "ward": pl.String})
        wards = [own[0] if own else None, "b"]
        data = {"person": pl.DataFrame({"id": [1, 2], "ward": wards}), "visit": frame}
        with confide.testing.open(rules, data, seed=1) as session:
            found.append(session.microdata([(), "ward"], epsilon=10**5, table=table).measured.marginals)
    reached = [0, 0]
    for one, other in product(found, repeat=2):
        for place, (first, second) in enumerate(zip(one, other, strict=True)):
            moved = int(abs(first.counts - second.counts).sum())
            reached[place] = max(reached[place], moved)
            # Two marginals share ε, evenly where their sensitivities are equal.
            assert moved == 0 if isinstance(first.law, NoNoise) else moved <= float(first.law.scale) * 10**5
    assert reached[0] or (table, nulls) == ("person", True), "no neighbours differ"


def test_a_marginal_of_very_many_columns_is_refused_before_anything_is_charged() -> None:
    names = [f"c{number}" for number in range(33)]
    rules: dict[str, Any] = {"confide": 1, "budget": {"epsilon": 10}, "unit": "row"}
    rules["tables"] = {"t": {"columns": {name: {"values": ["a"]} for name in names}}}
    data = {"t": pl.DataFrame({name: ["a"] for name in names})}
    with confide.testing.open(rules, data, seed=1) as session:
        with pytest.raises(ParameterError, match="33 columns is too wide, the most is 32"):
            session.microdata([tuple(names)], epsilon=1)
        assert session.budget.spent == 0
        made = session.microdata([tuple(names[:32]), tuple(names[:3]), names[1]], epsilon=1, fit="nnls")
        assert [len(each.counts) for each in made.measured.marginals] == [1, 1, 1]


@pytest.mark.audit
def test_the_loss_of_a_whole_release_is_not_above_its_cost() -> None:
    """A lower bound of ε from 200,000 runs a side, wrong with probability 10⁻⁶ at most; a release that pays each
    marginal the whole ε is caught.
    """
    with confide.testing.open(policy(), frames(20), seed=1) as session:
        design = bind_marginals([(), "sex", "region", ("sex", "region")], session.policy, session._holdings.engine)
    noise = noise_for(design, Budget.of(1), Fraction(1))
    assert sum(1 / mechanism.law.scale for mechanism in noise.mechanisms) <= 1  # type: ignore[union-attr]
    broken = [laplace(1, Fraction(1)) for _ in noise.mechanisms]
    runs = 200_000
    for mechanisms, good in ((noise.mechanisms, True), (tuple(broken), False)):
        hits = []
        for there in (1, 0):
            score, randomness = np.zeros(runs), TestRandomness(7 + there)
            for mechanism in mechanisms:
                counts = mechanism.measure(np.full(runs, there, dtype=np.int64), randomness).values
                score += (abs(counts) - abs(counts - 1)) / float(mechanism.law.scale)  # type: ignore[union-attr]
            hits.append(int((score >= 0.9 * sum(1 / float(m.law.scale) for m in mechanisms)).sum()))  # type: ignore[union-attr]
        low = beta.ppf(5e-7, hits[0], runs - hits[0] + 1)
        high = beta.ppf(1 - 5e-7, hits[1] + 1, runs - hits[1])
        bound = math.log(low / high)
        assert (bound <= 1) == good


def test_neighbours_that_replace_a_row() -> None:
    with confide.testing.open(row_policy(rows="public"), rows_frame(20), seed=1) as session:
        plan = session.plan_microdata(["g"], epsilon=1)
        assert plan.neighbours == "replace-one"
        with confide.testing.open(row_policy(), rows_frame(20), seed=1) as other:
            assert plan.half_width[("g",)] > 1.9 * other.plan_microdata(["g"], epsilon=1).half_width[("g",)]
