"""The peer of the proxy benchmark: mitmproxy as shipped, a regular proxy in the same world."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.ground import REPOSITORY
from benchmarks.plan import Plan
from benchmarks.proxy_world import Client, World
from benchmarks.rows import NotRun

_PLACE = os.path.join(REPOSITORY, "build", "mitmproxy")
_PORT = 8080
_START_S = 60.0
_LISTENING = [f"0100007F:{_PORT:04X}", "0A"]
"""The address and the state as /proc/net/tcp has them."""


def _program(plan: Plan) -> str:
    """Return mitmproxy's program, installed in a venv of its own where the plan is full. Raises: NotRun."""
    if plan.quick:
        raise NotRun("left out by --quick")
    program = os.path.join(_PLACE, "bin", "mitmdump")
    if os.access(program, os.X_OK):
        return program
    if not plan.full:
        raise NotRun("mitmproxy is not in build/mitmproxy; --full installs it")
    python = os.path.join(_PLACE, "bin", "python")
    for words in (
        [sys.executable, "-m", "venv", _PLACE],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "mitmproxy"],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no word of why"]
            raise NotRun(f"mitmproxy cannot be installed: {last[0][:200]}")
    return program


@contextlib.contextmanager
def mitmproxy(world: World, plan: Plan) -> Iterator[tuple[Client, str]]:
    """Start it, and the client that goes through it.

    Returns: the client, and the version.
    Raises: NotRun.
    """
    program = _program(plan)
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    version = told[1] if len(told) > 1 else "of an unknown version"
    folder = os.path.join(world.folder, "mitmproxy")
    authority = os.path.join(folder, "mitmproxy-ca-cert.pem")
    options = [
        "--quiet",
        "--listen-host",
        "127.0.0.1",
        "--listen-port",
        str(_PORT),
        "--set",
        f"confdir={folder}",
    ]
    options += ["--set", f"ssl_verify_upstream_trusted_ca={world.trust}"]
    running = subprocess.Popen(
        world.enter([program, *options], world.at.bare),
        env=world.at.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _START_S
        while not (os.path.exists(authority) and _listens(running.pid)):
            if running.poll() is not None or time.monotonic() > until:
                raise NotRun(f"mitmproxy {version} did not start")
            time.sleep(0.05)
        client = world.client("mitmproxy", trust=authority, proxy=f"127.0.0.1:{_PORT}")
        try:
            yield client, version
        finally:
            client.close()
    finally:
        running.kill()
        running.wait()


def _listens(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        return any(line.split()[1:4:2] == _LISTENING for line in table)
    return False
