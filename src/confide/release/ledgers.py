"""Where the ledger of a policy is, a file or a schema on PostgreSQL, and how it is opened there."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from confide.engine import Engine
from confide.errors import LedgerError, ParameterError
from confide.ledger import (
    Ledger,
    PostgresLedger,
    PostgresPlace,
    SqliteLedger,
    is_postgres,
    postgres_holds_ledger,
    restore_anchor,
    restore_postgres_anchor,
)
from confide.policy import Policy
from confide.policy.place import without_password
from confide.privacy.budget import Budget

LedgerPlace = Path | PostgresPlace


def ledger_place(policy: Policy, ledger: str | os.PathLike[str] | None, engine: Engine | None = None) -> LedgerPlace:
    """Where the ledger of a policy is: as given, as the policy says, or beside the policy."""
    if ledger is not None:
        return _place(os.fspath(ledger), Path(), policy)
    if policy.ledger is not None:
        return _place(policy.ledger, policy.base, policy)
    # A policy without a file: its ledger belongs to the data, so another policy on the same data finds the same one.
    named = policy.source if isinstance(policy.source, str) else "\x1f".join(sorted((policy.source or {}).values()))
    return _beside(policy, ".ledger", named or (engine.version if engine is not None else ""))


def create_or_open(place: LedgerPlace, budget: Budget, caps: Mapping[str, object]) -> Ledger:
    """The ledger of a session: made on the first opening, and never again."""
    if isinstance(place, PostgresPlace):
        return PostgresLedger.at(place, budget, caps)
    return SqliteLedger.open_or_create(place, budget, caps)


def open_existing(place: LedgerPlace) -> Ledger:
    return PostgresLedger(place) if isinstance(place, PostgresPlace) else SqliteLedger.open(place)


def exists(place: LedgerPlace) -> bool:
    """Whether a ledger is there, or was; it is not made by looking."""
    if isinstance(place, PostgresPlace):
        return postgres_holds_ledger(place)
    if os.path.lexists(place) or os.path.lexists(f"{place}.anchor"):
        return True
    if not place.parent.is_dir():
        raise LedgerError(
            f"the folder {place.parent} of the ledger does not exist: make it, or keep the ledger elsewhere"
        )
    return False


def restore(place: LedgerPlace) -> Path:
    """Make a lost anchor again, or vouch for a database that was restored; returns the anchor."""
    if isinstance(place, PostgresPlace):
        restore_postgres_anchor(place)
        return place.anchor
    restore_anchor(place)
    return Path(f"{place}.anchor")


def _place(place: str, base: Path, policy: Policy) -> LedgerPlace:
    if is_postgres(place):
        return PostgresPlace.of(place, _beside(policy, ".anchor", without_password(place)), base)
    if "://" in place:
        raise ParameterError(
            f"the ledger {place.split('://', maxsplit=1)[0]}://... is of no known kind: a ledger is a file, or a "
            "schema on PostgreSQL (postgresql://user@host/database?schema=people)"
        )
    return base / Path(place).expanduser()


def _beside(policy: Policy, suffix: str, named: str) -> Path:
    """A file beside the policy; if that is no file, one in the working folder, after the name of what it belongs to."""
    if policy.path is not None:
        return policy.path.with_suffix(suffix)
    return policy.base / f"confide-{sha256(named.encode()).hexdigest()[:12]}{suffix}"
