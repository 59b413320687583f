"""A provider of models for the gateway's benchmark: it streams events as fast, or as slowly, as it is asked to.

Run it: `python -m benchmarks.gateway_provider`; it says its port. A request's fields say what comes: `x-events`, how
many; `x-pause-ms`, between two.
"""

from __future__ import annotations

import asyncio
import json

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _event(value: dict[str, object]) -> bytes:
    data = f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


_BEGUN = _event(
    {
        "type": "message_start",
        "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                    "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}},
    }
) + _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})  # fmt: skip
_DELTA = _event(
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a few words more "}}
)
_ENDED = (
    _event({"type": "content_block_stop", "index": 0})
    + _event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}})
    + _event({"type": "message_stop"})
    + b"0\r\n\r\n"
)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            await reader.readexactly(int(fields.get("content-length", "0")))
            pause = int(fields.get("x-pause-ms", "0")) / 1000
            writer.write(_HEAD + _BEGUN)
            for _ in range(int(fields.get("x-events", "1"))):
                if pause:
                    await writer.drain()
                    await asyncio.sleep(pause)
                writer.write(_DELTA)
            writer.write(_ENDED)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
