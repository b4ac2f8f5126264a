"""The one place where data, noise and budget meet. Charge before read; answer stored before it is sent."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from confide.engine import Engine
from confide.errors import LedgerError, ParameterError, QueryError
from confide.ledger import Ledger
from confide.mechanism import KernelRandomness, Measurement, Randomness
from confide.policy import Policy
from confide.privacy.amount import parse_amount, show
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss
from confide.query import Question, bind
from confide.query.conjunction import Conjunction
from confide.query.view import View, expanded, with_bounds
from confide.release.allocation import Allocation, allocate
from confide.release.answer import Answer
from confide.release.arguments import confidence_level, exact_epsilon
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.holdings import Holdings, Release
from confide.release.join_plan import plan_join
from confide.release.joins import answer_join, join_instead, request_join, sampled, wants_join
from confide.release.plan import Plan, Within, expected_rows, forecast, group_count
from confide.release.statistics import measure_statistic
from confide.release.table import Table
from confide.release.views import DeclaredView, open_view

if TYPE_CHECKING:
    from confide.release.graph import Graph
    from confide.release.microdata import Microdata, Progress
    from confide.release.microdata_plan import MicrodataPlan
    from confide.release.synthetic import Synthetic
    from confide.release.synthetic_copy import SyntheticCopy
    from confide.release.trust_plan import TrustPlan
    from confide.release.verdict import Verdict, Verdicts
    from confide.synthesis.rap import Tell
    from confide.workload import Workload

_MOST_QUESTIONS = 100


class Session:
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
        self.policy = policy
        self.analyst = analyst
        self.ledger_path = ledger_path
        # What is planned is usually asked next, and public facts do not change while a session is open.
        self._questions: dict[tuple[str, str, str, str], Question] = {}
        self._views: dict[str, View] = {}
        source = randomness if randomness is not None else KernelRandomness()
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
        dialect: str = "duckdb",
    ) -> Plan:
        """Cost, mechanism and expected half-width of a question. Free: nothing private is read.

        Give `epsilon`, or `within` (50, "5%", or {column: width}) for the smallest ε that gives it. `rows` says how
        large the table is thought to be, where a width depends on that. `mechanism` names one for all columns, or by
        column; `auto` takes the narrowest forecast.
        """
        if epsilon is not None and within is not None:
            raise ParameterError("give epsilon or within, not both: within finds the epsilon")
        bound = self._bind_any(sql, bounds, dialect, mechanism)
        if isinstance(bound, Conjunction):
            return plan_join(
                self._holdings, bound, epsilon, within, confidence, mechanism, _split(split), _bounds(bounds)
            )
        question = bound
        level = confidence_level(confidence)
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise ParameterError(f"rows={rows!r} is not a number of rows; write a whole number above 0")
        predicted = forecast(question, self.policy, level, _split(split), rows, self._holdings.ledger.budget)
        notes = list(predicted.notes)
        if within is not None:
            exact = predicted.smallest_epsilon(within)
            notes.append(f"ε = {show(exact)} is the smallest that gives ±{within}")
        elif epsilon is not None:
            exact = exact_epsilon(epsilon)
        else:
            exact = self._holdings.ledger.budget.epsilon / 10
            notes.append("no epsilon was given: a tenth of the whole budget is shown")
        columns, allocation = predicted.at(exact)
        return Plan(
            columns=columns,
            epsilon=float(exact),
            cost=Cost.of(exact, allocation.loss),
            confidence=level,
            groups=group_count(question),
            unit=question.unit,
            neighbours=question.neighbours,
            affordable=self._holdings.affordable(allocation.loss),
            budget=self.budget,
            notes=tuple(notes),
        )

    @property
    def budget(self) -> BudgetState:
        """What is spent and what is left, as ε; for an analyst with a cap of their own, that cap's."""
        return budget_state(self._holdings.ledger, self.analyst)

    # --- paid ---------------------------------------------------------------------------------------------------------

    def sql(
        self,
        sql: str,
        epsilon: object,
        confidence: float = 0.95,
        *,
        split: Mapping[str, object] | None = None,
        bounds: Mapping[str, Sequence[object]] | None = None,
        mechanism: Mapping[str, str] | str = "auto",
        dialect: str = "duckdb",
    ) -> Answer:
        """Answer a question; `epsilon` is the cost of the whole call. The same question again is free and the same."""
        bound = self._bind_any(sql, bounds, dialect, mechanism)
        if isinstance(bound, Conjunction):
            limits, parts = _bounds(bounds), _split(split)
            request = request_join(self._holdings, bound, epsilon, confidence, mechanism, parts, limits)
            return answer_join(self._holdings, request, sql)
        question = bound
        exact, level, shares = exact_epsilon(epsilon), confidence_level(confidence), _split(split)
        key = self._key(question, exact, level, shares)

        def prepare() -> tuple[PrivacyLoss, Release]:
            ledger = self._holdings.ledger
            expected = expected_rows(question, self.policy)
            allocation = allocate(question, ledger.budget, exact, level, shares, expected)

            def release(charge: Charge) -> bytes:
                cells = self._holdings.engine.evaluate(question.summary, charge, ledger.secret)
                return self._release(question, cells, allocation, exact, level).to_bytes()

            return allocation.loss, release

        return Answer.from_bytes(self._holdings.once(key, f"sql: {sql.strip()}", prepare))

    def _release(
        self, question: Question, exact: Any, allocation: Allocation, epsilon: Fraction, confidence: float
    ) -> Answer:
        """Noise on every measure, then arithmetic on what came out."""
        keys, cells, tallies = exact.keys, exact.cells, exact.tallies
        notes: list[str] = []
        if allocation.keys is not None:
            assert question.threshold is not None
            units = _combine(question.threshold.terms, cells)
            shown = allocation.keys.release(units, self._holdings.randomness).places
            keys = tuple(keys[place] for place in shown)
            cells = tuple(cell[shown] for cell in cells)
            tallies = tuple(tuple(groups[place] for place in shown) for groups in tallies)
            notes.append(f"keys held by fewer than about {allocation.keys.threshold} units are left out")
        measurements: list[Measurement] = [
            mechanism.measure(_combine(measure.terms, cells), self._holdings.randomness)
            for measure, mechanism in zip(question.measures, allocation.mechanisms, strict=True)
        ]
        names = [mechanism.name for mechanism in allocation.mechanisms]
        statistics = [
            (plan, measure_statistic(plan, statistic, tallies[statistic.tally], self._holdings.randomness))
            for statistic, plan in zip(question.statistics, allocation.plans, strict=True)
        ]
        table = Table(question, keys, measurements, names, confidence, statistics)
        return Answer(
            columns=table.columns(),
            confidence=confidence,
            cost=Cost.of(epsilon, allocation.loss),
            unit=question.unit,
            neighbours=question.neighbours,
            question=question.fingerprint,
            notes=tuple(notes),
            test_noise=not self._holdings.randomness.kernel,
        )

    def view(
        self, name: str, sql: str, *, at_most: Mapping[str, int] | None = None, dialect: str = "duckdb"
    ) -> DeclaredView:
        """Declare a join once, to ask it like a table. Free. `at_most`: what one unit may have in it, {"rows": 20}."""
        return open_view(
            self.policy,
            self._views,
            name,
            sql,
            at_most,
            dialect,
            lambda text: self._bind_any(text, None, dialect, "auto"),
        )

    def graph(
        self, table: str, source: str, target: str, *, directed: bool = False, unit: str | None = None
    ) -> "Graph":
        """The rows of a table as edges from `source` to `target`, to count patterns of. `unit`: "edge" or "node"."""
        from confide.release.graph import open_graph  # noqa: PLC0415  loaded when used

        return open_graph(self._holdings, table, source, target, directed, unit)

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
    ) -> "MicrodataPlan":
        """Cost and expected half-widths of microdata, and whether ε is enough to see anything. Free."""
        from confide.release import microdata  # noqa: PLC0415  heavy, and loaded when used

        request = microdata.MicrodataRequest(
            marginals, priority=priority, shares=shares, table=table, confidence=confidence_level(confidence)
        )
        return microdata.plan_microdata(self._holdings, request, exact_epsilon(epsilon), rows)

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
        progress: "Progress | None" = None,
    ) -> "Microdata":
        """Noisy counts of marginals and a table fitted to them; `epsilon` is the cost of all of it.

        A marginal is a column or a tuple of columns, () the total; a ranged column is counted in its `bins`, or in
        BIN(column, width). `priority` lists stages of marginals, most important first; `zeros` are impossible cells
        and `totals` public marginals, which hold exactly. The same marginals again are free, whatever the fit.
        """
        from confide.release import microdata  # noqa: PLC0415  heavy, and loaded when used

        level = confidence_level(confidence)
        request = microdata.MicrodataRequest(marginals, fit, priority, shares, zeros, totals, table, level)
        return microdata.make_microdata(self._holdings, request, exact_epsilon(epsilon), progress)

    def synthesize(
        self,
        workload: "Workload",
        epsilon: object,
        *,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, object] | None = None,
        method: str = "rap",
        select: str = "auto",
        rounds: int | None = None,
        picks: int | None = None,
        rows: int | None = None,
        progress: "Tell | None" = None,
    ) -> "Synthetic":
        """Synthetic data that answers a workload; `epsilon` is the cost of the whole call.

        `columns` and `bins` say which columns and in bins of which widths; what to measure, in how many rounds and with
        how many rows of the relaxed table follows from public facts unless it is set. A call that was stopped goes on
        where it stopped when it is made again.
        """
        from confide.release.synthesizing import SynthesisRequest, synthesize  # noqa: PLC0415  loaded when used

        request = SynthesisRequest(workload, epsilon, table, columns, bins, method, select, rounds, picks, rows)
        return synthesize(self._holdings, request, progress)

    def history(self, table: str | None = None, pad: int = 64, *, columns: Sequence[str] | None = None) -> "Workload":
        """The workload of past questions in the ledger, padded with random marginals to `pad` of them. Free."""
        from confide.release.history import history  # noqa: PLC0415  loaded when used

        return history(self._holdings, table, pad, columns)

    def open_copy(self, synthetic: object, table: str | None = None) -> "SyntheticCopy":
        """Synthetic data, opened and checked once, to decide about many times. Free.

        `synthetic` is a frame, a Parquet or CSV file, or a mapping of tables to such; `table` is the one it stands for.
        """
        from confide.release.synthetic_copy import open_copy  # noqa: PLC0415  loaded when used

        return open_copy(self.policy, synthetic, table)

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
        dialect: str = "duckdb",
    ) -> "TrustPlan | tuple[TrustPlan, ...]":
        """How often a verdict would be wrong, by the unknown gap between the answers. Free: nothing private is read.

        Give `epsilon`, or a `gap` to find the least ε for which the verdict errs there with probability `error`.
        """
        from confide.release.trust_plan import plan_trust  # noqa: PLC0415  loaded when used
        from confide.release.trusting import prepare_request  # noqa: PLC0415  loaded when used

        holdings = self._holdings
        request = prepare_request(holdings, sql, synthetic, within, mechanism, prefer, self._binder(dialect, bounds))
        return plan_trust(holdings, request, epsilon, gap, error, self.budget)

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
        dialect: str = "duckdb",
    ) -> "Verdict | Verdicts":
        """May the synthetic answer of a query be used? One private bit; `epsilon` is the cost of the whole call.

        `within` says how near the private answer must be: 50, or "5%" of the synthetic one. Several queries, as a list,
        share ε; GROUP BY gives one verdict for each key. `prefer="cautious"` bounds the probability of a wrong yes.
        """
        from confide.release.trusting import prepare_request, trust  # noqa: PLC0415  loaded when used

        holdings = self._holdings
        request = prepare_request(holdings, sql, synthetic, within, mechanism, prefer, self._binder(dialect, bounds))
        return trust(holdings, request, epsilon)

    def _binder(
        self, dialect: str, bounds: Mapping[str, Sequence[object]] | None = None
    ) -> Callable[[str, str], Question]:
        return lambda text, mechanism: self._bind(text, bounds, dialect, mechanism)

    def _bind_any(
        self, sql: str, bounds: Mapping[str, Sequence[object]] | None, dialect: str, mechanism: Mapping[str, str] | str
    ) -> Question | Conjunction:
        """A question whose bounds are known beforehand, else one over a join whose mechanism finds them."""
        found = expanded(sql, self._views, dialect) if self._views and isinstance(sql, str) else None
        policy = self.policy if found is None else with_bounds(self.policy, found[1])
        if found is not None:
            sql, dialect = found[0], "duckdb"
        if mechanism == "sample":
            mechanism = sampled(policy)
        if wants_join(sql, self.policy, mechanism, dialect):
            return join_instead(self._holdings, sql, dialect, mechanism, None)
        try:
            if found is not None:
                return bind(sql, policy, self._holdings.engine, _bounds(bounds), dialect, mechanism)
            return self._bind(sql, bounds, dialect, mechanism)
        except QueryError as refusal:
            return join_instead(self._holdings, sql, dialect, mechanism, refusal)

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _bind(
        self,
        sql: str,
        bounds: Mapping[str, Sequence[object]] | None,
        dialect: str,
        mechanism: Mapping[str, str] | str = "auto",
    ) -> Question:
        if not isinstance(mechanism, str) and not isinstance(mechanism, Mapping):
            raise ParameterError(f"mechanism={mechanism!r} is not a name or a mapping of columns to names")
        limits = _bounds(bounds)
        if type(sql) is not str:
            return bind(sql, self.policy, self._holdings.engine, limits, dialect, mechanism)
        key = (sql, dialect, repr(sorted(limits.items())), mechanism if isinstance(mechanism, str) else repr(mechanism))
        if key not in self._questions:
            question = bind(sql, self.policy, self._holdings.engine, limits, dialect, mechanism)
            if len(self._questions) >= _MOST_QUESTIONS:
                self._questions.clear()
            self._questions[key] = question
        return self._questions[key]

    def _key(self, question: Question, epsilon: Fraction, confidence: float, split: Mapping[str, Fraction]) -> str:
        shares = repr(sorted((name, str(share)) for name, share in split.items()))
        return self._holdings.key("sql", question.fingerprint, str(epsilon), repr(confidence), shares)

    def close(self) -> None:
        self._holdings.engine.close()
        self._holdings.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _combine(terms: tuple[tuple[int, int], ...], cells: Sequence[Any]) -> Any:
    """Σ coefficient × cell, exactly: in Python's integers where 64 bits might not hold it."""
    if len(terms) == 1 and terms[0][0] == 1:
        return cells[terms[0][1]]
    return sum(cells[cell].astype(object) * coefficient for coefficient, cell in terms)


def _split(split: Mapping[str, object] | None) -> dict[str, Fraction]:
    return {name: parse_amount(share, f"split[{name}]") for name, share in (split or {}).items()}


def _bounds(bounds: Mapping[str, Sequence[object]] | None) -> dict[str, tuple[Fraction, Fraction]]:
    result = {}
    for name, ends in (bounds or {}).items():
        try:
            low, high = (Fraction(str(end)) for end in ends)
        except (TypeError, ValueError, ZeroDivisionError):
            raise ParameterError(f"bounds[{name!r}] must be two numbers, [low, high]; got {ends!r}") from None
        if low >= high or max(abs(low), abs(high)) > 2**62:
            raise ParameterError(f"bounds[{name!r}] must be [low, high] with low below high; got {ends!r}")
        result[name] = (low, high)
    return result
