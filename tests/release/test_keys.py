"""Keys: one for each request, and no way from what is printed back to the data."""

import io
import json
import re
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import confide
from confide.ledger import check_export
from confide.policy import Policy
from confide.privacy.identity import written
from confide.release import Session
from confide.release.custody import books

BY_REGION = "SELECT region, COUNT(*) AS n, SUM(age) AS years FROM t GROUP BY region"
REGIONS = ("N", "E", "S", "W", "C")


def rules(**also: Any) -> dict[str, Any]:
    columns = {"region": {"values": list(REGIONS)}, "age": {"range": [0, 100]}}
    return {"budget": {"epsilon": 9}, "unit": "row", "tables": {"t": {"columns": columns}}, **also}


def frame(victim: int) -> pl.DataFrame:
    return pl.DataFrame({"region": list(REGIONS) * 20, "age": [*range(99), victim]})


def opened(folder: Path, analyst: str = "") -> Session:
    return confide.open(rules(), {"t": frame(1)}, folder / "l", analyst=analyst, create=True)


# --- one key for each request -----------------------------------------------------------------------------------------


def test_no_two_requests_share_a_key(tmp_path: Path) -> None:
    requests = [
        ("sql",),
        ("sql", ""),
        ("sql", "a", "b"),
        ("sql", "a\x1fb"),
        ("sql\x1fa", "b"),
        ("sql", "ab"),
        ("sqla", "b"),
    ]
    keys = []
    for analyst in ("", "ann", "ann\x1fsql", "a"):
        with opened(tmp_path, analyst) as session:
            keys += [session._holdings.key(written(*request)) for request in requests]
            assert keys[-len(requests) :] == [session._holdings.key(written(*request)) for request in requests]
    assert len(set(keys)) == len(keys)


def test_the_same_request_has_another_key_in_another_ledger(tmp_path: Path) -> None:
    found = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name) as session:
            found.add(session._holdings.key(written("sql", "a")))
    with confide.testing.open(rules(), {"t": frame(1)}, seed=1) as session:
        found.add(session._holdings.key(written("sql", "a")))
    assert len(found) == 3


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_other_data_have_another_key(tmp_path: Path, kind: str) -> None:
    """Else the stored answer of one state would be given as that of another, for nothing."""
    keys = set()
    for victim in (37, 38):
        data = tmp_path / f"{victim}.{kind}"
        if kind != "frame":
            getattr(frame(victim), f"write_{kind}")(data)
        policy = rules() if kind == "frame" else rules(source={"t": str(data)})
        given = {"t": frame(victim)} if kind == "frame" else None
        with confide.open(policy, given, tmp_path / "l", create=True) as session:
            keys.add(session._holdings.key(written("sql", "a")))
    assert len(keys) == 2


def test_another_policy_has_another_key(tmp_path: Path) -> None:
    narrow = rules()
    narrow["tables"]["t"]["columns"]["age"] = {"range": [0, 50]}
    found = set()
    for policy in (rules(), narrow):
        with confide.open(policy, {"t": frame(1)}, tmp_path / "l", create=True) as session:
            found.add(session._holdings.key(written("sql", "a")))
    assert len(found) == 2


def test_what_is_stored_is_found_again(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        first = session.sql(BY_REGION, epsilon=1).to_json()
    with opened(tmp_path) as session:
        assert session.sql(BY_REGION, epsilon=1).to_json() == first
        assert session.budget.spent == 1


# --- nothing printed leads back to the data ---------------------------------------------------------------------------


def everything(session: Session, policy: Policy, ledger: Path, folder: Path, copy: pl.DataFrame) -> str:
    """All that a reader who is not the custodian may see of two releases and their ledger, the names of files too."""
    printed = [session.sql(BY_REGION, epsilon=1).to_json(), repr(session.sql(BY_REGION, epsilon=1))]
    made = session.microdata(["region", ("region", "BIN(age, 25)")], epsilon=1)
    made.to_parquet(folder / "release")
    printed += [str(made), repr(made.report()), str(session.budget), repr(session.policy)]
    # Whoever keeps the data may take them for their own copy.
    session.trust("SELECT COUNT(*) AS n FROM t WHERE age > 3", copy, within=5, epsilon=1)
    session.close()
    stream = io.StringIO()
    head = books.export(policy, stream, ledger)
    assert check_export(stream.getvalue().splitlines()).head == head == books.verify(policy, ledger)
    printed += [stream.getvalue(), repr(books.look(policy, ledger))]
    printed += [json.dumps([asdict(line) for line in books.read_lines(policy, ledger)])]
    for path in sorted((folder / "release").rglob("*")):
        printed.append(path.name if path.suffix == ".parquet" or path.is_dir() else path.name + path.read_text())
    printed += [path.name for path in folder.iterdir()]
    return "\n".join(printed)


def fingerprints(text: str) -> set[str]:
    """Whatever looks like a hash, or the beginning of one; digits before the exponent of a number do not."""
    return {word for word in re.findall(r"(?<![0-9a-z.])[0-9a-f]{7,}(?![0-9a-z])", text) if re.search("[a-f]", word)}


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_equal_data_look_no_more_alike_than_others(tmp_path: Path, kind: str) -> None:
    """A dictionary attack: whoever has a guess of the data makes a ledger of them, and compares what is printed.

    Three ledgers: two of the same data, one of a neighbour. What two of them have in common, all three have: it comes
    from the policy and the questions.
    """
    texts = []
    data = tmp_path / f"t.{kind}"
    for number, victim in enumerate((37, 37, 38)):
        folder = tmp_path / str(number)
        folder.mkdir()
        if kind == "frame":
            policy, given = Policy.parse(rules()), {"t": frame(victim)}
        else:
            if number != 1:
                getattr(frame(victim), f"write_{kind}")(data)
            policy, given = Policy.parse(rules(source={"t": str(data)})), None
        session = confide.open(policy, given, folder / "l", create=True)
        texts.append(everything(session, policy, folder / "l", folder, frame(victim)))
    found = [fingerprints(text) for text in texts]
    assert all(len(own) > 5 for own in found), "there is nothing to compare"
    common = set.intersection(*found)
    for one, other in combinations(found, 2):
        assert one & other == common
