"""The reference for custodians: every example loads, every key is explained, and what it says about errors is true."""

import re
from pathlib import Path

import pytest

from confide.errors import PolicyError
from confide.policy import KeyUnit, RowUnit, load
from confide.policy.column_parsing import COLUMN_KEYS
from confide.policy.describe import describe
from confide.policy.parsing import KEYS, TABLE_KEYS
from confide.release.sql.purchases import purchases

DOCUMENT = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_loads(example: str) -> None:
    policy = load(example)
    assert load(policy.to_yaml()) == policy
    assert str(describe(policy))


def test_the_examples_show_both_units_and_the_other_format() -> None:
    policies = [load(example) for example in EXAMPLES]
    assert [type(policy.unit) for policy in policies] == [KeyUnit, RowUnit, KeyUnit]
    assert policies[-1].notes


@pytest.mark.parametrize("key", sorted({*KEYS, *TABLE_KEYS, *COLUMN_KEYS}))
def test_every_key_is_explained(key: str) -> None:
    assert f"\n| `{key}` | " in DOCUMENT


def test_the_errors_shown_are_the_errors_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = EXAMPLES[0].replace("age: {range:", "age: {rnage:").replace("[0, 500000]", "[500000, 0]")
    monkeypatch.chdir(tmp_path)
    Path("people.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load("people.yaml")
    assert f"```text\n{caught.value}\n```" in DOCUMENT


def test_what_a_budget_buys_is_what_is_planned() -> None:
    """The table on the page, and what the code says of the same policy."""
    columns = {"age": {"range": [0, 105]}}
    policy = load({"budget": {"epsilon": 3, "delta": 1e-9}, "unit": "row", "tables": {"t": {"columns": columns}}})
    rows = re.findall(r"^\| [^|]*\| ±([0-9.]+) \| ([0-9]+) \| ([0-9]+) \|$", DOCUMENT, re.MULTILINE)
    told = [(own.within, str(own.with_delta), str(own.without_delta)) for own in purchases(policy).offered]
    assert rows == told


def test_a_lawyer_is_told_about_blanks() -> None:
    assert "____" in DOCUMENT
