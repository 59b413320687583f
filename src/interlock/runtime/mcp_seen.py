"""MCP inside HTTP, as the sandbox's proxy sees it: a call of a tool is decided as one before its request may leave.

A request that posts a call is two effects: the call, with the roles that the policy gives its tool, and the request to
its host. Both have to be released. The host is the name of the tool's server: `tools: {"mail.example/send": …}`.
Holds: a body that may be a call and is not read as one message does not leave for a host whose calls are decided; of
such a host's answers no message passes that the conversation has no place for (`mcp_answers`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.conversing import CALL, name_of
from interlock.boundary.mcp.messages import (
    INVALID_REQUEST,
    Id,
    Message,
    Notification,
    Request,
    Unreadable,
    failure,
    read,
)
from interlock.boundary.mcp.moves import Back, Cancelled, Dropped, Guarded, Onward, Ours, Replied
from interlock.boundary.mcp.results import told_of
from interlock.boundary.net.gate import Answered, Body, Passage, Passed, Refused
from interlock.boundary.net.mcp_requests import VERSION, calls_in_unread, check_message, fields_of, may_hold
from interlock.model import events as ev
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.policy.lens import Audit
from interlock.runtime.audited import body_of, refused_by_fault, refused_unreadable
from interlock.runtime.mcp_answers import Answer
from interlock.runtime.mcp_concerns import concerns, decides_method, is_mcp
from interlock.runtime.mcp_lanes import Lane, Lanes, Place, place_of
from interlock.runtime.mcp_results import listed_in, refused, result_of, said

if TYPE_CHECKING:
    from interlock.monitor import State
    from interlock.policy import Policy

Proposed = Passage | Awaitable[Passage]
Go = Callable[[], Proposed]
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

    def turned_away(self, host: str, port: int, reason: str) -> None:
        """Record a message that passes to nobody."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Puts:
    """A call that a message makes, or an answer that it gives a server that asked.

    Takes: `asked`, what the server had asked, which is then the call's result.
    """

    tool: str
    arguments: Mapping[str, Any]
    number: str
    asked: Mapping[str, Any] | None = None

    def call(self, host: str) -> ToolCall:
        """Return it as a call of a tool of its host."""
        return ToolCall(
            call=self.number, tool=self.tool, server=host, arguments=_canonical(dict(self.arguments))
        )


