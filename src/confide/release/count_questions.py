"""Counts said in SQL, as parts of a workload; and counts of a relaxed table, as SQL asks for them.

A condition is understood where it says something of one column at a time and never cuts through a bin.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import QueryError
from confide.policy import Policy
from confide.query import Question, bind
from confide.query.key_value import spelled
from confide.query.question import Arithmetic, Measured, ShownKey
from confide.query.scope import Catalog
from confide.query.tree import (
    Always,
    Among,
    BinnedKey,
    Both,
    Compare,
    Constant,
    DeclaredKey,
    Either,
    Field,
    Known,
    OneOf,
    Predicate,
    Reading,
    Scan,
)
from confide.workload import Binned, Counting, Domain, Sql, Tables, Threshold, Workload
from confide.workload.workload import MOST_SETS, Part

Truth = NDArray[np.bool_]

MOST_ROWS: Final = 2**22
"""A count in SQL looks at most at so many cells of its columns."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, "=": np.equal, "<>": np.not_equal, ">=": np.greater_equal, ">": np.greater,
}  # fmt: skip
_TURNED: dict[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_parts(workload: Workload, policy: Policy, catalog: Catalog, domain: Domain) -> Workload:
    """The workload with its SQL read: what is left speaks of the domain's columns."""
    parts: list[Part] = []
    for part in workload.parts:
        parts.append(
            _part(count_question(part.text, policy, catalog, domain), domain) if isinstance(part, Sql) else part
        )
        if len(parts) > MOST_SETS:
            raise QueryError(f"the workload has more than {MOST_SETS:,} queries; leave some out")
    return Workload(tuple(parts))


def count_question(text: str, policy: Policy, catalog: Catalog, domain: Domain) -> Question:
    """The question of a text, if it counts rows of the domain's table and does nothing else."""
    question = bind(text, policy, catalog)
    if question.tables != (domain.table,) or not isinstance(question.summary.relation, Scan):
        raise QueryError(f"a workload counts rows of {domain.table} alone, without joins; got: {text.strip()[:80]}")
    cells = question.summary.cells
    if any(cell.kind != "rows" for cell in cells) or question.statistics or question.summary.open_keys:
        raise QueryError(
            f"a workload is made of COUNT(*) with WHERE and GROUP BY over declared columns; got: {text.strip()[:80]}"
        )
    if question.having is not None or question.order or question.limit is not None or question.offset:
        raise QueryError("HAVING, ORDER BY and LIMIT act on released numbers; leave them out of a workload")
    return question


def _part(question: Question, domain: Domain) -> Part:
    keys = [key_name(key) for key in question.keys]
    names = list(dict.fromkeys([*keys, *names_in(question.summary.where)]))
    for name in names:
        domain.place_of(name)
    if keys or not names:
        if not names:
            raise QueryError("a count of all rows needs no workload: every table adds up to it; filter or group")
        return Threshold(tuple(names), len(names))
    where = question.summary.where
    if isinstance(where, Either) and len(names) > 1:
        # Any of several columns: a 1-of-k threshold at places of one's own choice.
        return _counting(where.parts, domain, need=1)
    parts = where.parts if isinstance(where, Both) else (where,)
    return _counting(parts, domain, need=None)


def _counting(parts: tuple[Predicate, ...], domain: Domain, need: int | None) -> Counting:
    listed: dict[str, Truth] = {}
    for part in parts:
        names = tuple(dict.fromkeys(names_in(part)))
        if len(names) != 1:
            raise QueryError(
                "a condition of a workload speaks of one column at a time, joined by AND (or all by OR); "
                f"one speaks of {', '.join(names) or 'none'}"
            )
        attribute = domain.attributes[domain.place_of(names[0])]
        own = holds(part, domain, {names[0]: np.arange(attribute.size)})
        before = listed.get(names[0])
        listed[names[0]] = own if before is None else (before | own if need == 1 else before & own)
    places = tuple(tuple(int(place) for place in np.flatnonzero(truth)) for truth in listed.values())
    return Counting(tuple(listed), places, len(listed) if need is None else need)


def answer_counts(question: Question, domain: Domain, tables: Tables, total: float) -> dict[str, list[Any]]:
    """The columns of a question's result: keys in the order of the product of their places, and counts."""
    keys = [domain.place_of(key_name(key)) for key in question.keys]
    filters = dict.fromkeys(names_in(question.summary.where))
    for cell in question.summary.cells:
        filters |= dict.fromkeys(names_in(cell.where))
    columns = (*keys, *(place for place in map(domain.place_of, filters) if place not in keys))
    shape = tuple(domain.sizes[column] for column in columns)
    if prod(shape) > MOST_ROWS:
        raise QueryError(
            f"the query speaks of columns with {prod(shape):,} cells together, at most {MOST_ROWS:,} are answered "
            "at once; filter or group by fewer columns"
        )
    shares = tables.marginal(columns, 0, shape[0]).astype(np.float64) if columns else np.ones(())
    grid = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij", sparse=True)
    places = {domain.names[column]: axis for column, axis in zip(columns, grid, strict=True)}
    groups = [group_places(key, domain) for key in question.keys]
    rest = tuple(range(len(keys), len(columns)))
    found = []
    for cell in question.summary.cells:
        kept = holds(question.summary.where, domain, places) & holds(cell.where, domain, places)
        counts = (shares * np.broadcast_to(kept, shape)).sum(axis=rest) * total
        found.append(_grouped(counts, groups).reshape(-1))
    sizes = [size for _, size in groups]
    places_of_keys = np.unravel_index(np.arange(prod(sizes)), sizes) if sizes else ()
    result: dict[str, list[Any]] = {}
    for column in question.columns:
        if isinstance(column, ShownKey):
            key = question.keys[column.key]
            result[column.name] = [spelled(key, int(place)) for place in places_of_keys[column.key]]
        else:
            result[column.name] = _value(column.value, question, found).tolist()
    return result


def _value(value: Any, question: Question, found: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    match value:
        case Measured(measure):
            terms = question.measures[measure].terms
            return np.asarray(sum(coefficient * found[cell] for coefficient, cell in terms), dtype=np.float64)
        case Arithmetic("+" | "-" as operation, left, right):
            sign = 1 if operation == "+" else -1
            return _value(left, question, found) + sign * _value(right, question, found)
    raise QueryError("counts are answered as they are, or added and subtracted; do other arithmetic on the result")


def group_places(key: Any, domain: Domain) -> tuple[NDArray[np.int64], int]:
    """For each place of the key's column, the group it falls into; and how many groups there are."""
    attribute = domain.attributes[domain.place_of(key_name(key))]
    if isinstance(key, DeclaredKey) or not isinstance(attribute, Binned):
        return np.arange(attribute.size), attribute.size
    groups = _groups(key, attribute)
    if np.any(groups[:, 0] != groups[:, 1]):
        raise QueryError(
            f"the bins of {attribute.name} in the synthetic data are wider than those of the query, or cut by them; "
            "group by wider bins"
        )
    return groups[:, 0], key.count


def _groups(key: BinnedKey, own: Binned) -> NDArray[np.int64]:
    """The groups of the first and of the last value of each bin."""
    ends = np.array([own.ends(place) for place in range(own.size)])
    return (ends - key.first) // key.width


def _groups_cut(key: BinnedKey, own: Binned) -> bool:
    groups = _groups(key, own)
    return bool(np.any(groups[:, 0] != groups[:, 1]))


def _grouped(counts: NDArray[np.float64], groups: list[tuple[NDArray[np.int64], int]]) -> NDArray[np.float64]:
    for axis, (places, size) in enumerate(groups):
        if len(places) == size and np.array_equal(places, np.arange(size)):
            continue
        moved = np.moveaxis(counts, axis, 0)
        total = np.zeros((size, *moved.shape[1:]))
        np.add.at(total, places, moved)
        counts = np.moveaxis(total, 0, axis)
    return counts


# --- conditions on places -----------------------------------------------------------------------------------------


def holds(predicate: Predicate, domain: Domain, places: dict[str, NDArray[np.int64]]) -> Truth:
    """Whether a condition holds, for arrays of places of the columns it speaks of."""
    match predicate:
        case Always(truth):
            return np.array(truth)
        case Both(parts):
            return np.asarray(_all_alike(holds(part, domain, places) for part in parts).all(axis=0))
        case Either(parts):
            return np.asarray(_all_alike(holds(part, domain, places) for part in parts).any(axis=0))
        case OneOf(Reading() as reading, indices, negated):
            each = [_compared("=", reading.field, index, domain) for index in indices]
            listed = np.logical_or.reduce(each)[places[reading.field.name]]
            return np.asarray(listed != negated)
        case Among(field, values):
            own = domain.attributes[domain.place_of(field.name)]
            assert not isinstance(own, Binned)
            kept = frozenset(values)
            return np.array([value in kept for value in own.values])[places[field.name]]
        case Known(subject, negated):
            name = _subject_names(subject)[0]
            own = domain.attributes[domain.place_of(name)]
            present = np.array([isinstance(own, Binned) or own.values[place] is not None for place in range(own.size)])
            return np.asarray((present != negated)[places[name]])
        case Compare(operation, Reading() as reading, Constant(index)):
            return _compared(operation, reading.field, index, domain)[places[reading.field.name]]
        case Compare(operation, Constant(index), Reading() as reading):
            return _compared(_TURNED.get(operation, operation), reading.field, index, domain)[
                places[reading.field.name]
            ]
    raise QueryError(
        "a condition of a workload compares one declared column with constants; write it so, or leave it out"
    )


def cut_columns(question: Question, domain: Domain) -> tuple[str, ...]:
    """The columns of which a condition or a key cuts through a bin."""
    found: dict[str, None] = {}
    pending: list[Any] = [question.summary.where, *(cell.where for cell in question.summary.cells)]
    while pending:
        node = pending.pop()
        match node:
            case OneOf(Reading() as reading, indices, _):
                cuts = any(_cut("=", reading.field, index, domain) for index in indices)
            case Compare(operation, Reading() as reading, Constant(index)):
                cuts = _cut(operation, reading.field, index, domain)
            case Compare(operation, Constant(index), Reading() as reading):
                cuts = _cut(_TURNED.get(operation, operation), reading.field, index, domain)
            case Both(parts) | Either(parts):
                pending += parts
                continue
            case _:
                continue
        if cuts:
            found[reading.field.name] = None
    for key in question.keys:
        own = domain.attributes[domain.place_of(key_name(key))]
        if isinstance(key, BinnedKey) and isinstance(own, Binned) and _groups_cut(key, own):
            found[own.name] = None
    return tuple(found)


def _cut(operation: str, field: Field, index: int, domain: Domain) -> bool:
    own = domain.attributes[domain.place_of(field.name)]
    assert isinstance(own, Binned)
    return _sides(operation, own, index)[1]


def _sides(operation: str, own: Binned, index: int) -> tuple[Truth, bool]:
    """Whether a comparison holds for the first value of each bin, and whether it is otherwise for another of one."""
    ends = np.array([own.ends(place) for place in range(own.size)])
    low, high = (_COMPARE[operation](ends[:, end], index) for end in (0, 1))
    inside = (ends[:, 0] < index) & (index < ends[:, 1]) if operation in ("=", "<>") else np.zeros(own.size, bool)
    return np.asarray(low), bool(np.any(low != high) or np.any(inside))


def _compared(operation: str, field: Field, index: int, domain: Domain) -> Truth:
    own = domain.attributes[domain.place_of(field.name)]
    assert isinstance(own, Binned)
    low, cut = _sides(operation, own, index)
    if cut:
        value = own.value(index)
        raise QueryError(
            f"{own.name} {operation} {value} cuts through a bin of {own.name}; compare with the end of a bin, "
            f"or give narrower bins: bins={{{own.name!r}: ...}}"
        )
    return low


def _all_alike(truths: Iterator[Truth]) -> NDArray[np.bool_]:
    return np.array(np.broadcast_arrays(*truths))


def key_name(key: Any) -> str:
    if isinstance(key, DeclaredKey):
        return key.field.name
    if isinstance(key, BinnedKey) and isinstance(key.number, Reading):
        return key.number.field.name
    raise QueryError("a workload groups by declared columns and BIN(column, width)")


def names_in(node: Any) -> Iterator[str]:
    """The columns of a condition or a number, as often as they are named."""
    if isinstance(node, Field):
        yield node.name
    elif isinstance(node, tuple):
        for part in node:
            yield from names_in(part)
    elif hasattr(node, "__dataclass_fields__"):
        for name in node.__dataclass_fields__:
            yield from names_in(getattr(node, name))


def _subject_names(subject: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names_in(subject)))
