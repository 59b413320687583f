"""A server that does nothing: it answers each line at once, so that what is measured is what stands before it."""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin.buffer:
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}
        else:
            result = {"content": [{"type": "text", "text": "the offer is ready; I bring it on Monday"}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
