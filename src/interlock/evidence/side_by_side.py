"""Files made durable side by side: one wait for the disk instead of one a file.

The calls to the kernel let go of the interpreter, so threads that only wait there are enough.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_BESIDE = 2
"""A ledger has three open files; its own thread waits for one of them."""


class SideBySide:
    """Threads that wait for the disk, started when they are first needed."""

    __slots__ = ("_threads",)

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def sync(self, descriptors: Sequence[int]) -> None:
        """Make what was written to these files survive a loss of power.

        Raises: OSError, if the disk fails for any of them; no call is under way any more then.
        """
        beside: list[Future[None]] = []
        here = list(descriptors)
        try:
            while len(here) > 1:
                beside.append(self._pool().submit(os.fdatasync, here[-1]))
                here.pop()
        except RuntimeError:
            # No further thread can be had: one after the other, then. A call that was noted all the same is harmless.
            pass
        faults: list[BaseException] = []
        for descriptor in here:
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                faults.append(error)
        faults += [fault for one in beside if (fault := one.exception()) is not None]
        if faults:
            raise faults[0]

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(max_workers=_BESIDE, thread_name_prefix="ledger")
        return self._threads
