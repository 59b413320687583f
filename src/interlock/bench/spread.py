"""Work over many cases: in this process, in several, or on a Ray cluster that already runs.

Holds: results come in the order of the items, whichever way they were made: a result file does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from interlock.model.errors import InputError

Item = TypeVar("Item")
Made = TypeVar("Made")
RAY = "ray"


def spread(
    work: Callable[[Item], Made],
    items: Sequence[Item],
    *,
    jobs: int = 1,
    cluster: str = "",
    told: Callable[[int, int], None] | None = None,
) -> tuple[Made, ...]:
    """Return the work's result an item, in order.

    Takes: `work`, a function at the top of a module; `jobs`, how many processes; `cluster`, the address of a Ray
    cluster (`auto`, `HOST:PORT`), `""` for none; `told`, called with how many are done, and of how many.
    Raises: InputError.
    """
    found: list[Made] = []
    for made in _each(work, items, jobs, cluster):
        found.append(made)
        if told is not None:
            told(len(found), len(items))
    return tuple(found)


def _each(work: Callable[[Item], Made], items: Sequence[Item], jobs: int, cluster: str) -> Iterator[Made]:
    if cluster:
        yield from _on_ray(work, items, cluster)
    elif jobs <= 1 or len(items) < 2:
        yield from map(work, items)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, items)


def _on_ray(work: Callable[[Item], Made], items: Iterable[Item], cluster: str) -> Iterator[Made]:
    try:
        from importlib import import_module

        space: Any = import_module("ray")
    except ImportError:
        raise InputError(
            "the package `ray` is not installed", hint="pip install ray, or use --jobs"
        ) from None
    started = not space.is_initialized()
    if started:
        try:
            space.init(address=cluster, logging_level="error", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as failure:
            raise InputError(
                f"no Ray cluster answers at `{cluster}` ({type(failure).__name__})",
                hint="start one: ray start --head; then --ray auto",
            ) from None
    try:
        remote = space.remote(work)
        waiting = [remote.remote(item) for item in items]
        for each in waiting:
            yield space.get(each)
    finally:
        if started:
            space.shutdown()
