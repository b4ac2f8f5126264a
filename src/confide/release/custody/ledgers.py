"""Where the ledger of a policy is, a file or a schema on PostgreSQL, and how it is opened there."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from confide.errors import LedgerError, ParameterError
from confide.host.address import is_postgres, is_settings, without_password
from confide.ledger import (
    Ledger,
    PostgresLedger,
    PostgresPlace,
    SqliteLedger,
    postgres_holds_ledger,
    restore_anchor,
    restore_postgres_anchor,
)
from confide.ledger.sqlite.files import LedgerFiles
from confide.policy import Policy
from confide.privacy.budget import Budget

LedgerPath = str | os.PathLike[str] | None
LedgerPlace = Path | PostgresPlace


def ledger_place(policy: Policy, ledger: LedgerPath, *, framed: bool = False) -> LedgerPlace:
    """Where the ledger of a policy is: as given, as the policy says, or beside the file that names its data.

    A place never comes from the data: one more row would find another ledger, and with it a whole new budget. `framed`
    says that frames are given beside the policy.
    """
    if ledger is not None:
        place = os.fspath(ledger) if isinstance(ledger, os.PathLike) else ledger
        if not isinstance(place, str):
            raise ParameterError(f"the ledger is given as a {type(ledger).__name__}; give a path or an address")
        return _place(place, Path(), policy)
    if policy.ledger is not None:
        return _place(policy.ledger, policy.base, policy)
    if policy.path is not None and policy.source is not None and not framed:
        return policy.path.with_suffix(".ledger")
    what = "is no file" if policy.path is None else "does not name its data"
    raise LedgerError(
        f"the policy {what}, so it must name its ledger, the record of what is spent: write ledger: people.ledger in "
        'it, or give ledger="people.ledger"'
    )


def open_ledger(place: LedgerPlace, budget: Budget, caps: Mapping[str, object], *, create: bool) -> Ledger:
    """The ledger of a session, with the terms of its policy. It is made only where `create` says so, and only once."""
    if isinstance(place, PostgresPlace):
        return PostgresLedger.at(place, budget, caps, create=create)
    return (SqliteLedger.open_or_create if create else SqliteLedger.open)(place, budget, caps)


def make_ledger(place: LedgerPlace, budget: Budget, caps: Mapping[str, object]) -> None:
    """Make a ledger where there is none, and never was one."""
    if isinstance(place, PostgresPlace):
        PostgresLedger.make(place, budget, caps).close()
    else:
        SqliteLedger.create(place, budget, caps).close()


def open_existing(place: LedgerPlace) -> Ledger:
    return PostgresLedger(place) if isinstance(place, PostgresPlace) else SqliteLedger.open(place)


def exists(place: LedgerPlace) -> bool:
    """Whether a ledger is there, or was; it is not made by looking."""
    if isinstance(place, PostgresPlace):
        return postgres_holds_ledger(place)
    if not LedgerFiles.of(place).empty:
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
        return PostgresPlace.of(place, _anchor_of(place, policy), base)
    if "://" in place:
        raise ParameterError(
            f"the ledger {place.split('://', maxsplit=1)[0]}://... is of no known kind: a ledger is a file, or a "
            "schema on PostgreSQL (postgresql://user@host/database?schema=people)"
        )
    if is_settings(place):
        raise ParameterError(
            "the ledger is given as settings of a PostgreSQL server: write them as an address, "
            "postgresql://user@host/database?schema=people"
        )
    try:
        return base / Path(place).expanduser()
    except (RuntimeError, ValueError):
        raise ParameterError(f"the ledger {place!r} is no path, or in the folder of a user not known here") from None


def _anchor_of(address: str, policy: Policy) -> Path:
    """A file beside the policy; if that is no file, one in the working folder, named after the address."""
    if policy.path is not None:
        return policy.path.with_suffix(".anchor")
    return policy.base / f"confide-{sha256(without_password(address).encode()).hexdigest()[:12]}.anchor"
