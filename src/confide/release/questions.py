"""What a session's SQL means: text, declared views and options, read into a question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confide.errors import ParameterError, QueryError
from confide.query import Question, bind
from confide.query.conjunction import Conjunction
from confide.query.view import View, expanded, with_bounds
from confide.release.arguments import exact_bounds
from confide.release.holdings import Holdings
from confide.release.join_request import join_instead, sampled, wants_join

_MOST_REMEMBERED = 100

Bounds = Mapping[str, Sequence[object]]
Mechanism = Mapping[str, str] | str


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Reads questions, and remembers them: what is planned is usually asked next, on the same public facts."""

    views: dict[str, View] = field(default_factory=dict)
    _remembered: dict[tuple[str, str, str, str], Question] = field(default_factory=dict)

    def read(
        self, holdings: Holdings, sql: str, bounds: Bounds | None, dialect: str, mechanism: Mechanism
    ) -> Question | Conjunction:
        """A question whose bounds are known beforehand, else one over a join whose mechanism finds them."""
        found = expanded(sql, self.views, dialect) if self.views and isinstance(sql, str) else None
        policy = holdings.policy if found is None else with_bounds(holdings.policy, found[1])
        if found is not None:
            sql, dialect = found[0], "duckdb"
        if mechanism == "sample":
            mechanism = sampled(policy)
        if wants_join(sql, holdings.policy, mechanism, dialect):
            return join_instead(holdings, sql, dialect, mechanism, None)
        try:
            if found is not None:
                return bind(sql, policy, holdings.engine, exact_bounds(bounds), dialect, mechanism)
            return self.read_bounded(holdings, sql, bounds, dialect, mechanism)
        except QueryError as refusal:
            return join_instead(holdings, sql, dialect, mechanism, refusal)

    def read_bounded(
        self, holdings: Holdings, sql: str, bounds: Bounds | None, dialect: str, mechanism: Mechanism = "auto"
    ) -> Question:
        """A question over the policy's own tables, whose bounds are known beforehand."""
        if not isinstance(mechanism, str) and not isinstance(mechanism, Mapping):
            raise ParameterError(f"mechanism={mechanism!r} is not a name or a mapping of columns to names")
        limits = exact_bounds(bounds)
        if type(sql) is not str:
            return bind(sql, holdings.policy, holdings.engine, limits, dialect, mechanism)
        key = (sql, dialect, repr(sorted(limits.items())), mechanism if isinstance(mechanism, str) else repr(mechanism))
        question = self._remembered.get(key)
        if question is None:
            question = bind(sql, holdings.policy, holdings.engine, limits, dialect, mechanism)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()  # other threads may be at it as well
            self._remembered[key] = question
        return question
