"""A model that the fake internet serves: two calls, streamed event by event, compressed as the path says."""

import json
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMMAND = "echo made by the call > made.txt"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Write", {"file_path": "notes.txt", "content": "hello"}),
    ("Bash", {"command": COMMAND}),
)
"""What the model asks for, one call a turn; after that it has done."""


async def stream(encoding: str, body: bytes) -> AsyncIterator[bytes]:
    """Answer a conversation of Anthropic's wire, each event flushed as a provider does it."""
    turn = body.count(b'"tool_result"')
    for part in _compressed(encoding, list(_events(turn, CALLS[turn : turn + 1]))):
        if part:
            yield part


def _events(turn: int, calls: tuple[tuple[str, dict[str, Any]], ...]) -> Iterator[bytes]:
    yield _event({"type": "message_start", "message": {"content": []}})
    for index, (tool, given) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{turn}_{index}", "name": tool, "input": {}}
        yield _event({"type": "content_block_start", "index": index, "content_block": block})
        said = json.dumps(given)
        for start in range(0, len(said), 7):
            delta = {"type": "input_json_delta", "partial_json": said[start : start + 7]}
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    yield _event({"type": "message_stop"})


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _compressed(encoding: str, events: list[bytes]) -> Iterator[bytes]:
    if encoding == "br":
        br = brotli.Compressor()
        for event in events:
            yield br.process(event) + br.flush()
        yield br.finish()
    elif encoding == "zstd":
        packer = zstd.ZstdCompressor()
        for event in events:
            yield packer.compress(event, packer.FLUSH_BLOCK)
        yield packer.flush()
    else:
        engine = zlib.compressobj(wbits=zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
        for event in events:
            yield engine.compress(event) + engine.flush(zlib.Z_SYNC_FLUSH)
        yield engine.flush()
