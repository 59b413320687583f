"""The gateway: what it adds to the first byte of a model's answer, and what 200 streams at once cost it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.ground import REPOSITORY, ground
from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run

GOAL_MS = 5.0
STREAMS = 200
_PAUSE_MS = 20
_EVENTS = 100
_THINK_S = 0.03
"""An agent does something between two requests; meanwhile the answer before is put on record."""
_PATIENCE_S = 120.0


def gateway(plan: Plan) -> list[Row]:
    """Measure the first byte, a whole answer, and many streams; the policy audits every call."""
    try:
        with ground("root" if os.geteuid() == 0 else "user", plan.parent) as at, _standing(at.state) as two:
            return [*_first_byte(two, plan), *_streams(two, plan)]
    except NotRun as reason:
        return [not_run("gateway", "ms", reason)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Two:
    """The ports of the provider and of the gateway before it, and the gateway's process."""

    provider: int
    gateway: int
    pid: int

    def resident_kib(self, field: str) -> int:
        """Return the gateway's memory. Takes: `field`, `VmRSS` or `VmHWM`."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field))

    def cpu_s(self) -> float:
        """Return the processor time that the gateway has used."""
        with open(f"/proc/{self.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _standing(state: str) -> Iterator[Two]:
    environment = {**os.environ, "INTERLOCK_STATE": state}
    with contextlib.ExitStack() as started:

        def start(*words: str) -> subprocess.Popen[bytes]:
            one = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            started.callback(_end, one)
            return one

        provider = int(_line(start("benchmarks.gateway_provider")))
        words = ("--json", "--listen", "127.0.0.1:0", "--task", "go on", "--oracle", "strict")
        before = start("interlock", "gateway", *words, "--upstream", f"anthropic=http://127.0.0.1:{provider}")
        port = int(json.loads(_line(before))["url"].rpartition(":")[2])
        yield Two(provider=provider, gateway=port, pid=before.pid)


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise NotRun("what is measured did not start")
    return line


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_PATIENCE_S)
    process.kill()


def _request(port: int, *, events: int, pause_ms: int = 0) -> bytes:
    tools = [
        {
            "name": f"tool_{number}",
            "description": "does this and that " * 8,
            "input_schema": {"type": "object"},
        }
        for number in range(12)
    ]
    messages = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": "some words of a long talk " * 30}
        for number in range(21)
    ]
    body = json.dumps({"model": "m", "stream": True, "max_tokens": 100, "tools": tools, "messages": messages})
    return (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"x-events: {events}\r\nx-pause-ms: {pause_ms}\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _asked(port: int, times: int, *, events: int) -> tuple[float, float]:
    """Ask one after the other on one connection. Returns: median ms to the body's first byte, and to its end."""
    request = _request(port, events=events)
    firsts, wholes = [], []
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(times):
            time.sleep(_THINK_S)
            began = time.perf_counter()
            link.sendall(request)
            came, first = b"", 0.0
            while not came.endswith(b"\r\n0\r\n\r\n"):
                data = link.recv(1 << 18)
                if not data or (not came and not data.startswith(b"HTTP/1.1 200")):
                    raise NotRun(f"the answer is none: {(came + data)[:60]!r}")
                came += data
                if not first and came.partition(b"\r\n\r\n")[2]:
                    first = time.perf_counter()
            firsts.append((first - began) * 1e3)
            wholes.append((time.perf_counter() - began) * 1e3)
    return median(firsts), median(wholes)


def _first_byte(two: Two, plan: Plan) -> list[Row]:
    times, rounds = plan.rounds(100, 5), plan.rounds(11, 1)
    direct, through = interleaved(
        lambda: _asked(two.provider, times, events=50),
        lambda: _asked(two.gateway, times, events=50),
        rounds=rounds,
    )
    rows = []
    size_kib = len(_request(1, events=50)) // 1024
    for name, place, goal in (("first-byte", 0, Goal(bound=GOAL_MS)), ("whole-answer", 1, None)):
        bare = figure([one[place] for one in direct])
        added = figure([one[place] - other[place] for one, other in zip(through, direct, strict=True)])
        rows.append(
            Row(
                name=f"gateway/{name}-added",
                value=added.median,
                unit="ms",
                baseline=bare.median,
                goal=goal,
                note=f"{said(added)}; {times} requests a round of {size_kib} KiB, 50 events of text each, no call; "
                "decided, read and on record; the ratio is what is added, in the provider's own time",
            )
        )
    return rows


async def _stream(port: int, events: int, pause_ms: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(port, events=events, pause_ms=pause_ms))
    came = tail = b""
    count = 0
    while not tail.endswith(b"\r\n0\r\n\r\n") and (came := await reader.read(1 << 16)):
        count += came.count(b"text_delta")
        tail = (tail + came)[-64:]
    writer.close()
    return count == events


def _at_once(port: int, events: int) -> float:
    async def main() -> float:
        began = time.perf_counter()
        async with asyncio.timeout(_PATIENCE_S):
            whole = await asyncio.gather(*(_stream(port, events, _PAUSE_MS) for _ in range(STREAMS)))
        if not all(whole):
            raise NotRun(f"{whole.count(False)} of {STREAMS} streams were not whole")
        return time.perf_counter() - began

    return asyncio.run(main())


def _streams(two: Two, plan: Plan) -> list[Row]:
    events = plan.rounds(_EVENTS, 5)
    at_rest = two.resident_kib("VmRSS")
    used = two.cpu_s()
    rounds = plan.rounds(5, 1)
    direct, through = interleaved(
        lambda: _at_once(two.provider, events), lambda: _at_once(two.gateway, events), rounds=rounds
    )
    spent = (two.cpu_s() - used) / (rounds + 1)
    bare, whole = figure(direct), figure(through)
    paced = f"{STREAMS} streams at once of {events} events, one each {_PAUSE_MS} ms"
    return [
        Row(
            name=f"gateway/streams-{STREAMS}",
            value=whole.median,
            unit="s",
            baseline=bare.median,
            note=f"{said(whole, bare)}; {paced}; no event was lost; {spent:.2f} s of the gateway's processor a round",
        ),
        Row(
            name=f"gateway/streams-{STREAMS}-memory",
            value=(two.resident_kib("VmHWM") - at_rest) / STREAMS,
            unit="KiB",
            note=f"a stream, at the peak; {at_rest / 1024:.0f} MiB at rest before them; a request is "
            f"{len(_request(1, events=1)) // 1024} KiB",
        ),
    ]
