"""Who is under which cap: nobody steps out from under one by another spelling."""

import pytest

from confide.errors import ParameterError
from confide.policy.analyst import cap_faults, require_analyst

CAPS = ("ann", "Zoë Müller", "*")


@pytest.mark.parametrize(
    "name",
    [
        "Ann",
        "ANN",
        " ann",
        "ann ",
        "a nn",
        "ann\u200b",
        "ａｎｎ",
        "𝐚𝐧𝐧",
        "ann\t",
        "Zoe\u0308 Mu\u0308ller",
        "zoë müller",
    ],
)
def test_another_spelling_is_refused_and_the_right_one_told(name: str) -> None:
    with pytest.raises(ParameterError, match=r"is spelled '(ann|Zoë Müller)' in the policy"):
        require_analyst(name, CAPS)


@pytest.mark.parametrize("name", ["ann", "Zoë Müller", "", "bob", "anna", "änn"])
def test_a_name_of_its_own(name: str) -> None:
    require_analyst(name, CAPS)


@pytest.mark.parametrize("name", ["*", None, 3, b"ann", "x" * 201])
def test_what_is_no_name(name: object) -> None:
    with pytest.raises(ParameterError):
        require_analyst(name, ())


def test_caps_name_everybody() -> None:
    assert not list(cap_faults(()))
    assert not list(cap_faults(("*",)))
    assert not list(cap_faults(CAPS))
    ((place, what, advice),) = cap_faults(("ann",))
    assert place == ("analysts",)
    assert "has no cap" in what
    assert '"*": 0.5' in advice
    assert len(list(cap_faults(("ann", "ANN", "", "*")))) == 2
