"""What an analyst holds of a workload: every answer with its interval, and any other count of its columns, free."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian
from confide.policy import Policy, RowUnit, Table
from confide.privacy.budget import Budget
from confide.query.key_value import spelled
from confide.release.answer.answer import Answer
from confide.release.answer.frames import as_pandas, as_polars
from confide.release.cost import Cost
from confide.release.whole_table import key_of
from confide.release.workload.chosen_table import ChosenTable
from confide.release.workload.compact_design import MARK, CompactDesign
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.partitioned import PartitionedDesign, read_measured
from confide.workload.asked import AskedTable, LinearWorkload, kinds_by_column
from confide.workload.domain import Binned
from confide.workload.strategy.line import Floats, Kind, stretches

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

MOST_SHOWN = 10**7
"""Answers that are listed at once."""
_TOGETHER = 10**5
"""Rows of a file that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredTable:
    """The answers of one table, shaped by its columns: estimates, and the ends of their intervals.

    A true count is a whole number and not negative, so the ends are moved inward to such.
    """

    asked: AskedTable
    title: str
    values: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class WorkloadAnswers:
    """Answers of a workload, all from one measurement. Nothing here reads data or spends.

    Each interval holds the exact count with the stated confidence, on its own, whatever the data are. Estimates are
    unbiased, and so may be negative or broken numbers; those of strategies that look at the data are near, and biased.
    """

    table: Table
    linear: LinearWorkload
    measured: MeasuredDesign | PartitionedDesign | CompactDesign | ChosenTable
    cost: Cost
    confidence: float
    unit: str
    neighbours: str
    test_noise: bool = False
    stored: bool = field(default=False, compare=False)

    @property
    def strategy(self) -> str:
        return self.measured.strategy

    @property
    def mechanism(self) -> str:
        if isinstance(self.measured, ChosenTable):
            return f"{self.strategy}, exponential mechanism"
        kind = "gaussian" if isinstance(self.measured.noises[0].law, DiscreteGaussian) else "laplace"
        return f"{self.strategy}, discrete {kind}"

    def __len__(self) -> int:
        """How many answers there are."""
        return self.linear.size

    def tables(self) -> Iterator[AnsweredTable]:
        """The answers, one table after the other."""
        return self.some(range(len(self.linear.tables)))

    def some(self, places: Iterable[int]) -> Iterator[AnsweredTable]:
        """The answers of some tables, by their places in the workload: put together as each is asked for."""
        return map(self.answered, places)

    def marginal(self, *columns: str) -> AnsweredTable:
        """The answers of the marginal of some columns, in any order. Free."""
        domain = self.linear.domain
        for name in columns:
            if name not in domain.names:
                raise ParameterError(f"{name} was not measured, only {', '.join(domain.names)}")
        wanted = tuple(sorted(map(domain.place_of, columns)))
        for place, own in enumerate(self.linear.tables):
            if own.columns == wanted and set(own.kinds) == {"each"}:
                return self.answered(place)
        raise ParameterError(
            f"the workload has no marginal of {' × '.join(columns)}; ask answers.sql for its counts, or ask "
            "for it with confide.marginals"
        )

    def answered(self, place: int, kinds: tuple[Kind, ...] | None = None) -> AnsweredTable:
        """The answers of a table, or other stretches of the same columns."""
        own = self.linear.tables[place]
        asked = own if kinds is None else AskedTable(own.columns, kinds)
        values, below, above = self.measured.answers(asked, place, self.confidence)
        low, high = whole_ends(below, above)
        return AnsweredTable(asked, self.linear.title(asked), values, low, high)

    # --- taking it elsewhere ------------------------------------------------------------------------------------------

    def to_arrow(self) -> "pyarrow.Table":
        """One row for each answer: what it counts, then count, count_low and count_high.

        A stretch of a column is named by its ends, <column>_from and <column>_to, both included; a marginal by the keys
        of its columns, and by its name if there are several.
        """
        import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

        if len(self) > MOST_SHOWN:
            raise ParameterError(
                f"{len(self):,} answers are too many to list at once, at most {MOST_SHOWN:,}; look at them table by "
                "table with tables() or marginal(), write them with to_parquet(), or ask with sql()"
            )
        parts = [self._arrow(own) for own in self.tables()]
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="default")

    def _arrow(self, own: AnsweredTable) -> "pyarrow.Table":
        import pyarrow as pa  # noqa: PLC0415

        arrays: dict[str, Any] = {}
        size = own.values.size
        if len(self.linear.tables) > 1 and set(own.asked.kinds) <= {"each"}:
            arrays["marginal"] = pa.DictionaryArray.from_arrays(np.zeros(size, dtype=np.int32), [own.title]).cast(
                pa.string()
            )
        places = np.unravel_index(np.arange(size), own.values.shape)
        for column, kind, place in zip(own.asked.columns, own.asked.kinds, places, strict=True):
            for name, labels in self.labels(column, kind).items():
                arrays[name] = pa.array(labels).take(pa.array(place))
        arrays["count"] = own.values.reshape(-1)
        arrays["count_low"], arrays["count_high"] = own.low.reshape(-1), own.high.reshape(-1)
        return pa.table(arrays)

    def labels(self, column: int, kind: Kind) -> dict[str, list[Any]]:
        """What the answers of a column are called, by the name of the column that says it."""
        attribute = self.linear.domain.attributes[column]
        name = attribute.name
        if kind == "each":
            key = key_of(attribute, "")
            return {name: [spelled(key, place) for place in range(attribute.size)]}
        starts, stops = stretches(kind, attribute.size)
        if isinstance(attribute, Binned):
            low: list[Any] = [attribute.value(attribute.ends(place)[0]) for place in range(attribute.size)]
            high: list[Any] = [attribute.value(attribute.ends(place)[1]) for place in range(attribute.size)]
        else:
            low = list(attribute.values)
            high = low
        return {
            f"{name}_from": [low[place] for place in starts.tolist()],
            f"{name}_to": [high[place - 1] for place in stops.tolist()],
        }

    def to_parquet(self, path: "str | os.PathLike[str]") -> None:
        """All answers in a Parquet file, however many, some tables at a time; rows as in `to_arrow`."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        kinds: dict[str, Any] = {}
        if len(self.linear.tables) > 1:
            kinds["marginal"] = pa.string()
        for column, own in kinds_by_column(self.linear.tables).items():
            for kind in own:
                kinds |= {name: pa.array(labels).type for name, labels in self.labels(column, kind).items()}
        kinds |= dict.fromkeys(("count", "count_low", "count_high"), pa.float64())
        schema = pa.schema(list(kinds.items()))
        held: list[pa.Table] = []
        with pq.ParquetWriter(path, schema) as writer:
            for table in self.tables():
                found = self._arrow(table)
                missing = {name: pa.nulls(len(found), kind) for name, kind in kinds.items()}
                held.append(pa.table(missing | {name: found[name] for name in found.column_names}, schema=schema))
                if sum(map(len, held)) >= _TOGETHER:
                    writer.write_table(pa.concat_tables(held))
                    held.clear()
            if held:
                writer.write_table(pa.concat_tables(held))

    def to_polars(self) -> "polars.DataFrame":
        return as_polars(self.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        return as_pandas(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    # --- more of the same ---------------------------------------------------------------------------------------------

    def sql(self, text: str, confidence: float | None = None) -> Answer:
        """Any count of what was measured, with its interval. Free.

        A COUNT(*) of the table with conditions on its columns, and with keys; refused if it does not follow from what
        was measured.
        """
        from confide.release.workload.free_counts import answer_sql  # noqa: PLC0415  loaded when used

        return answer_sql(self, text, self.confidence if confidence is None else confidence)

    def microdata(self, fit: str = "adaptive") -> "pyarrow.Table":
        """A table without negative counts, fitted to the same measurements: values with their `weight`. Free."""
        from confide.release.workload.fitting import fitted_cells  # noqa: PLC0415  loaded when used

        return fitted_cells(self, fit)

    def plot(self, path: object = None) -> Any:
        """An Altair chart: a cumulative curve with its band for every ordered column, bars for marginals. A path keeps
        it in a file: .html, .png or .svg.
        """
        from confide.release.workload.chart import workload_chart  # noqa: PLC0415  heavy, and loaded when used

        return workload_chart(self, path)

    @cached_property
    def policy(self) -> Policy:
        """Public facts alone: the table, each row a unit of its own, to read SQL by."""
        alone = Table(self.table.name, columns=self.table.columns)
        return Policy({alone.name: alone}, RowUnit(), Budget.of(1))

    def __str__(self) -> str:
        from confide.release.workload.plan import answers_text  # noqa: PLC0415  loaded when printed

        return answers_text(self)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        facts = {
            "cost": self.cost.to_dict(),
            "unit": self.unit,
            "neighbours": self.neighbours,
            "test_noise": self.test_noise,
        }
        own = self.measured
        parts = own.to_parts() if isinstance(own, CompactDesign) else [own.to_bytes()]
        return b"".join([json.dumps(facts).encode(), b"\n", *parts])

    @classmethod
    def from_bytes(cls, kept: bytes, table: Table, linear: LinearWorkload, confidence: float) -> "WorkloadAnswers":
        end = kept.index(b"\n")
        facts = json.loads(kept[:end])
        cost = Cost.from_dict(facts["cost"])
        rest = memoryview(kept)[end + 1 :]  # it may be long
        compact = bytes(rest[: len(MARK)]) == MARK
        measured = CompactDesign.from_bytes(rest) if compact else read_measured(bytes(rest))
        return cls(table, linear, measured, cost, confidence, facts["unit"], facts["neighbours"], facts["test_noise"])


def whole_ends(below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """The whole numbers, from zero on, that an interval holds; where it holds none, its upper end."""
    low = np.maximum(np.ceil(below), 0.0)
    high = np.maximum(np.floor(above), 0.0)
    return np.minimum(low, high), high
