"""Synthetic data opened beside a policy: anybody's, and public. The SQL of a question is asked of them as of the data.

They are read through the policy as well, so their schema must be the policy's; `frame_check` says where it is not.
"""

import os
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confide.engine import Exact
from confide.engine.duckdb.public_tables import PublicTables
from confide.errors import EngineError, ParameterError, SourceError
from confide.policy import Policy
from confide.query.tree import Field, Scan, Summary
from confide.release.custody.spark_place import spark_place
from confide.release.frame_check import checked, read_file

_MOST_SUMMARIES: Final = 256


class SyntheticCopy:
    """Synthetic tables, opened and checked once and asked many times. Made by `Session.open_copy`."""

    def __init__(self, tables: PublicTables) -> None:
        self._tables = tables
        self._known: dict[Summary, Exact] = {}

    @property
    def version(self) -> str:
        """Names what the tables hold."""
        return self._tables.version

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """The columns that each table has, of those that the policy names if it is private."""
        return self._tables.columns

    def exact(self, summary: Summary) -> Exact:
        """What a summary finds in the copy, whose rows belong to nobody: no contribution is bounded."""
        unbound = replace(summary, bound=None, order_by=())
        if unbound not in self._known:
            self._check(unbound)
            if len(self._known) >= _MOST_SUMMARIES:
                self._known.clear()
            try:
                self._known[unbound] = self._tables.evaluate(unbound)
            except EngineError:
                raise SourceError("the synthetic data cannot answer the question: the database failed") from None
        return self._known[unbound]

    def _check(self, summary: Summary) -> None:
        for table, columns in used_columns(summary).items():
            if table not in self.columns:
                raise SourceError(
                    f"the question reads the table {table}, and there are no synthetic data for it; "
                    f"give them by table: {{'{table}': frame, ...}}"
                )
            lacking = sorted(columns - self.columns[table])
            if lacking:
                raise SourceError(
                    f"the synthetic {table} has no column {', '.join(lacking)}, which the question reads; "
                    f"it has {', '.join(sorted(self.columns[table]))}"
                )

    def close(self) -> None:
        self._tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_copy(
    policy: Policy,
    synthetic: Any,
    table: str | None = None,
    needed: Mapping[str, frozenset[str]] | None = None,
    *,
    files: bool,
) -> SyntheticCopy:
    """Open synthetic data: a frame or, where `files` are allowed, a file for one table, or a mapping of tables to such.

    `table` is the one that a single frame or file stands for; without it, the policy's only private table. With
    `needed`, only those columns are looked at, and all of them must be there.
    """
    given = _by_table(policy, synthetic, table)
    if not files and any(isinstance(data, str | bytes | os.PathLike) for data in given.values()):
        # Refused without a look at the disk, or whoever asks could learn which files there are, and what is in them.
        raise ParameterError(
            "a question takes synthetic data as frames, or as a copy that was opened, and reads no files; whoever "
            "keeps the files opens them: copy = session.open_copy(path)"
        )
    frames = {name: _frame(data, name) for name, data in given.items()}
    private = {name: policy.tables[name] for name in frames if not policy.tables[name].public}
    if not private:
        raise ParameterError(f"the synthetic data hold no private table; those are {_private(policy)}")
    tables = {name: rules for name, rules in policy.tables.items() if rules.public and _declared(policy, name)}
    for name, frame in frames.items():
        rules = policy.tables[name]
        if rules.public:
            tables[name] = rules
            continue
        wanted = None if needed is None else needed.get(name, frozenset())
        frames[name] = checked(frame, rules.columns, wanted, f"the synthetic {name}")
        present = {column: rule for column, rule in rules.columns.items() if column in frames[name].column_names}
        tables[name] = replace(rules, columns=present)
    unread = () if needed is None else tables.keys() - frames.keys() - needed.keys()
    return SyntheticCopy(PublicTables(policy, tables, frames, unread))


def used_columns(part: Any) -> dict[str, frozenset[str]]:
    """The columns that a summary reads, by table."""
    places: dict[str, str] = {}
    fields: set[Field] = set()
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, Scan):
            places[node.source] = node.table
        elif isinstance(node, Field):
            fields.add(node)
        elif isinstance(node, tuple):
            pending += node
        elif is_dataclass(node):
            pending += [getattr(node, one.name) for one in dataclass_fields(node)]
    used = {table: frozenset[str]() for table in places.values()}
    for field in fields:
        if field.source in places:  # what an inner query computes belongs to no table
            used[places[field.source]] |= {field.name}
    return used


def _by_table(policy: Policy, synthetic: Any, table: str | None) -> dict[str, Any]:
    if isinstance(getattr(synthetic, "tables", None), Mapping):
        synthetic = synthetic.tables
    if isinstance(synthetic, Mapping) and synthetic and all(name in policy.tables for name in synthetic):
        return dict(synthetic)
    names = [name for name, rules in policy.tables.items() if not rules.public]
    if table is None and len(names) > 1:
        raise ParameterError(
            f"the policy has several private tables ({', '.join(names)}); give the synthetic data by table: "
            f"{{'{names[0]}': frame}}"
        )
    return {table if table is not None else names[0]: synthetic}


def _frame(data: Any, name: str) -> Any:
    from confide.engine.duckdb.frame import to_arrow  # noqa: PLC0415  pyarrow is heavy

    if isinstance(data, str | os.PathLike):
        return read_file(Path(data), f"the synthetic {name}")
    if hasattr(data, "to_arrow") and not hasattr(data, "__arrow_c_stream__"):
        data = data.to_arrow()
    return to_arrow(data, f"the synthetic {name}")


def _private(policy: Policy) -> str:
    return ", ".join(name for name, rules in policy.tables.items() if not rules.public)


def _declared(policy: Policy, name: str) -> bool:
    """Whether the policy itself says in which file a public table is; those on a server stay there."""
    source = policy.source
    place = source.get(name) if isinstance(source, Mapping) else source
    return place is not None and "://" not in place and spark_place(policy) is None
