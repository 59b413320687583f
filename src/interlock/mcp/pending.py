"""One request of the client's that is decided: who waits for its answer, and how it goes on to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from interlock.boundary.mcp.messages import Id, Response, written
from interlock.boundary.mcp.moves import Guarded
from interlock.model.errors import InterlockError

Send = Callable[[bytes], Awaitable[None]]


class ServerGone(InterlockError):
    """The server ended, or cannot be reached any more. Takes: `sent`, whether it may know of the request."""

    code = "server-gone"
    exit_status = 1

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message, hint="start the server again; nothing is called until then")
        self.sent = sent


class Pending:
    """A guarded request from when it came until it has its answer.

    Takes: `back`, to the client on the exchange of this request; `onward`, to the server; `name`, under which it is
    decided; `call_id`, by which the run knows it.
    """

    def __init__(self, move: Guarded, *, name: str, call_id: str, back: Send, onward: Send) -> None:
        self.name = name
        self.call_id = call_id
        self.arguments = move.arguments
        self.first = move.request
        self.question: asyncio.Future[Mapping[str, Any]] | None = None
        """What the client says to a question that it was asked within an answer."""
        self.response: asyncio.Future[Response] | None = None
        """The server's answer, once it was asked."""
        self.work: asyncio.Task[None] | None = None
        self.waited = False
        """Whether the policy had it wait, so that it is made when its turn comes, whoever waits for it."""
        self.asking: set[asyncio.Future[Any]] = set()
        """Questions about it that the client has not answered."""
        self.bind(move, back, onward)

    def bind(self, move: Guarded, back: Send, onward: Send) -> None:
        """Take a request as the one that waits for the answer now."""
        self.request = move.request
        self.elicits = move.elicits
        self.modern = move.modern
        self.back = back
        self.onward = onward
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def id(self) -> Id:
        """Return the id under which the client waits."""
        return self.request.id

    @property
    def is_tool(self) -> bool:
        """Say whether it calls a tool."""
        return self.first.method == "tools/call"

    def give_up(self) -> None:
        """Stop working for it: the client does not want it any more, or is gone."""
        for future in self.asking:
            future.cancel()
        if self.work is not None:
            self.work.cancel()

    async def say(self, raw: bytes) -> None:
        """Answer the client, once for each request of its; what comes later is for nobody."""
        if not self.turn.done():
            try:
                await self.back(raw)
            finally:
                if not self.turn.done():
                    self.turn.set_result(None)

    def onward_bytes(self, number: Id | None = None) -> bytes:
        """Return what the server is sent. Takes: `number`, an id of our own, where the client does not wait for it.

        Holds: it is the bytes that were decided, or those of the request that repeats them with an answer of ours.
        """
        if number is None and self.request is self.first:
            return self.first.raw
        params = {key: value for key, value in self.request.params.items() if key not in _RETRIED}
        params |= {key: self.first.params[key] for key in _RETRIED if key in self.first.params}
        meta = params.get("_meta")
        if number is not None and isinstance(meta, dict):
            params["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}
        return written(
            {
                "jsonrpc": "2.0",
                "id": self.id if number is None else number,
                "method": self.first.method,
                "params": params,
            }
        )


_RETRIED = ("inputResponses", "requestState")
