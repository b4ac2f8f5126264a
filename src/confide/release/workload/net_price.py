"""The strategy that chooses: of all tables of few rows one whose counts are near those of the data."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, inf, prod
from typing import TYPE_CHECKING, Final

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism.selection.net import MOST_CELLS, MOST_ROWS, net
from confide.privacy.amount import root
from confide.privacy.budget import Currency
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.chosen_table import ChosenTable, kinds_of, largest_error, queries_of

if TYPE_CHECKING:
    from confide.release.workload.request import WorkloadRequest

NET: Final = "net"


@dataclass(frozen=True, slots=True, eq=False)
class PricedNet:
    """A workload of few cells and few rows, and at which ε one table of the net is chosen for it."""

    request: "WorkloadRequest"
    epsilon: Fraction
    most: int
    """Rows of the largest tables."""
    loss: Currency

    @property
    def rate(self) -> Fraction:
        """Of the exponential mechanism: a unit moves every count by at most its rows, also where it is replaced."""
        return self.epsilon / (2 * self.request.counted.rows)

    @property
    def tables(self) -> int:
        return comb(self.numbers + self.most, self.most)

    @property
    def numbers(self) -> int:
        """How many counts the table has that is released."""
        return prod(self.request.linear.domain.sizes)

    @property
    def rows_public(self) -> bool:
        """Whether no unit can change how many rows there are in all."""
        return self.request.counted.sensitivity(grouped=False).l1 == 0

    @property
    def deviation(self) -> float:
        """No root of a mean, but the bound of every error, if there are no more rows than the policy says."""
        if not self.rows_public:
            return inf
        return min(largest_error(self.tables, self.rate, self.request.confidence), float(self.most))

    @property
    def widths(self) -> tuple[float, ...]:
        return (self.deviation,)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Releases a table of the net.

        Neighbours: the policy's; those of one unit differ in at most its rows, each added, removed or replaced.
        Loss: ε, or ε²/8 where ρ is added up: see `Net` and `Exponential`. The number of all rows is told as well where
        it is public, and is the same of neighbours; the net has then no larger tables.
        """
        request = self.request
        sizes = request.linear.domain.sizes
        columns = tuple(range(len(sizes)))
        tabulation = replace(request.counted.tabulation, sets=(columns,))
        exact = holdings.engine.tabulate(tabulation, charge, holdings.ledger.secret)
        every = exact.marginal(columns, 0, exact.sizes[0])
        # Where all rows are counted every column has one place more, its last, for rows that hold none of the others.
        counts = every[tuple(slice(size) for size in sizes)].reshape(-1)
        rows = int(every.sum()) if self.rows_public else None
        most = self.most if rows is None else min(self.most, rows)
        asked = tuple(dict.fromkeys(kinds_of(sizes, table) for table in request.linear.tables))
        made = net(self.epsilon, request.counted.rows, queries_of(sizes, asked), most)
        found = made.choose(counts, holdings.randomness)
        return WorkloadAnswers(
            request.table,
            request.linear,
            ChosenTable(sizes, tuple(found.tolist()), asked, most, made.mechanism.rate, rows),
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


def price_net(request: "WorkloadRequest", cost: Currency) -> PricedNet:
    """The price of choosing a table, or a refusal."""
    sizes, table = request.linear.domain.sizes, request.table
    cells = prod(sizes)
    if cells > MOST_CELLS or len(sizes) > MOST_CELLS:
        raise ParameterError(
            f"strategy='net' lists every table of few rows: it takes columns of at most {MOST_CELLS} cells together, "
            f"and these {len(sizes):,} have {cells:,}; take wider bins or fewer columns, or write strategy='auto'"
        )
    if table.size is None or table.size > MOST_ROWS:
        said = "no size" if table.size is None else f"size: {table.size:,}"
        raise ParameterError(
            f"strategy='net' lists every table of at most as many rows as the policy says, and it says {said} of "
            f"{table.name}; size: {MOST_ROWS} or less would fit, if that is how many rows there are, else write "
            "strategy='auto'"
        )
    epsilon = cost.epsilon if isinstance(cost, PureDP) else root(8 * cost.rho)
    if not epsilon:
        raise EpsilonTooSmall("the epsilon is too small to choose a table with")
    return PricedNet(request, epsilon, table.size, cost)
