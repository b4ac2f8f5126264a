"""What every product is asked by: a request, bound from public facts, that is priced, charged, measured and kept.

    request  what was asked, with its identity and its purpose
    price    what it costs under a budget, and the mechanisms that are bought with it: nothing is read
    measure  the only place where data and noise meet; it gives the bytes that are kept
    result   what those bytes say to the analyst

`Holdings.ask` takes these steps in this order, for every product alike. The purpose is what the ledger shows to people
of what was asked; what was asked exactly is in the identity beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss
from confide.query.parse import DIALECT

if TYPE_CHECKING:
    from confide.release.holdings import Holdings

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

_LISTED: Final = 2_000  # characters


class Priced(Protocol):
    """A request with its price. Whatever could be refused was."""

    @property
    def loss(self) -> PrivacyLoss:
        """What is charged, before anything is read."""

    @property
    def widths(self) -> Sequence[float]:
        """How wide each number that is measured would be, to compare the accounts of a budget by."""

    def measure(self, holdings: "Holdings", charge: Charge) -> bytes:
        """Reads against the charge and adds noise. What it gives is kept before anybody sees it."""


class Request(Protocol[Result_co]):
    """What was asked. Everything in it follows from what the caller wrote and from the policy."""

    @property
    def purpose(self) -> str:
        """What it is for, as the ledger shows it to people."""

    def identity(self) -> str:
        """What was asked in its canonical form (`privacy.identity`): equal requests have equal ones, and no others."""

    def price(self, budget: Budget) -> Priced:
        """What it costs, or a refusal. Public facts only."""

    def decode(self, stored: bytes) -> Result_co:
        """The result that bytes stand for."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[Result]):
    """The result of a request; `stored` says that it was kept before this call, which cost nothing then."""

    result: Result
    stored: bool


def sql_purpose(sql: str, dialect: str) -> str:
    """The text of a question, and its dialect if that is not our own."""
    return f"sql: {sql.strip()}" if dialect == DIALECT else f"sql in {dialect}: {sql.strip()}"


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Some names, and how many more there are."""
    shown: list[str] = []
    for name in names:
        if sum(map(len, shown)) + len(name) > _LISTED:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return between.join([*shown, f"{more:,} more"] if more else shown)
