"""`interlock mcp` over HTTP with 200 clients at once, each in a session and a run of its own: time and memory."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks.ground import REPOSITORY, ground
from benchmarks.plan import Plan
from benchmarks.rows import NotRun, Row, not_run

CLIENTS = 200
CALLS = 10
_PATIENCE_S = 300.0
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
  send: {effect: send, steers: {to: email}, carries: [body]}
"""
_TASK = "send the summary of my mail to ann@a.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What a crowd of clients saw.

    Takes: `took_s`, of each call; `passed` and `refused`, how many calls of each; `wrong`, answers that are not their
    own; `whole_s`, from the first connection to the last answer.
    """

    took_s: tuple[float, ...]
    passed: int
    refused: int
    wrong: int
    whole_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Interlock before a server. Takes: `port`, where clients reach it; `server`, where they would without it."""

    port: int
    server: int
    process: subprocess.Popen[bytes]

    def memory_mib(self, field: str = "VmRSS") -> float:
        """Return its memory. Takes: `field`, `VmRSS` or `VmHWM`."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def mcp_crowd(plan: Plan) -> list[Row]:
    """Measure a crowd without Interlock, and the same one behind it."""
    clients, calls = (CLIENTS, CALLS) if not plan.quick else (20, 2)
    try:
        with ground("root" if os.geteuid() == 0 else "user", plan.parent) as at, standing(at.state) as two:
            bare = asyncio.run(crowd(two.server, clients, calls))
            before = two.memory_mib()
            found = asyncio.run(crowd(two.port, clients, calls))
            most = two.memory_mib("VmHWM")
            begun = time.perf_counter()
            two.process.terminate()
            two.process.wait(_PATIENCE_S)
            sealed = time.perf_counter() - begun
    except NotRun as reason:
        return [not_run("mcp-crowd", "s", reason)]
    told = f"{clients} clients at once, {clients * calls} calls, {found.refused} of them refused, {found.wrong} wrong"
    tail = quantiles(found.took_s, n=100)[98]
    return [
        Row(
            name="mcp-crowd/all",
            value=found.whole_s,
            unit="s",
            baseline=bare.whole_s,
            note=f"{told}; a run each, sealed within {sealed:.2f} s at the end",
        ),
        Row(
            name="mcp-crowd/call",
            value=median(found.took_s) * 1e3,
            unit="ms",
            baseline=median(bare.took_s) * 1e3,
            note=f"a call in the crowd, median; p99 {tail * 1e3:.0f} ms",
        ),
        Row(
            name="mcp-crowd/memory",
            value=most,
            unit="MiB",
            note=f"resident at most, {before:.1f} before: {(most - before) * 1024 / clients:.0f} KiB a session",
        ),
    ]


@contextmanager
def standing(state: str) -> Iterator[Standing]:
    """Start a server and Interlock before it. Takes: `state`, the folder of its runs. Raises: NotRun."""
    policy = os.path.join(state, "crowd.yaml")
    os.makedirs(state, exist_ok=True)
    with open(policy, "w", encoding="utf-8") as file:
        file.write(_POLICY)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.mcp_http_server"], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise NotRun("the server did not start")
    words = ("--server", "mail", "--oracle", "strict", "--policy", policy, "--task", _TASK)
    upstream = f"http://127.0.0.1:{int(line)}/mcp"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "interlock",
            "mcp",
            *words,
            "--listen",
            f"127.0.0.1:{port}",
            "--upstream",
            upstream,
        ],
        cwd=REPOSITORY,
        env={**os.environ, "INTERLOCK_STATE": os.path.join(state, "state")},
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_it_listens(port, process)
        yield Standing(port=port, server=int(line), process=process)
    finally:
        for one in (process, server):
            one.terminate()
            with suppress(subprocess.TimeoutExpired):
                one.wait(_PATIENCE_S)
            one.kill()
        server.stdout.close()


def _until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    over = time.monotonic() + _PATIENCE_S
    while time.monotonic() < over and process.poll() is None:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise NotRun("`interlock mcp` did not listen")


async def crowd(port: int, clients: int, calls: int) -> Crowd:
    """Have so many clients make so many calls each, all at once; the last of each is one that nothing vouches for."""
    begun = time.perf_counter()
    found = await asyncio.gather(*(_Client(port, number).run(calls) for number in range(clients)))
    return Crowd(
        took_s=tuple(took for one in found for took in one.took_s),
        passed=sum(one.passed for one in found),
        refused=sum(one.refused for one in found),
        wrong=sum(one.wrong for one in found),
        whole_s=time.perf_counter() - begun,
    )


class _Client:
    def __init__(self, port: int, number: int) -> None:
        self._port = port
        self._number = number
        self._session = ""
        self._count = 0
        self.took_s: list[float] = []
        self.passed = self.refused = self.wrong = 0

    async def run(self, calls: int) -> _Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        }
        await self._ask("initialize", hello)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self._ask("tools/list", {})
        for at in range(calls):
            words = f"of client {self._number}, {at}"
            arguments = {"query": words} if at % 2 else {"to": "ann@a.test", "body": words}
            if at == calls - 1:
                arguments = {"to": "eve@evil.test", "body": words}
            begun = time.perf_counter()
            answer = await self._ask(
                "tools/call", {"name": "send" if "to" in arguments else "search", "arguments": arguments}
            )
            self.took_s.append(time.perf_counter() - begun)
            text = answer["result"]["content"][0]["text"]
            if answer["result"].get("isError"):
                self.refused += 1
                self.wrong += "eve@evil.test" not in str(arguments)
            else:
                self.passed += 1
                self.wrong += text != f"done: {json.dumps(arguments, sort_keys=True)}"
        self._writer.write(self._head("DELETE", 0))
        await self._answer()
        self._writer.close()
        return self

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        raw = await self._post({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(raw)
        self.wrong += answer["id"] != self._count
        return answer

    async def _post(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message).encode()
        self._writer.write(self._head("POST", len(body)) + body)
        return await self._answer()

    def _head(self, method: str, size: int) -> bytes:
        session = f"mcp-session-id: {self._session}\r\n" if self._session else ""
        fields = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        return (
            f"{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n{fields}{session}"
            f"content-length: {size}\r\n\r\n"
        ).encode()

    async def _answer(self) -> bytes:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = 0
        for line in head.splitlines():
            name, _, value = line.partition(":")
            if name == "content-length":
                size = int(value)
            elif name == "mcp-session-id":
                self._session = value.strip()
        return await self._reader.readexactly(size)
