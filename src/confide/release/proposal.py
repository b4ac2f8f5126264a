"""Bounds and lists for the draft of a policy, found privately: the only way in which data may fill in a policy.

What is released: for each table a noisy number of rows; for each column of numbers or days a noisy histogram over a
public grid, and the ends of its bins that surely hold rows; for each column of words the keys above a threshold.
Neighbours: data sets that differ in one unit, which comes or goes; of its rows in a table one counts, the first in an
order keyed by the ledger's secret, so one unit changes one bin, or one key, of each histogram by one.
Loss: that of the questions in SQL which are asked, each charged to the ledger before it reads; all together at most ε.
Theorem: post-processing of answers; they add up as all answers do, whatever the calls before made the next one be.
Source: noise, thresholds and accounting of `release.sql`; [Korolova2009] and [Wilson2020] for thresholds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from math import floor, log10
from pathlib import Path
from typing import Any, Final

from confide.errors import ParameterError
from confide.ledger import MemoryLedger
from confide.policy import Policy
from confide.policy.canonical import quote
from confide.policy.column import show
from confide.policy.draft import StoredTable, decimal_grain, guess_kind, guess_references
from confide.privacy.amount import parse_amount
from confide.privacy.amount import show as show_amount
from confide.privacy.budget import Budget
from confide.release.answer.answer import Answer
from confide.release.custody.inspection import StoredSource
from confide.release.opening import open_session

_ROW: Final = "row"
_LARGEST: Final = 12
_FINEST: Final = -3
_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)
_DAYS: Final = 1826
"""A bin of days: about five years."""
_MOST_VALUES: Final = 200
_CERTAINTY: Final = 0.9999
"""With this probability no bin of a histogram that is taken to hold rows is empty."""
_KIND_SHARE: Final = 0.1
"""So many rows of a column must be numbers, or days, for the column to be taken for that."""
_WIDE_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was found: rules of columns by table and column, sizes by table, and what the ledger says it cost."""

    rules: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    spent: float = 0.0
    skipped: tuple[str, ...] = ()


def propose(source: StoredSource, budget: Budget, unit: str, epsilon: object, ledger: Path, base: Path) -> Proposal:
    """Ask the data for bounds and lists, at most at ε together, from the ledger that the draft names.

    The ledger is made if it is not there; what was asked before is free, so a call that was stopped goes on.
    """
    whole = parse_amount(epsilon, "epsilon")
    if whole > budget.epsilon:
        raise ParameterError(
            f"--epsilon {show_amount(whole)} is more than the whole budget of ε = {show_amount(budget.epsilon)}"
        )
    units = _units(source.tables, unit)
    asked = [table for table in source.tables if units.get(table.name)]
    if not asked:
        raise ParameterError(f"no table has the unit {unit}; write row, or table.column, or leave --epsilon out")
    each = _each(budget, whole, sum(map(_most_calls, asked)))
    asking = _Asking(source, budget, each, ledger, base)
    rules: dict[tuple[str, str], tuple[str, str]] = {}
    sizes = {}
    for table in asked:
        rows = asking.rows(table, units[table.name] or _ROW)
        if rows >= 1 and unit in (_ROW, f"{table.name}.{units[table.name]}"):  # elsewhere it is a number of units
            sizes[table.name] = _rounded(rows)
        for column, kind in table.columns:
            rule = asking.column(table, units[table.name] or _ROW, column, kind, rows)
            if rule is not None:
                rules[table.name, column] = rule
    skipped = tuple(table.name for table in source.tables if not units.get(table.name))
    return Proposal(rules, sizes, asking.spent, skipped)


