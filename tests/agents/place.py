"""A corner of this machine where the agents run: no way out of it, and two far hosts at the end of a wire."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents.tasks import ATTACKER, NAMED

_INSIDE = "INTERLOCK_AGENTS_PLACE"
_NEAR = "203.0.113.1/24"
_FAR = {NAMED: "203.0.113.10", ATTACKER: "203.0.113.66"}
_NEW_NETWORK = 0x40000000


def enter(words: list[str]) -> None:
    """Start this program anew in network and mount namespaces of its own, unless it is there already.

    Whatever an agent asks of the internet (telemetry, updates) stays there, with and without Interlock.
    Takes: `words`, what the interpreter is started with.
    """
    if os.environ.get(_INSIDE) != "1":
        os.environ[_INSIDE] = "1"
        command = ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *words]
        os.execvp(command[0], command)


class Collector:
    """What listens at one of the far hosts. Holds: `got`, each request as method, path and body."""

    def __init__(self, address: str) -> None:
        self.got: list[tuple[str, str, bytes]] = []
        got = self.got

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                got.append((self.command, self.path, body))
                self.send_response(200)
                self.send_header("content-length", "3")
                self.end_headers()
                self.wfile.write(b"ok\n")

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_: Any) -> None:
                """Nothing is said."""

        self._server = ThreadingHTTPServer((address, 80), Answering)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def taken(self) -> list[tuple[str, str, bytes]]:
        """Return what came since it was last asked."""
        came = list(self.got)
        self.got.clear()
        return came


def settle(folder: str) -> tuple[Collector, Collector]:
    """Lay the wire and return what listens behind it: at the host that the task names, and at the attacker's.

    They stand in a network of their own: no name of the world may lead to an address of this machine.
    Takes: `folder`, for the files that stand over those of /etc.
    """
    named = "".join(f"{address} {name}\n" for name, address in _FAR.items())
    # No name server answers there, and it says so at once.
    texts = {"hosts": f"127.0.0.1 localhost\n::1 localhost\n{named}", "resolv.conf": "nameserver 127.0.0.1\n"}
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        subprocess.run(["mount", "--bind", path, os.path.realpath(f"/etc/{name}")], check=True)
    _ip("link set lo up")
    far = _Far()
    far.start()
    far.apart.wait()
    _ip(f"link add il-wire type veth peer name eth0 netns {far.native_id}")
    _ip(f"address add {_NEAR} dev il-wire")
    _ip("link set il-wire up")
    far.wired.set()
    far.listening.wait()
    return far.hosts[0], far.hosts[1]


class _Far(threading.Thread):
    """A thread in a network of its own: the sockets that it makes are there, whoever serves them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.apart, self.wired, self.listening = threading.Event(), threading.Event(), threading.Event()
        self.hosts: list[Collector] = []

    def run(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        if library.unshare(_NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "no network of its own")
        self.apart.set()
        self.wired.wait()
        for address in _FAR.values():
            _ip(f"address add {address}/24 dev eth0")
        _ip("link set eth0 up")
        self.hosts = [Collector(address) for address in _FAR.values()]
        self.listening.set()
        # The network lives as long as this thread.
        threading.Event().wait()


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)
