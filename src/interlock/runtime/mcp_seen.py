"""MCP inside of HTTP, as the sandbox's proxy sees it: a call of a tool is decided as one before its request may leave.

A request that posts a call is two effects: the call, with the roles that the policy gives its tool, and the request to
its host. Both have to be released. The host is the name of the tool's server: `tools: {"mail.example/send": …}`.
Holds: a body that may be a call and is not read as one message does not leave for a host whose calls are decided.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from interlock.boundary.mcp.listing import read_listing
from interlock.boundary.mcp.messages import Id, Request, read
from interlock.boundary.mcp.results import told
from interlock.boundary.net.gate import Body, Passage, Passed, Refused
from interlock.boundary.net.mcp_requests import (
    calls_in_unread,
    check_message,
    fields_of,
    may_hold,
    response_in,
)
from interlock.model import events as ev
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.policy.lens import Audit
from interlock.policy.lens_rules import may_forbid_calls
from interlock.runtime.audited import MAX_TEXT, body_of, refused_by_fault, refused_unreadable

if TYPE_CHECKING:
    from interlock.monitor import State
    from interlock.policy import Policy

Proposed = Passage | Awaitable[Passage]
MAX_OPEN = 10_000
"""So many calls may be under way; further ones are refused."""


class Feeds(Protocol):
    """Who feeds the core, and hands its word on."""

    @property
    def state(self) -> State:
        """Return where the fold stands."""
        ...

    def feed(self, event: ev.Event) -> None:
        """Take an event that nobody waits for."""
        ...

    def put(self, call: ToolCall) -> tuple[str, Proposed]:
        """Put a call to the core."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a request asks for. Takes: `call`, the effect of the call that it posts, `""` where it lists tools."""

    id: Id
    host: str
    call: str = ""


