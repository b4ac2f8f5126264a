"""How a ledger stands at one moment: everything that a call may ask of the books, read at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from confide.ledger.record.terms import Terms
from confide.privacy.budget import Budget, Currency, fits, in_currency, of_quanta
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
        cost, limit = in_currency(loss, self.cap), self.terms.limit(self.analyst)
        if limit is not None and not fits(self.counted, cost, of_quanta(limit[0])):
            return False
        return fits(self.spent, cost, self.cap)
