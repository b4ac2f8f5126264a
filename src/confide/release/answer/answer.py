"""What an analyst holds afterwards: a small table with an interval on every cell, to store, show and take elsewhere."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from math import inf, isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from confide.release.answer import answer_file, chart, rendering
from confide.release.answer.chosen import level
from confide.release.answer.frames import as_pandas, as_polars
from confide.release.answer.sampled_answer import SampledColumn, for_population, sampled_facts, sampled_from
from confide.release.cost import Cost

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

KeyType = Literal["text", "integer", "number", "boolean", "date"]
_FORMAT = 1
_PLAIN = frozenset((int, str, bool, type(None)))
"""Types that are kept as they are."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of group keys. A bin is named by its lower end."""

    name: str
    type: KeyType
    values: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column of estimates with the ends of their intervals.

    Iterated, or as an array, it gives the estimates; None, or NaN, in the rows that are `unknown`: there the interval
    is the whole range that the policy allows, and an estimate would be made up. `values` has a number there all the
    same, the one that ORDER BY and HAVING looked at.

    `possible` are, of a column that MODE found, the values that each row may have; the ends are the first and the last
    of them, in the order of the policy.

    Of truths False comes before True; of texts that CASE makes of released numbers the ends are the first and the last
    that are possible, in its order. None is NULL.
    """

    name: str
    type: KeyType
    values: tuple[Any, ...]
    low: tuple[Any, ...]
    high: tuple[Any, ...]
    mechanism: str
    assumes: str
    note: str = ""
    unknown: tuple[int, ...] = ()
    among: tuple[Any, ...] = ()
    """What MODE finds in some row: all values that are possible in one of them."""
    places: tuple[tuple[int, ...], ...] = ()
    """Which of those are possible in each row; none are named in the rows that are `unknown`, where all are."""

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._known)

    def __getitem__(self, row: int) -> Any:
        return self._known[row]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np  # noqa: PLC0415  loaded when used

        filled = [nan if value is None else value for value in self]
        return np.array(filled, dtype=dtype)

    @property
    def possible(self) -> tuple[tuple[Any, ...], ...]:
        """Of MODE, for each row the values that it may be at the stated confidence; empty for all other columns."""
        return tuple(map(self.possible_in, range(len(self.places))))

    def possible_in(self, row: int) -> tuple[Any, ...]:
        """The same of one row."""
        if not self.places[row]:
            return () if self.values[row] is None else self.among
        return tuple(self.among[place] for place in self.places[row])

    @property
    def _known(self) -> Sequence[Any]:
        if not self.unknown:
            return self.values
        unknown = frozenset(self.unknown)
        return tuple(None if row in unknown else value for row, value in enumerate(self.values))


_KEPT: Final[dict[type, tuple[str, tuple[str, ...]]]] = {
    KeyColumn: ("KeyColumn", ("name", "type", "values")),
    ValueColumn: (
        "ValueColumn",
        ("name", "type", "values", "low", "high", "mechanism", "assumes", "note", "unknown", "among", "places"),
    ),
}
"""How columns are called in a ledger, whatever their classes are called here."""
_WHERE_ANY: Final = frozenset(("unknown", "among", "places"))
"""Fields that are kept where there is something in them."""


@dataclass(frozen=True, repr=False)
class Answer:
    """Keys, estimates and intervals of one question, and what it cost.

    Each interval holds the exact answer with the stated confidence, cell by cell; where rows were `chosen` by value,
    such a share of the intervals shown in a column does on average. What the policy's clamping changes is not in it: an
    interval is for the answer on the data as the policy reads them.

    `answer["n"]` is a column, with its ends at `answer["n"].low` and `.high`; `answer[0]` is a row, and a loop gives
    one row after the other, as `to_dicts` does. Where an interval is the whole range that the policy allows there is no
    information: the estimate is None in rows and columns, null in frames and JSON, and the ends are those of the range.
    """

    columns: tuple[KeyColumn | ValueColumn, ...]
    confidence: float
    cost: Cost
    unit: str
    neighbours: str
    question: str
    notes: tuple[str, ...] = ()
    test_noise: bool = False
    chosen: tuple[int, int] | None = None
    """Where rows were chosen by value: how many are shown, and of how many groups. The confidence then is for the share
    of a column's intervals that hold, on average, and each of them is computed at `each_confidence`.
    """
    sampled: tuple[SampledColumn, ...] = field(default=(), repr=False)
    """What was measured for each aggregate, where all are means or shares: `for_population` reads it."""
    jointly: bool = False
    """Whether all intervals of a column, of rows that are shown and of others, hold together: where rows that are
    chosen share noise. `each_confidence` is then that of one row among all.
    """
    stored: bool = field(default=False, compare=False)
    """Whether it was kept before this call, which cost nothing then: a fact of the call, not of the answer."""

    wider: tuple[str, ...] = field(default=(), compare=False)
    """Which intervals are wider than the call wanted: a fact of the call as well."""

    def marked(self, stored: bool, wider: tuple[str, ...] = ()) -> "Answer":
        """The same answer, as a call found it."""
        return self if (stored, wider) == (self.stored, self.wider) else replace(self, stored=stored, wider=wider)

    @property
    def each_confidence(self) -> float:
        """At which confidence each interval was computed: the stated one, or a higher one where rows were chosen."""
        if self.chosen is None:
            return self.confidence
        shown, groups = self.chosen
        return float(level(self.confidence, 1 if self.jointly else shown, groups))

    @property
    def mechanism(self) -> dict[str, str]:
        """The mechanism of each aggregate."""
        return {column.name: column.mechanism for column in self.values}

    @property
    def assumes(self) -> dict[str, str]:
        """What each aggregate's interval assumes: `always` nothing, `at_most` that no unit has more rows than count,
        `density` that the data are not too sparse.
        """
        return {column.name: column.assumes for column in self.values}

    @cached_property
    def keys(self) -> tuple[KeyColumn, ...]:
        return tuple(column for column in self.columns if isinstance(column, KeyColumn))

    @cached_property
    def values(self) -> tuple[ValueColumn, ...]:
        return tuple(column for column in self.columns if isinstance(column, ValueColumn))

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return any(column.name == name for column in self.columns)

    @overload
    def __getitem__(self, which: str) -> KeyColumn | ValueColumn: ...
    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, which: str | int | slice) -> Any:
        """A column by its name; a row, or several, by number."""
        if not isinstance(which, str):
            return self.to_dicts()[which]
        found = next((column for column in self.columns if column.name == which), None)
        if found is None:
            raise KeyError(f"there is no column {which}; there are {', '.join(column.name for column in self.columns)}")
        return found

    def for_population(self) -> "Answer":
        """The same answer with intervals for the population of which the rows are a random sample. Free."""
        return for_population(self)

    # --- taking it elsewhere ------------------------------------------------------------------------------------------

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict per row: keys as they are, an aggregate a, a_low, a_high."""
        names, columns = zip(*self._flat(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_arrow(self) -> "pyarrow.Table":
        import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

        kinds = {
            "text": pa.string(),
            "integer": pa.int64(),
            "number": pa.float64(),
            "boolean": pa.bool_(),
            "date": pa.date32(),
        }
        arrays = {}
        for column in self.columns:
            kind = kinds[column.type]
            if isinstance(column, KeyColumn):
                arrays[column.name] = pa.array(column.values, kind)
            else:
                wide = column.type == "integer" and any(
                    v is not None and abs(v) >= 2**63 for v in (*column.values, *column.low, *column.high)
                )
                for name, values in zip(_names(column), (tuple(column), column.low, column.high), strict=True):
                    doubles = [None if v is None else _double(v) for v in values] if wide else values
                    arrays[name] = pa.array(doubles, pa.float64() if wide else kind)
        return pa.table(arrays)

    def to_polars(self) -> "polars.DataFrame":
        return as_polars(self.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        return as_pandas(self.to_arrow())

    def to_json(self) -> str:
        """The rows and what they mean, as one JSON object; what is infinite, or unknown, is null."""
        rows = [{name: _json(value) for name, value in row.items()} for row in self.to_dicts()]
        facts = {
            "rows": rows,
            "confidence": self.confidence,
            "cost": self.cost.to_dict(),
            "mechanism": self.mechanism,
            "assumes": self.assumes,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "notes": [*self.notes, *(f"{c.name}: {c.note}" for c in self.values if c.note), *self.wider],
        }
        possible = {column.name: column.possible for column in self.values if column.places}
        if possible:
            facts["possible"] = {name: [list(map(_json, own)) for own in rows] for name, rows in possible.items()}
        if self.chosen is not None:
            shown, groups = self.chosen
            jointly = {"jointly": True} if self.jointly else {}
            facts["chosen"] = {"shown": shown, "groups": groups, "confidence": self.each_confidence, **jointly}
        if self.test_noise:
            facts["test_noise"] = True
        return json.dumps(facts, ensure_ascii=False)

    def to_file(self, path: object) -> Path:
        """Write it as .csv, .parquet, .json or .arrow; where it is. A file that is there is written anew.

        Texts in a CSV file that begin like a formula get an apostrophe before them; numbers stay as they are.
        """
        place = answer_file.file_place(path, "to_file")
        with place.open("wb") as stream:
            answer_file.write(self, stream, place.suffix)
        return place

    def plot(self, path: object = None) -> Any:
        """An Altair chart with error bars, or bands; kept in a file too if a path is given: .html, .png or .svg.

        A page and a notebook need no network. PNG and SVG, and pages that hold all they need, are made by the extra
        `confide[plot]`.
        """
        return chart.error_bars(self, path)

    def __repr__(self) -> str:
        rows = f"{len(self):,} row{'s' * (len(self) != 1)}"
        names = ", ".join(column.name for column in self.columns)
        return rendering.printable(f"<Answer: {rows} of {names}; cost {self.cost}; print() shows it>")

    def __str__(self) -> str:
        return rendering.answer_text(self)

    def _repr_html_(self) -> str:
        return rendering.answer_html(self)

    def _flat(self) -> list[tuple[str, Sequence[Any]]]:
        flat: list[tuple[str, Sequence[Any]]] = []
        for column in self.columns:
            if isinstance(column, KeyColumn):
                flat.append((column.name, column.values))
            else:
                flat += zip(_names(column), (tuple(column), column.low, column.high), strict=True)
        return flat

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """A canonical text, kept in the ledger and read back byte for byte."""
        columns = []
        for column in self.columns:
            kind, fields = _KEPT[type(column)]
            kept = {
                name: _plain(getattr(column, name))
                for name in fields
                if name not in _WHERE_ANY or getattr(column, name)
            }
            columns.append({"kind": kind, **kept})
        facts = {
            "format": _FORMAT,
            "columns": columns,
            "confidence": self.confidence,
            "cost": self.cost.to_dict(),
            "unit": self.unit,
            "neighbours": self.neighbours,
            "question": self.question,
            "notes": list(self.notes),
            "test_noise": self.test_noise,
        }
        if self.chosen is not None:
            facts["chosen"] = list(self.chosen)
        if self.sampled:
            facts["sampled"] = sampled_facts(self.sampled)
        if self.jointly:
            facts["jointly"] = True
        return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Answer":
        facts = json.loads(stored)
        kinds: dict[str, Any] = {kind: column for column, (kind, _) in _KEPT.items()}
        columns = []
        for fields in facts.pop("columns"):
            kind = kinds[fields.pop("kind")]
            columns.append(kind(**{name: _restored(name, fields) for name in fields}))
        facts.pop("format")
        notes, cost = tuple(facts.pop("notes")), Cost.from_dict(facts.pop("cost"))
        chosen, sampled = facts.pop("chosen", None), sampled_from(facts.pop("sampled", ()))
        chosen = chosen and tuple(chosen)
        return cls(columns=tuple(columns), notes=notes, cost=cost, chosen=chosen, sampled=sampled, **facts)


def _names(column: ValueColumn) -> tuple[str, str, str]:
    return column.name, f"{column.name}_low", f"{column.name}_high"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        kinds = set(map(type, value))
        as_they_are = kinds <= _PLAIN or (kinds == {float} and all(map(isfinite, value)))
        return list(value) if as_they_are else [_plain(part) for part in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def _restored(name: str, fields: dict[str, Any]) -> Any:
    value = fields[name]
    if not isinstance(value, list):
        return value
    if name in ("unknown", "places"):
        return tuple(tuple(part) if isinstance(part, list) else part for part in value)
    if fields["type"] == "date":
        return tuple(None if part is None else date.fromisoformat(part) for part in value)
    if "low" in fields and fields["type"] != "text" and str in set(map(type, value)):
        return tuple(float(part) if isinstance(part, str) else part for part in value)
    return tuple(value)


def _double(value: float) -> float:
    """The nearest double; infinity where there is none."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _json(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value
