"""Synthetic tables that refer to each other: records with keys that fit, and SQL over all of them."""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from confide.errors import ParameterError, SourceError
from confide.host.notebook import framed, lines, title
from confide.privacy.public_randomness import fresh_public_generator, public_generator
from confide.release.cost import Cost
from confide.release.synthetic.matching import matched
from confide.release.synthetic.records import records
from confide.release.synthetic.synthetic import Synthetic

if TYPE_CHECKING:
    import pyarrow

MAGIC: Final = b"confide synthetic tables 1\n"
_MOST_RECORDS: Final = 10**8


@dataclass(frozen=True, repr=False)
class SyntheticTables:
    """Made-up records of a parent table and of the tables that refer to it.

    `made` holds for each child two synthetic tables: the parent's rows with the number of their children, and the
    child's rows with columns of their parent. Records are drawn from the first and get children from the second that
    agree with them in as many columns as can be. Nothing of it can be traced to a unit beyond what the cost allows.
    """

    parent: str
    key: str
    references: Mapping[str, str]
    """For each child its column that holds the parent's key."""
    counts: Mapping[str, str]
    """For each child the made column of the parent that says how many rows of it there are."""
    inherited: Mapping[str, Mapping[str, str]]
    """For each child what the parent's columns are called beside its own."""
    made: Mapping[str, tuple[Synthetic, Synthetic]]
    cost: Cost
    stored: bool = field(default=False, compare=False)

    def __len__(self) -> int:
        """How many records of the parent there are."""
        return len(self._first)

    @property
    def test_noise(self) -> bool:
        return self._first.test_noise

    @property
    def _first(self) -> Synthetic:
        return next(iter(self.made.values()))[0]

    @property
    def drawn(self) -> dict[str, dict[str, str]]:
        """How records come to their values, by table and column."""
        found = {self.parent: {n: how for n, how in self._first.drawn.items() if n not in self.counts.values()}}
        for child, (_, rows) in self.made.items():
            found[child] = {n: how for n, how in rows.drawn.items() if n not in self.inherited[child].values()}
            found[child][self.references[child]] = f"the key of a record of {self.parent} that agrees with its columns"
        return found

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """The columns that records do not have, and why, by table."""
        found = {self.parent: self._first.left_out}
        return found | {child: rows.left_out for child, (_, rows) in self.made.items()}

    # --- records ------------------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> Mapping[str, "pyarrow.Table"]:
        """The records of each table, the same each time."""
        content = b"".join(own.model.to_bytes() for pair in self.made.values() for own in pair)
        return self._draw(None, public_generator(zlib.crc32(content)))

    def sample(self, n: int | None = None) -> Mapping[str, "pyarrow.Table"]:
        """`n` records of the parent, as many as the data are thought to have if not given, and their children. Free."""
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_RECORDS):
            raise ParameterError(f"n = {n!r} is not a number of records; write a whole number from 1")
        return self._draw(n, fresh_public_generator())

    def _draw(self, n: int | None, generator: np.random.Generator) -> dict[str, "pyarrow.Table"]:
        many = len(self) if n is None else n
        if many > _MOST_RECORDS:
            raise ParameterError(f"about {many:,} records are too many to list; draw fewer with sample(n)")
        found: dict[str, Any] = {}
        parents = np.zeros((0, 0), dtype=np.int64)
        for child, (numbers, rows) in self.made.items():
            drawn = numbers.model.draw(many, generator)
            own = numbers.domain.place_of(self.counts[child])
            table = records(numbers.table, numbers.domain, drawn, generator, numbers.values)
            counts = table[self.counts[child]].to_numpy()
            if not found:
                parents = np.delete(drawn, own, axis=1)
                found[self.parent] = table.drop_columns([self.counts[child]])
            else:  # of the same parents
                order = _by_size(np.delete(numbers.domain.sizes, own))
                counts = counts[matched(parents[:, order], np.delete(drawn, own, axis=1)[:, order], generator)]
            found[child] = self._children(child, rows, parents, counts, generator)
        return found

    def _children(
        self, child: str, rows: Synthetic, parents: Any, counts: Any, generator: np.random.Generator
    ) -> "pyarrow.Table":
        import pyarrow as pa  # noqa: PLC0415  heavy, and loaded when used

        owners = np.repeat(np.arange(len(counts)), counts)
        inherited = [place for place, name in enumerate(rows.domain.names) if name in self.inherited[child].values()]
        drawn = rows.model.draw(len(owners), generator) if len(owners) else np.zeros((0, len(rows.domain)), np.int64)
        order = _by_size([rows.domain.sizes[place] for place in inherited])
        chosen = matched(parents[owners][:, order], drawn[:, inherited][:, order], generator)
        table = records(rows.table, rows.domain, drawn[chosen], generator, rows.values)
        columns = {
            name: pa.array(owners + 1, pa.int64()) if name == self.references[child] else table[name]
            for name in table.column_names
            if name not in self.inherited[child].values()
        }
        return pa.table(columns)

    def to_parquet(self, folder: str | os.PathLike[str], n: int | None = None) -> dict[str, Path]:
        """Write one Parquet file for each table into a folder; where they are."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        found = {}
        for name, table in (self.tables if n is None else self.sample(n)).items():
            found[name] = place / f"{name}.parquet"
            pq.write_table(table, found[name])
        return found

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(self, sql: str) -> "pyarrow.Table":
        """What a query of any kind finds in the records of all tables. Free, and without an interval."""
        if not isinstance(sql, str):
            raise ParameterError(f"give a query in SQL, not {type(sql).__name__}")
        from confide.engine.duckdb.made_tables import ask  # noqa: PLC0415  loaded when used

        return ask(self.tables, sql)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Keep it in a file, for `confide.load_synthetic_tables`."""
        place = Path(path)
        place.write_bytes(self.to_bytes())
        return place

    def to_bytes(self) -> bytes:
        parts = [own.to_bytes() for pair in self.made.values() for own in pair]
        facts = {
            "parent": self.parent,
            "key": self.key,
            "references": dict(self.references),
            "counts": dict(self.counts),
            "inherited": {child: dict(names) for child, names in self.inherited.items()},
            "children": list(self.made),
            "sizes": [len(part) for part in parts],
            "cost": self.cost.to_dict(),
        }
        text = json.dumps(facts, ensure_ascii=False, sort_keys=True).encode()
        return MAGIC + struct.pack("<I", len(text)) + text + b"".join(parts)

    @classmethod
    def from_bytes(cls, stored: bytes) -> "SyntheticTables":
        if not stored.startswith(MAGIC):
            raise SourceError("these are not synthetic tables that Confide saved; make them with save")
        try:
            at = len(MAGIC) + 4
            end = at + struct.unpack_from("<I", stored, len(MAGIC))[0]
            facts = json.loads(stored[at:end])
            parts = []
            for size in facts.pop("sizes"):
                parts.append(Synthetic.from_bytes(stored[end : end + size]))
                end += size
            pairs = zip(parts[::2], parts[1::2], strict=True)
            made = dict(zip(facts.pop("children"), pairs, strict=True))
            return cls(made=made, cost=Cost.from_dict(facts.pop("cost")), **facts)
        except SourceError:
            raise
        except Exception as error:  # what a file says may be wrong in any way
            raise SourceError(f"the synthetic tables are damaged ({type(error).__name__}); save them again") from None

    # --- words --------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names = ", ".join((self.parent, *self.made))
        return f"<SyntheticTables {names}: about {len(self):,} records of {self.parent}; cost {self.cost}>"

    def __str__(self) -> str:
        said = [f"synthetic {self.parent} and {', '.join(self.made)}: about {len(self):,} records of {self.parent}"]
        for child, (numbers, rows) in self.made.items():
            said.append(f"{self.parent} with numbers of {child}: {numbers.workload} by {numbers.method}")
            said.append(f"{child} with columns of {self.parent}: {rows.workload} by {rows.method}")
        said.append(f"cost {self.cost}, unit {self._first.unit}, {self._first.neighbours}")
        for name, left in self.left_out.items():
            if left:
                said.append(f"left out of {name}: {', '.join(f'{own} ({why})' for own, why in left.items())}")
        return "\n".join([*said, "TEST NOISE: protects nobody"] if self.test_noise else said)

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        return framed(title(first), lines(more))


def load_synthetic_tables(path: str | os.PathLike[str]) -> SyntheticTables:
    """Synthetic tables that `SyntheticTables.save` kept."""
    place = Path(path)
    try:
        stored = place.read_bytes()
    except OSError as error:
        raise SourceError(f"{place} cannot be read: {error.strerror}") from None
    return SyntheticTables.from_bytes(stored)


def _by_size(sizes: Any) -> list[int]:
    """Columns with few places first: that is where rows agree."""
    return [int(place) for place in np.argsort(np.asarray(sizes), kind="stable")]
