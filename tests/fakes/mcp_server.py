"""A server of MCP on its standard input and output that does what its words say; started as a program by tests.

Words: `echo` (default), `banner` (speaks before and between), `dies` (at its first call), `hangs` (at its first call),
`half` (ends within an answer), `flood` (a line that is too long, before each answer), `deaf` (ignores the end of its
input and SIGTERM), `env` (answers with its environment), `twice` (answers each call twice).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    words = sys.argv[1:]
    if "banner" in words:
        say(b"Server 1.0 is ready")
    if "deaf" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("a word on stderr", file=sys.stderr, flush=True)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "method" in message and "id" in message:
            answer(message, words)
    while "deaf" in words:
        time.sleep(1)


def answer(message: dict[str, Any], words: list[str]) -> None:
    number, method = message["id"], message["method"]
    if method == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("search", "send")]}
    elif method != "tools/call":
        result = {}
    else:
        if "dies" in words:
            os._exit(3)
        if "hangs" in words:
            return
        if "half" in words:
            sys.stdout.buffer.write(
                b'{"jsonrpc":"2.0","id":' + json.dumps(number).encode() + b',"result":{"conte'
            )
            sys.stdout.buffer.flush()
            os._exit(0)
        if "banner" in words:
            say(b"calling ...")
        if "flood" in words:
            say(b"x" * (33 * 1024 * 1024))
        said = dict(os.environ) if "env" in words else message["params"].get("arguments", {})
        result = {"content": [{"type": "text", "text": json.dumps(said)}]}
    for _ in range(2 if "twice" in words else 1):
        say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


def say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