class McpSeen:
    """Reads MCP in a run's requests and in their answers.

    Takes: `default`, which calls are decided where the policy does not say.
    """

    def __init__(self, feeds: Feeds, default: Audit) -> None:
        self._feeds = feeds
        self._default = default
        self._open: dict[str, _Asked] = {}

    def propose(self, request: NetRequest, body: Body | None, go: Callable[[], Proposed]) -> Proposed:
        """Decide what a request posts, then the request. Takes: `go`, which puts the request to the core."""
        policy = self._feeds.state.policy
        # A model is asked in JSON too, and its calls are decided in its answer.
        if policy is None or not may_hold(request) or policy.network.is_model_call(request):
            return go()
        raw = body_of(request, body)
        message = read(raw)
        if not isinstance(message, Request):
            if (calls_in_unread(message, raw) or not raw) and self._concerns(policy, request.host, ""):
                return _refused("a body that may call a tool of MCP is not one message")
            return go()
        if message.method == "tools/list":
            return self._went(go(), _Asked(id=message.id, host=request.host))
        name = message.params.get("name")
        if message.method != "tools/call" or not isinstance(name, str):
            return go()
        if not self._concerns(policy, request.host, name):
            return go()
        if why := check_message(fields_of(request), message):
            return _refused(why)
        given = message.params.get("arguments", {})
        if not isinstance(given, dict) or len({key.casefold() for key in given}) != len(given):
            return _refused("its arguments are no object that can be read in one way alone")
        role = policy.tools.find(f"{request.host}/{name}")
        if role is not None and role.parks:
            return _refused("calls of this tool wait, and only `interlock mcp` can make them later")
        if len(self._open) >= MAX_OPEN:
            return _refused("too many calls are under way")
        call = ToolCall(call=str(message.id), tool=name, server=request.host, arguments=_canonical(given))
        effect_id, passage = self._feeds.put(call)
        asked = _Asked(id=message.id, host=request.host, call=effect_id)
        if isinstance(passage, Awaitable):
            return asyncio.ensure_future(self._settled(passage, asked, go))
        return self._next(passage, asked, go)

    def ended(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        """Read the answer of a request that is about to end: the result of its call, or the tools of its host."""
        asked = self._open.pop(effect_id, None)
        if asked is None:
            return
        answer = response_in(body, asked.id) if body else None
        result = answer.result if answer is not None else None
        if asked.call:
            self._returned(asked, _result(response, result, answered=answer is not None))
            return
        listing = read_listing(result) if result is not None else None
        if listing is not None and listing.tools and not listing.fault:
            event = ev.ToolsListed(server=asked.host, tools=listing.tools)
            if not self._feeds.state.pins.knows(event):
                self._feeds.feed(event)

    # inside

    async def _settled(
        self, passage: Awaitable[Passage], asked: _Asked, go: Callable[[], Proposed]
    ) -> Passage:
        settled = self._next(await passage, asked, go)
        return await settled if isinstance(settled, Awaitable) else settled

    def _next(self, passage: Passage, asked: _Asked, go: Callable[[], Proposed]) -> Proposed:
        if isinstance(passage, Passed):
            return self._went(go(), asked)
        return passage if isinstance(passage, Refused) else _refused("it was neither passed nor refused")

    def _went(self, passage: Proposed, asked: _Asked) -> Proposed:
        if isinstance(passage, Awaitable):
            return asyncio.ensure_future(self._waited(passage, asked))
        return self._kept(passage, asked)

    async def _waited(self, passage: Awaitable[Passage], asked: _Asked) -> Passage:
        try:
            return self._kept(await passage, asked)
        except asyncio.CancelledError:
            self._unmade(asked, "whoever made the call was gone")
            raise

    def _kept(self, passage: Passage, asked: _Asked) -> Passage:
        if isinstance(passage, Passed):
            self._open[passage.effect_id] = asked
        else:
            self._unmade(asked, "its request did not leave")
        return passage

    def _unmade(self, asked: _Asked, why: str) -> None:
        if asked.call:
            self._returned(asked, ToolResult(outcome=Outcome.FAILED, detail=why))

    def _returned(self, asked: _Asked, result: ToolResult) -> None:
        if asked.call in self._feeds.state.flying:
            self._feeds.feed(ev.ToolReturned(effect_id=asked.call, result=result))

    def _concerns(self, policy: Policy, host: str, name: str) -> bool:
        """Say whether calls of a host's tools are decided. Takes: `name`, `""` for any of them."""
        audit = policy.lens.audit if policy.lens.audit is not None else self._default
        if audit is Audit.NONE:
            return False
        if audit is Audit.ALL or may_forbid_calls(policy) or any(one.name == host for one in policy.mcp):
            return True
        if name and policy.tools.find(f"{host}/{name}") is not None:
            return True
        return any(one.name.startswith(f"{host}/") for one in policy.tools.tools)


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _refused(why: str) -> Refused:
    return Refused(effect_id="", exception=refused_unreadable(why))


def refused_since(error: Exception) -> Refused:
    """Return what becomes of a request whose message could not be looked at."""
    return Refused(effect_id="", exception=refused_by_fault(type(error).__name__))


def _result(response: NetResponse, result: Any, *, answered: bool) -> ToolResult:
    if response.outcome is not Outcome.DONE:
        return ToolResult(outcome=response.outcome, detail=response.detail)
    if result is None:
        outcome = Outcome.FAILED if answered or response.status >= 400 else Outcome.UNKNOWN
        return ToolResult(outcome=outcome, detail=f"status {response.status}, and no result in it")
    found = told(result)
    structured = not isinstance(found.says, str)
    text = _canonical(found.says) if structured else found.says
    data = text.encode("utf-8", "surrogatepass")
    return ToolResult(
        outcome=Outcome.FAILED if found.failed else Outcome.DONE,
        text=text if len(text) <= MAX_TEXT else None,
        structured=structured,
        size_bytes=len(data),
        digest=sha256(data).hexdigest(),
    )
