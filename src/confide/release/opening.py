"""Opening a session: policy, data and ledger brought together."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide.errors import ParameterError
from confide.ledger import MemoryLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy, load
from confide.release.ledgers import create_or_open, ledger_place
from confide.release.session import Session
from confide.release.sources import Data, open_engine

PolicyLike = Policy | Mapping[str, Any] | str | os.PathLike[str]


def open_session(
    policy: PolicyLike,
    data: Data = None,
    ledger: str | os.PathLike[str] | None = None,
    *,
    analyst: str = "",
) -> Session:
    """Open a policy's data for questions.

    `policy` is a path, a dict or a `Policy`; `data` maps tables to Arrow, pandas or polars frames where the policy
    names no files, or is the session of Spark that has them. The ledger is `ledger`, or what the policy says, or a
    file beside the policy: a file, or a schema on PostgreSQL, made on the first opening and never again. `analyst`
    names who asks: stored answers and caps are theirs.
    """
    rules = read_policy(policy)
    if not isinstance(analyst, str) or len(analyst) > 200:
        raise ParameterError("analyst is a short name")
    engine = open_engine(rules, data)
    try:
        place = ledger_place(rules, ledger, engine)
        book = create_or_open(place, rules.budget, rules.analysts)
    except BaseException:
        engine.close()
        raise
    return Session(rules, engine, book, analyst, ledger_path=place if isinstance(place, Path) else None)


def open_for_tests(policy: PolicyLike, data: Data = None, *, seed: int, analyst: str = "") -> Session:
    """A session with repeatable TEST NOISE, which protects nobody: its ledger dies with it, its answers say so."""
    rules = read_policy(policy)
    book = MemoryLedger(rules.budget, rules.analysts)
    return Session(rules, open_engine(rules, data), book, analyst, TestRandomness(seed))


def read_policy(policy: PolicyLike) -> Policy:
    return policy if isinstance(policy, Policy) else load(policy)
