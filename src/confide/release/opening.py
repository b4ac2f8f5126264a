"""Opening a session: policy, data and ledger brought together."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide.errors import ParameterError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy, load
from confide.policy.analyst import require_analyst
from confide.release.custody.examination import Examination, examine
from confide.release.custody.ledgers import ledger_place, open_ledger
from confide.release.custody.sources import Data, by_table, open_engine
from confide.release.session import Session

PolicyLike = Policy | Mapping[str, Any] | str | os.PathLike[str]


def open_session(
    policy: PolicyLike,
    data: Data = None,
    ledger: str | os.PathLike[str] | None = None,
    *,
    analyst: str = "",
    create: bool = False,
) -> Session:
    """Open a policy's data for questions.

    `policy` is a path, a dict or a `Policy`; `data` maps tables to Arrow, pandas or polars frames where the policy
    names no files, or is the frame of its only private table, or the session of Spark that has them. The ledger, a file
    or a schema on PostgreSQL, is `ledger`, or what the policy says, or, for a policy file that names its data, a file
    beside it. It must be there: `create=True` makes it if it is not, with the whole budget unspent. `analyst` names who
    asks: stored answers and caps are theirs.
    """
    rules = read_policy(policy)
    require_analyst(analyst, rules.analysts)
    if not isinstance(create, bool):
        raise ParameterError("create is True or False")
    data = by_table(rules, data)
    place = ledger_place(rules, ledger, framed=isinstance(data, Mapping) and bool(data))
    engine = open_engine(rules, data)
    try:
        book = open_ledger(place, rules.budget, rules.analysts, create=create)
    except BaseException:
        engine.close()
        raise
    return Session(rules, engine, book, analyst, ledger_path=place if isinstance(place, Path) else None)


def open_for_tests(policy: PolicyLike, data: Data = None, *, seed: int, analyst: str = "") -> Session:
    """A session with repeatable TEST NOISE, which protects nobody: its ledger dies with it, its answers say so."""
    rules = read_policy(policy)
    require_analyst(analyst, rules.analysts)
    book = MemoryLedger(rules.budget, rules.analysts)
    return Session(rules, open_engine(rules, by_table(rules, data)), book, analyst, TestRandomness(seed))


def check_policy(policy: PolicyLike, data: Data = None) -> Examination:
    """How a policy fits its data, in exact numbers: for the custodian's eyes only.

    It takes the policy and the data themselves, so whoever holds a session cannot ask for it. It costs nothing because
    it protects nobody: what it says is no release, is written to no ledger, and must not be passed on. A policy that is
    changed because of it tells something of the data; change it only where it was wrong about the subject.
    """
    rules = read_policy(policy)
    return examine(rules, by_table(rules, data))


def read_policy(policy: PolicyLike) -> Policy:
    if not isinstance(policy, Policy | Mapping | str | os.PathLike):
        raise ParameterError(f"a policy is a file, a dict or a Policy, not a {type(policy).__name__}")
    return policy if isinstance(policy, Policy) else load(policy)
