"""What every engine that speaks SQL shares: summaries against a charge, and facts of public tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from confide.engine.protocol import CountedSets, Exact, Inquiry, Keep, KeyValue, Statements, Windows
from confide.engine.read.counted_tables import tabulated
from confide.engine.read.occupied_rows import OccupiedRows, occupied_rows, words_of
from confide.engine.read.public_facts import counted_rows, different_rows, infer_column, most_rows
from confide.engine.read.summary_reader import Evaluation
from confide.engine.result import Columns, Rows, ended, unless_failed
from confide.engine.sql.statement import SummaryWriter
from confide.engine.storage import Storages
from confide.errors import SourceError
from confide.policy import Column, Policy
from confide.privacy.charge import Charge
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.query.tree import Field, Join, Relation, Scan, Summary
from confide.workload.tables import ExactTables

Result = TypeVar("Result")


class SqlEngine(ABC):
    """One policy's tables behind statements that are written as DuckDB's; an engine of another dialect translates them.

    A subclass sets `_policy` and `_storages`, and runs statements.
    """

    _policy: Policy
    _storages: Storages
    _reads_once = False
    """Whether a bound must be kept in one reading of the rows, since two may see different rows."""

    def __init__(self) -> None:
        self._public: dict[str, Mapping[str, Column]] = {}
        self._multiplicities: dict[tuple[str, tuple[Column, ...]], int] = {}
        self._different: dict[tuple[str, tuple[str, ...], int], tuple[tuple[KeyValue, ...], ...] | None] = {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a custodian should know of the source, such as rights that nobody needs."""
        return ()

    @abstractmethod
    def _rows(self, statement: str) -> Rows:
        """The rows of a statement."""

    @abstractmethod
    def _columns(self, statement: str) -> Columns:
        """The columns of a statement as arrays: for results too long for rows of Python."""

    def _batches(self, statement: str) -> Iterator[Rows]:
        """The rows of a statement, some at a time, for results of any length; an engine that can, streams them."""
        yield self._rows(statement)

    def _column_batches(self, statement: str) -> Iterator[Columns]:
        """The columns of a statement, some rows at a time; an engine that can, streams them."""
        yield self._columns(statement)

    @abstractmethod
    def _unchanged(self) -> bool:
        """Whether the data are still those that were opened."""

    @abstractmethod
    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        """The columns of a public table, those that the policy describes with their description."""

    @property
    def steady(self) -> bool:
        return True

    def ready(self) -> None:
        """Refuse, before anything is charged, what is known not to work. What fails later is paid for."""
        if not self._unchanged():
            raise SourceError("the data have changed since they were opened; nothing was charged. Open them again")

    # --- private reads ------------------------------------------------------------------------------------------------

    def evaluate(
        self, summary: Summary, charge: Charge, secret: bytes, keep: Keep | None = None, windows: Windows | None = None
    ) -> Exact:
        """Exact integers out. Whatever fails, fails with the same words."""
        return self._against(charge, lambda: self._exact(summary, secret, keep, windows or {}))

    def tabulate(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> ExactTables:
        """Exact tables of counts, from few statements that several sets of columns share."""

        def read(summary: Summary, groups: Sequence[Sequence[int]]) -> Iterator[Columns]:
            writer = SummaryWriter(summary, self._storages, secret, self._reads_once)
            return self._column_batches(writer.cells_statement(groups, not self._bounded_anyway(summary)))

        return self._against(charge, lambda: tabulated(tabulation, read))

    def occupied(self, tabulation: Tabulation, charge: Charge, secret: bytes) -> CountedSets:
        """Counts of sets of keys, from the places of the bounded rows in all of them, which one statement reads."""
        sizes = tuple(key_size(key) or 0 for key in tabulation.keys)

        def read() -> OccupiedRows:
            summary = tabulation.summary(tuple(range(len(sizes))))
            writer = SummaryWriter(summary, self._storages, secret, self._reads_once)
            statement = writer.words_statement(words_of(sizes), not self._bounded_anyway(summary))
            with ended(self._column_batches(statement)) as batches:
                return occupied_rows(sizes, batches)

        return self._against(charge, read)

    def inquire(self, inquiry: Inquiry[Result], charge: Charge) -> Result:
        """What an inquiry finds. Whatever fails, fails with the same words."""
        statements = Statements(self._rows, self._columns, self._storages)
        return self._against(charge, lambda: inquiry.read(statements))

    def examine(self, inquiry: Inquiry[Result]) -> Result:
        """What an inquiry finds, without a charge: exact numbers, for the custodian's eyes and for no release."""
        statements = Statements(self._rows, self._columns, self._storages)
        return self._reading(lambda: inquiry.read(statements))

    def _against(self, charge: Charge, read: Callable[[], Result]) -> Result:
        if not isinstance(charge, Charge):
            raise TypeError("private rows are read against a charge of the ledger")
        return self._reading(read)

    def _reading(self, read: Callable[[], Result]) -> Result:
        """What is read of one state of the data. Whatever fails, fails with the same words."""
        return unless_failed(read, self._unchanged)

    def _exact(self, summary: Summary, secret: bytes, keep: Keep | None, windows: Windows) -> Exact:
        writer = SummaryWriter(summary, self._storages, secret, self._reads_once)
        bounding = not self._bounded_anyway(summary)
        most = self._policy.summary_rows
        evaluation = Evaluation(summary, writer, bounding, self._rows, self._columns, self._batches, most)
        return evaluation.exact(keep, windows)

    def _bounded_anyway(self, summary: Summary) -> bool:
        """Whether no unit can have more rows than its bound: then bounding changes nothing and is left out."""
        bound = summary.bound
        if bound is None:
            return True
        few = bound.groups if summary.keys else bound.rows
        return self._most_rows(summary.relation, bound.unit, few) <= few

    def _most_rows(self, relation: Relation, unit: Field, enough: int) -> int:
        """A bound on the rows that one unit has in a relation. Once it is above `enough` it may be too low."""
        joins = []
        while isinstance(relation, Join):
            joins.append(relation)
            relation = relation.left
        if not isinstance(relation, Scan) or relation.source != unit.source:
            return enough + 1
        most = self._most(relation.table, (unit.column,))
        for join in reversed(joins):
            if most > enough:
                break
            most *= max(1, self._most(join.right.table, tuple(right.column for _, right in join.on)))
        return most

    def _most(self, table: str, columns: tuple[Column, ...]) -> int:
        key = (table, columns)
        most = self._multiplicities.get(key)
        if most is None:
            most = self._multiplicities.setdefault(key, most_rows(self._rows, self._storages, table, columns))
        return most

    # --- public facts -------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> Mapping[str, Column]:
        if not self._policy.tables[table].public:
            return self._policy.tables[table].columns
        if table not in self._public:
            self._public[table] = {
                label: column or infer_column(self._rows, table, label, self._storages[table, label])
                for label, column in self._public_descriptions(table).items()
            }
        return self._public[table]

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> tuple[tuple[KeyValue, ...], ...] | None:
        if not self._policy.tables[table].public:
            raise ValueError(f"{table} is private: its rows are not told")
        key = (table, columns, most)
        if key not in self._different:
            known = self.columns(table)
            wanted = tuple(known[column] for column in columns)
            self._different[key] = different_rows(self._rows, self._storages, table, wanted, most)
        return self._different[key]

    def counted(self, table: str, columns: tuple[str, ...], most: int) -> tuple[tuple[KeyValue, ...], ...] | None:
        if not self._policy.tables[table].public:
            raise ValueError(f"{table} is private: the numbers of its rows are not told")
        known = self.columns(table)
        return counted_rows(self._rows, self._storages, table, tuple(known[column] for column in columns), most)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._policy.tables[table].public:
            raise ValueError(f"{table} is private: how often its values repeat is not told")
        known = self.columns(table)
        return self._most(table, tuple(known[column] for column in columns))
