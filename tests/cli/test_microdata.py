"""The command `microdata`."""

import json
from pathlib import Path

import pytest
import yaml

import confide
from confide.cli.microdata import _marginal, _priority
from confide.errors import ParameterError
from tests.cli.conftest import Run

ASKED = ("-m", "*", "-m", "sex", "-m", "age,region", "--epsilon", "1")


def test_a_release_is_made_written_and_shown(run: Run, policy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("microdata", policy, *ASKED, "--out", out, "--report")
    assert done.exit_code == 0, done.output
    assert "age" in done.output
    assert "region × age" in done.output
    assert "sums are at risk" in done.output
    assert f"written to {out}" in done.output
    assert yaml.safe_load((out / "card.yaml").read_text())["deployment"]["privacy_loss"]["privacy_unit"]
    assert confide.Microdata.load(out).marginals == ((), ("sex",), ("region", "age"))


def test_the_same_again_is_free(run: Run, policy: Path) -> None:
    first = json.loads(run("microdata", policy, *ASKED, "--json").output)
    again = json.loads(run("microdata", policy, *ASKED, "--fit", "nnls", "--json").output)
    assert (first["stored"], again["stored"]) == (False, True)
    assert (first["fit"], again["fit"]) == ("adaptive", "nnls")
    assert first["budget"]["spent"] == again["budget"]["spent"]
    assert [each["columns"] for each in again["marginals"]] == [[], ["sex"], ["region", "age"]]
    text = run("microdata", policy, *ASKED).output
    assert "measured before" in text
    assert "--out DIR writes it, for free" in text


def test_a_plan_is_free(run: Run, policy: Path) -> None:
    shown = run("microdata", policy, *ASKED, "--plan")
    assert shown.exit_code == 0
    assert "for all marginals together" in shown.output
    facts = json.loads(run("microdata", policy, *ASKED, "--plan", "--rows", "5,000", "--json").output)
    assert facts["budget"]["spent"] == 0
    assert facts["rows"] == 5_000
    assert facts["marginals"][1]["mean_count"] == 2_500


def test_too_small_an_epsilon_is_warned_of(run: Run, policy: Path) -> None:
    done = run("microdata", policy, "-m", "sex", "--epsilon", "0.0001")
    assert done.exit_code == 0
    assert "warning: ε is too small for any of the marginals" in done.stderr
    facts = json.loads(run("microdata", policy, "-m", "region", "--epsilon", "0.0001", "--json").stdout)
    assert "ε is too small" in facts["warnings"][0]


def test_public_facts_come_from_a_file(run: Run, policy: Path, tmp_path: Path) -> None:
    facts = {
        "zeros": [{"sex": "F", "region": ["N", "E"]}],
        "totals": [[[], 2000], [["sex"], [["F", 900], ["M", 1100]]]],
    }
    place = tmp_path / "facts.json"
    place.write_text(json.dumps(facts))
    out = tmp_path / "out"
    done = run("microdata", policy, "-m", "sex,region", "-e", "1", "--public", place, "--out", out)
    assert done.exit_code == 0, done.output
    made = confide.Microdata.load(out)
    assert made.fitted.cells.sum() == pytest.approx(2_000, abs=1e-4)
    assert made.error({"sex": "F"}).value == pytest.approx(900)
    for text, message in (
        ("[", "is not JSON"),
        ('{"zero": []}', "holds zeros and totals"),
        ('{"totals": [3]}', "pairs"),
    ):
        place.write_text(text)
        refused = run("microdata", policy, "-m", "sex", "-e", "1", "--public", place)
        assert refused.exit_code == 2
        assert message in refused.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "1"), "name what to count by --marginal"),
        (("-m", "sex"), "give --epsilon"),
        (("-m", "sex", "-e", "0"), "it must be above 0"),
        (("-m", "sex,,age", "-e", "1"), "a column without a name"),
        (("-m", "job", "-e", "1"), "job has no declared domain"),
        (("-m", "sex", "-e", "1", "--fit", "best"), "there is no fit 'best'"),
        (("-m", "sex", "-m", "age", "-e", "1", "--priority", "sex"), "not named: age"),
        (("-m", "sex", "-e", "1", "--out", "."), "is there already and is not overwritten"),
        (("-m", "sex", "-e", "1", "--out", "no/such"), "make it first"),
        (("-m", "sex", "-e", "1", "--public", "no.json"), "cannot be read"),
    ],
)
def test_wrong_usage_is_refused_and_nothing_is_spent(
    run: Run, policy: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("microdata", policy, *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert json.loads(run("budget", policy, "--json").output)["spent"] == 0


def test_more_than_the_budget_is_refused(run: Run, policy: Path) -> None:
    done = run("microdata", policy, "-m", "sex", "-e", "100")
    assert done.exit_code == 1


def test_a_priority_is_read_in_stages() -> None:
    assert _priority("* > sex | BIN(age, 10) > BIN(age, 10),sex") == [
        [()],
        [("sex",), ("BIN(age, 10)",)],
        [("BIN(age, 10)", "sex")],
    ]
    assert _priority(None) is None
    assert _marginal(" a , b") == ("a", "b")
    with pytest.raises(ParameterError):
        _marginal("a,")
