"""Work over many cases on a Ray cluster that is there already."""

from __future__ import annotations

import importlib
import importlib.util
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from interlock.model.errors import InputError

Item = TypeVar("Item")
Made = TypeVar("Made")
PER_CPU = 4
"""How many items a processor of the cluster is given ahead."""


def on_cluster(work: Callable[[Item], Made], items: Sequence[Item], address: str) -> Iterator[Made]:
    """Give the work's result an item, in order.

    Takes: `address`, as `ray.init` takes it: `auto`, HOST:PORT, `ray://…`, or `local` for one on this machine. The
    nodes need the product and the suites, as this machine does.
    Raises: InputError, where Ray is not installed or no such cluster is to be reached.
    """
    if importlib.util.find_spec("ray") is None:
        raise InputError("Ray is not installed", hint="pip install ray, or use --jobs")
    ray: Any = importlib.import_module("ray")

    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(
                address=address, log_to_driver=False, include_dashboard=False if address == "local" else None
            )
        except (ConnectionError, RuntimeError, ValueError) as failure:
            raise InputError(
                f"no Ray cluster at `{address}` ({type(failure).__name__})",
                hint="give its address, `auto`, or `local`",
            ) from None
    try:
        yield from _ordered(ray, work, items)
    finally:
        if ours:
            ray.shutdown()


def _ordered(ray: Any, work: Callable[[Item], Made], items: Sequence[Item]) -> Iterator[Made]:
    remote = ray.remote(work_of).remote
    shared = ray.put(work)
    ahead = max(PER_CPU * int(ray.cluster_resources().get("CPU", 1)), 2)
    flying: deque[Any] = deque()
    for item in items:
        flying.append(remote(shared, item))
        if len(flying) >= ahead:
            yield ray.get(flying.popleft())
    while flying:
        yield ray.get(flying.popleft())


def work_of(work: Callable[[Item], Made], item: Item) -> Made:
    """Return the work's result: what a node of the cluster runs."""
    return work(item)
