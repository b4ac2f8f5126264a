"""How a ledger stands at one moment: everything that a call may ask of the books, read at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from confide.ledger.record.terms import Terms
from confide.privacy.budget import Budget, Currency, amounts, in_currency, of_quanta, remaining
from confide.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Standing:
    """The terms and what is spent, as one analyst sees them. It may be old by now: a charge looks again."""

    terms: Terms
    spent: Currency
    """By all."""
    analyst: str
    counted: Currency
    """Against the cap that the analyst is under: of "*", what all who are not named have spent together."""

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self.terms.budget

    @property
    def cap(self) -> Currency:
        """The budget in its currency: what `spent` may reach."""
        return of_quanta(self.terms.cap)

    @property
    def caps(self) -> Mapping[str, Fraction]:
        """The ε that one analyst may spend, by name; "*" what all who are not named may spend together."""
        return self.terms.caps

    @property
    def own_cap(self) -> Fraction | None:
        """The ε that caps the analyst: their own, or that of all without one, together; None if there is none."""
        limit = self.terms.limit(self.analyst)
        return None if limit is None else limit[1]

    @property
    def shared(self) -> bool:
        """Whether that is the cap of all who have none of their own."""
        return self.terms.shares(self.analyst)

    def holds(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits what is left, for the analyst and for the data."""
        return self.room(loss) > 0

    def room(self, loss: PrivacyLoss) -> int:
        """How many more calls of a loss fit what is left, for the analyst and for the data."""
        cost = in_currency(loss, self.cap)
        return min(_times(spent, cost, cap) for spent, cap in self._limits())

    def left(self, account: str) -> Fraction | None:
        """The largest ε that one more call may have under an account; None if none fits."""
        calls = [self.budget.largest_under(account, remaining(spent, cap)) for spent, cap in self._limits()]
        return None if None in calls else min(call for call in calls if call is not None)

    def _limits(self) -> Iterator[tuple[Currency, Currency]]:
        """What is spent and how much may be, of the data and of the analyst."""
        yield self.spent, self.cap
        limit = self.terms.limit(self.analyst)
        if limit is not None:
            yield self.counted, of_quanta(limit[0])


def _times(spent: Currency, cost: Currency, cap: Currency) -> int:
    """How often a cost fits what is left: as often as the account that holds it longest says."""
    most = zip(amounts(spent), amounts(cost), amounts(cap), strict=False)
    times = [0 if one > all_ else int((all_ - one) // each) if each else None for one, each, all_ in most]
    first = min([number for number in times[:2] if number is not None], default=0)
    return max([first, *[number or 0 for number in times[2:]]])
