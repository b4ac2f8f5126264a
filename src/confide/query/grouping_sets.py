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
    groupings: "tuple[Grouping, ...]" = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUPING(a, b): a bit for each key, from the left, that is 1 where the table is summed over it."""

    place: int
    """Of the column in the answer."""
    name: str
    keys: Keys

    def value(self, table: Keys) -> int:
        return sum(1 << bit for bit, key in enumerate(reversed(self.keys)) if key not in table)


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
    groupings = tuple(_groupings(plain, keys))
    taken = {own.place for own in groupings}
    plain.set("expressions", [node for place, node in enumerate(plain.expressions) if place not in taken])
    if not plain.expressions:
        raise QueryError("the SELECT has GROUPING alone, which is public; add COUNT(*), or another aggregate")
    return GroupingSets(plain, tuple(dict.fromkeys(tables)), groupings)


def _groupings(select: exp.Select, keys: list[exp.Expr]) -> Iterator[Grouping]:
    """The columns of a SELECT that say which keys are summed over: public, and no part of the question."""
    aliases = {own.alias: own.this for own in select.expressions if isinstance(own, exp.Alias)}
    known = [aliases.get(key.name, key) if isinstance(key, exp.Column) and not key.table else key for key in keys]
    for place, node in enumerate(select.expressions):
        own = node.this if isinstance(node, exp.Alias) else node
        if not isinstance(own, exp.Grouping | exp.GroupingId):
            continue
        found = []
        for part in own.expressions:
            if part in keys:
                found.append(keys.index(part))
            elif part in known:
                found.append(known.index(part))
            else:
                raise QueryError(f"GROUPING({shown(part)}): that is no key of GROUP BY; name one as it stands there")
        yield Grouping(place, node.alias if isinstance(node, exp.Alias) else "grouping", tuple(found))


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
