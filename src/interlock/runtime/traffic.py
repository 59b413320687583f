"""The gate of a run: requests become events, the core decides, and the boundary is told what may leave.

All of it happens on the one thread that runs the sandbox's loop, so that a request which policy decides is
answered within its own call.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from interlock.boundary.net.gate import (
    Answered,
    Body,
    Messages,
    Parked,
    Passage,
    Passed,
    Refused,
    Verdicts,
)
from interlock.boundary.net.mcp_requests import may_hold
from interlock.model import events as ev
from interlock.model.phases import Phase
from interlock.model.records import changed
from interlock.model.requests import NetMessage, NetRequest, NetResponse, Outcome
from interlock.model.verdicts import ExceptionType, SemanticException
from interlock.policy.lens import Audit
from interlock.runtime import hooked, sending
from interlock.runtime.announcing import Announcing
from interlock.runtime.catching_up import CatchingUp, Sees
from interlock.runtime.inbound import Inbound
from interlock.runtime.notices import Told

if TYPE_CHECKING:
    from interlock.boundary.lens.outcomes import Facts
    from interlock.model.actions import AnnouncedCall, HeldCall
    from interlock.model.redactions import Redaction
    from interlock.model.tools import ToolCall
    from interlock.monitor import State
    from interlock.runtime.auditing import Auditing
    from interlock.runtime.mcp_seen import McpSeen
    from interlock.runtime.performer import Performer

SIGN_SECONDS = 0.05
"""How long an answer's node may wait for a signature: what a killed monitor has not signed is lost."""

_TOLD_ONE_BY_ONE = 20
"""The same unreadable traffic is told so often; after that only at each doubling."""

OVER = SemanticException(
    type=ExceptionType.STOP,
    violated_rule="run-over",
    rationale="the run is no longer under way",
    constraints=("nothing leaves any more",),
    allowed_objective="end",
)


