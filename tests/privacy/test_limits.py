"""The page of limits and the constants say the same."""

import re
from pathlib import Path

from confide.privacy import limits

DOCUMENTS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| .+ \| ([0-9,]+) \| `([A-Z_]+)` \|$", re.MULTILINE)


def test_every_limit_is_on_the_page_once_and_as_it_is() -> None:
    rows = ROW.findall((DOCUMENTS / "limits.md").read_text(encoding="utf-8"))
    constants = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert [name for _, name in rows] == list(constants)
    assert {name: int(number.replace(",", "")) for number, name in rows} == constants


def test_the_page_about_sql_repeats_them_truly() -> None:
    text = (DOCUMENTS / "sql.md").read_text(encoding="utf-8")
    assert f"at most {limits.LONGEST_QUERY:,} characters, {limits.MOST_COLUMNS} columns and a million groups" in text
    assert limits.MOST_GROUPS == 10**6


def test_what_a_person_may_write_fits_into_what_is_kept() -> None:
    assert limits.LONGEST_ANALYST <= limits.LONGEST_LEDGER_NAME
    assert limits.LONGEST_QUERY < limits.LONGEST_PURPOSE
    assert limits.LONGEST_QUERY < limits.LONGEST_POLICY
