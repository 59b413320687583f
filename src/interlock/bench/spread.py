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
    for made in streamed(work, items, jobs=jobs):
        found.append(made)
        if told is not None:
            told(len(found), len(items))
    return tuple(found)


def streamed(
    work: Callable[[Item], Made], items: Sequence[Item], *, jobs: int = 1, ray: str | None = None
) -> Iterator[Made]:
    """Give the work's result an item, in order, each as soon as it is there.

    Takes: `ray`, the address of a Ray cluster that does the work in place of processes here.
    """
    if ray is not None:
        from interlock.bench.ray_cluster import on_cluster

        yield from on_cluster(work, items, ray)
    elif jobs <= 1 or len(items) < 2:
        yield from map(work, items)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        pool = ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn"))
        try:
            yield from pool.map(work, items)
        finally:
            # Where it is stopped in the middle nothing waits for what has not begun.
            pool.shutdown(cancel_futures=True)
