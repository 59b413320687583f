"""The commit of a scope, once it is resolved: intent, files and parked requests in their order, and what is stuck.

The law: `Commit` and `Send` are given only after `IntentRecorded`, which comes only when the intent is durable.
"""

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Channel
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.records import changed
from interlock.model.requests import Outcome
from interlock.model.verdicts import Decision
from interlock.monitor import parking
from interlock.monitor.codec import event_payload
from interlock.monitor.exceptions import refused_after, refused_hunks
from interlock.monitor.planned import merged
from interlock.monitor.redacting import redacted_as_told
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import Commands, ProtocolError, Writing, blocked_node

FILES, REQUESTS = "files", "requests"


def at(state: State, phase: Phase) -> State:
    """Return the state with the scope's resolution standing at a phase."""
    return changed(state, living=phase) if state.living is not None else changed(state, phase=phase)


def over(state: State) -> State:
    """Return the state of a living command with no scope under resolution."""
    return changed(
        state, living=None, selection=(), selected=None, released=(), blends=(), parts=(), sending=()
    )


def requests_first(state: State) -> bool:
    """Say whether the policy wants the parked requests sent before the files are merged."""
    return state.policy is not None and state.policy.requests_first


def nothing_to_commit(state: State, out: Writing) -> tuple[State, Commands]:
    """End a scope of which nothing is released."""
    state = changed(state, next_seq=out.seq)
    if state.living is not None:
        return _settle_view(state, out)
    if state.selection:
        return changed(state, phase=Phase.HELD, selection=(), selected=None), out.then(
            *_notices(state), cmd.Hold()
        )
    return changed(state, phase=Phase.DISCARDING), out.then(*_notices(state), cmd.Discard())


def _notices(state: State) -> Commands:
    told = [
        (item.effect.id, item.effect.object, item.verdict.exception)
        for item in state.refused
        if item.verdict.exception is not None
    ]
    partly = {blend.effect_id: blend for blend in state.blends if blend.hunks}
    told += [
        (item.effect.id, item.effect.object, refused_hunks(item.effect, partly[item.effect.id].hunks))
        for item in state.decided()
        if item.effect.id in partly
    ]
    refused = {effect_id for effect_id, _object, _exception in told}
    told += [redacted_as_told(one) for one in state.redactions if one.effect.id not in refused]
    return (cmd.Notify(refusals=tuple(told)),) if told else ()


def intent_recorded(state: State, event: ev.IntentRecorded) -> tuple[State, Commands]:
    """The intent is durable: now, and only now, what was released becomes visible."""
    if event.released != state.released:
        raise ProtocolError("the recorded intent is not the one that was asked for")
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "monitor", event_payload(event))
    return _advance(state, out)


def _advance(state: State, out: Writing) -> tuple[State, Commands]:
    """Begin the next part of the commit: the files as one, or the parked requests in their order."""
    parts = state.parts
    while parts:
        part, parts = parts[0], parts[1:]
        effects = state.released_of(files=part == FILES)
        if not effects:
            continue
        state = changed(state, parts=parts, next_seq=out.seq)
        if part == FILES:
            late = requests_first(state)
            commit = cmd.Commit(released=effects, blends=state.blends if late else (), prepare=late)
            return at(state, Phase.COMMITTING), out.then(commit)
        state = changed(state, sending=effects, attempt=1)
        return at(state, Phase.SENDING), out.then(parking.send_of(state, effects[0]))
    return _done(changed(state, parts=()), out)


def scope_committed(state: State, event: ev.ScopeCommitted) -> tuple[State, Commands]:
    """The released changes of files are on the host."""
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "monitor", event_payload(event))
    state = changed(merged(state, event.applied), committed=state.committed + len(event.applied))
    return _advance(state, out)


def sent(state: State, event: parking.Returned) -> tuple[State, Commands]:
    """Take the outcome of a parked request of the scope.

    Where one did not succeed the scope is stuck: neither failed nor done, until the principal chooses. A living command
    cannot wait for that: what was to follow is refused, and told.
    """
    out = Writing(state)
    if event.outcome is not Outcome.DONE and state.living is None:
        (item,) = (one for one in state.parked if one.effect.id == event.effect_id)
        state, _node = parking.came_back(state, out, item, event)
        return changed(state, phase=Phase.STUCK, stuck_on=event.effect_id, next_seq=out.seq), out.then(
            cmd.Hold(stuck=event.effect_id)
        )
    state = parking.sent(state, out, event)
    return _send_on(state, out)


