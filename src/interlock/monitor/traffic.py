"""Requests while the command runs: decided at once, asked about, or parked until their scope is resolved.

A request whose answer the agent waits for is decided before anything of it leaves. One that may wait is parked, and
the agent gets a placeholder; a later request that holds the placeholder makes its subject be resolved first.
Source: DESIGN §4, §7; KAIROS, speculation.
"""

from collections.abc import Mapping

from interlock import policy as rules
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect, Reach
from interlock.model.nodes import NodeKind
from interlock.model.records import changed
from interlock.model.requests import INTERNAL_HOST
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, SemanticException, Verdict
from interlock.monitor.codec import event_payload
from interlock.monitor.correcting import refused_by, spent
from interlock.monitor.exceptions import (
    refused_by_oracle,
    refused_unanswered,
)
from interlock.monitor.parking import (
    Returned,
    begin_sending,
    check_kind,
    give_up,
    go_on,
    learned,
    turn_away,
)
from interlock.monitor.planned import taking
from interlock.monitor.redacting import redacted, redacted_as_told
from interlock.monitor.state import Decided, State, Waiting
from interlock.monitor.writing import (
    Commands,
    ProtocolError,
    Writing,
    blocked_node,
    check_nodes,
    oracle_actor,
)

_ANSWERS = "/requests/"
_READS = frozenset({"net.read", "net.model", "tool.read"})
"""Operations that change nothing out there: their intent need not survive a loss of power."""


def request_made(state: State, event: ev.RequestMade) -> tuple[State, Commands]:
    """Decide a request that the boundary holds."""
    assert state.policy is not None
    assert state.knowledge is not None
    request = event.request
    effect_id = f"e{state.proposed + 1}"
    effect = rules.characterise_request(state.policy, state.knowledge, request, effect_id)
    if request.host == INTERNAL_HOST:
        return _asked_inside(state, event, effect)
    # The model is told of the placeholder, as the agent is: nothing hangs on it there.
    placeholders = () if effect.operation == "net.model" else request.placeholders
    return propose(state, event, effect, placeholders)


def tool_called(state: State, event: ev.ToolCalled) -> tuple[State, Commands]:
    """Decide a call that a tool lens holds."""
    assert state.policy is not None
    assert state.knowledge is not None
    if event.call.exchange:
        _talk(state, event.call.exchange)
    effect = rules.characterise_call(state.policy, state.knowledge, event.call, f"e{state.proposed + 1}")
    return propose(state, event, effect, event.call.placeholders)


def message_made(state: State, event: ev.MessageMade) -> tuple[State, Commands]:
    """Decide a part of an open stream.

    Raises: ProtocolError, if no such stream is open.
    """
    assert state.policy is not None
    assert state.knowledge is not None
    message = event.message
    stream = state.flying.get(message.stream)
    if stream is None:
        raise ProtocolError("a message belongs to no open stream")
    effect = rules.characterise_message(
        state.policy, state.knowledge, stream.effect, message, f"e{state.proposed + 1}"
    )
    return propose(state, event, effect, message.placeholders)


def tools_listed(state: State, event: ev.ToolsListed) -> tuple[State, Commands]:
    """Pin the tools that were offered. Raises: ProtocolError, if no such exchange is under way."""
    assert state.knowledge is not None
    parent = _talk(state, event.exchange).call if event.exchange else state.apm_node
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, parent, "agent", event_payload(event))
    return changed(state, next_seq=out.seq, knowledge=state.knowledge.with_tools(event)), out.then()


def exchange_told(state: State, event: ev.ActionsAnnounced | ev.ExchangeRecorded) -> tuple[State, Commands]:
    """Write down what an exchange with the model says of itself. Holds: nothing else changes.

    Raises: ProtocolError, if no such exchange is under way.
    """
    item = _talk(state, event.effect_id)
    out = Writing(state)
    kind = NodeKind.AGENT_STEP if isinstance(event, ev.ActionsAnnounced) else NodeKind.INFERENCE
    out.node(kind, item.call, "agent", event_payload(event))
    knowledge = state.knowledge
    if isinstance(event, ev.ActionsAnnounced) and knowledge is not None:
        knowledge = knowledge.with_announced(event)
    return changed(state, next_seq=out.seq, knowledge=knowledge), out.then()


def _talk(state: State, effect_id: str) -> Decided:
    item = state.flying.get(effect_id)
    if item is None or item.effect.operation != "net.model":
        raise ProtocolError("what is said of an exchange belongs to none with a model that is under way")
    return item


def traffic_refused(state: State, event: ev.TrafficRefused) -> tuple[State, Commands]:
    """Record traffic that could not be read."""
    out = Writing(state)
    out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
    return changed(state, next_seq=out.seq), out.then()


