"""Synthetic data opened beside a policy: anybody's, and public. The SQL of a question is asked of them as of the data.

They are read through the policy as well, so their schema must be the policy's; `synthetic_check` says where it is not.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confide.engine import Engine, Exact
from confide.engine.duckdb_engine import DuckDBEngine
from confide.errors import EngineError, ParameterError, SourceError
from confide.policy import Contribution, Identifier, Policy, RowUnit
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.query.tree import Summary
from confide.release.synthetic_check import checked, read_file

_NOTHING: Final = Charge(0, "", PureDP(Fraction(0)), "synthetic data, which are public", "", "")
_MOST_SUMMARIES: Final = 256


class SyntheticCopy:
    """Synthetic tables, opened and checked once and asked many times. Made by `Session.open_copy`."""

    def __init__(self, engine: Engine, tables: tuple[str, ...]) -> None:
        self.tables = tables
        self._engine = engine
        self._known: dict[Summary, Exact] = {}

    @property
    def version(self) -> str:
        """Names what the tables hold."""
        return self._engine.version

    def exact(self, summary: Summary) -> Exact:
        """What a summary finds in the copy, whose rows belong to nobody: no contribution is bounded."""
        unbound = replace(summary, bound=None, order_by=())
        if unbound not in self._known:
            if len(self._known) >= _MOST_SUMMARIES:
                self._known.clear()
            try:
                self._known[unbound] = self._engine.evaluate(unbound, _NOTHING, b"")
            except EngineError:
                raise SourceError(
                    f"the synthetic data cannot answer the question: it needs a table or an id that is not in "
                    f"{', '.join(self.tables)}; give all tables that it joins, with the ids it joins them by"
                ) from None
        return self._known[unbound]

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_copy(policy: Policy, synthetic: Any, table: str | None = None) -> SyntheticCopy:
    """Open synthetic data: a frame or a file for one table, or a mapping of tables to such.

    `table` is the one that a single frame or file stands for; without it, the policy's only private table.
    """
    given = _by_table(policy, synthetic, table)
    frames = {name: _frame(data, name) for name, data in given.items()}
    private = {name: policy.tables[name] for name in frames if not policy.tables[name].public}
    if not private:
        raise ParameterError(f"the synthetic data hold no private table; those are {_private(policy)}")
    tables = {}
    for name, frame in frames.items():
        rules = policy.tables[name]
        if rules.public:
            tables[name] = rules
            continue
        # An id says whose row it is, and these are nobody's: it may be missing.
        columns = {c: rule for c, rule in rules.columns.items() if c in frame.column_names or not _id(rule)}
        frames[name] = checked(frame, columns, f"the synthetic {name}")
        tables[name] = replace(rules, columns=columns, references={}, at_most=Contribution(), rows="private")
    declared = {name: rules for name, rules in policy.tables.items() if rules.public and _declared(policy, name)}
    tables = declared | tables
    rules_of_copy = replace(policy, tables=tables, unit=RowUnit(), version=None, analysts={}, notes=())
    return SyntheticCopy(DuckDBEngine(rules_of_copy, frames), tuple(tables))


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
    from confide.engine.frame import to_arrow  # noqa: PLC0415  pyarrow is heavy

    if isinstance(data, str | os.PathLike):
        return read_file(Path(data), f"the synthetic {name}")
    if hasattr(data, "to_arrow") and not hasattr(data, "__arrow_c_stream__"):
        data = data.to_arrow()
    return to_arrow(data, f"the synthetic {name}")


def _id(column: object) -> bool:
    return isinstance(column, Identifier)


def _private(policy: Policy) -> str:
    return ", ".join(name for name, rules in policy.tables.items() if not rules.public)


def _declared(policy: Policy, name: str) -> bool:
    """Whether the policy itself says where a public table is."""
    return isinstance(policy.source, str) or (isinstance(policy.source, Mapping) and name in policy.source)
