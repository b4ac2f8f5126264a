"""The forecast of a summary is what the summary has."""

import pytest

from confide.errors import ParameterError
from tests.release.summary.test_summary import opened


def test_a_plan_is_free_and_says_what_will_be_readable() -> None:
    with opened() as session:
        plan = session.plan_summary(1)
        assert session.budget.spent == 0
        summary = session.summary(1)
    by_name = {column.name: column for column in plan.columns}
    assert set(by_name) == {column.name for column in summary.columns}
    assert by_name["sex"].half_width == summary.measured.columns[3].law.half_width(0.95)
    assert by_name["age"].ranks is not None
    assert "units hold" in by_name["job"].said
    assert not by_name["wealth"].readable
    assert plan.cost == summary.cost
    assert "income" in str(plan)
    assert "income" in plan._repr_html_()
    assert plan.to_dict()["table"] == "t"


def test_little_epsilon_reads_little() -> None:
    with opened() as session:
        little, much = session.plan_summary(0.001), session.plan_summary(10)
    assert not any(column.readable for column in little.columns if column.ranks is not None)
    assert all(column.readable for column in much.columns if column.ranks is not None)


def test_rows_are_a_number() -> None:
    with opened() as session:
        assert session.plan_summary(1, rows=10**6).rows == 10**6
        with pytest.raises(ParameterError, match="rows="):
            session.plan_summary(1, rows="many")  # type: ignore[arg-type]