def propose(
    state: State,
    event: ev.RequestMade | ev.MessageMade | ev.ToolCalled,
    effect: Effect,
    placeholders: tuple[str, ...],
) -> tuple[State, Commands]:
    """Decide an effect that the boundary or a lens holds while the command runs."""
    assert state.policy is not None
    assert state.knowledge is not None
    (verdict,) = rules.decide(state.policy, state.knowledge, (effect,))
    out = Writing(state)
    call = out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
    node = check_nodes(out, call, (verdict,))[effect.id]
    item = Decided(effect=effect, verdict=verdict, node=node, call=call)
    knowledge = state.knowledge
    if knowledge.manifest is not None and not placeholders:
        # Who hangs on a placeholder is told to come again, and takes the step then.
        knowledge = taking(knowledge, effect, verdict)
    deferred = verdict.decision is Decision.DEFER
    # What is vouched for joins the open scope: parked requests leave in their order.
    parks = effect.reach is Reach.PARKABLE and (deferred or bool(state.parked))
    if verdict.decision is Decision.RELEASE and not placeholders and not parks:
        # Nearly every request goes this way: the state, a large record, is copied once.
        return changed(
            state,
            next_seq=out.seq,
            proposed=state.proposed + 1,
            latest=item,
            knowledge=knowledge.with_request(state.policy, effect),
            flying=_flying_with(state, item),
        ), out.then(_let_pass(effect))
    state = changed(state, proposed=state.proposed + 1, latest=item, knowledge=knowledge)
    if verdict.decision is Decision.REFUSE:
        assert verdict.exception is not None
        state = turn_away(state, out, item, verdict.exception)
        return changed(state, next_seq=out.seq), out.then()
    if placeholders:
        waiting = Waiting(item=item, subjects=placeholders)
        return go_on(changed(state, waiting=(*state.waiting, waiting)), out)
    if deferred:
        _deferred_node(out, item)
        if (told := spent(state, effect)) is not None:
            return changed(turn_away(state, out, item, told), next_seq=out.seq), out.then()
    if parks:
        return changed(state, parked=(*state.parked, item), next_seq=out.seq), out.then(
            cmd.Park(effect_id=effect.id)
        )
    return _ask(state, out, item)


def _deferred_node(out: Writing, item: Decided) -> None:
    out.node(
        NodeKind.DEFERRED,
        item.node,
        "monitor",
        {"effect": item.effect.id, "object": item.effect.object, "reason": item.verdict.reason},
        verdict=Decision.DEFER.value,
    )


def _flying_with(state: State, item: Decided) -> Mapping[str, Decided]:
    """Return what is under way when this has left; a part of a stream is not answered for itself."""
    if item.effect.message is not None:
        return state.flying
    return {**state.flying, item.effect.id: item}


def _let_pass(effect: Effect) -> cmd.LetPass:
    return cmd.LetPass(effect_id=effect.id, durable=effect.operation not in _READS)


def _ask(state: State, out: Writing, item: Decided) -> tuple[State, Commands]:
    """Ask about a request whose answer the agent waits for; it cannot be held for later."""
    assert state.policy is not None
    reason = ""
    if state.oracle == "hold":
        reason = "the run is held for a later review, and this request cannot wait for it"
    elif not state.policy.network.ask:
        reason = "the policy asks nobody while the command runs"
    if reason:
        state = turn_away(
            state, out, item, refused_by_oracle(state.policy, item.effect, item.verdict, state.oracle, reason)
        )
        return changed(state, next_seq=out.seq), out.then()
    opened = (*state.opened, item)
    state = changed(state, opened=opened, next_seq=out.seq)
    standing = rules.asked_once((one.effect for one in opened), whole=False)
    if standing[item.effect.id] != item.effect.id:
        # The same is being asked already: one answer is enough.
        return state, out.then()
    return state, out.then(cmd.Ask(oracle=state.oracle, deferred=((item.effect, item.verdict),), now=True))


def answered(state: State, event: ev.OracleAnswered) -> tuple[State, Commands]:
    """Take an oracle's answer while the command runs: on requests that wait, or on parked ones."""
    assert state.policy is not None
    assert state.knowledge is not None
    out = Writing(state)
    node = out.node(NodeKind.RESOLUTION, state.apm_node, oracle_actor(event.oracle), event_payload(event))
    asked = set(event.asked)
    # Bounded: only what was asked can be answered, and the first answer on an effect stands.
    given: dict[str, ev.Answer] = {}
    for answer in event.answers:
        given.setdefault(answer.effect_id, answer)
    standing = rules.asked_once((item.effect for item in state.opened), whole=False)
    asked |= {effect_id for effect_id, first in standing.items() if first in asked}
    given = rules.with_twins(given, standing)
    open_ones = (item.effect for item in state.parked if item.effect.id in asked)
    given = rules.with_twins(given, rules.asked_once(open_ones, whole=True))

    def released(item: Decided) -> bool:
        answer = given.get(item.effect.id)
        silent = bool(event.fault) or event.leave_open
        return not silent and answer is not None and answer.decision is Decision.RELEASE

    for item in state.opened:
        if item.effect.id not in asked:
            continue
        if released(item) and given[item.effect.id].redact:
            state = _redacted(state, out, item, event, node)
        elif released(item):
            assert state.knowledge is not None
            assert state.policy is not None
            knowledge = state.knowledge.with_grant(item.effect, node).with_request(state.policy, item.effect)
            state = changed(state, knowledge=knowledge, flying=_flying_with(state, item))
            out.commands.append(_let_pass(item.effect))
        else:
            state = refused_by(state, out, item, event, given=given, node=node)
    state = changed(state, opened=tuple(item for item in state.opened if item.effect.id not in asked))
    wanted = tuple(one for one in state.resolving if one in asked)
    if not wanted:
        return changed(state, next_seq=out.seq), out.then()
    state = changed(state, resolving=())
    if event.leave_open:
        # The scope stays open, so whoever hangs on it gets no answer now.
        return give_up(state, out, "the review was left for later")
    for item in state.parked:
        if item.effect.id in wanted and item.verdict.decision is Decision.DEFER and not released(item):
            state = refused_by(state, out, item, event, given=given, node=node)
            state = changed(state, parked=tuple(one for one in state.parked if one is not item))
    whole = {one for one in wanted if one in given and not given[one].redact}
    for item in state.parked:
        if (
            item.effect.id in wanted
            and item.verdict.decision is Decision.DEFER
            and item.effect.id not in whole
        ):
            state = _parked_redacted(state, out, item, event, node)
    known = state.knowledge
    assert known is not None
    for item in state.parked:
        if item.effect.id in whole and item.verdict.decision is Decision.DEFER:
            known = known.with_grant(item.effect, node)
    state = changed(state, knowledge=known)
    queue = tuple(item.effect.id for item in state.parked if item.effect.id in wanted)
    return begin_sending(state, out, queue)


