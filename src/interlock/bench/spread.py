"""Work over many cases: in this process, or in several.

Holds: results come in the order of the items, whichever way they were made: a result file does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def spread(
    work: Callable[[Item], Made],
    items: Sequence[Item],
    *,
    jobs: int = 1,
    told: Callable[[int, int], None] | None = None,
) -> tuple[Made, ...]:
    """Return the work's result an item, in order.

    Takes: `work`, a function at the top of a module; `jobs`, how many processes; `told`, called with how
    many are done, and of how many.
    """
    found: list[Made] = []
    for made in _each(work, items, jobs):
        found.append(made)
        if told is not None:
            told(len(found), len(items))
    return tuple(found)


def _each(work: Callable[[Item], Made], items: Sequence[Item], jobs: int) -> Iterator[Made]:
    if jobs <= 1 or len(items) < 2:
        yield from map(work, items)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, items)
