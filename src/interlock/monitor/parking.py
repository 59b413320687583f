"""Parked requests and calls: who hangs on one, when it is sent, how it came back, and what falls with it.

A later request that holds a placeholder makes its subject be resolved first.
Source: DESIGN §4, §7; KAIROS, speculation.
"""

from collections.abc import Sequence

from interlock import policy as rules
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect
from interlock.model.nodes import NodeKind
from interlock.model.records import changed
from interlock.model.requests import Outcome
from interlock.model.verdicts import Decision, SemanticException, Verdict
from interlock.monitor.codec import event_payload
from interlock.monitor.exceptions import (
    refused_after,
    refused_discarded,
    refused_placeholder,
    refused_unanswered,
)
from interlock.monitor.state import Decided, State, Waiting
from interlock.monitor.writing import Commands, ProtocolError, Writing, blocked_node

Returned = ev.ResponseReceived | ev.ToolReturned
"""How what was let through comes back."""


def turn_away(
    state: State, out: Writing, item: Decided, exception: SemanticException, under: int | None = None
) -> State:
    """Write that an effect is refused, and tell the agent. Takes: `under`, as for `blocked_node`."""
    blocked_node(out, item, exception, under)
    out.commands.append(
        cmd.TurnAway(effect_id=item.effect.id, object=item.effect.object, exception=exception)
    )
    return changed(state, turned_away=state.turned_away + 1)


def asked_about(items: Sequence[Decided]) -> tuple[tuple[Effect, Verdict], ...]:
    """Return what is asked about some deferred effects: of equal ones the first."""
    standing = rules.asked_once((item.effect for item in items), whole=True)
    return tuple((item.effect, item.verdict) for item in items if standing[item.effect.id] == item.effect.id)


def begin_sending(state: State, out: Writing, queue: tuple[str, ...]) -> tuple[State, Commands]:
    """Send these parked ones in their order; with none, settle whoever waits."""
    if not queue:
        return go_on(state, out)
    out.node(
        NodeKind.RESOLUTION,
        state.apm_node,
        "monitor",
        {"intent": "send", "effects": list(queue)},
        verdict=Decision.RELEASE.value,
    )
    return changed(state, sending=queue, next_seq=out.seq), out.then(send_of(state, queue[0]))


def send_of(state: State, effect_id: str, attempt: int = 1) -> cmd.Send:
    """Return the command that sends a parked request, as it was released: whole, or redacted."""
    redacted = state.redacted(effect_id)
    return cmd.Send(
        effect_id=effect_id, attempt=attempt, redaction=None if redacted is None else redacted.redaction
    )


def go_on(state: State, out: Writing) -> tuple[State, Commands]:
    """Settle whoever hangs on a parked request: answer where it is settled, else resolve it first.

    Parked requests are resolved in order: with one, all that were parked before it.
    """
    parked = {item.effect.id for item in state.parked}
    left: list[Waiting] = []
    for waiting in state.waiting:
        if parked.isdisjoint(waiting.subjects):
            state = _settled(state, out, waiting)
        else:
            left.append(waiting)
    state = changed(state, waiting=tuple(left), next_seq=out.seq)
    if not left or state.resolving or state.sending or state.living is not None:
        return state, out.then()
    subjects = set(left[0].subjects)
    last = max(at for at, item in enumerate(state.parked) if item.effect.id in subjects)
    group = state.parked[: last + 1]
    open_ones = tuple(item for item in group if item.verdict.decision is Decision.DEFER)
    if not open_ones:
        return begin_sending(state, out, tuple(item.effect.id for item in group))
    if state.oracle == "hold":
        return give_up(state, out, "the run is held for a later review")
    return changed(state, resolving=tuple(item.effect.id for item in group)), out.then(
        cmd.Ask(
            oracle=state.oracle,
            deferred=asked_about(open_ones),
            now=True,
        )
    )