class McpSeen:
    """Reads MCP in a run's requests and in their answers.

    Takes: `default`, which calls are decided where the policy does not say.
    """

    def __init__(self, feeds: Feeds, default: Audit) -> None:
        self._feeds = feeds
        self._default = default
        self._lanes = Lanes()
        self._answers: dict[str, Answer] = {}
        self._lists: dict[str, tuple[str, Id]] = {}
        self._count = 0

    def propose(self, request: NetRequest, body: Body | None, go: Go) -> Proposed:
        """Decide what a request posts, then the request. Takes: `go`, which puts the request to the core."""
        policy = self._feeds.state.policy
        # A model is asked in JSON too, and its calls are decided in its answer.
        if policy is None or not may_hold(request) or policy.network.is_model_call(request):
            return go()
        if request.method != "POST":
            return self._listens(request, go) if concerns(policy, self._default, request.host, "") else go()
        raw = body_of(request, body)
        message = read(raw)
        if isinstance(message, Unreadable):
            if (calls_in_unread(message, raw) or not raw) and concerns(
                policy, self._default, request.host, ""
            ):
                return _refused("a body that may call a tool of MCP is not one message")
            return go()
        name = message.params.get("name") if isinstance(message, Request) else None
        tool = (
            name if isinstance(name, str) and isinstance(message, Request) and message.method == CALL else ""
        )
        if concerns(policy, self._default, request.host, tool) and is_mcp(
            policy, request, message, self._lanes
        ):
            return self._said(policy, request, message, raw, go)
        if isinstance(message, Request) and message.method == "tools/list":
            return self._went(
                go(), lambda effect_id: self._lists.update({effect_id: (request.host, message.id)})
            )
        return go()

    def reads(self, effect_id: str) -> Answer | None:
        """Return who reads the answer of a passed request, None where it holds no message."""
        return self._answers.get(effect_id)

    def ended(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        """Take note that a request is about to end, and of the tools that a host listed whose calls nobody decides."""
        asked = self._answers.pop(effect_id, None)
        if asked is not None:
            asked.left(result_of(response, None))
            return
        host, number = self._lists.pop(effect_id, ("", ""))
        event = listed_in(host, number, body) if host and body else None
        if event is not None and not self._feeds.state.pins.knows(event):
            self._feeds.feed(event)

    def finish(self) -> None:
        """The command is gone: what may have come on another stream does not come any more."""
        for lane in self._lanes.every():
            self._over(lane, "the command ended before its result was seen")

    # what a client says

    def _said(self, policy: Policy, request: NetRequest, message: Message, raw: bytes, go: Go) -> Proposed:
        version = fields_of(request).get(VERSION)
        if version is not None and not versions.is_known(version.decode("latin-1")):
            return self._turned(
                request, message, "the header MCP-Protocol-Version names a revision that is not known"
            )
        if why := check_message(fields_of(request), message):
            return self._turned(request, message, why)
        is_first = isinstance(message, Request) and message.method == "initialize"
        number = message.id if not isinstance(message, Notification) else None
        answers = not isinstance(message, Request | Notification)
        lane = (
            self._lanes.new(place_of(request))
            if is_first and not place_of(request).session
            else self._lanes.of(request, number, answers=answers)
        )
        if lane is None or self._count >= MAX_OPEN:
            return _refused("too many calls are under way")
        self._lanes.spoke(request)
        move = lane.talk.from_client(raw)
        wait = number if isinstance(message, Request) else None
        match move:
            case Onward():
                return self._goes(request, lane, wait, go, sent=None)
            case Guarded():
                return self._guarded(policy, request, lane, move, go)
            case Replied():
                given = {"answer": dict(move.response.result or {})}
                puts = _Puts(
                    tool=name_of(move.request.method),
                    arguments=given,
                    number=str(move.request.id),
                    asked=move.request.params,
                )
                decided = move.response.result is not None and self._decides(request.host, puts)
                return self._put(request, lane, None, (puts,) if decided else (), go)
            case Back():
                return self._turned(request, message, move.why, move.raw)
            case Dropped():
                return self._turned(request, message, move.why)
            case Cancelled():
                if move.raw:
                    return go()
                lane.taken_back.add(move.id)
                return Answered(effect_id="", status=202, content_type="application/json", body=b"")
            case Ours():
                return _refused("it answers nothing that was asked")
            case _:
                assert_never(move)

    def _guarded(self, policy: Policy, request: NetRequest, lane: Lane, move: Guarded, go: Go) -> Proposed:
        role = policy.tools.find(f"{request.host}/{move.tool}")
        if role is not None and role.parks:
            lane.talk.over(move.request.id)
            why = refused_unreadable("calls of this tool wait, and only `interlock mcp` can make them later")
            return refused(move.request, why)
        puts = _Puts(tool=move.tool, arguments=move.arguments, number=str(move.request.id))
        is_call = move.request.method == CALL
        every = [puts] if is_call or self._decides(request.host, puts) else []
        every += [one for one in _replies(move.request) if self._decides(request.host, one)]
        return self._put(request, lane, move.request, tuple(every), go)

    def _put(
        self, request: NetRequest, lane: Lane, asked: Request | None, every: tuple[_Puts, ...], go: Go
    ) -> Proposed:
        """Put what a message does to the core, one after the other, and its request last.

        Takes: `asked`, the message, None for an answer to what the server asked.
        """
        number = asked.id if asked is not None else None
        if not every:
            return self._goes(request, lane, number, go, sent=number)
        puts, *rest = every
        effect_id, passage = self._feeds.put(puts.call(request.host))
        self._count += 1

        def on(settled: Passage) -> Proposed:
            self._count -= 1
            taken_back = number in lane.taken_back and len(rest) == 0
            if not isinstance(settled, Passed) or taken_back:
                lane.taken_back.discard(number or "")
                if isinstance(settled, Passed):
                    self._unmade(effect_id, "it was taken back before it was sent")
                    settled = _refused("it was taken back")
                if not isinstance(settled, Refused):
                    settled = _refused("it was neither passed nor refused")
                if asked is None:
                    return settled
                lane.talk.over(asked.id)
                return refused(asked, settled.exception)
            onward = self._put(request, lane, asked, tuple(rest), go)
            return self._went(
                onward,
                lambda _effect: self._made(lane, number, effect_id, puts),
                lambda: self._unmade(effect_id, "its request did not leave"),
            )

        if isinstance(passage, Awaitable):
            return asyncio.ensure_future(self._settled(passage, on, lane, number))
        return on(passage)

    async def _settled(
        self, passage: Awaitable[Passage], on: Callable[[Passage], Proposed], lane: Lane, number: Id | None
    ) -> Passage:
        try:
            decided = await passage
        except BaseException:
            self._count -= 1
            if number is not None:
                lane.talk.over(number)
            raise
        settled = on(decided)
        return await settled if isinstance(settled, Awaitable) else settled

    def _made(self, lane: Lane, number: Id | None, effect_id: str, puts: _Puts) -> None:
        """Take note that a call leaves. Holds: an answer to a server that asked has what was asked as its result."""
        if puts.asked is None and number is not None:
            lane.calls[number] = effect_id
        elif effect_id in self._feeds.state.flying:
            result = said({"asked": told_of(puts.asked or {}).says}, failed=False)
            self._feeds.feed(ev.ToolReturned(effect_id=effect_id, result=result))

    def _goes(
        self, request: NetRequest, lane: Lane, number: Id | None, go: Go, *, sent: Id | None
    ) -> Proposed:
        """Put the request to the core, and have its answer read."""

        def passed(effect_id: str) -> None:
            if sent is not None:
                lane.talk.sent(sent)
            self._answers[effect_id] = self._answer(request, lambda: [lane], number, lane)

        return self._went(go(), passed, lambda: lane.talk.over(number) if number is not None else None)

    def _listens(self, request: NetRequest, go: Go) -> Proposed:
        """Have a stream of the server's own read; end a session that its client ends."""
        place = place_of(request)
        if request.method == "DELETE":
            return self._went(go(), lambda _effect: self._end(place))
        if self._lanes.of(request, None) is None:
            return _refused("too many calls are under way")
        answer = self._answer(request, lambda: self._lanes.at(place) or [Lane()], None, None)
        return self._went(go(), lambda effect_id: self._answers.update({effect_id: answer}))

    def _answer(
        self, request: NetRequest, lanes: Callable[[], list[Lane]], number: Id | None, lane: Lane | None
    ) -> Answer:
        place = place_of(request)
        headers = fields_of(request)
        return Answer(
            request,
            lanes=lanes,
            number=number,
            strict=lane is not None or self._lanes.is_spoken(request) or VERSION in headers,
            named=lambda name: None if place.session or lane is None else self._lanes.name(place, name, lane),
            feeds=self._feeds,
        )

    # inside

    def _end(self, place: Place) -> None:
        for lane in self._lanes.end(place):
            self._over(lane, "its client ended the session")

    def _over(self, lane: Lane, why: str) -> None:
        for effect_id in lane.calls.values():
            if effect_id in self._feeds.state.flying:
                result = ToolResult(outcome=Outcome.UNKNOWN, detail=why)
                self._feeds.feed(ev.ToolReturned(effect_id=effect_id, result=result))
        lane.calls.clear()

    def _went(
        self, passage: Proposed, passed: Callable[[str], None], unmade: Callable[[], None] = lambda: None
    ) -> Proposed:
        """Have something done as soon as a request passes, or does not."""

        def kept(settled: Passage) -> Passage:
            if isinstance(settled, Passed):
                passed(settled.effect_id)
            else:
                unmade()
            return settled

        async def waited(coming: Awaitable[Passage]) -> Passage:
            try:
                settled = await coming
            except BaseException:
                unmade()
                raise
            return kept(settled)

        return asyncio.ensure_future(waited(passage)) if isinstance(passage, Awaitable) else kept(passage)

    def _decides(self, host: str, puts: _Puts) -> bool:
        return decides_method(self._feeds.state, puts.call(host))

    def _unmade(self, effect_id: str, why: str) -> None:
        if effect_id in self._feeds.state.flying:
            self._feeds.feed(
                ev.ToolReturned(effect_id=effect_id, result=ToolResult(outcome=Outcome.FAILED, detail=why))
            )

    def _turned(self, request: NetRequest, message: Message, why: str, raw: bytes = b"") -> Answered:
        """Answer a message that goes nowhere as its server would, in the protocol's own words."""
        self._feeds.turned_away(request.host, request.port, f"a message of MCP's from the client: {why}")
        number = message.id if isinstance(message, Request) else None
        said = raw or failure(number, INVALID_REQUEST, why)
        return Answered(effect_id="", status=400, content_type="application/json", body=said)


def _replies(request: Request) -> Iterator[_Puts]:
    """Yield what a request tells a server that wanted to know more before it goes on."""
    given = request.params.get("inputResponses")
    for key, reply in given.items() if isinstance(given, dict) else ():
        yield _Puts(
            tool=name_of("elicitation/create"),
            arguments={"answer": reply},
            number=f"{request.id}-{key}"[:200],
            asked={},
        )


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _refused(why: str) -> Refused:
    return Refused(effect_id="", exception=refused_unreadable(why))


def refused_since(error: Exception) -> Refused:
    """Return what becomes of a request whose message could not be looked at."""
    return Refused(effect_id="", exception=refused_by_fault(type(error).__name__))
