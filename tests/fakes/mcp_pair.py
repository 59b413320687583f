"""A client and a server of MCP around one guarded session, in this process: each says what a test has it say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from interlock.mcp.guarding import Session
from interlock.mcp.opening import Settings, open_session
from interlock.sdk.scope import Scope

POLICY = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  search: {effect: read, carries: [query]}
  send: {effect: send, steers: {to: email}, carries: [body], asks: [send]}
  later: {effect: send, steers: {to: email}, carries: [body], asks: [send], parks: true}
"""
TASK = "send the summary to ann@a.test"
MODERN = "2026-07-28"
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
Reply = Callable[[dict[str, Any]], Awaitable[None] | None]


class Pair:
    """Both ends of a session. Takes: `options`, as `Settings` has them; `reply`, what the server does with a request:
    by default it echoes a call's arguments."""

    def __init__(self, policy: str = POLICY, **options: Any) -> None:
        self.notes: list[str] = []
        self.session: Session = open_session(
            Settings(
                **{"server": "mail", "policy": policy, "task": TASK, "note": self.notes.append, **options}
            )
        )
        self.to_client: list[dict[str, Any]] = []
        self.to_server: list[dict[str, Any]] = []
        self.raw_to_server: list[bytes] = []
        self.on_request: Callable[[dict[str, Any]], Any] = self.echo
        self.on_asked: Callable[[dict[str, Any]], Any] | None = None
        """What the client does with a request of the other side."""
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # the client

    async def says(self, message: Mapping[str, Any] | bytes) -> None:
        """Have the client say something, and wait until it has its answer."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.session.client_said(raw, back=self._hear_client, onward=self._hear_server)

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, number: Any = None
    ) -> dict[str, Any]:
        """Have the client ask something. Returns: the answer with that id, `{}` where there is none."""
        self._count += 1
        number = f"q{self._count}" if number is None else number
        await self.says({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})})
        await asyncio.sleep(0)
        return next((one for one in self.to_client if one.get("id") == number and "method" not in one), {})

    async def call(
        self, tool: str, /, *, more: Mapping[str, Any] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Have the client call a tool. Takes: `more`, further parameters. Returns: the answer."""
        return await self.ask("tools/call", {"name": tool, "arguments": arguments, **(more or {})})

    async def start(self, capabilities: Mapping[str, Any] | None = None, version: str = "2025-11-25") -> None:
        """Shake hands."""
        await self.ask(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": dict(capabilities or {}),
                "clientInfo": {"name": "test"},
            },
        )
        await self.says({"jsonrpc": "2.0", "method": "notifications/initialized"})

    # the server

    async def server_says(self, message: Mapping[str, Any] | bytes) -> None:
        """Have the server say something."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.session.server_said(raw, back=self._hear_server, onward=self._hear_client)

    async def answers(self, number: Any, result: Mapping[str, Any]) -> None:
        """Have the server answer a request."""
        await self.server_says({"jsonrpc": "2.0", "id": number, "result": dict(result)})

    async def echo(self, message: dict[str, Any]) -> None:
        """Answer as a simple server would."""
        if message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            await self.answers(
                message["id"], {"protocolVersion": version, "capabilities": {}, "serverInfo": {}}
            )
        elif message["method"] == "tools/call":
            text = json.dumps(message["params"].get("arguments", {}))
            await self.answers(message["id"], {"content": [{"type": "text", "text": text}]})
        else:
            await self.answers(message["id"], {})

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the calls that reached the server."""
        return [
            (one["params"]["name"], one["params"].get("arguments", {}))
            for one in self.to_server
            if one.get("method") == "tools/call"
        ]

    async def _hear_client(self, raw: bytes) -> None:
        message = json.loads(raw)
        self.to_client.append(message)
        if "method" in message and "id" in message and self.on_asked is not None:
            self._do(self.on_asked, message)

    async def _hear_server(self, raw: bytes) -> None:
        message = json.loads(raw)
        self.raw_to_server.append(raw)
        self.to_server.append(message)
        if "method" in message and "id" in message:
            self._do(self.on_request, message)

    def _do(self, function: Callable[[dict[str, Any]], Any], message: dict[str, Any]) -> None:
        async def run() -> None:
            done = function(message)
            if done is not None:
                await done

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def meta(capabilities: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what a request of 2026-07-28 says of its client."""
    return {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": dict(capabilities or {}),
        }
    }


async def until(ready: Callable[[], Any]) -> None:
    """Wait until something is so, for half a minute at most."""
    async with asyncio.timeout(30):
        while not ready():
            await asyncio.sleep(0.002)


async def ended(pair: Pair) -> Scope:
    """End a session. Returns: its run."""
    decider = pair.session._decider
    assert decider is not None
    await pair.session.closed()
    assert decider.scope.outcome == "closed"
    return decider.scope


def refusal_in(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["result"]["isError"] is True
    said: dict[str, Any] = answer["result"]["structuredContent"]
    assert json.loads(answer["result"]["content"][0]["text"]) == said
    return said
