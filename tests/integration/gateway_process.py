"""`interlock gateway` as a process of its own, and agents that speak with it."""

from __future__ import annotations

import functools
import http.client
import json
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.integration.conftest import Cli


class GatewayProcess:
    """A gateway that listens. Holds: `told`, the JSON lines that it said."""

    def __init__(
        self, cli: Cli, *words: str, environment: Mapping[str, str] = {}, descriptors: int = 0
    ) -> None:
        self.told: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            cli.words("gateway", "--json", "--listen", "127.0.0.1:0", *words),
            cwd=cli.workspace,
            env=cli.environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=functools.partial(_bound, descriptors) if descriptors else None,
            **cli.identity(),
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if not first:
            raise AssertionError(self._process.communicate()[1])
        self.told.append(json.loads(first))
        self.port = int(self.told[0]["url"].rpartition(":")[2])
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> dict[str, str]:
        """Return the last run of each session."""
        return {one["session"]: one["run"] for one in self.told if one["event"] == "opened"}

    def closed(self) -> list[dict[str, Any]]:
        return [one for one in self.told if one["event"] == "closed"]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, bytes]:
        """End it. Returns: its exit status, and what it said on stderr."""
        self._process.send_signal(number)
        assert self._process.stderr is not None
        self._reader.join(60)
        said = self._process.stderr.read()
        status = self._process.wait(60)
        self._process.stderr.close()
        return status, said

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(60)
            self._reader.join(60)
            assert self._process.stderr is not None
            self._process.stderr.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told.append(json.loads(line))
        self._process.stdout.close()


def _bound(descriptors: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


@contextmanager
def a_gateway(
    cli: Cli, *words: str, environment: Mapping[str, str] = {}, descriptors: int = 0
) -> Iterator[GatewayProcess]:
    """Start one, and end it. Takes: `descriptors`, how many it may have open, 0 for as many as we may."""
    one = GatewayProcess(cli, *words, environment=environment, descriptors=descriptors)
    try:
        yield one
    finally:
        one.kill()


def post(
    port: int, path: str, body: Any, headers: Mapping[str, str] = {}
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Ask once, over a connection of its own."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        link.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()
