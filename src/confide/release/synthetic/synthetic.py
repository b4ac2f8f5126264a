"""Synthetic data: a table to keep, to draw records from, and to ask. It was paid for when it was made."""

import json
import os
import struct
import zlib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, ParameterError, SourceError
from confide.host.notebook import framed, grid, lines, title
from confide.policy import Policy, RowUnit, Table
from confide.privacy.budget import Budget
from confide.privacy.public_randomness import fresh_public_generator, public_generator
from confide.release.answer.frames import as_pandas, as_polars
from confide.release.arguments import confidence_level
from confide.release.cost import Cost
from confide.release.count_questions import answer_counts, count_question, cut_columns, read_parts
from confide.release.synthetic.drawing import drawn_line, drawn_words, left_out, left_out_line
from confide.release.synthetic.implied import implied_ends
from confide.release.synthetic.kept import NOTHING_KEPT, KeptMeasurements
from confide.release.synthetic.records import records
from confide.release.synthetic.values import bins_of, one_by_one
from confide.synthesis.curator import ShareTable
from confide.synthesis.inside import RefinedTable, ValueShares
from confide.synthesis.method import method_named
from confide.workload import (
    Binned,
    BoundWorkload,
    Domain,
    Sql,
    Tables,
    Workload,
    counting_answer,
    domain_of,
    threshold_blocks,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from confide.release.synthetic.report import SyntheticReport

_MAGIC: Final = b"confide synthetic 1\n"
_LONGEST: Final = 2**31
_MOST_RECORDS: Final = 10**9


@dataclass(frozen=True, repr=False)
class Synthetic:
    """Made-up records of one table, as shares of its rows in every cell; what holds them is the method's own.

    Nothing of it can be traced to a unit beyond what the cost allows, whatever is done with it. Its answers have no
    intervals: `session.trust` says, for a little budget, whether one of them holds.
    """

    table: Table
    domain: Domain
    model: ShareTable
    total: float
    """The estimated number of rows."""
    cost: Cost
    workload: str
    """What it was fitted to, in words."""
    method: str
    loss: float
    """How well it explains what was measured, in units of the noise: about 1 is as well as can be."""
    unit: str
    neighbours: str
    notes: tuple[str, ...] = field(default=())
    test_noise: bool = False
    kind: str = "rap"
    """The name of the method, which reads its table again."""
    values: Mapping[int, ValueShares] = field(default_factory=dict)
    """Of columns in bins, by place, how the values lie in each bin, where that was measured."""
    measured: KeptMeasurements = field(default=NOTHING_KEPT, compare=False)
    """The noisy counts that it was fitted to."""
    stored: bool = field(default=False, compare=False)
    """Whether it was kept before the call that gave it, which cost nothing then."""

    def __len__(self) -> int:
        """How many records a sample has if no number is given."""
        return max(1, round(self.total))

    # --- records ------------------------------------------------------------------------------------------------------

    def sample(self, n: int | None = None) -> "pyarrow.Table":
        """`n` records in the policy's schema, as many as the data are thought to have if not given. Free."""
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_RECORDS):
            raise ParameterError(f"n = {n!r} is not a number of records; write a whole number from 1")
        generator = fresh_public_generator()
        places = self.model.draw(self._expected() if n is None else n, generator)
        return records(self.table, self.domain, places, generator, self.values)

    def to_arrow(self) -> "pyarrow.Table":
        """The same records each time: the sample that stands for this synthetic data wherever a frame is wanted."""
        return self._records

    @cached_property
    def _records(self) -> "pyarrow.Table":
        generator = public_generator(zlib.crc32(self.model.to_bytes()))
        places = self.model.draw(self._expected(), generator)
        return records(self.table, self.domain, places, generator, self.values)

    @property
    def drawn(self) -> dict[str, str]:
        """How records come to their values, for each of their columns."""
        return drawn_words(self.table, self.domain, self.values)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns of the table that records do not have, and why."""
        return left_out(self.table, self.domain)

    def _expected(self) -> int:
        if len(self) > _MOST_RECORDS:
            raise ParameterError(
                f"this synthetic data stand for about {len(self):,} records, which are too many to list; draw fewer "
                "with sample(n)"
            )
        return len(self)

    def to_polars(self) -> "polars.DataFrame":
        return as_polars(self.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        return as_pandas(self.to_arrow())

    def to_parquet(self, path: str | os.PathLike[str], n: int | None = None) -> Path:
        """Write records as a Parquet file; where it is."""
        place = Path(path)
        self.write_parquet(place, n)
        return place

    def write_parquet(self, where: object, n: int | None = None) -> None:
        """Records as Parquet, at a path or in a stream."""
        import pyarrow.parquet as pq  # noqa: PLC0415  heavy, and loaded when used

        pq.write_table(self.to_arrow() if n is None else self.sample(n), where)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(self, question: "Workload | str", confidence: object = 0.95) -> "Answers | pyarrow.Table":
        """Counts from the table itself, without the chance of drawing records. Free.

        A workload gives `Answers`, computed as they are looked at; a COUNT query gives its table: each count, and the
        ends of its interval where what was measured implies one. Those hold with the confidence whatever the data are,
        of the rows that have a declared value in every column, at most `at_most.rows` of a unit; where nothing is
        implied they are NULL. Counts of the table add up, and agree with records; where one is outside of its interval,
        that is the one to trust.
        """
        if isinstance(question, str):
            return self._answer_sql(question, confidence_level(confidence))
        if not isinstance(question, Workload):
            raise ParameterError(f"give a workload or a COUNT query, not {type(question).__name__}")
        domain, table = self._divided(self._cut_by(question))
        read = read_parts(question, self._policy, _NoCatalog(), domain)
        return Answers(read.bound(domain), table, self.total)

    def _answer_sql(self, text: str, confidence: float) -> "pyarrow.Table":
        import pyarrow as pa  # noqa: PLC0415

        question = count_question(text, self._policy, _NoCatalog(), self.domain)
        cut = cut_columns(question, self.domain)
        domain, table = self._divided(cut)
        found = answer_counts(question, domain, table, self.total)
        ends = implied_ends(question, domain, self._measured_of(cut), confidence)
        columns: dict[str, pa.Array] = {}
        for name, values in found.items():
            if name not in ends:
                columns[name] = pa.array(values)
                continue
            lows, highs = ends[name]
            columns[name] = pa.array(values)
            columns[_free(f"{name}_low", found)] = pa.array(lows, pa.int64())
            columns[_free(f"{name}_high", found)] = pa.array(highs, pa.int64())
        return pa.table(columns)

    def report(self) -> "SyntheticReport":
        """What the records are good for: what was measured, how well they keep it, what may be trusted. Free."""
        from confide.release.synthetic.report import report_on  # noqa: PLC0415  loaded when used

        return report_on(self)

    def _measured_of(self, cut: Collection[str]) -> KeptMeasurements:
        """What was measured of the places that a question speaks of: bins, or values where it cuts through bins."""
        if not cut:
            return self.measured
        values = zip(sorted(self.values), self.measured.of_values(len(self.domain)), strict=False)
        return KeptMeasurements(tuple(replace(own, columns=(column,)) for column, own in values))

    def _cut_by(self, workload: Workload) -> set[str]:
        """The columns whose bins single counts in SQL cut through. Thresholds speak of the bins."""
        questions = []
        for part in workload.parts:
            if not isinstance(part, Sql):
                return set()
            questions.append(count_question(part.text, self._policy, _NoCatalog(), self.domain))
        if any(question.keys for question in questions):
            return set()
        return {name for question in questions for name in cut_columns(question, self.domain)}

    def _divided(self, names: Collection[str]) -> tuple[Domain, Tables]:
        """The table with the bins of some columns divided into values, as far as those were measured."""
        places = {self.domain.place_of(name) for name in names} & set(self.values)
        if not places:
            return self.domain, self.model
        attributes = tuple(
            one_by_one(own) if place in places else own for place, own in enumerate(self.domain.attributes)
        )
        return Domain(self.domain.table, attributes), RefinedTable(self.model, {p: self.values[p] for p in places})

    @cached_property
    def _policy(self) -> Policy:
        """Public facts alone: the table, each record a unit of its own."""
        alone = Table(self.table.name, columns=self.table.columns)
        return Policy({alone.name: alone}, RowUnit(), Budget.of(1))

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Keep it in a file, for `confide.load_synthetic`."""
        place = Path(path)
        place.write_bytes(self.to_bytes())
        return place

    def to_bytes(self) -> bytes:
        """The same bytes for the same data: facts as JSON, then the table."""
        binned = [attribute for attribute in self.domain.attributes if isinstance(attribute, Binned)]
        facts = {
            "policy": self._policy.to_yaml(),
            "schema": list(self.table.columns),
            "columns": list(self.domain.names),
            "bins": {own.name: str(own.width * own.column.grain) for own in binned},
            "kind": self.kind,
            "total": self.total,
            "cost": self.cost.to_dict(),
            "workload": self.workload,
            "method": self.method,
            "loss": self.loss,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "notes": list(self.notes),
            "test_noise": self.test_noise,
        }
        if self.values:
            facts["values"] = [self.domain.names[place] for place in sorted(self.values)]
        shares = b"".join(self.values[place].shares.astype("<f8").tobytes() for place in sorted(self.values))
        kept = b"" if self.measured is NOTHING_KEPT else self.measured.to_bytes()
        if kept:
            facts |= {"measured": self.measured.facts(), "measured_bytes": len(kept)}
        text = json.dumps(facts, ensure_ascii=False, sort_keys=True).encode()
        return _MAGIC + zlib.compress(struct.pack("<I", len(text)) + text + shares + kept + self.model.to_bytes(), 6)

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Synthetic":
        if not stored.startswith(_MAGIC):
            raise SourceError("this is not synthetic data that Confide saved; make it with Synthetic.save")
        try:
            content = _inflated(stored[len(_MAGIC) :])
            length = struct.unpack_from("<I", content)[0]
            facts = json.loads(content[4 : 4 + length])
            known = next(iter(Policy.parse_text(facts.pop("policy")).tables.values()))
            table = Table(known.name, columns={name: known.columns[name] for name in facts.pop("schema")})
            columns, bins = facts.pop("columns"), facts.pop("bins")
            facts.pop("rows", None)  # earlier versions said how many
            domain = domain_of(table, columns, bins)
            cost, notes = Cost.from_dict(facts.pop("cost")), tuple(facts.pop("notes"))
            if not (isfinite(facts["total"]) and facts["total"] >= 0 and isfinite(facts["loss"])):
                raise ValueError("numbers that a synthesis does not leave")
            values, begin = _values_in(content, 4 + length, domain, facts.pop("values", []))
            end = begin + facts.pop("measured_bytes", 0)
            places = (*domain.sizes, *(len(values[place].bins) for place in sorted(values)))
            if "measured" in facts:
                facts["measured"] = KeptMeasurements.of(facts["measured"], content[begin:end], places)
            model = method_named(facts.get("kind", "rap")).load(content[end:], domain.sizes)
            return cls(table, domain, model, cost=cost, notes=notes, values=values, **facts)
        except ConfideError:
            raise
        except Exception as error:  # what a file says may be wrong in any way
            raise SourceError(f"the synthetic data are damaged ({type(error).__name__}); save them again") from None

    def __repr__(self) -> str:
        size = f"about {len(self):,} records of {len(self.domain)} columns"
        return f"<Synthetic {self.table.name}: {size}; cost {self.cost}>"

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        sizes = [(attribute.name, f"{attribute.size:,}") for attribute in self.domain.attributes]
        return framed(title(first), grid(("column", "places"), sizes, words=(0,)), lines(more))

    def __str__(self) -> str:
        sizes = f"{len(self.domain)} columns, {sum(self.domain.sizes)} places, {self.model.words}"
        lines = [
            f"synthetic {self.table.name}: about {len(self):,} records ({sizes})",
            f"fitted to {self.workload} by {self.method}",
            f"cost {self.cost}, unit {self.unit}, {self.neighbours}",
            *drawn_line(self.drawn),
            *left_out_line(self.left_out),
            *self.notes,
        ]
        return "\n".join([*lines, "TEST NOISE: protects nobody"] if self.test_noise else lines)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a workload, computed as they are looked at: never all of them at once."""

    workload: BoundWorkload
    model: Tables
    total: float

    def __len__(self) -> int:
        """How many thresholds the workload has; `workload.size` is how many counts they stand for."""
        return len(self.workload.thresholds)

    def __getitem__(self, place: int) -> NDArray[np.float64]:
        """The counts of one threshold, an array with an axis for each of its columns."""
        marks = self.workload.thresholds[place]
        shape = [self.workload.domain.sizes[column] for column in marks.columns]
        runs = [answers for _, answers in threshold_blocks(self.model, marks)]
        return np.concatenate(runs).reshape(shape).astype(np.float64) * self.total

    def columns(self, place: int) -> tuple[str, ...]:
        """The columns of a threshold, in the order of the axes of its counts."""
        return tuple(self.workload.domain.names[column] for column in self.workload.thresholds[place].columns)

    def counts(self) -> NDArray[np.float64]:
        """The single counts of the workload, in its order."""
        domain = self.workload.domain
        answers = [counting_answer(self.model, domain, count) for count in self.workload.counts]
        return np.array(answers) * self.total

    def blocks(self) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
        """All counts in runs of bounded size: the threshold, the cell where the run starts, its counts."""
        for place, marks in enumerate(self.workload.thresholds):
            for start, answers in threshold_blocks(self.model, marks):
                yield place, start, answers * np.float32(self.total)


def load_synthetic(path: str | os.PathLike[str]) -> Synthetic:
    """Synthetic data that `Synthetic.save` kept."""
    place = Path(path)
    try:
        stored = place.read_bytes()
    except OSError as error:
        raise SourceError(f"{place} cannot be read: {error.strerror}") from None
    return Synthetic.from_bytes(stored)


class _NoCatalog:
    """Synthetic data has no public tables beside it."""

    def columns(self, table: str) -> dict[str, Any]:
        raise KeyError(table)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        raise KeyError(table)

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        raise KeyError(table)


def _values_in(content: bytes, at: int, domain: Domain, names: Sequence[str]) -> tuple[dict[int, ValueShares], int]:
    """The shares of values that were kept, and where they end."""
    found = {}
    for name in names:
        place = domain.place_of(name)
        binned = domain.attributes[place]
        if not isinstance(binned, Binned):
            raise TypeError("values inside of a column without bins")
        bins = bins_of(binned)
        found[place] = ValueShares(bins, np.frombuffer(content, "<f8", len(bins), at).astype(np.float64))
        at += 8 * len(bins)
    return found, at


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _inflated(compressed: bytes) -> bytes:
    """Not more than a synthetic table can be: a small file must not fill the memory."""
    engine = zlib.decompressobj()
    content = engine.decompress(compressed, _LONGEST)
    if engine.unconsumed_tail or not engine.eof:
        raise ValueError("too long, or cut off")
    return content
