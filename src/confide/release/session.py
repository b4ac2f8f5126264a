"""What a person holds: a policy's data, open for questions. Each call checks little and hands on to its own module."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confide.engine import Engine
from confide.errors import LedgerError, ParameterError
from confide.host.progress import Tell
from confide.ledger import Ledger
from confide.mechanism import KernelRandomness, Randomness
from confide.policy import Policy
from confide.policy.describe import Description, describe
from confide.query.parse import DIALECT
from confide.release.answer.answer import Answer
from confide.release.answer.plan import Plan, Within
from confide.release.arguments import (
    confidence_level,
    exact_bounds,
    exact_epsilon,
    plain_text,
)
from confide.release.cost import BudgetState, budget_state
from confide.release.guard import callers, listening
from confide.release.holdings import Holdings
from confide.release.holdings_html import session_html
from confide.release.question_call import sql_call
from confide.release.questions import BoundedText, Questions
from confide.release.synthetic.related_calls import TablesCalls
from confide.release.views import DeclaredView, open_view
from confide.release.workload.calls import WorkloadCalls

if TYPE_CHECKING:
    from confide.release.graph.graph import Graph
    from confide.release.microdata.microdata import Microdata
    from confide.release.microdata.plan import MicrodataPlan
    from confide.release.summary.plan import SummaryPlan
    from confide.release.summary.summary import TableSummary
    from confide.release.synthetic.plan import SynthesisPlan
    from confide.release.synthetic.synthetic import Synthetic
    from confide.release.verdict.plan import TrustPlan
    from confide.release.verdict.synthetic_copy import SyntheticCopy
    from confide.release.verdict.verdict import Verdict, Verdicts
    from confide.workload import Workload


class Session(TablesCalls, WorkloadCalls):
    """One policy's data, open for questions. Made by `confide.open`."""

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        ledger: Ledger,
        analyst: str = "",
        randomness: Randomness | None = None,
        ledger_path: Path | None = None,
    ) -> None:
        self.policy, self.analyst, self.ledger_path = policy, analyst, ledger_path
        self._questions = Questions()
        source = randomness or KernelRandomness()
        if not source.kernel and ledger.durable:
            raise LedgerError("test noise protects nobody, so it never charges a durable ledger; use confide.testing")
        self._holdings = Holdings(policy, engine, ledger, source, analyst)

    # --- free ---------------------------------------------------------------------------------------------------------

    def plan(
        self,
        sql: str,
        epsilon: object = None,
        within: Within | None = None,
        confidence: float = 0.95,
        *,
        rows: int | None = None,
        split: Mapping[str, object] | None = None,
        bounds: Mapping[str, Sequence[object]] | None = None,
        mechanism: Mapping[str, str] | str = "auto",
        dialect: str = DIALECT,
        account: str = "auto",
        population: bool = False,
    ) -> Plan:
        """Cost, mechanism and expected half-width of a question. Free: nothing private is read.

        Give `epsilon`, or `within` (50, "5%", or {column: width}) for the smallest ε that gives it; without either the
        plan also tells what several ε give. `rows` says how
        large the table is thought to be, where a width depends on that. `mechanism` names one for all columns, or by
        column; `auto` takes the narrowest forecast. `account` is for a ledger whose accounting is either: "pure",
        "concentrated", or "auto" for the one that gives the narrower answer, of those that hold the call.
        `population`: intervals for the population of which the rows are a random sample, of means and shares.
        """
        if epsilon is not None and within is not None:
            raise ParameterError("give epsilon or within, not both: within finds the epsilon")
        call = sql_call(
            self._holdings, self._questions, sql, dialect, confidence, rows, split, bounds, mechanism, account,
            population,
        )  # fmt: skip
        return call.plan(epsilon, within)

    def describe(self) -> Description:
        """Tables, columns, bounds, units and budget in plain words: public facts only. Free."""
        return describe(self.policy).for_analysts()

    @property
    def budget(self) -> BudgetState:
        """What is spent and what is left, as ε; for an analyst with a cap of their own, that cap's."""
        return budget_state(self._holdings.standing())

    # --- paid ---------------------------------------------------------------------------------------------------------

    def sql(
        self,
        sql: str,
        epsilon: object = None,
        confidence: float = 0.95,
        *,
        within: Within | None = None,
        rows: int | None = None,
        split: Mapping[str, object] | None = None,
        bounds: Mapping[str, Sequence[object]] | None = None,
        mechanism: Mapping[str, str] | str = "auto",
        dialect: str = DIALECT,
        account: str = "auto",
        population: bool = False,
        progress: Tell | None = None,
    ) -> Answer:
        """Answer a question; `epsilon` is the cost of the whole call. The same question again is free and the same.

        Give `within` instead for the smallest ε that is expected to give that width, as `plan` does; an answer whose
        intervals are wider nevertheless says so.

        `account` is for a ledger whose accounting is either: "pure", "concentrated", or "auto" for the narrower answer.
        `progress` is told what is being done, how many steps are done, and of how many: public facts.

        `population=True` gives means, shares and their differences intervals for the population of which the rows are a
        random sample, noise and sampling together. It is the same question, paid for once, read another way.
        """
        callers(progress)  # refuses what is no function
        if (epsilon is None) == (within is None):
            raise ParameterError("give epsilon, what the whole call may cost, or within, the width to reach; not both")
        call = sql_call(
            self._holdings, self._questions, sql, dialect, confidence, rows, split, bounds, mechanism, account,
            population,
        )  # fmt: skip
        return call.answer(epsilon, within, progress)

    def view(
        self, name: str, sql: str, *, at_most: Mapping[str, int] | None = None, dialect: str = DIALECT
    ) -> DeclaredView:
        """Declare a join once, to ask it like a table. Free. `at_most`: what one unit may have in it, {"rows": 20}."""
        return open_view(
            self.policy,
            self._questions.views,
            plain_text(name),
            plain_text(sql),
            at_most,
            plain_text(dialect),
            lambda text: self._questions.read(self._holdings, text, {}, plain_text(dialect), "auto"),
        )

    def graph(
        self,
        table: str,
        source: str,
        target: str,
        *,
        directed: bool = False,
        unit: str | None = None,
        account: str = "auto",
        progress: Tell | None = None,
    ) -> "Graph":
        """The rows of a table as edges from `source` to `target`, to count patterns of. `unit`: "edge" or "node".

        `progress` is told, for each answer, what is being done, how many steps are done, and of how many.
        """
        from confide.release.graph.edge_table import edge_table  # noqa: PLC0415  loaded when used
        from confide.release.graph.graph import Graph  # noqa: PLC0415

        return Graph(edge_table(self._holdings, table, source, target, directed, unit, account, progress))

    def plan_microdata(
        self,
        marginals: object,
        epsilon: object,
        confidence: float = 0.95,
        *,
        priority: object = None,
        shares: Mapping[Any, object] | None = None,
        table: str | None = None,
        rows: int | None = None,
        account: str = "auto",
    ) -> "MicrodataPlan":
        """Cost and expected half-widths of microdata, and whether ε is enough to see anything. Free."""
        from confide.release.microdata import request  # noqa: PLC0415  heavy, and loaded when used

        options = request.MicrodataOptions(
            marginals,
            priority=priority,
            shares=shares,
            table=table,
            confidence=confidence_level(confidence),
            account=account,
        )
        return request.plan_microdata(self._holdings, options, exact_epsilon(epsilon), rows)

    def microdata(
        self,
        marginals: object,
        epsilon: object,
        fit: str = "auto",
        priority: object = None,
        confidence: float = 0.95,
        *,
        shares: Mapping[Any, object] | None = None,
        zeros: object = None,
        totals: object = None,
        table: str | None = None,
        progress: Tell | None = None,
        account: str = "auto",
    ) -> "Microdata":
        """Noisy counts of marginals and a table fitted to them; `epsilon` is the cost of all of it.

        A marginal is a column or a tuple of columns, () the total; a ranged column is counted in its `bins`, or in
        BIN(column, width). `priority` lists stages of marginals, most important first; `zeros` are impossible cells
        and `totals` public marginals, which hold exactly. The same marginals again are free, whatever the fit.
        """
        from confide.release.microdata import request  # noqa: PLC0415  heavy, and loaded when used

        level = confidence_level(confidence)
        options = request.MicrodataOptions(marginals, fit, priority, shares, zeros, totals, table, level, account)
        return request.make_microdata(self._holdings, options, exact_epsilon(epsilon), progress)

    def plan_summary(
        self,
        epsilon: object,
        table: str | None = None,
        confidence: float = 0.95,
        *,
        rows: int | None = None,
        account: str = "auto",
    ) -> "SummaryPlan":
        """What a summary of a table would show at ε, column by column. Free: nothing private is read."""
        from confide.release.summary.plan import plan_summary  # noqa: PLC0415  loaded when used

        return plan_summary(self._holdings, table, epsilon, confidence_level(confidence), rows, account)

    def summary(
        self,
        epsilon: object,
        table: str | None = None,
        confidence: float = 0.95,
        *,
        account: str = "auto",
        progress: Tell | None = None,
    ) -> "TableSummary":
        """The first look at a table for one charge: rows, and of every column what is missing, quantiles and a
        histogram, or the commonest values. `epsilon` is the cost of all of it; the same again is free.
        """
        from confide.release.summary.summary import summarize  # noqa: PLC0415  loaded when used

        callers(progress)  # refuses what is no function
        with listening(progress):
            return summarize(self._holdings, table, epsilon, confidence_level(confidence), account)

    def plan_synthesize(
        self,
        workload: "Workload",
        epsilon: object,
        confidence: float = 0.95,
        *,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, object] | None = None,
        method: str = "auto",
        select: str = "auto",
        rounds: int | None = None,
        picks: int | None = None,
        rows: int | None = None,
        inside: str = "measured",
        megabytes: int | None = None,
        start: Any = None,
        degree: int | None = None,
        account: str = "auto",
    ) -> "SynthesisPlan":
        """What a synthesis would measure, in how many rounds, with what noise and at what cost. Free."""
        from confide.release.synthetic.request import SynthesisOptions, plan  # noqa: PLC0415  loaded when used

        options = SynthesisOptions(
            workload,
            epsilon,
            table,
            columns,
            bins,
            method,
            select,
            rounds,
            picks,
            rows,
            account,
            inside,
            megabytes,
            start,
            degree,
        )
        return plan(self._holdings, options, confidence)

    def synthesize(
        self,
        workload: "Workload",
        epsilon: object,
        *,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, object] | None = None,
        method: str = "auto",
        select: str = "auto",
        rounds: int | None = None,
        picks: int | None = None,
        rows: int | None = None,
        inside: str = "measured",
        megabytes: int | None = None,
        start: Any = None,
        degree: int | None = None,
        progress: Tell | None = None,
        account: str = "auto",
    ) -> "Synthetic":
        """Synthetic data that answers a workload; `epsilon` is the cost of the whole call.

        `columns` and `bins` say which columns and in bins of which widths; what to measure, in how many rounds, with
        how many rows of the relaxed table or megabytes of a model follows from public facts unless it is set. Columns
        in bins that have at most 4,096 values are counted value by value as well, for a tenth of the cost, unless
        `inside` is "even". `start` is what to begin with, at no cost: a frame of public rows, an earlier release, or
        the name of a public table of the policy; its rows get the weights that fit what is measured. A call that was
        stopped goes on where it stopped when it is made again.
        """
        from confide.release.synthetic.request import SynthesisOptions, synthesize  # noqa: PLC0415  loaded when used

        options = SynthesisOptions(
            workload,
            epsilon,
            table,
            columns,
            bins,
            method,
            select,
            rounds,
            picks,
            rows,
            account,
            inside,
            megabytes,
            start,
            degree,
        )
        return synthesize(self._holdings, options, progress)

    def history(self, table: str | None = None, pad: int = 64, *, columns: Sequence[str] | None = None) -> "Workload":
        """The workload of past questions in the ledger, padded with random marginals to `pad` of them. Free."""
        from confide.release.custody.history import history  # noqa: PLC0415  loaded when used

        return history(self._holdings, table, pad, columns)

    def open_copy(self, synthetic: object, table: str | None = None) -> "SyntheticCopy":
        """Synthetic data, opened and checked once, to decide about many times. Free.

        `synthetic` is a frame, a Parquet or CSV file, or a mapping of tables to such; `table` is the one it stands for.
        This reads files and says what is wrong with them, so it is for whoever opened the session, like `confide.open`:
        a service passes on no path of an analyst.
        """
        from confide.release.verdict.synthetic_copy import open_copy  # noqa: PLC0415  loaded when used

        return open_copy(self.policy, synthetic, table, files=True)

    def plan_trust(
        self,
        sql: str | Sequence[str],
        synthetic: object,
        within: object,
        epsilon: object = None,
        mechanism: str = "auto",
        prefer: str = "balanced",
        *,
        gap: object = None,
        error: float = 0.05,
        bounds: Mapping[str, Sequence[object]] | None = None,
        dialect: str = DIALECT,
        account: str = "auto",
    ) -> "TrustPlan | tuple[TrustPlan, ...]":
        """How often a verdict would be wrong, by the unknown gap between the answers. Free: nothing private is read.

        Give `epsilon`, or a `gap` to find the least ε for which the verdict errs there with probability `error`.
        """
        from confide.release.verdict.plan import plan_trust  # noqa: PLC0415  loaded when used
        from confide.release.verdict.request import prepare_request  # noqa: PLC0415  loaded when used

        holdings = self._holdings
        request = prepare_request(holdings, sql, synthetic, within, mechanism, prefer, self._reader(dialect, bounds))
        return plan_trust(holdings.standing(), request, epsilon, gap, error, account)

    def trust(
        self,
        sql: str | Sequence[str],
        synthetic: object,
        within: object,
        epsilon: object,
        mechanism: str = "auto",
        prefer: str = "balanced",
        *,
        bounds: Mapping[str, Sequence[object]] | None = None,
        dialect: str = DIALECT,
        account: str = "auto",
        progress: Tell | None = None,
    ) -> "Verdict | Verdicts":
        """May the synthetic answer of a query be used? One private bit; `epsilon` is the cost of the whole call.

        `synthetic` is a frame, frames by table, or an opened copy; it is never a file, which `open_copy` reads.
        `within` says how near the private answer must be: 50, or "5%" of the synthetic one. Several queries, as a list,
        share ε; GROUP BY gives one verdict for each key. `prefer="cautious"` bounds the probability of a wrong yes.
        `progress` is told what is being done, how many steps are done, and of how many: public facts.
        """
        from confide.release.verdict.request import prepare_request, trust  # noqa: PLC0415  loaded when used

        callers(progress)  # refuses what is no function
        holdings = self._holdings
        request = prepare_request(holdings, sql, synthetic, within, mechanism, prefer, self._reader(dialect, bounds))
        with listening(progress):
            return trust(holdings, request, epsilon, account)

    def _reader(self, dialect: str, bounds: Mapping[str, Sequence[object]] | None = None) -> Callable[..., BoundedText]:
        limits, spoken = exact_bounds(bounds), plain_text(dialect)
        return lambda text: self._questions.bounded(self._holdings, plain_text(text), limits, spoken)

    def __repr__(self) -> str:
        return f"<Session of {', '.join(self.policy.tables)}; protects one {self.policy.unit}>"

    def _repr_html_(self) -> str:
        return session_html(self._holdings)

    def close(self) -> None:
        try:
            self._holdings.engine.close()
        finally:
            self._holdings.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
