"""Rows and tables that grow and are never changed in place: a copy shares all but the newest part.

Two layers of about one size become one, so that there are never many, and n additions cost O(n log n) in all.
"""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Rows = tuple[tuple[T, ...], ...]
Table = tuple[Mapping[K, V], ...]


def length(rows: Rows[T]) -> int:
    """Return how many rows there are."""
    return sum(map(len, rows))


def appended(rows: Rows[T], row: T) -> Rows[T]:
    """Return the rows with one more at the end."""
    top: tuple[T, ...] = (row,)
    below = list(rows)
    while below and len(below[-1]) <= 2 * len(top):
        top = (*below.pop(), *top)
    return (*below, top)


def row_at(rows: Rows[T], index: int) -> T:
    """Return one row. Takes: `index`, from 0."""
    for layer in rows:
        if index < len(layer):
            return layer[index]
        index -= len(layer)
    raise IndexError(index)


def with_entries(table: Table[K, V], added: Mapping[K, V]) -> Table[K, V]:
    """Return the table with more entries; a later one stands before an earlier one."""
    if not added:
        return table
    top = added
    below = list(table)
    while below and len(below[-1]) <= 2 * len(top):
        top = {**below.pop(), **top}
    return (*below, top)


def entry_of(table: Table[K, V], key: K) -> V | None:
    """Return an entry, None where there is none."""
    for layer in reversed(table):
        if (found := layer.get(key)) is not None:
            return found
    return None
