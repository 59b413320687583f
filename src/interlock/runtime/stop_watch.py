"""Watches what the core cannot count by itself: how long a run goes on, and how much memory its processes hold.

Both are looked at before an event is decided; beside a command a thread looks too and wakes whoever waits, since a
command may do nothing that is seen. A peak of memory between two looks is not seen, for which a policy's `limits` are.
Source: KNOX §4.2, the stop guard; proc(5) for `smaps_rollup` and `children`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.boundary.waiting import Source
from interlock.model import events as ev
from interlock.model.manifest import StopCondition, StopConditions

if TYPE_CHECKING:
    from interlock.runtime.performer import Performer

LOOK_S = 0.25
"""How often memory is looked at."""
_WAKE = b"x"


class StopWatch:
    """Tells when time or memory is used up, each once.

    Takes: `started_at_ns`, UTC, from which time counts; `memory`, which gives the bytes that count now.
    """

    _reader = _writer = -1
    _thread: threading.Thread | None = None

    def __init__(self, limits: StopConditions, started_at_ns: int, memory: Callable[[], int]) -> None:
        self._limits = limits
        passed_s = max(0.0, (time.time_ns() - started_at_ns) / 1e9)
        self._began_s = time.monotonic() - passed_s
        self._memory = memory
        self._too_much = 0
        self._told: set[StopCondition] = set()
        self._over = threading.Event()

    def due(self) -> ev.StopReached | None:
        """Return a stop that was reached and not told yet."""
        if StopCondition.WALL not in self._told and self._limits.wall_ms:
            value = int((time.monotonic() - self._began_s) * 1000)
            if value >= self._limits.wall_ms:
                self._told.add(StopCondition.WALL)
                return ev.StopReached(condition=StopCondition.WALL, value=value)
        if StopCondition.MEMORY not in self._told and self._limits.memory_bytes:
            value = self._too_much
            if not value and self._thread is None:
                value = self._memory()
            if value >= self._limits.memory_bytes:
                self._told.add(StopCondition.MEMORY)
                return ev.StopReached(condition=StopCondition.MEMORY, value=value)
        return None

    def beside(self, performer: Performer) -> Source:
        """Begin to look in a thread of its own. Returns: what is waited for beside a command: it feeds what is due."""

        def react() -> None:
            with suppress(BlockingIOError):
                os.read(self._reader, 64)
            if (stop := self.due()) is not None:
                performer.feed(stop)
                performer.ledger.sign()

        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A thread has its maker's mask: what is meant for the command comes to the sandbox's own descriptor.
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self._thread = threading.Thread(target=self._look, name="stop-watch", daemon=True)
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Source(descriptor=self._reader, react=react)

    def close(self) -> None:
        """Look no more. Holds: the descriptor that was waited for is closed on return."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            os.close(self._reader)
            os.close(self._writer)

    def _look(self) -> None:
        while not self._over.wait(self._pause_s()):
            if self._limits.memory_bytes and (found := self._memory()) >= self._limits.memory_bytes:
                self._too_much = found
            if self._too_much or self._left_s() <= 0:
                # One is enough: it ends the command.
                with suppress(OSError):
                    os.write(self._writer, _WAKE)
                return

    def _left_s(self) -> float:
        if not self._limits.wall_ms:
            return float("inf")
        return self._began_s + self._limits.wall_ms / 1000 - time.monotonic()

    def _pause_s(self) -> float:
        left = max(0.001, self._left_s())
        return min(LOOK_S if self._limits.memory_bytes else 3600.0, left)


def watches(limits: StopConditions) -> bool:
    """Say whether there is anything to watch."""
    return bool(limits.wall_ms or limits.memory_bytes)


def memory_below(pid: int) -> Callable[[], int]:
    """Return what counts the memory of a process's children and theirs, in bytes; shared pages count in parts."""

    def count() -> int:
        return sum(map(_memory_of, _below(pid)))

    return count


def own_memory() -> int:
    """Return the memory of this process and of all below it, in bytes."""
    return _memory_of(os.getpid()) + sum(map(_memory_of, _below(os.getpid())))


def _below(pid: int) -> Iterator[int]:
    queue = [pid]
    while queue:
        parent = queue.pop()
        children: list[int] = []
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    children += map(int, file.read().split())
        yield from children
        queue += children


def _memory_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration, ValueError):
        pass
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0  # it is gone
