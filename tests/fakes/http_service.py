"""A real HTTP service on this machine, whose answers a test writes: for oracles that ask one."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

Answering = Callable[[str, str, bytes], tuple[int, Any]]
"""Method, target and body of a request to the status and the body of its answer: JSON, bytes, or None for no body."""


class Service:
    """Takes: `answering`; `certificate`, a PEM file where it speaks TLS. Holds: `requests`, in their order."""

    def __init__(
        self,
        answering: Answering,
        *,
        certificate: str = "",
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        service = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                service.requests.append((self.command, self.path, body))
                status, said = answering(self.command, self.path, body)
                raw = b"" if said is None else said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(raw)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = _answer

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._server.handle_error = lambda *_arguments: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/", *, scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _method, _path, body in self.requests]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class RawService:
    """Writes bytes as they are to whoever connects. Takes: `parts`, with `pause_s` between them; `again`, for ever."""

    def __init__(self, *parts: bytes, pause_s: float = 0.0, again: bytes = b"") -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._parts, self._pause_s, self._again = parts, pause_s, again
        self._over = False
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}{path}"

    def _serve(self) -> None:
        while not self._over:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                try:
                    connection.settimeout(5)
                    connection.recv(65536)
                    for part in self._parts:
                        connection.sendall(part)
                        time.sleep(self._pause_s)
                    while self._again and not self._over:
                        connection.sendall(self._again)
                        time.sleep(self._pause_s)
                except OSError:
                    pass

    def __enter__(self) -> RawService:
        return self

    def __exit__(self, *_error: object) -> None:
        self._over = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def nothing_listens() -> str:
    """Return the URL of a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{cast(int, listener.getsockname()[1])}"
