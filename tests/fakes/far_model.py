"""A provider on plain sockets that does what a test says with each connection, and remembers what it was sent."""

import json
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event, Thread

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, object]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


Act = Callable[[socket.socket], None]


class FarModel:
    """Serves one connection after the other; the acts come in order, the last one again and again."""

    def __init__(self, *acts: Act) -> None:
        self._acts = list(acts)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.requests: list[Sent] = []
        self.over = Event()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"

    def close(self) -> None:
        self.over.set()
        # A thread that waits for a connection would hold the door open.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _serve(self) -> None:
        served = 0
        while not self.over.is_set():
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            act = self._acts[min(served, len(self._acts) - 1)]
            served += 1
            Thread(target=self._one, args=(link, act), daemon=True).start()

    def _one(self, link: socket.socket, act: Act) -> None:
        with link:
            try:
                self.requests.append(_read(link))
                act(link)
            except OSError:
                pass  # whoever asked went away


def _read(link: socket.socket) -> Sent:
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = link.recv(65536)
        if not piece:
            raise OSError("it went away")
        raw += piece
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    while len(body) < int(headers.get("content-length", "0")):
        body += link.recv(65536)
    return Sent(line=line, headers=headers, body=body)


def answers(status: int, body: bytes, *headers: str) -> Act:
    """Answer whole."""
    head = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers]

    def act(link: socket.socket) -> None:
        link.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    return act


def says(document: object, status: int = 200) -> Act:
    return answers(status, json.dumps(document).encode(), "content-type: application/json")


def sends(raw: bytes) -> Act:
    """Send bytes as they are, and hang up."""
    return lambda link: link.sendall(raw)


def trickles(raw: Iterable[bytes], pause_s: float) -> Act:
    def act(link: socket.socket) -> None:
        for piece in raw:
            link.sendall(piece)
            time.sleep(pause_s)

    return act


def hangs(link: socket.socket) -> None:
    """Take the request and say nothing until the other side goes away."""
    link.recv(1)


def pours(size_bytes: int) -> Act:
    """Send so many bytes, as a body without a length."""

    def act(link: socket.socket) -> None:
        link.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        left = size_bytes
        block = b" " * (1 << 20)
        while left > 0:
            link.sendall(block[: min(left, len(block))])
            left -= len(block)

    return act


def chat(text: str, model: str = "gpt-x", finish: str = "stop", usage: object = None) -> dict[str, object]:
    """An answer of chat completions."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3} if usage is None else usage,
    }