def _redacted(state: State, out: Writing, item: Decided, event: ev.OracleAnswered, node: int) -> State:
    """Let a request that waits leave redacted, or turn it away. Holds: nothing is granted by it."""
    assert state.policy is not None
    assert state.knowledge is not None
    made = redacted(state, out, item, event, node)
    if isinstance(made, SemanticException):
        return turn_away(state, out, item, made)
    left = changed(item, effect=made.effect)
    state = changed(
        state,
        knowledge=state.knowledge.with_request(state.policy, made.effect),
        flying=_flying_with(state, left),
    )
    out.commands.append(cmd.Notify(refusals=(redacted_as_told(made),)))
    out.commands.append(changed(_let_pass(made.effect), redaction=made.redaction))
    return state


def _parked_redacted(state: State, out: Writing, item: Decided, event: ev.OracleAnswered, node: int) -> State:
    """Have a parked request leave redacted, or turn it away."""
    made = redacted(state, out, item, event, node)
    if isinstance(made, SemanticException):
        state = turn_away(state, out, item, made)
        return changed(state, parked=tuple(one for one in state.parked if one is not item))
    out.commands.append(cmd.Notify(refusals=(redacted_as_told(made),)))
    return changed(state, redactions=(*state.redactions, made))


def returned(state: State, event: Returned) -> tuple[State, Commands]:
    """Take how a request or a call that was let through came back.

    Raises: ProtocolError, if no such one is under way.
    """
    item = state.flying.get(event.effect_id)
    if item is None:
        raise ProtocolError("an answer belongs to nothing that left")
    check_kind(item, event)
    out = Writing(state)
    node = out.node(NodeKind.TOOL_OUTPUT, item.call, "agent", event_payload(event))
    flying = {**state.flying}
    del flying[event.effect_id]
    return changed(
        state,
        next_seq=out.seq,
        knowledge=learned(state, item, event, node),
        flying=flying,
    ), out.then()


def ended(state: State, out: Writing) -> State:
    """The command is gone: nobody waits for an answer any more. What is parked stays for the scope's end."""
    for item in (*state.opened, *(one.item for one in state.waiting if not one.inside)):
        node: int | None = None
        if item.verdict.decision is not Decision.DEFER:
            node = out.node(
                NodeKind.RESOLUTION,
                state.apm_node,
                "monitor",
                {"effect": item.effect.id, "reason": "the command ended"},
                verdict=Decision.REFUSE.value,
            )
        blocked_node(out, item, refused_unanswered(item.effect, "the command ended before"), node)
        state = changed(state, turned_away=state.turned_away + 1)
    return changed(state, flying={}, opened=(), waiting=(), resolving=(), sending=(), next_seq=out.seq)


def _asked_inside(state: State, event: ev.RequestMade, effect: Effect) -> tuple[State, Commands]:
    """A request to the boundary itself: nothing of it leaves, so nothing is decided."""
    out = Writing(state)
    call = out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
    state = changed(state, proposed=state.proposed + 1, latest=None, next_seq=out.seq)
    path = event.request.path
    subject = path.removeprefix(_ANSWERS) if path.startswith(_ANSWERS) else ""
    if not any(item.effect.id == subject for item in state.parked):
        return state, out.then(cmd.AnswerInside(effect_id=effect.id, subject=subject))
    own = Check(guard=Guard.RULES, outcome=CheckOutcome.PASS, rules=(), reason="it asks the boundary itself")
    verdict = Verdict(effect_id=effect.id, decision=Decision.RELEASE, checks=(own,))
    item = Decided(effect=effect, verdict=verdict, node=call, call=call)
    waiting = Waiting(item=item, subjects=(subject,), inside=True)
    return go_on(changed(state, waiting=(*state.waiting, waiting)), out)
