"""Opening a session: policy, data and ledger brought together."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from confide.engine import Engine
from confide.engine.duckdb_engine import DuckDBEngine
from confide.errors import ParameterError, SourceError
from confide.ledger import MemoryLedger, SqliteLedger
from confide.mechanism import TestRandomness
from confide.policy import Policy, load
from confide.release.session import Session

PolicyLike = Policy | Mapping[str, Any] | str | os.PathLike[str]


def open_session(
    policy: PolicyLike,
    data: Mapping[str, Any] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    *,
    analyst: str = "",
) -> Session:
    """Open a policy's data for questions.

    `policy` is a path, a dict or a `Policy`; `data` maps tables to Arrow, pandas or polars frames where the policy
    names no files. The ledger is `ledger`, or what the policy says, or a file beside the policy, made on the first
    opening and never again. `analyst` names who asks: stored answers and caps are theirs.
    """
    rules = read_policy(policy)
    if not isinstance(analyst, str) or len(analyst) > 200:
        raise ParameterError("analyst is a short name")
    engine = open_engine(rules, data)
    try:
        place = ledger_path(rules, ledger, engine)
        book = SqliteLedger.open_or_create(place, rules.budget, rules.analysts)
    except BaseException:
        engine.close()
        raise
    return Session(rules, engine, book, analyst, ledger_path=place)


def open_for_tests(
    policy: PolicyLike, data: Mapping[str, Any] | None = None, *, seed: int, analyst: str = ""
) -> Session:
    """A session with repeatable TEST NOISE, which protects nobody: its ledger dies with it, its answers say so."""
    rules = read_policy(policy)
    book = MemoryLedger(rules.budget, rules.analysts)
    return Session(rules, open_engine(rules, data), book, analyst, TestRandomness(seed))


def read_policy(policy: PolicyLike) -> Policy:
    return policy if isinstance(policy, Policy) else load(policy)


def ledger_path(policy: Policy, ledger: str | os.PathLike[str] | None, engine: Engine | None = None) -> Path:
    """Where the ledger of a policy is: as given, as the policy says, or beside the policy."""
    if ledger is not None:
        return _local(os.fspath(ledger), Path())
    if policy.ledger is not None:
        return _local(policy.ledger, policy.base)
    if policy.path is not None:
        return policy.path.with_suffix(".ledger")
    # A policy without a file: its ledger belongs to the data, so another policy on the same data finds the same one.
    named = policy.source if isinstance(policy.source, str) else "\x1f".join(sorted((policy.source or {}).values()))
    identity = named or (engine.version if engine is not None else "")
    return policy.base / f"confide-{sha256(identity.encode()).hexdigest()[:12]}.ledger"


def _local(place: str, base: Path) -> Path:
    if "://" in place:
        raise ParameterError(
            f"the ledger {place.split('://', maxsplit=1)[0]}://... is not a file; ledgers are SQLite files here"
        )
    return base / Path(place).expanduser()


def open_engine(policy: Policy, data: Mapping[str, Any] | None) -> Engine:
    if isinstance(policy.source, str) and ("://" in policy.source or policy.source == "spark"):
        raise SourceError(
            f"the source {policy.source.split('://', maxsplit=1)[0]} is not served here; use files, DuckDB or frames"
        )
    return DuckDBEngine(policy, data)
