"""Tables that belong to nobody: anybody may read them, without a charge and without a secret."""

from collections.abc import Collection, Mapping
from typing import Any, Final, final

from confide.engine.duckdb.commons import open_shared
from confide.engine.duckdb.database import Database, open_alone
from confide.engine.duckdb.source import Frame, prepare, version_of
from confide.engine.failure import unless_failed
from confide.engine.protocol import Exact
from confide.engine.read.summary_reader import Evaluation
from confide.engine.sql.statement import SummaryWriter
from confide.policy import Policy, Table
from confide.query.tree import Summary

_NO_SECRET: Final = b""
"""A secret keys the order in which a unit's rows are taken, and these rows are nobody's."""


@final
class PublicTables:
    """Tables that are read as a policy describes them, and that hold nothing of the policy's own private data.

    It is no engine, and no engine is one: an `Engine` reads private rows, against a charge of the ledger.
    """

    def __init__(
        self,
        policy: Policy,
        tables: Mapping[str, Table],
        frames: Mapping[str, Any],
        unread: Collection[str] = (),
    ) -> None:
        """`tables` are in `frames`, or where the policy says; those that are `unread` belong to the version alone."""
        beyond = sorted(name for name in tables.keys() - frames.keys() if not policy.tables[name].public)
        if beyond:
            raise ValueError(
                f"{', '.join(beyond)}: what a policy says of a private table is where the private rows are"
            )
        read = {name: table for name, table in tables.items() if name not in unread}
        sources = prepare(policy, tables, frames)
        framed = all(isinstance(sources[name], Frame) for name in read)
        self._database = Database(read, sources, open_shared if framed else open_alone)
        self.version = version_of(self._database.stamps)
        """Names what the tables hold."""
        self.columns = {
            name: frozenset(column for owner, column in self._database.storages if owner == name) for name in read
        }
        """The columns of each table that is read, by name."""

    def evaluate(self, summary: Summary) -> Exact:
        """Exact integers of a summary without a bound; raises nothing but EngineError once rows are read."""
        if summary.bound is not None:
            raise ValueError("rows that belong to nobody are not bounded")
        database = self._database
        writer = SummaryWriter(summary, database.storages, _NO_SECRET)
        evaluation = Evaluation(summary, writer, False, database.rows, database.columns, database.batches)
        return unless_failed(lambda: evaluation.exact(None, {}), database.unchanged)

    def close(self) -> None:
        self._database.close()
