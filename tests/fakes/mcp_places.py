"""What scripts/need_mcp installed, and programs of it that are started for a test."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = os.environ.get("INTERLOCK_MCP") or os.path.join(ROOT, "build", "mcp")
SDK = os.path.join(PLACE, "bin", "python")
GIT_SERVER = os.path.join(PLACE, "git-server", "bin", "mcp-server-git")
FILES_SERVER = os.path.join(PLACE, "node", "node_modules", ".bin", "mcp-server-filesystem")
OURS = (sys.executable, "-m", "interlock", "mcp")
_FOLDER = os.path.join(ROOT, "tests", "fakes", "mcp_sdk")


def needs(path: str) -> None:
    """Skip a test whose program is not there."""
    if not os.path.exists(path):
        pytest.skip("not run: scripts/need_mcp has not been run")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def environment(state: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "INTERLOCK_STATE": state,
        "PYTHONPATH": os.path.join(ROOT, "src"),
    }


@contextmanager
def started(argv: list[str], port: int, state: str, log: str) -> Iterator[None]:
    """Run a program until the test is over; come back when it listens."""
    with open(log, "wb") as file:
        child = subprocess.Popen(argv, stdout=file, stderr=file, env=environment(state), cwd=ROOT)
    try:
        deadline = time.monotonic() + 30
        while True:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if child.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8") as text:
                    raise AssertionError(f"it does not listen: {text.read()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        # that of the SDK waits for clients which stay connected; ours has to seal its runs
        child.terminate() if argv[0] != SDK else child.kill()
        child.wait(30)


@contextmanager
def sdk_server(folder: str, *words: str) -> Iterator[str]:
    """Serve tests/fakes/mcp_sdk/server.py. Yields: its URL."""
    port = free_port()
    argv = [SDK, os.path.join(_FOLDER, "server.py"), "http", str(port), *words]
    with started(argv, port, folder, os.path.join(folder, "server.log")):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def guarded_at(folder: str, url: str, *options: str) -> Iterator[str]:
    """Serve `interlock mcp --listen` before a URL. Yields: its own URL."""
    port = free_port()
    argv = [*OURS, "--server", "mail", "--listen", f"127.0.0.1:{port}", "--upstream", url, *options]
    with started(argv, port, folder, os.path.join(folder, "interlock.log")):
        yield f"http://127.0.0.1:{port}/mcp"


def sdk_client(folder: str, *words: str) -> dict[str, Any]:
    """Run tests/fakes/mcp_sdk/client.py. Returns: what it saw."""
    done = subprocess.run(
        [SDK, os.path.join(_FOLDER, "client.py"), *words],
        env=environment(folder),
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert isinstance(seen, dict)
    return seen


class StdioClient:
    """A client that starts a server and speaks lines to it, without an SDK."""

    def __init__(self, folder: str, argv: list[str], capabilities: Mapping[str, Any] = {}) -> None:
        self._child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(folder),
            cwd=folder,
        )
        self._count = 0
        self.asked: list[str] = []
        self.decision = ""
        self.ask(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": dict(capabilities),
                "clientInfo": {"name": "t", "version": "1"},
            },
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any] = {}) -> dict[str, Any]:
        """Ask for something. Returns: the whole answer."""
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        assert self._child.stdout is not None
        for line in self._child.stdout:
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                self.asked.append(message["params"]["message"])
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": self._reply(message["params"])})
            elif message.get("method") == "roots/list":
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
            elif message.get("id") == self._count and "method" not in message:
                assert isinstance(message, dict)
                return message
        raise AssertionError("the server ended")

    def call(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Call a tool. Returns: whether it went well, and its text."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        text = "\n".join(one.get("text", "") for one in answer["result"]["content"])
        return not answer["result"].get("isError", False), text

    def _reply(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if not self.decision:
            return {"action": "decline"}
        wanted = params["requestedSchema"]["properties"]
        found = {key: self._word(one) for key, one in wanted.items()}
        return {"action": "accept", "content": found}

    def _word(self, schema: Mapping[str, Any]) -> Any:
        words = schema.get("enum") or [one["const"] for one in schema.get("oneOf", [])]
        return next((word for word in words if self.decision in str(word)), words[0] if words else True)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()
