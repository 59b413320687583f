"""A server of MCP over HTTP that does nothing: it answers each message at once. Prints its port."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

_GONE = (asyncio.IncompleteReadError, ConnectionError)


async def main() -> None:
    """Serve until it is killed."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = next(
                (
                    int(line.partition(":")[2])
                    for line in head.splitlines()
                    if line.startswith("content-length")
                ),
                0,
            )
            body = await reader.readexactly(size)
            writer.write(_answer(json.loads(body)) if body else _head(200, 0))
            await writer.drain()
    except _GONE:
        pass
    finally:
        writer.close()


def _answer(message: dict[str, Any]) -> bytes:
    if "id" not in message:
        return _head(202, 0)
    more = ""
    if message["method"] == "initialize":
        more = f"mcp-session-id: {secrets.token_hex(16)}\r\n"
        result: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("search", "send")]}
    else:
        said = json.dumps(message["params"]["arguments"], sort_keys=True)
        result = {"content": [{"type": "text", "text": f"done: {said}"}]}
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return _head(200, len(text), more) + text


def _head(status: int, size: int, more: str = "") -> bytes:
    kind = "content-type: application/json\r\n" if size else ""
    return f"HTTP/1.1 {status} OK\r\n{kind}{more}content-length: {size}\r\n\r\n".encode()


if __name__ == "__main__":
    asyncio.run(main())
