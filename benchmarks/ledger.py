"""The ledger: a node's price when heads are signed in batches, verification, and a small bundle whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from benchmarks.ground import REPOSITORY
from benchmarks.plan import Plan
from benchmarks.rounds import Figure, figure, said
from benchmarks.rows import Goal, NotRun, Row, not_run

if TYPE_CHECKING:
    from interlock.model.nodes import Node

PAYLOAD_BYTES = 957
_WRITE_GOAL_US = 15.0
_VERIFY_GOAL_NODES_S = 100_000.0
_BUNDLE_GOAL_MS = 1.0
_MILLION = 1_000_000
_VERIFY_ALONE = """
import sys, time
from interlock.verify import verify_path
def peak_kib():
    # Not getrusage: its peak is inherited from whoever started this.
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM:"))
before_kib = peak_kib()
began = time.perf_counter()
report = verify_path(sys.argv[1])
spent_s = time.perf_counter() - began
print(report.verdict, report.nodes, spent_s, before_kib, peak_kib())
"""


def ledger(plan: Plan) -> list[Row]:
    """Measure writing and verifying; a million nodes under `--full` alone."""
    folder = tempfile.mkdtemp(prefix="interlock-bench-", dir=plan.parent)
    try:
        count = 2_048 if plan.quick else 65_536
        rounds = plan.rounds(7)
        rows = [*_write_and_verify(folder, count, rounds), *_bundles(folder, plan.rounds(31, 3))]
        if plan.full:
            rows.extend(_million(folder))
        return rows
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _payload(number: int) -> dict[str, object]:
    """Return a payload of 957 bytes in canonical form, in the shape of a file effect."""
    payload: dict[str, object] = {
        "event": "effect",
        "object": f"workspace:src/package/module_{number:07d}.py",
        "digest": f"{number:064x}",
        "size_bytes": 4096,
        "reads": [f"workspace:src/package/other_{number + near:07d}.py" for near in range(12)],
        "fill": "",
    }
    from interlock.evidence.encoding import canonical

    payload["fill"] = "x" * (PAYLOAD_BYTES - len(canonical(payload)))
    return payload


def _nodes(count: int) -> Iterator[Node]:
    from interlock.model.nodes import Node, NodeKind

    yield Node(seq=0, kind=NodeKind.PROMPT, parent=None, actor="principal", payload=_payload(0))
    yield Node(seq=1, kind=NodeKind.AGENT_STEP, parent=0, actor="agent", payload=_payload(1))
    for seq in range(2, count):
        if seq % 2:
            yield Node(
                seq=seq,
                kind=NodeKind.CHECK,
                parent=seq - 1,
                actor="monitor",
                payload=_payload(seq),
                verdict="release",
            )
        else:
            yield Node(seq=seq, kind=NodeKind.TOOL_CALL, parent=1, actor="agent", payload=_payload(seq))


def _write(path: str, count: int) -> tuple[float, float]:
    """Write and seal a ledger. Returns: seconds of appending and signing; seconds from opening to seal.

    The nodes are made ahead in lots, so that only the ledger's own work is on the clock.
    """
    from interlock.evidence import LedgerWriter, SigningKey

    appending = 0.0
    key = SigningKey.generate()
    clock = time.perf_counter
    whole = clock()
    writer = LedgerWriter.create(path, run_id="bench", apm={"policy": "bench"}, key=key)
    outside = 0.0
    nodes = _nodes(count)
    while True:
        making = clock()
        lot = list(islice(nodes, 4096))
        outside += clock() - making
        if not lot:
            break
        began = clock()
        for node in lot:
            writer.append(node)
        appending += clock() - began
    began = clock()
    writer.sign()
    appending += clock() - began
    writer.seal("committed")
    writer.close()
    return appending, clock() - whole - outside


def _write_and_verify(folder: str, count: int, rounds: int) -> list[Row]:
    from interlock.verify import BundleVerdict, verify_path

    writes, verifies, bytes_only = [], [], []
    for turn in range(rounds + 1):
        path = os.path.join(folder, "ledger")
        appending, _ = _write(path, count)
        began = time.perf_counter()
        report = verify_path(path)
        spent_s = time.perf_counter() - began
        if report.verdict is not BundleVerdict.COMPLETE:
            reason = f"the ledger does not verify: {report.reason}"
            return [not_run("ledger/write", "us/node", reason), not_run("ledger/verify", "nodes/s", reason)]
        plain = _plain_write(os.path.join(folder, "plain"), count)
        shutil.rmtree(path)
        if turn or rounds == 1:  # the first round warms up
            writes.append(appending / count * 1e6)
            verifies.append(count / spent_s)
            bytes_only.append(plain / count * 1e6)
    written, verified, plain_figure = figure(writes), figure(verifies), figure(bytes_only)
    return [
        Row(
            name="ledger/write",
            value=written.median,
            unit="us/node",
            baseline=plain_figure.median,
            goal=Goal(bound=_WRITE_GOAL_US),
            note=f"{said(written)}; {count:,} nodes of {PAYLOAD_BYTES} bytes, a signed head every 256; "
            "bare is the same payloads as JSON lines, neither chained nor signed",
        ),
        Row(
            name="ledger/verify",
            value=verified.median,
            unit="nodes/s",
            goal=Goal(bound=_VERIFY_GOAL_NODES_S, at_most=False),
            note=f"{said(verified)}; one core, every check but replay; {1e6 / verified.median:.1f} us a node",
        ),
    ]


def _plain_write(path: str, count: int) -> float:
    """Write the same payloads as plain JSON lines. Returns: seconds."""
    from interlock.evidence.encoding import canonical

    spent_s = 0.0
    with open(path, "wb", buffering=1 << 18) as file:
        for first in range(0, count, 4096):
            lot = [_payload(number) for number in range(first, min(first + 4096, count))]
            began = time.perf_counter()
            for payload in lot:
                file.write(canonical(payload) + b"\n")
            spent_s += time.perf_counter() - began
    os.unlink(path)
    return spent_s


def _bundles(folder: str, rounds: int) -> list[Row]:
    """Measure 10 nodes from opening to seal: the building alone on a tmpfs, then made durable on the disk."""
    memory = "/dev/shm"  # noqa: S108 - made with mkdtemp below it
    build, durable = "ledger/10-node-build", "ledger/10-node-durable"
    rows = []
    if os.access(memory, os.W_OK):
        in_memory = tempfile.mkdtemp(prefix="interlock-bench-", dir=memory)
        try:
            built, _ = _small_bundles(in_memory, rounds)
        finally:
            shutil.rmtree(in_memory, ignore_errors=True)
        note = f"{said(built)}; opened, 10 nodes, sealed, on a tmpfs"
        goal = Goal(bound=_BUNDLE_GOAL_MS)
        rows.append(Row(name=build, value=built.median, unit="ms", goal=goal, note=note))
    else:
        rows.append(not_run(build, "ms", f"no tmpfs that can be written at {memory}"))
    written, verified = _small_bundles(folder, rounds)
    note = f"{said(written)}; the same on the disk, waiting for it; verified in {verified.median:.2f} ms"
    rows.append(Row(name=durable, value=written.median, unit="ms", note=note))
    return rows


def _small_bundles(folder: str, rounds: int) -> tuple[Figure, Figure]:
    written, verified = [], []
    path = os.path.join(folder, "bundle")
    for _ in range(rounds + 1):
        written.append(_write(path, 10)[1] * 1e3)
        verified.append(_verify_ms(path))
        shutil.rmtree(path)
    return figure(written[1:]), figure(verified[1:])


def _verify_ms(path: str) -> float:
    from interlock.verify import verify_path

    began = time.perf_counter()
    verify_path(path)
    return (time.perf_counter() - began) * 1e3


def _million(folder: str) -> list[Row]:
    path = os.path.join(folder, "million")
    wanted = [("ledger/1000000-write", "s"), ("ledger/1000000-verify", "s"), ("ledger/1000000-rss", "MB")]
    try:
        if shutil.disk_usage(folder).free < 3 << 30:
            raise NotRun("needs 3 GiB of disk; name another place: --in DIR")
        appending, _ = _write(path, _MILLION)
        done = subprocess.run(
            [sys.executable, "-c", _VERIFY_ALONE, path],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotRun(f"the verifier ended with {done.returncode}")
        verdict, nodes, spent_s, before_kib, after_kib = done.stdout.split()
        if verdict != "complete":
            raise NotRun(f"the ledger is {verdict}")
    except NotRun as reason:
        return [not_run(name, unit, reason) for name, unit in wanted]
    finally:
        shutil.rmtree(path, ignore_errors=True)
    values = (appending, float(spent_s), int(after_kib) * 1024 / 1e6)
    notes = (
        f"1 round; {appending / _MILLION * 1e6:.1f} us a node",
        f"1 round; {int(nodes) / float(spent_s):,.0f} nodes/s in a process of its own",
        f"the verifier's peak; {int(before_kib) * 1024 / 1e6:.0f} MB before it began",
    )
    return [
        Row(name=name, value=value, unit=unit, note=note)
        for (name, unit), value, note in zip(wanted, values, notes, strict=True)
    ]
