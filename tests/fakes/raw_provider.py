"""A provider of models that says exactly the bytes that a test gives it, when the test says so."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.fakes.net_front import Far, Wire

Said = Iterator[bytes]
Answers = Callable[[int, dict[str, str], bytes], Said]
"""Takes the number of the request, its header fields and its body; yields what is sent, part by part."""


class RawProvider:
    """Listens on loopback. Holds: `requests`, path, fields and body of each."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._lock = threading.Lock()
        self._far = Far(self._serve)
        self.port = self._far.port

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _path, _fields, body in self.requests]

    def _serve(self, wire: Wire) -> None:
        wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sock.settimeout(60)
        while True:
            line, fields = wire.head()
            body = wire.body(fields)
            with self._lock:
                number = len(self.requests)
                self.requests.append((line.split(" ")[1], fields, body))
            for part in self._answers(number, fields, body):
                if not part:
                    return  # broken off
                wire.send(part)

    def close(self) -> None:
        self._far.close()


def whole(body: bytes, kind: str = "application/json", *, status: str = "200 OK", more: str = "") -> bytes:
    """Return an answer with a length."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def events(*data: Any, named: bool = True) -> list[bytes]:
    """Return server-sent events of JSON values."""
    return [
        (f"event: {one['type']}\n" if named and "type" in one else "").encode()
        + b"data: "
        + json.dumps(one).encode()
        + b"\n\n"
        for one in data
    ]


def streamed(parts: list[bytes], *, more: str = "") -> Iterator[bytes]:
    """Yield an answer in chunks, one a part."""
    yield f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{more}\r\n".encode()
    for part in parts:
        yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def anthropic(*blocks: dict[str, Any], cuts: int = 2, message: str = "msg_1") -> list[bytes]:
    """Return the events of a message. Takes: `blocks`, as a whole answer has them; `cuts`, how many deltas each makes."""
    told: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": message,
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "usage": {"input_tokens": 10, "output_tokens": 1},
            },
        }
    ]
    calls = False
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            calls = True
            begun, text, kind, key = (
                {**block, "input": {}},
                json.dumps(block["input"]),
                "input_json_delta",
                "partial_json",
            )
        else:
            begun, text, kind, key = {**block, "text": ""}, block["text"], "text_delta", "text"
        told.append({"type": "content_block_start", "index": index, "content_block": begun})
        size = max(1, -(-len(text) // cuts))
        told += [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind, key: text[at : at + size]},
            }
            for at in range(0, len(text), size)
        ]
        told.append({"type": "content_block_stop", "index": index})
    told += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    return events(*told)


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def called(tool: str, call_id: str = "toolu_1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": given}
