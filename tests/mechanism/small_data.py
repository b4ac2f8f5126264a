"""All small data sets and their neighbours, for checks by brute force."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

from confide.mechanism.tally import Tally

RELATIONS = ("add-remove", "replace-one")


def data_sets(values: range, rows: int) -> Iterator[tuple[int, ...]]:
    """Every multiset of so many of the values."""
    return combinations_with_replacement(values, rows)


def neighbours(values: range, most_rows: int, relation: str) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of data sets with at most so many rows that differ in one row."""
    for rows in range(most_rows):
        for common in data_sets(values, rows):
            if relation == "add-remove":
                yield from ((common, tuple(sorted((*common, value)))) for value in values)
            else:
                yield from (
                    (tuple(sorted((*common, one))), tuple(sorted((*common, other))))
                    for one in values
                    for other in values
                    if one != other
                )


def tallied(rows: tuple[int, ...]) -> Tally:
    return Tally.of(rows)


def seen(data: tuple[int, ...], domain: tuple[int, int], first: int, last: int) -> tuple[object, ...]:
    """What a window of ranks shows of data: for each value its ranks, or on which side of the window it is."""
    shown: list[object] = []
    for value in range(domain[0], domain[1] + 1):
        below, upto = sum(x < value for x in data), sum(x <= value for x in data)
        shown.append("low" if upto <= first else "high" if below >= last else (below, upto))
    return (len(data), *shown)