def _send_on(state: State, out: Writing) -> tuple[State, Commands]:
    if state.sending:
        state = changed(state, attempt=1, next_seq=out.seq)
        return at(state, Phase.SENDING), out.then(parking.send_of(state, state.sending[0]))
    return _advance(state, out)


def stuck_settled(state: State, event: ev.StuckSettled) -> tuple[State, Commands]:
    """Go on after a request that did not succeed, as the principal chose."""
    if not state.stuck_on or event.effect_id != state.stuck_on:
        raise ProtocolError("no such request is stuck")
    out = Writing(state)
    node = out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    state = changed(state, stuck_on="", phase=Phase.SENDING, next_seq=out.seq)
    if event.choice is ev.StuckChoice.RETRY:
        attempt = state.attempt + 1
        return changed(state, attempt=attempt), out.then(parking.send_of(state, event.effect_id, attempt))
    left = tuple(item for item in state.parked if item.effect.id != event.effect_id)
    state = changed(state, parked=left, sending=state.sending[1:])
    if event.choice is ev.StuckChoice.SKIP:
        return _send_on(state, out)
    dropped = set(state.sending)
    if FILES in state.parts:
        dropped |= set(state.released_of(files=True))
    refused: list[Decided] = []
    for item in state.decided():
        if item.effect.id in dropped:
            exception = refused_after(item.effect, event.effect_id)
            blocked_node(out, item, exception, node)
            verdict = changed(item.verdict, decision=Decision.REFUSE, exception=exception)
            refused.append(changed(item, verdict=verdict))
    state = changed(
        state,
        refused=(*state.refused, *refused),
        parked=tuple(item for item in state.parked if item.effect.id not in dropped),
        sending=(),
        parts=(),
    )
    return _done(state, out)


def _done(state: State, out: Writing) -> tuple[State, Commands]:
    """All that was released is out."""
    state = changed(state, next_seq=out.seq)
    if state.living is not None:
        return _settle_view(state, out)
    if state.selection:
        return changed(state, phase=Phase.HELD, selection=(), selected=None, released=()), out.then(
            *_notices(state), cmd.Hold()
        )
    return changed(state, phase=Phase.DISCARDING), out.then(*_notices(state), cmd.Discard())


def _settle_view(state: State, out: Writing) -> tuple[State, Commands]:
    """Let a living command see the host's files where its own changes were refused, wholly or in part."""
    refused = {item.effect.id for item in state.refused} | {blend.effect_id for blend in state.blends}
    parked = tuple(item for item in state.parked if item.effect.id not in refused)
    places = tuple(
        item.effect.id
        for item in state.decided()
        if item.effect.id in refused and item.effect.channel is Channel.FILE
    )
    notices = _notices(state)
    assert state.knowledge is not None
    state = changed(state, parked=parked, grants_kept=len(state.knowledge.grants))
    if not places:
        return over(state), out.then(*notices, cmd.EndScope(held=False))
    return changed(state, living=Phase.DISCARDING), out.then(*notices, cmd.PutBack(effects=places))


def view_restored(state: State, event: ev.ViewRestored) -> tuple[State, Commands]:
    """The living command sees the host's files again; what could not be put back stays staged, and is said."""
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "monitor", event_payload(event))
    state = changed(over(state), next_seq=out.seq)
    why = f"{len(event.left)} places could not be put back" if event.left else ""
    return state, out.then(cmd.EndScope(held=bool(event.left), why=why))


def commit_failed(state: State, event: ev.CommitFailed) -> tuple[State, Commands]:
    """Nothing was merged, or it is stuck between: then recovery ends it.

    Raises: ProtocolError, if a merge is said to be stuck whose intent is not on record.
    """
    if not event.rolled_back and Phase.INTENDED in (state.phase, state.living):
        raise ProtocolError("no merge can be stuck before its intent is recorded")
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    state = changed(state, next_seq=out.seq)
    if state.living is not None:
        state = over(state) if event.rolled_back else changed(state, living=Phase.STUCK)
        return state, out.then(cmd.EndScope(held=True, why=event.reason))
    if event.rolled_back:
        return changed(
            state, phase=Phase.HELD, released=(), parts=(), blends=(), selection=(), selected=None
        ), out.then(cmd.Hold())
    # `released` stays: recovery needs to know what the unfinished merge was.
    return changed(state, phase=Phase.STUCK), out.then(cmd.Hold())
