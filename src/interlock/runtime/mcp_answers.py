"""The answer to a request of MCP's, as the proxy reads it: each message is decided before the agent gets it.

- What a server asks of its client passes where the method is known; the client's answer is decided when it posts it.
- A result is on record before the agent reads it, on whatever stream of its session it comes.
- A tool that is described anew, or is named like another server's, is cut out of the list.
- A message that cannot be read, that answers nothing, or whose kind is not known, passes to nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from interlock.boundary.mcp.conversing import METHOD
from interlock.boundary.mcp.listing import Listing, without
from interlock.boundary.mcp.messages import INTERNAL, Id, Response, Unreadable, answer, failure, read
from interlock.boundary.mcp.moves import Back, Dropped, Listed, Onward, Ours, Returned
from interlock.boundary.net.mcp_requests import speaks_of_itself
from interlock.model import events as ev
from interlock.model.tools import ToolCall, ToolResult
from interlock.runtime.mcp_results import result_of

if TYPE_CHECKING:
    from interlock.boundary.mcp.messages import Message
    from interlock.model.requests import NetRequest
    from interlock.runtime.mcp_lanes import Lane
    from interlock.runtime.mcp_seen import Feeds

_ENDPOINT = "endpoint"
"""The event of the transport before 2025-03-26 that says where to post."""


class Answer:
    """The messages that come for one request (see `gate.Messages`).

    Takes: `lanes`, the conversations that it may belong to now; `number`, the id of the request, None where it asks
    nothing; `strict`, whether it is known that MCP is spoken here; `named`, told of the session that a server begins.
    """

    def __init__(
        self,
        request: NetRequest,
        *,
        lanes: Callable[[], list[Lane]],
        number: Id | None,
        strict: bool,
        named: Callable[[str], None],
        feeds: Feeds,
    ) -> None:
        self._request = request
        self._lanes = lanes
        self.number = number
        self._strict = strict
        self._named = named
        self._feeds = feeds
        self._status = 0
        self._resumes = False

    def began(self, session: str, status: int) -> None:
        """Take the head of the answer."""
        self._status = status
        if session and status < 300:
            self._named(session)

    def goes_on(self) -> None:
        """Take note that what is left of it may come on another stream."""
        self._resumes = True

    def came(self, raw: bytes | None, *, name: str) -> bytes | None:
        """Take a message. Returns: what of it passes, None for nothing."""
        try:
            return self._came(raw, name)
        except Exception as error:  # noqa: BLE001 - fail closed: what was not looked at passes to nobody
            self._record(f"it could not be looked at ({type(error).__name__})")
            return None

    def instead(self) -> tuple[int, bytes]:
        """Return what the agent gets in place of an answer of which nothing passes: it would wait for ever."""
        return 0, failure(self.number, INTERNAL, "the server's answer was not passed")

    def left(self, result: ToolResult) -> None:
        """End what waits for a message that does not come any more."""
        lane = next((one for one in self._lanes() if one.talk.waits(self.number)), None)
        if lane is None or self.number is None or self._resumes:
            return
        lane.talk.over(self.number)
        self._ended(lane.calls.pop(self.number, ""), result)

    # inside

    def _came(self, raw: bytes | None, name: str) -> bytes | None:
        message = read(raw)
        if raw is not None and isinstance(message, Unreadable) and self._is_other(raw, name):
            return raw
        lane = self._lane(message)
        move = lane.talk.from_server(raw)
        match move:
            case Onward():
                return self._same(move.raw, message, raw)
            case Back() | Dropped():
                self._record(move.why)
                return None
            case Listed():
                return self._same(self._listed(move.response, move.listing), message, raw)
            case Returned():
                effect_id = lane.calls.pop(move.id, "")
                lane.talk.over(move.id)
                self._ended(effect_id, result_of(None, move.response))
                return self._same(move.response.raw, message, raw)
            case Ours():
                return None
            case _:
                assert_never(move)

    def _is_other(self, raw: bytes, name: str) -> bool:
        """Say whether what is no message need be none: what an error says, or another feed."""
        begins = name == _ENDPOINT and raw[:1] not in (b"{", b"[")
        return (self._status >= 300 or not self._strict or begins) and not speaks_of_itself(raw)

    def _same(self, passes: bytes, message: Message, raw: bytes | None) -> bytes | None:
        """Return the bytes as they came where they say the same: HTTP knows where a message ends."""
        return raw if not isinstance(message, Unreadable) and passes == message.raw else passes

    def _lane(self, message: Message) -> Lane:
        lanes = self._lanes()
        number = message.id if isinstance(message, Response | Unreadable) else self.number
        found = next((one for one in lanes if one.talk.waits(number)), None)
        return found if found is not None else lanes[0]

    def _listed(self, response: Response, listing: Listing) -> bytes:
        assert response.result is not None
        event = ev.ToolsListed(server=self._request.host, tools=listing.tools)
        if listing.tools and not self._feeds.state.pins.knows(event):
            self._feeds.feed(event)
        pins = self._feeds.state.pins
        held = [
            one.name
            for one in listing.tools
            if one.name.startswith(METHOD)
            or pins.doubt(ToolCall(call="", tool=one.name, server=self._request.host, arguments="{}"))
        ]
        for name in held:
            self._record(f"the tool `{name[:80]}` is held: it changed, or is named like another")
        return answer(response.id, without(response.result, held)) if held else response.raw

    def _ended(self, effect_id: str, result: ToolResult) -> None:
        if effect_id and effect_id in self._feeds.state.flying:
            self._feeds.feed(ev.ToolReturned(effect_id=effect_id, result=result))

    def _record(self, why: str) -> None:
        self._feeds.turned_away(
            self._request.host, self._request.port, f"a message of MCP's from the server: {why}"
        )
