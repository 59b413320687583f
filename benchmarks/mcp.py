"""An MCP server behind the monitor: what a call costs more than without it, on the same pipes, in pairs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any

from benchmarks.ground import REPOSITORY
from benchmarks.plan import Plan
from benchmarks.rows import Goal, Row, not_run

GOAL_MS = 1.0
_SERVER = (sys.executable, os.path.join(REPOSITORY, "benchmarks", "mcp_server.py"))
_TASK = "send the summary of my mail to ann@a.test"
_POLICY = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  search: {effect: read, carries: [query]}
  send: {effect: send, steers: {to: email}, carries: [body], asks: [send]}
"""
_READ = {"name": "search", "arguments": {"query": "the offer"}}
_SEND = {"name": "send", "arguments": {"to": "ann@a.test", "body": "the offer is ready"}}


def mcp(plan: Plan) -> list[Row]:
    """Measure calls over stdio, one after the other: bare and guarded in turn, and the difference of each pair."""
    memory = "/dev/shm"  # noqa: S108 - made with mkdtemp below it
    if not os.access(memory, os.W_OK):
        return [not_run("mcp/read", "ms", f"no tmpfs that can be written at {memory}")]
    calls = plan.rounds(2_000, 100)
    rows = [
        _row("mcp/read", memory, _READ, calls, "decided, and four nodes in the ledger", goal=True),
        _row(
            "mcp/send-in-memory",
            memory,
            _SEND,
            calls,
            "its intent signed, and flushed to a tmpfs, before it",
            goal=True,
        ),
        _row(
            "mcp/send-on-disk",
            plan.parent,
            _SEND,
            calls // 4,
            "its intent on the disk before it: the disk's time",
        ),
    ]
    return rows


def _row(name: str, parent: str, call: dict[str, Any], calls: int, note: str, *, goal: bool = False) -> Row:
    with _folder(parent) as folder:
        policy = os.path.join(folder, "policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(_POLICY)
        words = (
            sys.executable,
            "-m",
            "interlock",
            "mcp",
            "--policy",
            policy,
            "--task",
            _TASK,
            "--server",
            "mail",
            "--",
        )
        with _Client(_SERVER, folder) as bare, _Client((*words, *_SERVER), folder) as guarded:
            for one in (bare, guarded):
                for _ in range(20):
                    one.call(call)
            pairs = [(bare.call(call), guarded.call(call)) for _ in range(calls)]
    added = [(after - before) * 1e3 for before, after in pairs]
    before = median(one for one, _ in pairs) * 1e3
    tail = quantiles(added, n=100)[98]
    return Row(
        name=name,
        value=median(added),
        unit="ms",
        goal=Goal(bound=GOAL_MS) if goal else None,
        note=f"added a call, median of {calls} pairs, p99 {tail:.2f} ms, bare {before:.2f} ms; {note}",
    )


class _Client:
    """A client on the pipes of a server, that asks one thing at a time."""

    def __init__(self, argv: Sequence[str], folder: str) -> None:
        environment = {**os.environ, "INTERLOCK_STATE": os.path.join(folder, "state")}
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._count = 0
        self._ask(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._ask("tools/list", {})

    def call(self, call: dict[str, Any]) -> float:
        """Call a tool. Returns: how long it took, in seconds."""
        begun = time.perf_counter()
        answer = self._ask("tools/call", call)
        took = time.perf_counter() - begun
        assert "isError" not in answer["result"], answer
        return took

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        self._say({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["id"] == self._count
        return answer

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_raised: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def _folder(parent: str) -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="interlock-bench-", dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
