"""What counts towards a stop, event by event, and what a stop ends: whatever is pending where it holds.

Holds: nothing of a branch leaves once a stop holds there; what it staged before stays, for the principal's word.
Source: DESIGN §5, guard 1; KNOX §4.2 and attestation 5.
"""

from collections.abc import Iterable

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.records import changed
from interlock.model.requests import Outcome
from interlock.model.verdicts import Decision, ExceptionType, SemanticException
from interlock.monitor.codec import event_payload
from interlock.monitor.parking import go_on, turn_away
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import Commands, ProtocolError, Writing
from interlock.policy.stopping import (
    STOP,
    Reached,
    Stops,
    branch_of,
    reached_from,
    said,
    stop_for,
    with_failures,
    with_reached,
    with_turn,
)


def turn_taken(state: State, event: ev.TurnTaken) -> tuple[State, Commands]:
    """Write down that the agent's model took a turn."""
    out = Writing(state)
    out.node(NodeKind.AGENT_STEP, state.apm_node, "agent", event_payload(event))
    return changed(state, next_seq=out.seq), out.then()


def stop_reached(state: State, event: ev.StopReached) -> tuple[State, Commands]:
    """Take a stop that the runtime tells of. Raises: ProtocolError, where nothing is stopped by it."""
    assert state.knowledge is not None
    try:
        stops = reached_from(state.knowledge.stops, event.condition, event.value, event.branch, event.detail)
    except ValueError as error:
        raise ProtocolError(str(error)) from error
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    knowledge = changed(state.knowledge, stops=stops)
    return changed(state, next_seq=out.seq, knowledge=knowledge), out.then()


def counted(before: State, after: State, event: ev.Event, commands: Commands) -> tuple[State, Commands]:
    """Return the state and the commands with what an event counts, and all that a stop brings that it reached."""
    knowledge = after.knowledge
    assert knowledge is not None
    assert knowledge.stops is not None
    known = before.knowledge.stops if before.knowledge is not None else None
    stops = _with(knowledge.stops, before, after, event, commands)
    fresh = stops.reached[len(known.reached) if known is not None else 0 :]
    if stops is not knowledge.stops:
        after = changed(after, knowledge=changed(knowledge, stops=stops))
    if not fresh:
        return after, commands
    out = Writing(after)
    for one in fresh:
        if not isinstance(event, ev.StopReached):
            out.node(NodeKind.INTERRUPT, after.apm_node, "monitor", _payload(one))
        after = _dropped(after, out, one)
    after, more = go_on(changed(after, next_seq=out.seq), out)
    ends = next((one for one in fresh if one.ends_all), None)
    ending = () if ends is None else (cmd.EndCommand(condition=ends.condition, why=said(ends)),)
    return after, (*commands, *more, *ending)


def _with(stops: Stops, before: State, after: State, event: ev.Event, commands: Commands) -> Stops:
    match event:
        case ev.ExchangeRecorded():
            model = event.answered_as or event.model
            tokens = (event.prompt_tokens, event.completion_tokens)
            stops = with_turn(stops, "", model, *tokens, answered=not event.fault)
        case ev.TurnTaken():
            stops = with_turn(stops, event.branch, event.model, event.prompt_tokens, event.completion_tokens)
        case ev.ToolReturned() | ev.ResponseReceived() if event.outcome is not Outcome.DONE:
            if (item := before.flying.get(event.effect_id)) is not None:
                stops = with_failures(stops, branch_of(item.effect), 1)
        case ev.RequestMade() if (latest := after.latest) is not None and latest is not before.latest:
            found = stop_for(stops, latest.effect)
            if found is not None and latest.verdict.decision is Decision.REFUSE:
                stops = with_reached(stops, found)
        case _:
            pass
    if after.phase is not Phase.RUNNING:
        return stops
    for command in commands:
        if isinstance(command, cmd.TurnAway) and not command.exception.violated_rule.startswith(STOP):
            stops = with_failures(stops, _branch_in(command.effect_id, after, before), 1)
    return stops


def _branch_in(effect_id: str, *states: State) -> str:
    for state in states:
        items: Iterable[Decided] = (
            *((state.latest,) if state.latest is not None else ()),
            *state.opened,
            *state.parked,
            *(one.item for one in state.waiting),
        )
        for item in items:
            if item.effect.id == effect_id:
                return branch_of(item.effect)
    return ""


def _payload(one: Reached) -> dict[str, object]:
    payload: dict[str, object] = {
        "stop": one.condition.value,
        "value": one.value,
        "limit": one.limit,
        "reason": said(one),
    }
    if one.branch:
        payload["branch"] = one.branch
    return payload


def _dropped(state: State, out: Writing, stop: Reached) -> State:
    """Turn away all that waits where a stop holds: what hangs on an answer, and calls that a program would make later.

    Holds: what is under way is left alone, and so is what the principal released as one with files. A parked request of
    a command stays, as its changes of files do: the command's end holds them for the principal.
    """
    told = _told(stop)
    under_way = state.sending[:1] if state.living is None else state.sending

    def falls(item: Decided) -> bool:
        return stop.holds_in(branch_of(item.effect))

    waiting = tuple(one for one in state.waiting if not one.inside and falls(one.item))
    parked = tuple(
        one
        for one in state.parked
        if one.effect.tool is not None and falls(one) and one.effect.id not in under_way
    )
    opened = tuple(one for one in state.opened if falls(one))
    for item in (*opened, *(one.item for one in waiting), *parked):
        node: int | None = None
        if item.verdict.decision is not Decision.DEFER:
            node = out.node(
                NodeKind.RESOLUTION,
                state.apm_node,
                "monitor",
                {"effect": item.effect.id, "reason": told.rationale},
                verdict=Decision.REFUSE.value,
            )
        state = turn_away(state, out, item, told, node)
    gone = {one.effect.id for one in parked}
    return changed(
        state,
        sending=tuple(one for one in state.sending if one not in gone),
        opened=tuple(one for one in state.opened if one not in opened),
        waiting=tuple(one for one in state.waiting if one not in waiting),
        parked=tuple(one for one in state.parked if one not in parked),
    )


def _told(stop: Reached) -> SemanticException:
    return SemanticException(
        type=ExceptionType.STOP,
        violated_rule=STOP + stop.condition.value,
        rationale=said(stop),
        constraints=("what waited for an answer was not done",),
        allowed_objective="end the task now, and say in your answer what is done and what is left",
    )