@dataclass(slots=True)
class _Asking:
    """Asks one question at a time, each of one table under a policy of its own, all from one ledger."""

    source: StoredSource
    budget: Budget
    epsilon: Fraction
    ledger: Path
    base: Path
    spent: float = 0.0

    def rows(self, table: StoredTable, unit: str) -> float:
        answer = self._ask(table, unit, {}, f"SELECT COUNT(*) AS n FROM {_named(table.name)}", 0.95)
        return float(answer.to_dicts()[0]["n"])

    def column(self, table: StoredTable, unit: str, column: str, kind: str, rows: float) -> tuple[str, str] | None:
        """A rule for a column, and how it was found; None where nothing is."""
        guess = guess_kind(column, kind)
        tries: Mapping[str, Sequence[Callable[..., tuple[str, str] | None]]] = {
            "whole": (self._numbers,),
            "decimal": (self._numbers,),
            "real": (self._numbers,),
            "days": (self._days,),
            "words": (self._words,),
            "unknown": (self._numbers, self._days, self._words),
        }
        least = _KIND_SHARE * rows if guess == "unknown" else 0.0
        found = (find(table, unit, column, kind, least) for find in tries.get(guess, ()))
        return next((rule for rule in found if rule is not None), None)

    def _numbers(self, table: StoredTable, unit: str, column: str, kind: str, least: float) -> tuple[str, str] | None:
        steps = list(_steps(whole=guess_kind(column, kind) == "whole"))
        name = _named(column)
        cases = " ".join(f"WHEN {name} < {show(step)} THEN {place}" for place, step in enumerate(steps))
        sql = (
            f"SELECT CASE {cases} WHEN {name} >= {show(steps[-1])} THEN {len(steps)} END AS step, COUNT(*) AS n "
            f"FROM {_named(table.name)} GROUP BY step"
        )
        ends = 10**_LARGEST * 10
        finest = Fraction(1) if guess_kind(column, kind) == "whole" else Fraction(1, 10**4)
        rule = {"range": [-ends, ends], "grain": finest}
        held = _held(self._ask(table, unit, {column: rule}, sql, _level(len(steps) + 1)))
        if sum(held.values()) <= least or not held:
            return None
        first, last = (int(place) for place in (min(held, key=int), max(held, key=int)))
        low = steps[first - 1] if first > 0 else steps[0]
        high = steps[last] if last < len(steps) else steps[-1]
        typed = "" if guess_kind(column, kind) == "unknown" else kind
        return _number_rule(low, high, typed), self._comment("steps that surely hold rows")

    def _days(self, table: StoredTable, unit: str, column: str, kind: str, least: float) -> tuple[str, str] | None:
        sql = f"SELECT BIN({_named(column)}, {_DAYS}) AS bin, COUNT(*) AS n FROM {_named(table.name)} GROUP BY bin"
        rule = {"range": [_FIRST_DAY.isoformat(), _LAST_DAY.isoformat()]}
        bins = (_LAST_DAY - _FIRST_DAY).days // _DAYS + 2
        held = _held(self._ask(table, unit, {column: rule}, sql, _level(bins)))
        if sum(held.values()) <= least or not held:
            return None
        years = [date.fromisoformat(str(day)).year for day in (min(held), max(held))]
        # A bin may begin in the last days of the year before, and ends within six years.
        first, last = years[0], min(years[1] + 6, _LAST_DAY.year)
        return f"range: [{first}-01-01, {last}-12-31]", self._comment("stretches of years that surely hold rows")

    def _words(self, table: StoredTable, unit: str, column: str, kind: str, least: float) -> tuple[str, str] | None:
        if self.budget.pure:
            return None
        sql = f"SELECT {_named(column)} AS word, COUNT(*) AS n FROM {_named(table.name)} GROUP BY word"
        answer = self._ask(table, unit, {column: {"type": "text"}}, sql, 0.95)
        words = sorted(str(row["word"]) for row in answer.to_dicts())
        if not words or len(words) > _MOST_VALUES:
            return None if not words else ("type: text", self._comment(f"{len(words):,} values, too many for a list"))
        listed = ", ".join(quote(word) for word in words)
        return f"values: [{listed}]", self._comment("values that many units share, add what is missing")

    def _comment(self, how: str) -> str:
        return f"proposed at ε = {show_amount(self.epsilon)}: {how}; change it as the subject says"

    def _ask(self, table: StoredTable, unit: str, columns: Mapping[str, Any], sql: str, confidence: float) -> Answer:
        facts: dict[str, Any] = dict(columns)
        if unit != _ROW:
            facts[unit] = {"type": "id"}
        if not facts:
            facts[table.columns[0][0]] = {"type": "text"}
        budget: dict[str, Any] = {"epsilon": self.budget.epsilon}
        budget |= {"delta": self.budget.delta} if not self.budget.pure else {}
        policy = Policy.parse(
            {
                "source": self.source.whole if self.source.whole is not None else {table.name: table.place},
                "budget": budget,
                "unit": _ROW if unit == _ROW else f"{table.name}.{unit}",
                "tables": {table.name: {"columns": facts}},
            },
            base=self.base,
        )
        with open_session(policy, ledger=self.ledger, create=True) as session:
            answer = session.sql(sql, epsilon=self.epsilon, confidence=confidence)
            self.spent = session.budget.spent
        return answer