def _settled(state: State, out: Writing, waiting: Waiting) -> State:
    item = waiting.item
    if waiting.inside:
        out.commands.append(cmd.AnswerInside(effect_id=item.effect.id, subject=waiting.subjects[0]))
        return state
    node = out.node(
        NodeKind.RESOLUTION,
        state.apm_node,
        "monitor",
        {"effect": item.effect.id, "placeholders": list(waiting.subjects)},
        verdict=Decision.REFUSE.value,
    )
    return turn_away(state, out, item, refused_placeholder(item.effect, waiting.subjects), node)


def give_up(state: State, out: Writing, reason: str) -> tuple[State, Commands]:
    """Refuse whoever hangs on a parked request that cannot be settled now; it stays parked."""
    for waiting in state.waiting:
        node = out.node(
            NodeKind.RESOLUTION,
            state.apm_node,
            "monitor",
            {"effect": waiting.item.effect.id, "placeholders": list(waiting.subjects), "reason": reason},
            verdict=Decision.REFUSE.value,
        )
        state = turn_away(state, out, waiting.item, refused_unanswered(waiting.item.effect, reason), node)
    return changed(state, waiting=(), next_seq=out.seq), out.then()


def learned(state: State, item: Decided, event: Returned, node: int) -> rules.Knowledge:
    """Return what is known of values once this has come back, which `node` records."""
    assert state.policy is not None
    assert state.knowledge is not None
    if isinstance(event, ev.ToolReturned):
        return state.knowledge.with_tool_result(state.policy, item.effect, event.result, node)
    return state.knowledge.with_response(state.policy, item.effect, event.response, node)


def came_back(state: State, out: Writing, item: Decided, event: Returned) -> tuple[State, int]:
    """Record the outcome of a parked request or call. Returns: the node too.

    Raises: ProtocolError, if a request came back as a tool's result, or a call as a response.
    """
    assert state.policy is not None
    assert state.knowledge is not None
    check_kind(item, event)
    node = out.node(NodeKind.TOOL_OUTPUT, item.call, "monitor", event_payload(event))
    redacted = state.redacted(item.effect.id)
    left = item.effect if redacted is None else redacted.effect
    state = changed(state, knowledge=state.knowledge.with_request(state.policy, left))
    return changed(state, knowledge=learned(state, item, event, node)), node


def check_kind(item: Decided, event: Returned) -> None:
    """Check that a request came back as a response, and a call as a result. Raises: ProtocolError."""
    if isinstance(event, ev.ToolReturned) is not (item.effect.tool is not None):
        raise ProtocolError("what came back is of another kind than what left")


def sent(state: State, out: Writing, event: Returned) -> State:
    """Take the outcome of a parked request; what was to leave after one that failed does not leave."""
    items = {item.effect.id: item for item in state.parked}
    state, _node = came_back(state, out, items[event.effect_id], event)
    gone = {event.effect_id}
    rest = state.sending[1:]
    done = event.outcome is Outcome.DONE
    if not done and rest:
        stop = out.node(
            NodeKind.RESOLUTION,
            state.apm_node,
            "monitor",
            {"stopped": list(rest), "after": event.effect_id},
            verdict=Decision.REFUSE.value,
        )
        for effect_id in rest:
            exception = refused_after(items[effect_id].effect, event.effect_id)
            state = turn_away(state, out, items[effect_id], exception, stop)
        gone |= set(rest)
        rest = ()
    return changed(
        state,
        parked=tuple(one for one in state.parked if one.effect.id not in gone),
        sending=rest,
        committed=state.committed + done,
    )


def drop_parked(state: State, out: Writing) -> State:
    """Drop every parked request, and answer whoever hangs on one."""
    node = out.node(
        NodeKind.RESOLUTION,
        state.apm_node,
        "monitor",
        {"intent": "discard", "effects": [item.effect.id for item in state.parked]},
        verdict=Decision.REFUSE.value,
    )
    for item in state.parked:
        state = turn_away(state, out, item, refused_discarded(item.effect.object), node)
    state, _commands = go_on(changed(state, parked=()), out)
    return state
