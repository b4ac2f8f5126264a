"""What may be meant by the beginning of a word at the prompt: commands, words of SQL, and what a policy names."""

from collections.abc import Iterable
from typing import Final

from confide.policy import Policy
from confide.policy.column import Category

COMMANDS: Final = {
    "\\plan": "\\plan SQL;        what a question would cost and give; without SQL the last one. Free",
    "\\budget": "\\budget           what is spent and what is left",
    "\\cost": "\\cost 0.1         what each of the next questions may cost, as ε",
    "\\within": "\\within 20        how wide the next answers may be, as ± or %; the least ε is found",
    "\\describe": "\\describe TABLE   what is public: tables, columns, ranges and values; without TABLE all",
    "\\help": "\\help             this",
    "\\quit": "\\quit             leave; Ctrl-D does too",
}
WORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "JOIN", "ON", "AND", "OR", "NOT", "IN",
    "BETWEEN", "LIKE", "IS", "NULL", "AS", "DESC", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER", "DISTINCT", "WITH",
    "COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "QUANTILE", "VARIANCE", "STDDEV", "BIN", "YEAR", "MONTH",
)  # fmt: skip


class Completion:
    """The words of one policy."""

    def __init__(self, policy: Policy) -> None:
        self._tables = tuple(policy.tables)
        self._columns: dict[str, tuple[str, ...]] = {
            name: tuple(table.columns) for name, table in policy.tables.items()
        }
        self._values = tuple(
            dict.fromkeys(
                "'" + value.replace("'", "''") + "'"
                for table in policy.tables.values()
                for column in table.columns.values()
                if isinstance(column, Category)
                for value in column.values
                if isinstance(value, str) and value.isprintable()
            )
        )

    def words(self, begun: str, line: str = "") -> list[str]:
        """What `begun`, the last word of a line, may become: words of SQL in the case that they are begun in."""
        if begun.startswith("\\"):
            return _beginning(COMMANDS, begun)
        if line.lstrip().startswith("\\describe"):
            return _beginning(self._tables, begun)
        if begun.startswith("'"):
            return _beginning(self._values, begun)
        table, dot, column = begun.rpartition(".")
        if dot:
            return [f"{table}.{name}" for name in _beginning(self._columns.get(table, ()), column)]
        names = dict.fromkeys([*self._tables, *(name for columns in self._columns.values() for name in columns)])
        lower = bool(begun) and begun == begun.lower()
        found = _beginning([word.lower() if lower else word for word in WORDS], begun) if begun else []
        return [*_beginning(names, begun), *found]


def _beginning(words: Iterable[str], begun: str) -> list[str]:
    return [word for word in words if word.lower().startswith(begun.lower())]
