"""What a session is asked of tables that refer to each other."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from confide.host.progress import Tell
from confide.release.holdings import Holdings

if TYPE_CHECKING:
    from confide.release.synthetic.plan import SynthesisPlan
    from confide.release.synthetic.related_tables import SyntheticTables
    from confide.workload import Workload


class TablesCalls:
    """Part of a session."""

    _holdings: Holdings

    def plan_synthesize_tables(
        self,
        workload: "Workload",
        epsilon: object,
        children: str | Sequence[str],
        confidence: float = 0.95,
        *,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, object] | None = None,
        method: str = "auto",
        select: str = "auto",
        rounds: int | None = None,
        inside: str = "measured",
        account: str = "auto",
    ) -> "SynthesisPlan":
        """What `synthesize_tables` would measure, and with what noise. Free."""
        from confide.release.synthetic.family import plan_family  # noqa: PLC0415  loaded when used
        from confide.release.synthetic.request import SynthesisOptions  # noqa: PLC0415

        options = SynthesisOptions(
            workload, epsilon, None, columns, bins, method, select, rounds, account=account, inside=inside
        )
        return plan_family(self._holdings, options, children, confidence)

    def synthesize_tables(
        self,
        workload: "Workload",
        epsilon: object,
        children: str | Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, object] | None = None,
        method: str = "auto",
        select: str = "auto",
        rounds: int | None = None,
        inside: str = "measured",
        progress: Tell | None = None,
        account: str = "auto",
    ) -> "SyntheticTables":
        """Synthetic data of the table of the unit and of `children`, tables that refer to it; keys fit.

        `epsilon` is the cost of all of it. `columns` and `bins` are of whichever table has a column of that name.
        Records of the unit's table get as many rows in a child's table, and such rows, as noisy counts of both say. A
        call that was stopped goes on where it stopped when it is made again.
        """
        from confide.release.synthetic.family import synthesize_family  # noqa: PLC0415  loaded when used
        from confide.release.synthetic.request import SynthesisOptions  # noqa: PLC0415

        options = SynthesisOptions(
            workload, epsilon, None, columns, bins, method, select, rounds, account=account, inside=inside
        )
        return synthesize_family(self._holdings, options, children, progress)
