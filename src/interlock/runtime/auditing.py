"""What a lens over the model's traffic tells the core: tools that are offered, calls before they are made, results.

A call in a model's answer is put to the core as any other, before the agent sees it; its result is what the agent's
next request brings for it.
Holds: a call that is open is not put twice (an answer that was asked for again), a result counts once (a history that
is sent again); a result of a call that was never put is content of its request, and no more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from interlock import policy as rules
from interlock.boundary.lens.reading import is_fetched, wire_of
from interlock.boundary.lens.requests import BroughtResult, ModelRequest, read_request
from interlock.boundary.net.gate import Body, Passage, Passed, Refused, Verdicts
from interlock.model import events as ev
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision, SemanticException
from interlock.policy.lens import Audit
from interlock.policy.lens_rules import may_forbid_calls
from interlock.runtime.answers_beside import Beside
from interlock.runtime.audited import (
    NO_FACTS,
    announced_of,
    arguments_of,
    body_of,
    facts_of,
    group_of,
    key_of,
    refused_by_fault,
    refused_unreadable,
    result_of,
)
from interlock.runtime.hooked import PARKS

if TYPE_CHECKING:
    from interlock.boundary.lens.outcomes import Facts
    from interlock.model.actions import AnnouncedCall, HeldCall
    from interlock.monitor import State
    from interlock.policy import Policy

MAX_OPEN = 10_000
"""So many calls may be open; further ones are refused."""
_UNREAD = "/api/chat"
"""Where a model that is served by Ollama is asked in its own way."""

Proposed = Passage | Awaitable[Passage]


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
        """Take a call. Returns: its effect id, and what it may do."""
        ...

    def announce(self, exchange: str, calls: tuple[AnnouncedCall, ...]) -> None:
        """Tell of calls that the agent gets and nobody decides."""
        ...

    def unread(self, exchange: str, reason: str) -> None:
        """Record a call that cannot be read."""
        ...

    def turned_away(self, host: str, port: int, reason: str) -> None:
        """Record what was not passed on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A call that was let through and has no result yet.

    Takes: `before`, how often which results of this id stood in the request whose answer held it: they are none of its.
    """

    effect_id: str
    key: tuple[str, ...]
    before: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Put:
    """What became of one call of an answer.

    Takes: `opened`, where it was put to the core anew; `passes`, where it is none that the core decides.
    """

    opened: _Open | None = None
    group: tuple[str, str] = ("", "")
    passes: HeldCall | None = None


class _Exchange:
    """One exchange with the model that is under way."""

    def __init__(self, wire: str, said: ModelRequest, digest: str) -> None:
        self.wire = wire
        self.said = said
        self.digest = digest
        self.listed = False
        self.judged = False
        self.facts: Facts | None = None


class Auditing:
    """The audit of one run's exchanges with its model.

    Takes: `feeds`, the core; `audit`, what is audited where the policy does not say.
    """

    def __init__(self, feeds: Feeds, audit: Audit) -> None:
        self._feeds = feeds
        self._default = audit
        self._exchanges: dict[str, _Exchange] = {}
        self._open: dict[tuple[str, str], list[_Open]] = {}
        self._count = 0
        self._unread: set[str] = set()
        self._beside: dict[str, Beside] = {}

    # the request

    def requested(self, effect_id: str, request: NetRequest, body: Body | None) -> None:
        """Take a request that is about to be put to the core: what it brings of results came in before it leaves."""
        policy = self._policy()
        if policy is None or not policy.network.is_model_host(request.host, request.port):
            return
        wire = wire_of(request.path)
        asks = policy.network.is_model_call(request)
        if asks and (request.scheme in ("ws", "wss") or request.path.endswith(_UNREAD)):
            self._unread.add(effect_id)
            return
        if not asks or not wire or (request.method != "POST" and not is_fetched(request.path)):
            self._beside[effect_id] = Beside(request, self._feeds.turned_away)
            return
        said = read_request(wire, body_of(request, body), request.path)
        self._exchanges[effect_id] = _Exchange(wire, said, request.body_digest)
        if self._open:
            self._take_results(said.results)

    def forget(self, effect_id: str) -> None:
        """Drop a request that never leaves."""
        self._exchanges.pop(effect_id, None)
        self._beside.pop(effect_id, None)
        self._unread.discard(effect_id)

    def reads(self, effect_id: str) -> Beside | None:
        """Return who looks for calls in an answer that no wire describes, None where none are looked for."""
        beside, policy = self._beside.get(effect_id), self._policy()
        return beside if beside is not None and policy is not None and self._holds(policy) else None

    def audits(self, effect_id: str) -> bool:
        """Say whether the answer of an exchange is held at its first call; pin the tools that its request offers.

        Holds: so it is said of one that cannot be read, which then does not leave.
        """
        exchange = self._exchanges.get(effect_id)
        policy = self._policy()
        if policy is None or (exchange is None and effect_id not in self._unread):
            return False
        if self._audit(policy) is Audit.NONE:
            return False
        if exchange is not None:
            self._list(effect_id, exchange)
        return self._holds(policy)

    def _holds(self, policy: Policy) -> bool:
        """Say whether calls are held until they are decided."""
        audit = self._audit(policy)
        if audit in (Audit.NONE, Audit.ALL):
            return audit is Audit.ALL
        return bool(policy.tools.tools) or policy.lens.defers or may_forbid_calls(policy)

    def _list(self, effect_id: str, exchange: _Exchange) -> None:
        if exchange.listed or effect_id not in self._feeds.state.flying:
            return
        exchange.listed = True
        event = ev.ToolsListed(server="", tools=exchange.said.tools, exchange=effect_id)
        if exchange.said.tools and not self._feeds.state.pins.knows(event):
            self._feeds.feed(event)

    def _take_results(self, results: tuple[BroughtResult, ...]) -> None:
        by_key: dict[tuple[str, str], list[BroughtResult]] = {}
        for result in results:
            by_key.setdefault(group_of(result.call_id, result.tool), []).append(result)
        for key in [key for key in self._open if key in by_key]:
            self._match(key, by_key[key])

    def _match(self, key: tuple[str, str], results: list[BroughtResult]) -> None:
        """Give the open calls of one id the results that came since, in order."""
        left: list[_Open] = []
        taken: set[int] = set()
        for one in self._open[key]:
            seen: Counter[str] = Counter()
            for place, result in enumerate(results):
                seen[result.digest] += 1
                if place not in taken and seen[result.digest] > one.before[result.digest]:
                    taken.add(place)
                    self._returned(one, result_of(result))
                    break
            else:
                left.append(one)
        self._count -= len(self._open[key]) - len(left)
        if left:
            self._open[key] = left
        else:
            del self._open[key]

    def _returned(self, one: _Open, result: ToolResult) -> None:
        if one.effect_id in self._feeds.state.flying:
            self._feeds.feed(ev.ToolReturned(effect_id=one.effect_id, result=result))

    # the answer

    def judge(self, effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        """Decide the calls of an answer. Returns: one verdict a call; an awaitable where somebody is asked."""
        exchange = self._exchanges.get(effect_id)
        policy = self._policy()
        if exchange is None or policy is None:
            return (refused_by_fault("its exchange is not known"),) * len(calls)
        exchange.judged = True
        known: Counter[tuple[str, ...]] = Counter()
        puts: list[_Put] = []
        passages: list[Proposed] = []
        for held in calls:
            put, passage = self._put(effect_id, exchange, held, known)
            puts.append(put)
            passages.append(passage)
        if not any(isinstance(passage, Awaitable) for passage in passages):
            return self._concluded(effect_id, puts, passages)
        return asyncio.ensure_future(self._awaited(effect_id, puts, passages))

    def _put(
        self,
        effect_id: str,
        exchange: _Exchange,
        held: HeldCall,
        known: Counter[tuple[str, ...]],
    ) -> tuple[_Put, Proposed]:
        if held.fault or not held.tool:
            fault = held.fault or "it has no name"
            self._feeds.unread(effect_id, f"a tool call in the model's answer cannot be read: {fault}")
            return _Put(), Refused(effect_id="", exception=refused_unreadable(fault))
        call = ToolCall(
            call=held.call_id, tool=held.tool, arguments=arguments_of(held.arguments), exchange=effect_id
        )
        if not self._concerns(call):
            return _Put(passes=held), Passed(effect_id="")
        key = key_of(call, exchange.digest)
        group = group_of(held.call_id, held.tool)
        believed = not self._feeds.state.pins.doubt(call)
        same = [one for one in self._open.get(group, ()) if one.key == key and believed]
        known[key] += 1
        if known[key] <= len(same):
            # An answer that was asked for again: the call is under way, and is decided.
            return _Put(), Passed(effect_id=same[known[key] - 1].effect_id)
        if self._count + 1 > MAX_OPEN:
            return _Put(), Refused(effect_id="", exception=refused_by_fault("too many calls are open"))
        call_effect, passage = self._feeds.put(call)
        before = Counter(
            one.digest for one in exchange.said.results if group_of(one.call_id, one.tool) == group
        )
        opened = _Open(effect_id=call_effect, key=key, before=before)
        return _Put(opened=opened, group=group), passage

    def hooked(self, call: ToolCall) -> Proposed:
        """Decide a call that the agent's own hook tells of, where the model's answer did not have it decided."""
        flying = self._feeds.state.flying
        for one in self._open.get(group_of(call.call, call.tool), ()):
            item = flying.get(one.effect_id)
            made = None if item is None else item.effect.tool
            if made is not None and (made.tool, made.arguments) == (call.tool, call.arguments):
                return Passed(effect_id=one.effect_id)
        policy = self._policy()
        role = policy.tools.find(call.name) if policy is not None else None
        if role is not None and role.parks:
            # It would be made at the end of the run, which nobody but the agent could do.
            return Refused(effect_id="", exception=PARKS)
        return self._feeds.put(call)[1] if self._concerns(call) else Passed(effect_id="")

    def _concerns(self, call: ToolCall) -> bool:
        """Say whether a call is put to the core: of tools that nobody declared only one that a rule or role refuses."""
        policy = self._policy()
        if policy is None or self._audit(policy) is Audit.ALL or policy.tools.find(call.name) is not None:
            return True
        knowledge = self._feeds.state.knowledge
        if knowledge is None or not may_forbid_calls(policy):
            return False
        effect = rules.characterise_call(policy, knowledge, call, "e0")
        (verdict,) = rules.decide(policy, knowledge, (effect,))
        return verdict.decision is Decision.REFUSE

    async def _awaited(self, exchange: str, puts: Sequence[_Put], passages: Sequence[Proposed]) -> Verdicts:
        settled: list[Passage] = []
        try:
            for passage in passages:
                settled.append(await passage if isinstance(passage, Awaitable) else passage)
        except BaseException as failure:
            # Whoever asked for the answer is gone, or a part of ours failed: none of its calls is made.
            gone = isinstance(failure, asyncio.CancelledError)
            why = "whoever asked for the answer was gone" if gone else "it could not be decided"
            for put, passage in zip(puts, passages, strict=True):
                if isinstance(passage, asyncio.Future):
                    passage.cancel()
                self._unmade(put, why)
            if isinstance(failure, Exception):
                return (refused_by_fault(type(failure).__name__),) * len(puts)
            raise
        return self._concluded(exchange, puts, settled)

    def _concluded(self, exchange: str, puts: Sequence[_Put], passages: Sequence[Proposed]) -> Verdicts:
        verdicts = tuple(
            None if isinstance(passage, Passed) else _refusal_of(passage) for passage in passages
        )
        refused = any(verdicts)
        for put, verdict in zip(puts, verdicts, strict=True):
            if refused and verdict is None:
                self._unmade(
                    put, "another call of the same answer was refused, so the agent got none of them"
                )
            elif verdict is None and put.opened is not None:
                self._open.setdefault(put.group, []).append(put.opened)
                self._count += 1
        if not refused:
            # Before the agent can do anything of it: what it does then is told apart by the calls under way.
            passing = tuple(announced_of(put.passes) for put in puts if put.passes is not None)
            self._feeds.announce(exchange, passing)
        return verdicts

    def _unmade(self, put: _Put, detail: str) -> None:
        if put.opened is not None:
            self._returned(put.opened, ToolResult(outcome=Outcome.FAILED, detail=detail))

    # the end

    def heard(self, effect_id: str, facts: Facts) -> None:
        """Take what an answer that was audited says of itself."""
        exchange = self._exchanges.get(effect_id)
        if exchange is not None:
            exchange.facts = facts

    def judged(self, effect_id: str) -> bool:
        """Say whether all calls of an answer are told: they were decided, or it held none."""
        exchange = self._exchanges.get(effect_id)
        return exchange is not None and (exchange.judged or exchange.facts is not None)

    def ended(self, effect_id: str, request: NetRequest, response: NetResponse, body: bytes | None) -> None:
        """Record an exchange that is about to end. Takes: `body`, of the answer, decompressed, where it is whole."""
        self._unread.discard(effect_id)
        self._beside.pop(effect_id, None)
        exchange = self._exchanges.pop(effect_id, None)
        if exchange is None or effect_id not in self._feeds.state.flying:
            return
        policy = self._policy()
        if policy is not None and self._audit(policy) is not Audit.NONE:
            self._list(effect_id, exchange)
        fault = _fault_of(response)
        facts = exchange.facts
        if facts is None:
            facts = NO_FACTS if body is None or fault else facts_of(exchange.wire, body)
        self._feeds.feed(
            ev.ExchangeRecorded(
                effect_id=effect_id,
                provider=request.host,
                model=exchange.said.model,
                request=request.body_digest,
                answered_as=facts.model,
                answer=response.digest,
                prompt_tokens=facts.prompt_tokens,
                completion_tokens=facts.completion_tokens,
                streamed=facts.streamed or exchange.said.streamed,
                fault=fault,
                note=facts.note,
            )
        )

    def finish(self) -> None:
        """The command is gone: nobody brings a result any more."""
        for effect_id, item in list(self._feeds.state.flying.items()):
            if item.effect.tool is not None and item.effect.tool.exchange:
                detail = "the command ended before its result was seen"
                result = ToolResult(outcome=Outcome.UNKNOWN, detail=detail)
                self._feeds.feed(ev.ToolReturned(effect_id=effect_id, result=result))
        self._open.clear()
        self._count = 0

    # the inside

    def _policy(self) -> Policy | None:
        return self._feeds.state.policy

    def _audit(self, policy: Policy) -> Audit:
        return policy.lens.audit if policy.lens.audit is not None else self._default


def _fault_of(response: NetResponse) -> str:
    """Return why an exchange has no whole answer."""
    if response.outcome is not Outcome.DONE:
        return response.detail or response.outcome.value
    if not 200 <= response.status < 300:
        return f"status {response.status}"
    return "" if response.digest else "an empty answer"


def _refusal_of(passage: Proposed) -> SemanticException:
    if isinstance(passage, Refused):
        return passage.exception
    return refused_by_fault("it was neither passed nor refused")
