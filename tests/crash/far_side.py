"""A far side in a process of its own, that counts what reached it and when, by the disk's own count of writes."""

import http.client
import json
import mmap
import os
import signal
import struct
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests.crash.tracing import die_with_parent


@dataclass(frozen=True)
class Arrival:
    """A whole request that came. Takes: `position`, how much the disk had taken by then."""

    path: str
    position: int


class FarSide:
    """Serves one connection after the other, so that what was asked first is answered first."""

    def __init__(self, control: mmap.mmap) -> None:
        class Answering(BaseHTTPRequestHandler):
            timeout = 10

            def do_POST(self) -> None:
                size = int(self.headers.get("content-length", "0"))
                if len(self.rfile.read(size)) == size:
                    arrivals.append((self.path, struct.unpack_from("<Q", control)[0]))
                self._answer(b"{}")

            do_PUT = do_POST

            def do_GET(self) -> None:
                if self.path == "/":
                    self._answer(json.dumps(arrivals).encode())
                    arrivals.clear()
                else:
                    self.do_POST()

            def _answer(self, text: bytes) -> None:
                try:
                    self.send_response(200)
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    return  # the one who asked was killed

            def log_message(self, *_: Any) -> None:
                pass

        class Server(HTTPServer):
            def handle_error(self, *_: Any) -> None:
                pass  # a client that was killed in the middle of its request

        arrivals: list[tuple[str, int]] = []
        server = Server(("127.0.0.1", 0), Answering)
        self.port = int(server.server_address[1])
        self._pid = os.fork()
        if self._pid == 0:
            try:
                die_with_parent()
                server.serve_forever()
            finally:
                os._exit(0)
        server.socket.close()

    def arrivals(self) -> list[Arrival]:
        """Return what came since the last time; everything sent by processes that are gone has been read."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            line.request("GET", "/")
            return [Arrival(path, position) for path, position in json.loads(line.getresponse().read())]
        finally:
            line.close()

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
