"""Which method a call takes follows from public facts, and a plan says why."""

from fractions import Fraction

import pytest

import confide
import confide.testing
from confide.errors import ParameterError
from confide.policy import Policy
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.auto import chosen_method
from confide.synthesis.planned_strategy import PlannedStrategy
from confide.workload import BoundWorkload, domain_of
from tests.release.samples import APPROXIMATE, frames, policy


def workload(sizes: tuple[int, ...], k: int = 3) -> BoundWorkload:
    columns = {f"c{place}": {"values": list(range(size))} for place, size in enumerate(sizes)}
    rules = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}
    return confide.marginals(k).bound(domain_of(Policy.parse(rules).tables["t"]))


def names(sizes: tuple[int, ...], rhos: list[str], rows: int = 20_000) -> list[str]:
    wanted = workload(sizes)
    return [chosen_method(wanted, ZCDP(Fraction(rho)), rows, 1, {}).method.name for rho in rhos]


def test_little_noise_is_for_planned_and_more_for_what_chooses() -> None:
    assert names((2,) * 10, ["1", "1/10000", "1/1000000", "1/50000000"]) == ["planned", "planned", "aim", "planned"]
    assert names((50, 60, 70, 80), ["1", "1/1000", "1/10000000"]) == ["planned", "planned", "mst"]


def test_what_is_set_says_which_method_is_meant() -> None:
    wanted, cost = workload((2, 3, 4)), ZCDP(Fraction(1))
    settings = (({"rows": 5}, "rap"), ({"select": "marginals", "rounds": 2}, "rap"), ({"megabytes": 5}, "aim"))
    for given, name in settings:
        chosen = chosen_method(wanted, cost, 1_000, 1, given)
        assert chosen.method.name == name
        assert next(iter(given)) in chosen.why
    with pytest.raises(ParameterError, match="no method takes picks, megabytes together"):
        chosen_method(wanted, cost, 1_000, 1, {"picks": 2, "megabytes": 3})


def test_pure_budgets_and_single_columns_have_a_method_too() -> None:
    for k in (1, 3):
        chosen = chosen_method(workload((2, 3, 4), k), PureDP(Fraction(1)), 10_000, 1, {})
        assert isinstance(chosen.strategy, PlannedStrategy)
        assert (
            chosen_method(workload((200, 300, 400), k), PureDP(Fraction(1)), 10_000_000, 1, {}).method.name == "planned"
        )


def test_a_plan_says_what_was_taken_and_why_and_the_method_named_is_the_same_call() -> None:
    wanted = confide.marginals(2, ["region", "sex"])
    with confide.testing.open(policy(APPROXIMATE), frames(), seed=1) as session:
        plan = session.plan_synthesize(wanted, 2, table="person")
        assert plan.why.startswith("auto takes planned: all cells can be held together")
        assert plan.why in str(plan)
        assert plan.to_dict()["why"] == plan.why
        assert session.plan_synthesize(wanted, 2, table="person", method="planned").why == ""
        twin = session.synthesize(wanted, 2, table="person")
        again = session.synthesize(wanted, 2, table="person", method="planned")
        assert again.stored
        assert again.to_bytes() == twin.to_bytes()
