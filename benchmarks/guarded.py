"""Guarded functions: what a call costs that the policy releases, on record before and after it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks.plan import Plan
from benchmarks.rounds import Figure, figure, interleaved, said
from benchmarks.rows import Goal, Row, not_run

GOAL_US = 100.0
_TASK = "send the summary of my mail to ann@a.test"
_FOUND = [{"from": "bob@b.test", "subject": "the offer", "text": "it is ready; I bring it on Monday"}]


def guarded(plan: Plan) -> list[Row]:
    """Measure calls that read, plain and awaited, and calls that change something, whose intent waits for the disk."""
    memory = "/dev/shm"  # noqa: S108 - made with mkdtemp below it
    calls, rounds = plan.rounds(400, 40), plan.rounds(15, 2)
    if not os.access(memory, os.W_OK):
        return [not_run("guarded/read", "us", f"no tmpfs that can be written at {memory}")]
    rows = []
    with _state(memory):
        bare, read = interleaved(
            lambda: _each(_search, calls), lambda: _in_scope(_reading, calls), rounds=rounds
        )
        rows.append(
            _row(
                "guarded/read",
                figure(read),
                figure(bare),
                f"{calls} calls a round, medians; decided, and four nodes in the ledger; signed with the next call "
                "that changes something, and every 256 nodes",
                goal=True,
            )
        )
        waiting = [_awaiting(calls) for _ in range(rounds + 1)][1:]
        rows.append(
            _row(
                "guarded/read-async", figure(waiting), figure(bare), "the same, awaited in a loop", goal=True
            )
        )
        sent = [_in_scope(_sending, calls) for _ in range(rounds + 1)][1:]
        rows.append(
            _row(
                "guarded/send-in-memory",
                figure(sent),
                None,
                "signed, and flushed to a tmpfs, before it is made",
            )
        )
    with _state(plan.parent):
        sent = [_in_scope(_sending, plan.rounds(100, 10)) for _ in range(plan.rounds(5, 1) + 1)][1:]
        rows.append(
            _row(
                "guarded/send-on-disk",
                figure(sent),
                None,
                "signed, and on the disk, before it is made: the disk's time",
            )
        )
    return rows


def _row(name: str, value: Figure, bare: Figure | None, note: str, *, goal: bool = False) -> Row:
    return Row(
        name=name,
        value=value.median,
        unit="us",
        baseline=None if bare is None else bare.median,
        goal=Goal(bound=GOAL_US) if goal else None,
        note=f"{said(value)}; {note}" + ("; bare is the function alone" if bare is not None else ""),
    )


@contextmanager
def _state(parent: str) -> Iterator[None]:
    before = os.environ.get("INTERLOCK_STATE")
    folder = tempfile.mkdtemp(prefix="interlock-bench-", dir=parent)
    os.environ["INTERLOCK_STATE"] = os.path.join(folder, "state")
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop("INTERLOCK_STATE")
        if before is not None:
            os.environ["INTERLOCK_STATE"] = before


def _search(query: str) -> list[dict[str, str]]:
    return _FOUND


def _send(to: str, body: str) -> str:
    return "sent"


def _monitor() -> Any:
    from interlock import Monitor

    return Monitor(task=_TASK, oracle="strict", name="bench")


def _reading(monitor: Any) -> Callable[[str], object]:
    held: Callable[[str], object] = monitor.guard(effect="read", carries=["query"])(_search)
    return held


def _sending(monitor: Any) -> Callable[[str], object]:
    held = monitor.guard(effect="send", steers={"to": "email"}, carries=["body"], asks=["send"])(_send)
    return lambda text: held("ann@a.test", text)


def _in_scope(guard: Callable[[Any], Callable[[str], object]], calls: int) -> float:
    monitor = _monitor()
    held = guard(monitor)
    with monitor:
        return _each(held, calls)


def _each(call: Callable[[str], object], calls: int) -> float:
    """Return the median time of a call, in microseconds; the first tenth warms up."""
    spans = []
    for number in range(calls + calls // 10):
        text = f"the offer of {number}"
        began = time.perf_counter_ns()
        call(text)
        spans.append((time.perf_counter_ns() - began) / 1e3)
    return median(spans[calls // 10 :])


def _awaiting(calls: int) -> float:
    monitor = _monitor()

    async def search(query: str) -> list[dict[str, str]]:
        return _FOUND

    held = monitor.guard(effect="read", carries=["query"])(search)

    async def main() -> float:
        spans = []
        async with monitor:
            for number in range(calls + calls // 10):
                text = f"the offer of {number}"
                began = time.perf_counter_ns()
                await held(text)
                spans.append((time.perf_counter_ns() - began) / 1e3)
        return median(spans[calls // 10 :])

    return asyncio.run(main())
