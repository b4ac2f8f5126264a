"""Every error of Confide.

    ConfideError
    ├── PolicyError         the policy is wrong; carries every problem found, each with its line
    ├── ParameterError      an argument of a call is wrong (ε, confidence, within, ...)
    │   └── EpsilonTooSmall     its noise, or a shift that hides it, would pass what exact arithmetic holds
    ├── QueryError          the SQL is refused, from its text and the policy alone
    ├── SourceError         a data file or frame cannot be used, told from its name and schema alone
    ├── BudgetError         the budget does not hold what was asked; nothing was charged
    ├── LedgerError         the ledger cannot be used
    │   ├── LedgerMissing       there is none, or it is gone
    │   ├── LedgerDamaged       truncated, tampered with, or not a ledger
    │   ├── LedgerRolledBack    older than its anchor
    │   ├── LedgerBusy          locked by somebody else for too long
    │   └── LedgerFull          the disk is full
    └── EngineError         what was charged could not be answered; its text is constant

Two kinds of text. Errors that come from public facts (the text of a query, the policy, a schema) say what was asked,
what is allowed and what to do. An `EngineError` comes after a charge and always says the same.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

CUSTODIAN: Final = "confide.custodian"
"""The name of the logger that is told why something failed after a charge. Its lines may hold values of the data."""

_LOG = logging.getLogger(CUSTODIAN)
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False  # who sets up logging for a program does not ask for these; a custodian adds a handler to them


class ConfideError(Exception):
    """The root: catch it to catch every error of Confide."""

    label: ClassVar = "refused"
    """The word before its message, at a terminal and in a notebook."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the words, and none of the frames that led to them, which are Confide's own."""
        said = f"{self.label}: {self}"
        return ["".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line) for line in said.splitlines()]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a policy: where it stands, what is wrong there, what to write instead."""

    where: str
    what: str
    advice: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}, {self.where}" if self.line is not None else self.where
        return f"{place}: {self.what}" + (f" ({self.advice})" if self.advice else "")


class PolicyError(ConfideError):
    """The policy is wrong. `problems` holds every mistake, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "the policy") -> None:
        self.problems = problems
        self.source = source
        count = f"{len(problems)} problems" if len(problems) != 1 else "1 problem"
        super().__init__(f"{source} has {count}:\n" + "\n".join(f"  {problem}" for problem in problems))


class ParameterError(ConfideError):
    """An argument of a call is wrong."""

    label = "wrong usage"


class EpsilonTooSmall(ParameterError):  # noqa: N818
    """ε, or the part of it that one measurement gets, is too small for exact arithmetic. Nothing was charged."""


class QueryError(ConfideError):
    """The query is refused from its text and the policy alone: nothing was read, nothing was charged."""


class SourceError(ConfideError):
    """A data source cannot be used: missing, empty, not of its kind, or not as the policy says."""


class BudgetError(ConfideError):
    """The budget does not hold what was asked. Nothing was charged and nothing was read."""


class LedgerError(ConfideError):
    """The ledger cannot be used. The text says what was charged, if that is not nothing.

    `unconfirmed`: whether it failed where nobody can tell if the charge was written. The same call again finds out, and
    is charged once.
    """

    unconfirmed = False


class LedgerMissing(LedgerError):  # noqa: N818
    """There is no ledger, or one that existed is gone; it is never made without a word."""


class LedgerDamaged(LedgerError):  # noqa: N818
    """The ledger is truncated, was tampered with, or is not a ledger."""


class LedgerRolledBack(LedgerError):  # noqa: N818
    """The ledger is older than its anchor says: a copy from before was put back."""


class LedgerBusy(LedgerError):  # noqa: N818
    """Others held the ledger, or its server took no more connections, for too long."""


class LedgerFull(LedgerError):  # noqa: N818
    """The disk, or the server of the ledger, has no room left."""


class EngineError(ConfideError):
    """What was charged could not be answered. The text is constant, because the reason may depend on the data."""

    label = "failed"

    def __init__(self) -> None:
        super().__init__(
            "the question could not be answered, and its charge stands; "
            "asked again as it was, it costs nothing more and ends the same way"
        )


def tell_custodian(what: str, error: BaseException | None = None) -> None:
    """Say why something failed after a charge, to nobody but a custodian who listens; whatever comes of that."""
    with suppress(Exception):
        _LOG.error(what, exc_info=error)