class Traffic:
    """Takes the boundary's proposals to the core and the core's word back to the boundary.

    Takes: `tokens`, the boundary's table of placeholders, token -> effect id, filled here; `lost`, called once when the
    ledger cannot be written: from then on everything is refused; `audit`, which calls of a model are decided where the
    policy does not say.
    """

    def __init__(
        self,
        *,
        performer: Performer,
        sandbox: Sees,
        loop: asyncio.AbstractEventLoop,
        sender: sending.Sender,
        tokens: dict[str, str],
        keeps_text: Callable[[NetRequest], bool],
        inbound: Inbound,
        lost: Callable[[BaseException], None],
        audit: Audit = Audit.DECLARED,
    ) -> None:
        self._performer = performer
        self._loop = loop
        self._sender = sender
        self._tokens = tokens
        self._keeps_text = keeps_text
        self._inbound = inbound
        self._lost = lost
        self._over = False
        self._announcing = Announcing()
        self._audit = audit
        self._auditing: Auditing | None = None
        self._mcp: McpSeen | None = None
        self._told = Told()
        self._seen = CatchingUp(performer, sandbox, self._feed)
        self._decided: dict[str, Passage] = {}
        self._awaited: dict[str, asyncio.Future[Passage]] = {}
        self._flying: dict[str, NetRequest] = {}
        self._held: dict[str, NetRequest] = {}
        self._unreadable: dict[tuple[str, int, str], int] = {}
        self._signing: asyncio.TimerHandle | None = None
        self._sends: set[asyncio.Task[None]] = set()
        self._hooks: set[asyncio.Task[None]] = set()

    # what the boundary asks

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        """Decide a request. Holds: a fault of ours refuses."""
        self._catch_up()
        if not may_hold(request) or not self._running():
            return self._requested(request, body)
        from interlock.runtime import mcp_seen

        if self._mcp is None:
            self._mcp = mcp_seen.McpSeen(self, self._audit)
        try:
            return self._mcp.propose(request, body, lambda: self._requested(request, body))
        except Exception as error:  # noqa: BLE001 - fail closed: what it calls would not be known
            return mcp_seen.refused_since(error)

    def _requested(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        effect_id = self._next()
        if (fault := self._reads(effect_id, request, body)) is not None:
            return Refused(effect_id=effect_id, exception=fault)
        self._held[effect_id] = request
        return self._proposed(effect_id, ev.RequestMade(request=request))

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        """Decide a part of an open stream."""
        if message.stream not in self._flying:
            return Refused(effect_id=message.stream, exception=OVER)
        self._catch_up()
        return self._proposed(self._next(), ev.MessageMade(message=message))

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        """Record how a request that left came back, and keep the body for provenance."""
        request = self._flying.pop(effect_id, None)
        if request is None or self._over:
            return
        self._announce(effect_id, request, response, body)
        if self._mcp is not None:
            self._mcp.ended(effect_id, response, body)
        if self._auditing is not None:
            self._auditing.ended(effect_id, request, response, body)
        if self._over:
            return
        self._feed(ev.ResponseReceived(effect_id=effect_id, response=self._kept(request, response, body)))
        self._sign_soon()

    def audits(self, effect_id: str) -> bool:
        """Say whether the answer of a passed request is held at its first tool call."""
        return self._auditing is not None and self._auditing.audits(effect_id)

    def reads(self, effect_id: str) -> Messages | None:
        """Return who reads the answer of a passed request before it passes, None for nobody."""
        found = self._mcp.reads(effect_id) if self._mcp is not None else None
        return self._auditing.reads(effect_id) if found is None and self._auditing is not None else found

    def heard(self, effect_id: str, facts: Facts) -> None:
        """Take what an answer that was audited says of itself."""
        if self._auditing is not None:
            self._auditing.heard(effect_id, facts)

    def judge(self, effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        """Decide the tool calls of a model's answer. Holds: a fault of ours refuses all of them."""
        from interlock.runtime.audited import refused_by_fault

        if self._auditing is None or not self._running():
            return (OVER,) * len(calls)
        try:
            self._catch_up()
            return self._auditing.judge(effect_id, calls)
        except Exception as error:  # noqa: BLE001 - fail closed: no call passes that was not decided
            return (refused_by_fault(type(error).__name__),) * len(calls)

    def turned_away(self, host: str, port: int, reason: str) -> None:
        """Record unreadable traffic; a flood of the same costs few nodes."""
        key = (host, port, reason)
        count = self._unreadable.get(key, 0) + 1
        if len(self._unreadable) < 10_000:
            self._unreadable[key] = count
        if self._over:
            return
        if count <= _TOLD_ONE_BY_ONE:
            self._feed(ev.TrafficRefused(host=host, port=port, reason=reason))
        elif count & (count - 1) == 0:
            self._feed(ev.TrafficRefused(host=host, port=port, reason=reason, count=count // 2))
        self._sign_soon()

    # what the audit asks

    @property
    def state(self) -> State:
        """Return where the fold stands."""
        return self._performer.state

    def feed(self, event: ev.Event) -> None:
        """Take an event that nobody waits for."""
        if not self._over:
            self._feed(event)

    def put(self, call: ToolCall) -> tuple[str, Passage | Awaitable[Passage]]:
        """Put a call of the model's to the core."""
        held = tuple(effect_id for token, effect_id in self._tokens.items() if token in call.arguments)
        effect_id = self._next()
        return effect_id, self._proposed(effect_id, ev.ToolCalled(call=changed(call, placeholders=held)))

    def announce(self, exchange: str, calls: tuple[AnnouncedCall, ...]) -> None:
        """Tell of calls that the agent gets and nobody decides."""
        request = self._flying.get(exchange)
        event = None if request is None else self._announcing.heard(exchange, request, calls)
        if event is not None:
            self.feed(event)

    def unread(self, exchange: str, reason: str) -> None:
        """Record a call of the model's that cannot be read."""
        request = self._flying.get(exchange)
        if request is not None:
            self.turned_away(request.host, request.port, reason)

    # what the core commands

    def let_pass(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Let a held request leave: its intent is on record."""
        request = self._held.get(effect_id)
        if request is not None:
            self._flying[effect_id] = request
        self._settle(effect_id, Passed(effect_id=effect_id, redaction=redaction))

    def turn_away(self, effect_id: str, exception: SemanticException) -> None:
        """Tell the agent that a request never leaves."""
        self._settle(effect_id, Refused(effect_id=effect_id, exception=exception))
        self._sign_soon()  # what the agent was told is to be found in the ledger

    def park(self, effect_id: str) -> None:
        """Give the agent a placeholder for a request that waits."""
        token = f"interlock-placeholder-{effect_id}-{secrets.token_hex(8)}"
        self._tokens[token] = effect_id
        self._settle(effect_id, Parked(effect_id=effect_id, token=token))

    def answer_inside(self, effect_id: str, subject: str) -> None:
        """Answer a request to the boundary itself: the answer of a parked request, or the notices."""
        if subject:
            self._settle(effect_id, self._answer_of(effect_id, subject))
            return
        request = self._held.get(effect_id)
        if request is not None and hooked.asks(request):
            # Not within the step that commanded this: a call is put to the core as well.
            self._loop.call_soon(self._hooked, effect_id, request)
            return
        notices = [one.plain() for one in self._told.until_now(self._performer.resolution)]
        waiting = [item.effect.id for item in self._performer.state.opened]
        self._settle(
            effect_id,
            _json(effect_id, 200, {"notices": notices, **({"waiting": waiting} if waiting else {})}),
        )

    def _hooked(self, effect_id: str, request: NetRequest) -> None:
        """Decide a call that an agent's hook asks about. Holds: a fault of ours refuses."""
        from interlock.runtime.audited import refused_by_fault
        from interlock.runtime.auditing import Auditing

        if self._auditing is None:
            self._auditing = Auditing(self, self._audit)

        def answer(said: Answered) -> None:
            self._settle(effect_id, said)

        def run(work: Coroutine[Any, Any, None]) -> None:
            task = self._loop.create_task(work)
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)

        try:
            self._catch_up()
            hooked.settle(effect_id, request, self._auditing, answer, run)
        except Exception as error:  # noqa: BLE001 - fail closed: what could not be decided is not made
            self._settle(
                effect_id, Refused(effect_id=effect_id, exception=refused_by_fault(type(error).__name__))
            )

    def send(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Send a parked request while the command runs; its outcome is fed when it is there."""

        (item,) = (one for one in self._performer.state.parked if one.effect.id == effect_id)
        request = item.effect.request
        assert request is not None

        async def sent() -> None:
            response = await self._sender.send(effect_id, request, redaction=redaction)
            self._feed(self._performer.sent(effect_id, response))

        task = self._loop.create_task(sent())
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def finish(self) -> None:
        """The command is gone: wait for what is being sent, and let nothing more pass."""
        if self._sends:
            await asyncio.wait(self._sends)
        if self._auditing is not None:
            self._auditing.finish()
        for effect_id in list(self._flying):
            gone = NetResponse(outcome=Outcome.UNKNOWN, detail="the command ended before its answer")
            self.answered(effect_id, gone, None)
        if self._mcp is not None:
            self._mcp.finish()
        self._over = True
        for effect_id, future in self._awaited.items():
            if not future.done():
                future.set_result(Refused(effect_id=effect_id, exception=OVER))
        if self._signing is not None:
            self._signing.cancel()

    # the inside

    def _catch_up(self) -> None:
        if self._running():
            self._seen.catch_up()

    def _reads(self, effect_id: str, request: NetRequest, body: Body | None) -> SemanticException | None:
        """Take what a request to the model brings. Returns: why it does not leave, None where it may be decided."""
        policy = self._performer.state.policy
        if policy is None or not self._running():
            return None
        if not policy.network.is_model_host(request.host, request.port):
            return None
        from interlock.runtime.audited import refused_by_fault
        from interlock.runtime.auditing import Auditing

        if self._auditing is None:
            self._auditing = Auditing(self, self._audit)
        try:
            self._auditing.requested(effect_id, request, body)
        except Exception as error:  # noqa: BLE001 - fail closed: what came in with it would not be known
            reason = f"a request to the model could not be read ({type(error).__name__})"
            self.turned_away(request.host, request.port, reason)
            return refused_by_fault(reason)
        return None

    def _next(self) -> str:
        return f"e{self._performer.state.proposed + 1}"

    def _proposed(
        self, effect_id: str, event: ev.RequestMade | ev.MessageMade | ev.ToolCalled
    ) -> Passage | Awaitable[Passage]:
        if not self._running():
            self._held.pop(effect_id, None)
            return Refused(effect_id=effect_id, exception=OVER)
        self._feed(event)
        decided = self._decided.pop(effect_id, None)
        if decided is not None:
            return decided
        if not self._running():
            self._held.pop(effect_id, None)
            return Refused(effect_id=effect_id, exception=OVER)
        future: asyncio.Future[Passage] = self._loop.create_future()
        self._awaited[effect_id] = future
        future.add_done_callback(lambda _future: self._given_up(effect_id))
        return future

    def _given_up(self, effect_id: str) -> None:
        """Close the question of a request whose client went away before it was answered: nobody waits for it now."""
        if self._awaited.pop(effect_id, None) is None:
            return
        self._held.pop(effect_id, None)
        if self._running() and any(item.effect.id == effect_id for item in self._performer.state.opened):
            self._feed(
                ev.OracleAnswered(
                    oracle=self._performer.oracle.name,
                    answers=(),
                    fault="whoever made the request is gone",
                    asked=(effect_id,),
                )
            )

    def _running(self) -> bool:
        return not self._over and self._performer.state.phase is Phase.RUNNING

    def _settle(self, effect_id: str, passage: Passage) -> None:
        self._held.pop(effect_id, None)
        if self._auditing is not None and not isinstance(passage, Passed):
            self._auditing.forget(effect_id)
        future = self._awaited.pop(effect_id, None)
        if future is None:
            self._decided[effect_id] = passage
        elif not future.done():
            future.set_result(passage)

    def _feed(self, event: ev.Event) -> None:
        from interlock.runtime.performer import LedgerLost

        try:
            self._performer.feed(event)
        except LedgerLost as error:
            # Nothing that is not on record may leave: the run ends here.
            self._over = True
            self._lost(error)

    def _announce(
        self, effect_id: str, request: NetRequest, response: NetResponse, body: bytes | None
    ) -> None:
        """Record what an exchange with a model says of the agent's actions."""
        item = self._performer.state.flying.get(effect_id)
        if item is None or item.effect.operation != "net.model":
            return
        if self._auditing is not None and self._auditing.judged(effect_id):
            event = self._announcing.heard(effect_id, request, ())
        else:
            event = self._announcing.event_of(effect_id, request, response, body)
        if event is not None:
            self._feed(event)

    def _kept(self, request: NetRequest, response: NetResponse, body: bytes | None) -> NetResponse:
        if body is None or not body:
            return response
        return self._inbound.keep(response, body, as_text=self._keeps_text(request))

    def _answer_of(self, effect_id: str, subject: str) -> Passage:
        found = self._sender.answer_of(subject)
        if found is None:
            refused = [one for one, _what, _why in self._performer.resolution.turned_away if one == subject]
            status, text = (403, "it was refused") if refused else (404, "no such request was parked")
            return _json(effect_id, status, {"effect": subject, "detail": text})
        status, content_type, body = found
        return Answered(effect_id=effect_id, status=status, content_type=content_type, body=body)

    def _sign_soon(self) -> None:
        if self._signing is None and not self._over:
            self._signing = self._loop.call_later(SIGN_SECONDS, self._sign)

    def _sign(self) -> None:
        from interlock.runtime.performer import LedgerLost

        self._signing = None
        self._inbound.flush()
        try:
            self._performer.sign()
        except LedgerLost as error:
            self._over = True
            self._lost(error)


def _json(effect_id: str, status: int, content: dict[str, object]) -> Answered:
    body = (json.dumps(content, indent=2) + "\n").encode()
    return Answered(effect_id=effect_id, status=status, content_type="application/json", body=body)
