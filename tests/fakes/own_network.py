"""A network of its own, with nothing but a loopback on which an HTTP server listens at port 80: `-m` with a command.

Run as `python -m tests.fakes.own_network NAME …` it runs a command under a ready toolkit there, and prints what came of
it as JSON.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_SET_FLAGS, _UP = 0x8914, 0x1


class _Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(b"hello")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    do_PUT = do_POST

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def stand() -> int:
    """Move this process into such a network. Returns: the server's process."""
    flags = _NEW_NETWORK | (0 if os.geteuid() == 0 else _NEW_USER)
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), "no network of its own here")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    server = HTTPServer(("127.0.0.1", 80), _Echo)
    if (pid := os.fork()) == 0:
        server.serve_forever()
    server.server_close()
    return pid


def _main() -> None:
    kit, tool, workspace, *argv = sys.argv[1:]
    from interlock.boundary.confined import Places, run_command
    from interlock.runtime.toolkit_checking import needs_for
    from interlock.runtime.toolkits import load

    server = stand()
    try:
        needs = needs_for(load(kit), "native", tool)
        places = Places(workspace=workspace, home=workspace, tmp=workspace)
        tried = run_command(argv, needs, places=places, working_directory=workspace)
    finally:
        os.kill(server, 9)
    denied = [[one.name, one.detail, one.advice] for one in tried.denials]
    print(
        json.dumps(
            {"code": tried.code, "out": tried.out.decode(), "err": tried.err.decode(), "denied": denied}
        )
    )


if __name__ == "__main__":
    _main()
