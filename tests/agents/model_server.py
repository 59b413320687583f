"""A scripted model server on the loopback: four wires, streamed or not, one script.

Run it: `python -m tests.agents.model_server --port 8911 --folder WORKSPACE SCRIPT.json`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents.script import Asked, Script, read_script
from tests.agents.wire import Wire
from tests.agents.wire_chat import CHAT
from tests.agents.wire_gemini import GEMINI
from tests.agents.wire_messages import MESSAGES
from tests.agents.wire_responses import RESPONSES

MODELS = ("fake-model", "gpt-5.5", "claude-sonnet-4-5")


class ModelServer:
    """The server, listening as soon as it is made.

    Takes: `script`, what to answer, and may be changed between runs; `dies_at`, the step whose answer breaks off in
    the middle (None: none does).
    Holds: `requests`, path and body of each request; `thinks`, the seconds that an answer takes.
    """

    def __init__(self, script: Script, *, port: int = 0, dies_at: int | None = None) -> None:
        self.script = script
        self.dies_at = dies_at
        self.thinks = 0.0
        self.requests: list[tuple[str, Mapping[str, Any]]] = []
        self._server = _Server(("127.0.0.1", port), _answering(self))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def wire_of(path: str) -> Wire | None:
    """Return the wire that a path speaks, None for none."""
    if path.endswith("/chat/completions"):
        return CHAT
    if path.endswith("/responses"):
        return RESPONSES
    if path.endswith("/messages"):
        return MESSAGES
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return GEMINI
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that hangs up is nothing to report."""


def _answering(server: ModelServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._whole(200, {})

        def do_GET(self) -> None:
            if self.path.partition("?")[0].endswith("/models"):
                self._whole(200, _models())
            else:
                self._missing()

        def do_POST(self) -> None:
            path = self.path.partition("?")[0]
            body = self._body()
            server.requests.append((path, body))
            wire = wire_of(path)
            if wire is not None:
                self._answer(wire, wire.asked(body, path))
            elif path.endswith("/count_tokens"):
                self._whole(200, {"input_tokens": 10})
            elif path.endswith(":countTokens"):
                self._whole(200, {"totalTokens": 10})
            else:
                self._missing()

        def _answer(self, wire: Wire, asked: Asked) -> None:
            reply = server.script.reply(asked)
            time.sleep(server.thinks)
            dies = bool(asked.tools) and asked.results == server.dies_at
            if asked.streamed:
                events = [event.encoded() for event in wire.streamed(reply, asked)]
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("cache-control", "no-cache")
                self.send_header("connection", "close")
                self.end_headers()
                for event in events[: len(events) // 2] if dies else events:
                    self.wfile.write(event)
                    self.wfile.flush()
                if dies:
                    self._die()
                elif wire.end:
                    self.wfile.write(wire.end)
                self.close_connection = True
            else:
                self._whole(200, wire.whole(reply, asked), dies)

        def _whole(self, status: int, value: Mapping[str, Any], dies: bool = False) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if dies else body)
            if dies:
                self._die()

        def _die(self) -> None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

        def _missing(self) -> None:
            self._whole(404, {"error": {"type": "not_found_error", "message": f"nothing at {self.path}"}})

        def _body(self) -> Mapping[str, Any]:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                raw = b""
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    raw += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            value = json.loads(raw or b"{}")
            return value if isinstance(value, dict) else {}

        def log_message(self, *_: Any) -> None:
            """Nothing is said."""

    return Answering


def _models() -> dict[str, Any]:
    listed = [
        {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": name,
            "created": 1,
            "owned_by": "script",
        }
        for name in MODELS
    ]
    return {"object": "list", "data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}


def main() -> None:
    """Serve a script until the process is ended."""
    options = argparse.ArgumentParser(description="A scripted model server on the loopback.")
    options.add_argument("script", help="a JSON file: the steps")
    options.add_argument("--port", type=int, default=8911)
    options.add_argument("--folder", default="/", help="what relative paths start from")
    options.add_argument("--dies-at", type=int, help="the step whose answer breaks off in the middle")
    given = options.parse_args()
    server = ModelServer(read_script(given.script, given.folder), port=given.port, dies_at=given.dies_at)
    print(f"listening on {server.at}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
