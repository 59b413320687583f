"""`python pausing.py WORKSPACE BASE FILES`: one snapshot of a busy agent, in the user's own process.

Prints, as JSON and in ms: the agent's largest gap while the snapshot was taken, the pause by the monitor's clock,
and the whole snapshot.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator

from interlock.boundary import Overlay, Sandbox, SandboxPlan, start
from interlock.boundary.waiting import Source
from interlock.staging import StagedRoot, list_changes, take_snapshot

_AGENT = """
import json, os, sys, time
os.mkdir("made")
for number in range(int(sys.argv[1])):
    with open(f"made/{number}", "wb") as file:
        file.write(os.urandom(4096))
open("ready", "w").close()
gaps, count, last = [], 0, time.monotonic_ns()
while count % 256 or not os.path.exists("stop"):
    count += 1
    now = time.monotonic_ns()
    if now - last > 200_000:
        gaps.append((last, now))
    last = now
with open("gaps", "w") as file:
    json.dump(gaps, file)
"""


def main() -> int:
    """Run it. Returns: 0, or 1 if the snapshot was not of all the files."""
    workspace, base, files = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for name in ("upper", "work", "scratch", "home"):
        os.mkdir(f"{base}/{name}")
    home = f"{base}/home"
    overlay = Overlay(
        name="workspace", target=workspace, lower=workspace, upper=f"{base}/upper", work=f"{base}/work",
        observed=False,
    )  # fmt: skip
    plan = SandboxPlan(
        argv=("python3", "-c", _AGENT, str(files)),
        environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home},
        working_directory=workspace, home=home, overlays=(overlay,), scratch=f"{base}/scratch",
    )  # fmt: skip
    reading, writing = os.pipe()

    def await_agent() -> None:
        while not os.path.exists(f"{base}/upper/ready"):
            time.sleep(0.01)
        time.sleep(0.1)  # it stamps
        os.write(writing, b"r")

    sandbox = start(plan)
    told: dict[str, float] = {}
    try:
        threading.Thread(target=await_agent, daemon=True).start()
        react = Source(
            descriptor=reading, react=lambda: told.update(_take(sandbox, reading, base, workspace))
        )
        sandbox.run(lambda activity: None, None, (react,))
    finally:
        sandbox.close()
    with open(f"{base}/upper/gaps", encoding="utf-8") as file:
        gaps = json.load(file)
    began, ended = told["began_ns"], told["ended_ns"]
    told["gap"] = max((b - a for a, b in gaps if a < ended and b > began), default=0) / 1e6
    print(json.dumps(told))
    return 0 if told["listed"] > files else 1


def _take(sandbox: Sandbox, reading: int, base: str, workspace: str) -> dict[str, float]:
    os.read(reading, 1)
    spent: list[float] = []

    @contextlib.contextmanager
    def pause() -> Iterator[None]:
        began = time.perf_counter()
        with sandbox.still():
            yield
        spent.append((time.perf_counter() - began) * 1e3)

    root = StagedRoot(
        name="workspace", lower=workspace, upper=f"{base}/upper", xattr_prefix=sandbox.xattr_prefix
    )
    began_ns = time.monotonic_ns()
    (copy,) = take_snapshot([root], f"{base}/snapshot", pause)
    ended_ns = time.monotonic_ns()
    listed = sum(1 for _ in list_changes(copy, judges_content=lambda path: False))
    with open(f"{sandbox.view('workspace')}/stop", "w", encoding="ascii"):
        pass
    return {
        "began_ns": began_ns,
        "ended_ns": ended_ns,
        "pause": spent[0],
        "whole": (ended_ns - began_ns) / 1e6,
        "listed": listed,
    }


if __name__ == "__main__":
    sys.exit(main())