def _units(tables: Sequence[StoredTable], unit: str) -> dict[str, str | None]:
    """The column of each table that says whose rows they are: its own key, or a reference to it by its name."""
    if unit == _ROW:
        return dict.fromkeys((table.name for table in tables), _ROW)
    owner, _, key = unit.partition(".")
    known = {table.name: [column for column, _ in table.columns] for table in tables}
    if key not in known.get(owner, ()):
        raise ParameterError(f"there is no column {unit} for a unit; write row, or table.column of these tables")
    guessed = guess_references(tables)
    found: dict[str, str | None] = {owner: key}
    for table in tables:
        own = [column for column, target in guessed.get(table.name, {}).items() if target == (owner, key)]
        if table.name != owner:
            found[table.name] = own[0] if len(own) == 1 else None
    return found


def _each(budget: Budget, whole: Fraction, calls: int) -> Fraction:
    """The ε of one call, of which so many cost at most `whole` together, in whatever is added up."""
    part = Budget(whole, budget.delta)
    room = MemoryLedger(part).standing().room
    low, high = whole / calls, whole
    for _ in range(30):
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (middle, high) if room(part.cost(middle)) >= calls else (low, middle)
    return _short(low)


def _most_calls(table: StoredTable) -> int:
    calls = {"whole": 1, "decimal": 1, "real": 1, "days": 1, "words": 1, "unknown": 3}
    return 1 + sum(calls.get(guess_kind(column, kind), 0) for column, kind in table.columns)


def _steps(whole: bool) -> Iterator[Fraction]:
    """… -2, -1, 0, 1, 2, 5, 10, …: where one bin of numbers ends and the next begins."""
    sizes = [
        factor * Fraction(10) ** power for power in range(0 if whole else _FINEST, _LARGEST + 1) for factor in (1, 2, 5)
    ]
    yield from (-size for size in reversed(sizes))
    yield Fraction(0)
    yield from sizes


def _level(bins: int) -> float:
    """The confidence at which one bin is told from an empty one, so that all are."""
    return 1 - (1 - _CERTAINTY) / bins


def _held(answer: Answer) -> dict[Any, float]:
    """Bins that surely hold rows, and about how many."""
    column = answer.values[0]
    keys = answer.keys[0].values
    cells = zip(keys, column.values, column.low, strict=True)
    return {key: float(value) for key, value, low in cells if low > 0 and key is not None}


def _number_rule(low: Fraction, high: Fraction, kind: str) -> str:
    if 0 < low <= high / 20:
        low = Fraction(0)  # what is left out above it is not worth another number
    if low == high:
        high = low + 1
    grain = Fraction(decimal_grain(kind)) if guess_kind("", kind) == "decimal" else Fraction(1)
    if guess_kind("", kind) in ("real", "unknown") and high - low < _WIDE_STEPS:
        grain = Fraction(10) ** (floor(log10(high - low)) - 3)
    low, high = (low // grain) * grain, -(-high // grain) * grain
    return f"range: [{show(low)}, {show(high)}], grain: {show(grain)}"


def _rounded(rows: float) -> int:
    unit: int = 10 ** max(0, floor(log10(rows)) - 1)
    return max(1, round(rows / unit) * unit)


def _short(amount: Fraction) -> Fraction:
    """Rounded down to three digits."""
    unit = Fraction(10) ** (floor(log10(amount)) - 2)
    return (amount // unit) * unit


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
