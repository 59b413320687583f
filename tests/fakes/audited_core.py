"""The real fold fed by an audit, with an agent's side that speaks OpenAI's chat wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from hashlib import sha256
from typing import Any

from tests.playbook.test_monitor_scope import TASK, stood

from interlock.boundary.net.gate import Passage, Passed, Refused, Verdicts
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.actions import AnnouncedCall, HeldCall
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.monitor import State, step
from interlock.policy.lens import Audit
from interlock.runtime.auditing import Auditing

POLICY = """version: 1
preset: none
trusted: [{task: true}]
network: {models: [llm.test]}
tools:
  look: {effect: read, output: {trust: own}}
  send: {effect: send, steers: {to: email}}
cedar: |
  permit(principal, action, resource);
"""


def tool(name: str, described: str = "as ever") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": described, "parameters": {}}}


def result(call_id: str, text: str, name: str = "") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **({"name": name} if name else {})}


def held(call_id: str, name: str, **arguments: object) -> HeldCall:
    return HeldCall(call_id=call_id, tool=name, arguments=written(arguments))


def written(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Core:
    """Feeds the fold, and answers what it asks. Takes: `says`, the oracle's word at once, None to leave it open."""

    def __init__(
        self, policy: str = POLICY, *, says: Decision | None = Decision.REFUSE, audit: Audit = Audit.DECLARED
    ) -> None:
        self.state = State()
        self.says = says
        self.events: list[ev.Event] = []
        self.unreadable: list[str] = []
        self.asked: list[str] = []
        self.signed = 0
        self._words: dict[str, Passage] = {}
        self._open: dict[str, asyncio.Future[Passage]] = {}
        self.feed(TASK)
        self.feed(stood("human", policy))
        self.auditing = Auditing(self, audit)

    # what the audit asks

    def feed(self, event: ev.Event) -> None:
        self.events.append(event)
        self.state, commands = step(self.state, event)
        for command in commands:
            match command:
                case cmd.LetPass():
                    self._word(Passed(effect_id=command.effect_id))
                case cmd.TurnAway():
                    self._word(Refused(effect_id=command.effect_id, exception=command.exception))
                case cmd.Ask():
                    self.asked += [effect.id for effect, _verdict in command.deferred]

    def put(self, call: ToolCall) -> tuple[str, Passage | Awaitable[Passage]]:
        effect_id = f"e{self.state.proposed + 1}"
        self.feed(ev.ToolCalled(call=call))
        if effect_id not in self._words and self.says is not None:
            self.answer(effect_id, self.says)
        if effect_id in self._words:
            return effect_id, self._words.pop(effect_id)
        self._open[effect_id] = asyncio.get_running_loop().create_future()
        return effect_id, self._open[effect_id]

    def announce(self, exchange: str, calls: tuple[AnnouncedCall, ...]) -> None:
        assert exchange in self.state.flying
        if calls:
            self.feed(ev.ActionsAnnounced(effect_id=exchange, calls=calls))

    def unread(self, exchange: str, reason: str) -> None:
        assert exchange in self.state.flying
        self.unreadable.append(reason)

    def turned_away(self, host: str, port: int, reason: str) -> None:
        self.unreadable.append(reason)

    # the oracle

    def answer(self, effect_id: str, decision: Decision) -> None:
        said = ev.Answer(effect_id=effect_id, decision=decision, reason="so")
        self.feed(ev.OracleAnswered(oracle="human", answers=(said,), asked=(effect_id,)))

    def _word(self, passage: Passage) -> None:
        future = self._open.pop(passage.effect_id, None)
        if future is None:
            self._words[passage.effect_id] = passage
        elif not future.done():
            future.set_result(passage)

    # the agent

    def asks(self, *messages: dict[str, Any], tools: tuple[dict[str, Any], ...] = ()) -> str:
        """Have the agent ask its model; return the exchange's id."""
        body = written({"model": "m-1", "stream": True, "messages": messages, "tools": tools})
        return self.leaves(
            NetRequest(
                method="POST",
                scheme="https",
                host="llm.test",
                port=443,
                path="/v1/chat/completions",
                body_size_bytes=len(body.encode()),
                body_digest=sha256(body.encode()).hexdigest(),
                body_text=body,
            )
        )

    def leaves(self, request: NetRequest) -> str:
        """Have a request leave; return its effect's id."""
        effect_id = f"e{self.state.proposed + 1}"
        self.auditing.requested(effect_id, request, None)
        self.feed(ev.RequestMade(request=request))
        assert isinstance(self._words.pop(effect_id), Passed)
        return effect_id

    def judged(self, effect_id: str, *calls: HeldCall) -> Verdicts:
        """Have the answer's calls decided at once."""
        verdicts = self.auditing.judge(effect_id, calls)
        assert isinstance(verdicts, tuple)
        return verdicts

    def ends(self, effect_id: str, body: bytes | None = None) -> None:
        """End an exchange as the boundary does."""
        item = self.state.flying[effect_id]
        assert item.effect.request is not None
        response = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=2, digest="34" * 32)
        self.auditing.ended(effect_id, item.effect.request, response, body)
        self.feed(ev.ResponseReceived(effect_id=effect_id, response=response))

    def of(self, kind: type) -> list[Any]:
        """Return the events of a kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]
