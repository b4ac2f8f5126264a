"""GROUP BY ROLLUP, CUBE and GROUPING SETS: one text that asks for several tables of the same rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.privacy.limits import MOST_KEYS
from confide.query.parse import shown

MOST_TABLES: Final = 256
"""Of one text."""
_SEVERAL: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)

Keys = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """The text with one plain GROUP BY of all keys, and which of these each table has."""

    select: exp.Select
    tables: tuple[Keys, ...]


def grouping_sets(query: exp.Expr) -> GroupingSets | None:
    """What a text asks for if it names several tables; None for any other text, which is left as it is."""
    group = query.args.get("group") if isinstance(query, exp.Select) else None
    if group is None:
        return None
    parts = list(group.expressions)
    if group.args.get("rollup") or group.args.get("cube"):  # GROUP BY a, b WITH ROLLUP
        parts = [(exp.Rollup if group.args.get("rollup") else exp.Cube)(expressions=parts)]
    if not any(isinstance(part, _SEVERAL) for part in parts):
        return None
    keys: list[exp.Expr] = []
    choices = [list(_choices(part, keys)) for part in parts]
    count = 1
    for own in choices:
        count *= len(own)
        if count > MOST_TABLES:
            raise QueryError(f"GROUP BY asks for more than {MOST_TABLES} tables; name fewer keys, or GROUPING SETS")
    tables = [tuple(sorted({key for own in chosen for key in own})) for chosen in product(*choices)]
    if not keys:
        raise QueryError("GROUP BY GROUPING SETS names no key; write the aggregate without GROUP BY")
    plain = query.copy()
    plain.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    assert isinstance(plain, exp.Select)
    return GroupingSets(plain, tuple(dict.fromkeys(tables)))


def _choices(part: exp.Expr, keys: list[exp.Expr]) -> Iterator[Keys]:
    """The sets of keys that one part of a GROUP BY stands for."""
    if isinstance(part, _SEVERAL) and len(part.expressions) > MOST_TABLES:
        raise QueryError(f"GROUP BY asks for more than {MOST_TABLES} tables; name fewer keys, or GROUPING SETS")
    if isinstance(part, exp.Rollup):
        own = [_keys(item, keys) for item in part.expressions]
        for length in range(len(own), -1, -1):
            yield tuple(key for item in own[:length] for key in item)
    elif isinstance(part, exp.Cube):
        own = [_keys(item, keys) for item in part.expressions]
        if len(own) > MOST_TABLES.bit_length():
            raise QueryError(f"CUBE of {len(own)} keys is more than {MOST_TABLES} tables; name fewer keys")
        for length in range(len(own), -1, -1):
            for chosen in combinations(own, length):
                yield tuple(key for item in chosen for key in item)
    elif isinstance(part, exp.GroupingSets):
        for item in part.expressions:
            if isinstance(item, _SEVERAL):
                yield from _choices(item, keys)
            else:
                yield _keys(item, keys)
    else:
        yield _keys(part, keys)


def _keys(item: exp.Expr, keys: list[exp.Expr]) -> Keys:
    """The places of a key, or of several in parentheses, each listed once."""
    while isinstance(item, exp.Paren):
        item = item.this
    found = []
    for node in item.expressions if isinstance(item, exp.Tuple) else [item]:
        if isinstance(node, (*_SEVERAL, exp.Tuple)):
            raise QueryError(f"GROUP BY {shown(node)} within another is not read; write the sets out in GROUPING SETS")
        if node not in keys:
            if len(keys) == MOST_KEYS:  # so that no text is long to read
                raise QueryError(f"GROUP BY names more than {MOST_KEYS} keys; name fewer")
            keys.append(node)
        found.append(keys.index(node))
    return tuple(found)
