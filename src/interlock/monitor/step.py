"""The core: `step(state, event) -> (state, commands)`, pure and deterministic.

Every event becomes one node; what follows from it (checks, deferrals, refusals) becomes nodes derived from
it. So the ledger is the fold's own output, and folding its event nodes again must give every other node:
that is replay, and recovery reads its state the same way (DESIGN §3).

The law: `Commit` is given only on `IntentRecorded`, which comes only when the intent is durable.
"""

from hashlib import sha256
from typing import assert_never

from interlock import policy as rules
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Channel
from interlock.model.nodes import NodeKind
from interlock.model.phases import ALLOWED, Phase
from interlock.model.records import changed
from interlock.model.verdicts import Decision
from interlock.monitor import traffic
from interlock.monitor.closure import needs_of, unmet, with_needed
from interlock.monitor.codec import event_payload
from interlock.monitor.exceptions import refused_by_oracle, refused_with
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import Commands, ProtocolError, Writing, blocked_node, check_nodes


def step(state: State, event: ev.Event) -> tuple[State, Commands]:
    """Take one event.

    Returns: the next state, and the commands to perform in order; the runtime stops at the first that fails
    and tells so by an event.
    Raises: ProtocolError if the event cannot come in this phase (`model.phases.ALLOWED`).
    """
    if type(event) not in ALLOWED[state.phase]:
        raise ProtocolError(
            f"`{type(event).__name__}` cannot come while the run is {state.phase.value}",
            hint="report this with the run's ledger: interlock show RUN --json",
        )
    match event:
        case ev.TaskGiven():
            return _task_given(state, event)
        case ev.BoundaryStood():
            return _boundary_stood(state, event)
        case ev.ActivityObserved() | ev.ActivityLost():
            return _activity(state, event)
        case ev.RequestMade():
            return traffic.request_made(state, event)
        case ev.MessageMade():
            return traffic.message_made(state, event)
        case ev.ResponseReceived():
            return _response_received(state, event)
        case ev.TrafficRefused():
            return traffic.traffic_refused(state, event)
        case ev.CommandExited():
            return _command_exited(state, event)
        case ev.ChangesListed():
            return _changes_listed(state, event)
        case ev.OracleAnswered() if state.phase is Phase.RUNNING:
            return traffic.answered(state, event)
        case ev.OracleAnswered():
            return _oracle_answered(state, event)
        case ev.IntentRecorded():
            return _intent_recorded(state, event)
        case ev.ScopeCommitted():
            return _scope_committed(state, event)
        case ev.CommitFailed():
            return _commit_failed(state, event)
        case ev.ScopeDiscarded():
            return _scope_discarded(state, event)
        case ev.Interrupted():
            return _interrupted(state, event)
        case ev.Resumed():
            return _resumed(state, event)
        case ev.DiscardRequested():
            return _discard_requested(state, event)
        case ev.Faulted():
            return _faulted(state, event)
    assert_never(event)


def _task_given(state: State, event: ev.TaskGiven) -> tuple[State, Commands]:
    out = Writing(state)
    node = out.node(NodeKind.PROMPT, None, "principal", event_payload(event))
    return changed(
        state,
        phase=Phase.ASKED,
        next_seq=out.seq,
        run_id=event.run_id,
        task=event.task,
        argv=event.argv,
        started_at_ns=event.started_at_ns,
        root_node=node,
    ), out.then()


def _boundary_stood(state: State, event: ev.BoundaryStood) -> tuple[State, Commands]:
    if sha256(event.policy_text.encode()).hexdigest() != event.policy_digest:
        raise ProtocolError("the policy's digest is not that of its text")
    policy = rules.load_policy(event.policy_text, filename=event.policy_name)
    out = Writing(state)
    node = out.node(NodeKind.APM, state.root_node, "monitor", event_payload(event))
    return changed(
        state,
        phase=Phase.RUNNING,
        next_seq=out.seq,
        roots=event.roots,
        oracle=event.oracle,
        degraded=event.degraded,
        policy=policy,
        knowledge=rules.Knowledge.started(policy, state.task, state.root_node),
        apm_node=node,
    ), out.then()


def _activity(state: State, event: ev.ActivityObserved | ev.ActivityLost) -> tuple[State, Commands]:
    assert state.policy is not None
    assert state.knowledge is not None
    out = Writing(state)
    node = out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "agent", event_payload(event))
    if isinstance(event, ev.ActivityObserved):
        knowledge = state.knowledge.with_reads(state.policy, event.reads, node)
    else:
        knowledge = state.knowledge.with_unknown_reads(state.policy, listed=event.listed)
    return changed(state, next_seq=out.seq, knowledge=knowledge), out.then()


def _command_exited(state: State, event: ev.CommandExited) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "agent", event_payload(event))
    state = traffic.ended(changed(state, exit_code=event.code, exit_signal=event.signal), out)
    return _listing(state, out)


def _listing(state: State, out: Writing) -> tuple[State, Commands]:
    state = changed(
        state,
        phase=Phase.LISTING,
        next_seq=out.seq,
        batches=(),
        released=(),
        refused=(),
        flying={},
        opened=(),
        resolving=(),
        sending=(),
        waiting=(),
    )
    return state, out.then(cmd.ListChanges())


def _changes_listed(state: State, event: ev.ChangesListed) -> tuple[State, Commands]:
    assert state.policy is not None
    assert state.knowledge is not None
    out = Writing(state)
    if event.changes:
        effects = rules.characterise(state.policy, state.knowledge, event.changes, state.proposed + 1)
        verdicts = rules.decide(state.policy, state.knowledge, effects)
        call = out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
        deciding = check_nodes(out, call, verdicts)
        batch = tuple(
            Decided(effect=effect, verdict=verdict, node=deciding[verdict.effect_id])
            for effect, verdict in zip(effects, verdicts, strict=True)
        )
        refused = tuple(item for item in batch if item.verdict.decision is Decision.REFUSE)
        for item in batch:
            if item.verdict.decision is Decision.DEFER:
                out.node(
                    NodeKind.DEFERRED,
                    item.node,
                    "monitor",
                    {"effect": item.effect.id, "object": item.effect.object, "reason": item.verdict.reason},
                    verdict=Decision.DEFER.value,
                )
        for item in refused:
            assert item.verdict.exception is not None
            blocked_node(out, item, item.verdict.exception)
        state = changed(
            state,
            next_seq=out.seq,
            proposed=state.proposed + len(batch),
            batches=(*state.batches, batch),
            refused=(*state.refused, *refused),
        )
    else:
        out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
        state = changed(state, next_seq=out.seq)
    if not event.last:
        return state, out.then()
    return _scope_ready(state, out)


def _scope_ready(state: State, out: Writing) -> tuple[State, Commands]:
    """All effects are decided: resolve the scope, or leave it open."""
    if state.selection:
        items = state.decided()
        named = {item.effect.id for item in items if state.names(item.effect)}
        state = changed(state, selected=with_needed(named, needs_of(items)))
    if state.oracle == "hold":
        return changed(state, phase=Phase.HELD), out.then(cmd.Hold())
    deferred = state.with_decision(Decision.DEFER)
    if deferred:
        return changed(state, phase=Phase.DEFERRED), out.then(
            cmd.Ask(oracle=state.oracle, deferred=tuple((item.effect, item.verdict) for item in deferred))
        )
    return _resolve(state, out, released=())


def _oracle_answered(state: State, event: ev.OracleAnswered) -> tuple[State, Commands]:
    out = Writing(state)
    parent = state.apm_node
    out.node(NodeKind.RESOLUTION, parent, f"oracle:{event.oracle}", event_payload(event))
    if event.leave_open:
        return changed(state, phase=Phase.HELD, next_seq=out.seq), out.then(cmd.Hold())
    # Bounded: only what was deferred can be answered, and the first answer on an effect stands.
    answers: dict[str, ev.Answer] = {}
    for answer in event.answers:
        answers.setdefault(answer.effect_id, answer)
    released: list[str] = []
    refused: list[Decided] = []
    for item in state.with_decision(Decision.DEFER):
        given = answers.get(item.effect.id)
        if given is not None and given.decision is Decision.RELEASE and not event.fault:
            released.append(item.effect.id)
            continue
        reason = event.fault or (given.reason if given is not None else "no answer")
        exception = refused_by_oracle(state.policy, item.effect, item.verdict, event.oracle, reason)
        verdict = changed(item.verdict, decision=Decision.REFUSE, exception=exception)
        refused.append(changed(item, verdict=verdict))
        blocked_node(out, item, exception)
    state = changed(state, next_seq=out.seq, refused=(*state.refused, *refused))
    return _resolve(state, out, released=tuple(released))


def _resolve(state: State, out: Writing, released: tuple[str, ...]) -> tuple[State, Commands]:
    """Commit what policy and oracle released, as one; with nothing to commit, drop the staged copy."""
    chosen = set(released)
    chosen |= {item.effect.id for item in state.with_decision(Decision.RELEASE)}
    items = state.decided()
    fallen = unmet(chosen, needs_of(items))
    refused: list[Decided] = []
    for item in items:
        if item.effect.id in fallen:
            exception = refused_with(item.effect, fallen[item.effect.id])
            verdict = changed(item.verdict, decision=Decision.REFUSE, exception=exception)
            refused.append(changed(item, verdict=verdict))
            blocked_node(out, item, exception)
    state = changed(state, next_seq=out.seq, refused=(*state.refused, *refused))
    everything = tuple(
        item.effect.id for item in items if item.effect.id in chosen and item.effect.id not in fallen
    )
    if not everything:
        return _nothing_to_commit(state, out)
    out.node(
        NodeKind.RESOLUTION,
        state.apm_node,
        "monitor",
        {"intent": "commit", "effects": list(everything)},
        verdict=Decision.RELEASE.value,
    )
    return changed(state, phase=Phase.INTENDED, next_seq=out.seq, released=everything), out.then(
        cmd.RecordIntent(released=everything)
    )


def _nothing_to_commit(state: State, out: Writing) -> tuple[State, Commands]:
    if state.selection:
        return changed(state, phase=Phase.HELD, selection=(), selected=None, next_seq=out.seq), out.then(
            cmd.Hold()
        )
    return changed(state, phase=Phase.DISCARDING, next_seq=out.seq), out.then(*_notices(state), cmd.Discard())


def _notices(state: State) -> Commands:
    if not state.refused:
        return ()
    return (
        cmd.Notify(
            refusals=tuple(
                (item.effect.id, item.effect.object, item.verdict.exception)
                for item in state.refused
                if item.verdict.exception is not None
            )
        ),
    )


def _intent_recorded(state: State, event: ev.IntentRecorded) -> tuple[State, Commands]:
    if event.released != state.released:
        raise ProtocolError("the recorded intent is not the one that was asked for")
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "monitor", event_payload(event))
    files = _of_channel(state, Channel.FILE)
    if not files:
        return _files_done(state, out)
    return changed(state, phase=Phase.COMMITTING, next_seq=out.seq), out.then(cmd.Commit(released=files))


def _of_channel(state: State, channel: Channel) -> tuple[str, ...]:
    """Return the released effects of a channel in order."""
    wanted = set(state.released)
    return tuple(
        item.effect.id
        for item in state.decided()
        if item.effect.id in wanted and item.effect.channel is channel
    )


def _files_done(state: State, out: Writing) -> tuple[State, Commands]:
    """Files first, then the parked requests in their order (DESIGN §7)."""
    sending = _of_channel(state, Channel.NET)
    if not sending:
        return _scope_done(state, out)
    return changed(state, phase=Phase.SENDING, sending=sending, next_seq=out.seq), out.then(
        cmd.Send(effect_id=sending[0])
    )


def _response_received(state: State, event: ev.ResponseReceived) -> tuple[State, Commands]:
    if event.effect_id not in state.sending[:1]:
        return traffic.response_received(state, event)
    out = Writing(state)
    state = traffic.sent(state, out, event)
    if state.sending:
        return changed(state, next_seq=out.seq), out.then(cmd.Send(effect_id=state.sending[0]))
    if state.phase is Phase.RUNNING:
        return traffic.go_on(state, out)
    return _scope_done(state, out)


def _scope_committed(state: State, event: ev.ScopeCommitted) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "monitor", event_payload(event))
    return _files_done(changed(state, committed=state.committed + len(event.applied)), out)


def _scope_done(state: State, out: Writing) -> tuple[State, Commands]:
    state = changed(state, next_seq=out.seq)
    if state.selection:
        return changed(state, phase=Phase.HELD, selection=(), selected=None, released=()), out.then(
            *_notices(state), cmd.Hold()
        )
    return changed(state, phase=Phase.DISCARDING), out.then(*_notices(state), cmd.Discard())


def _commit_failed(state: State, event: ev.CommitFailed) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    if event.rolled_back:
        state = changed(state, phase=Phase.HELD, released=(), selection=(), selected=None, next_seq=out.seq)
    else:
        # `released` stays: recovery needs to know what the unfinished merge was.
        state = changed(state, phase=Phase.STUCK, next_seq=out.seq)
    return state, out.then(cmd.Hold())


def _scope_discarded(state: State, event: ev.ScopeDiscarded) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "monitor", event_payload(event))
    outcome = "discarded" if state.discarding else "committed" if state.committed else "nothing-committed"
    out.node(
        NodeKind.FINAL_OUTPUT,
        state.root_node,
        "monitor",
        {
            "outcome": outcome,
            "exit_code": state.exit_code,
            "exit_signal": state.exit_signal,
            "interruption": state.interruption,
            "committed": state.committed,
            "refused": len(state.refused) + state.turned_away,
        },
    )
    return changed(state, phase=Phase.CLOSED, next_seq=out.seq), out.then(cmd.Seal(outcome=outcome))


def _interrupted(state: State, event: ev.Interrupted) -> tuple[State, Commands]:
    """Stop here: what is staged is kept, and nothing of it leaves without a later word of the principal."""
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    state = changed(traffic.ended(state, out), next_seq=out.seq, interruption=event.trigger)
    if state.phase is Phase.ASKED:
        return _nothing_to_commit(changed(state, selection=(), selected=None), out)
    return changed(state, phase=Phase.HELD), out.then(cmd.Hold())


def _resumed(state: State, event: ev.Resumed) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    interruption = state.interruption
    if not interruption and state.phase is not Phase.HELD:
        interruption = f"cut off while {state.phase.value}"
    state = changed(
        state,
        oracle=event.oracle,
        selection=event.selection,
        selected=None,
        interruption=interruption,
        next_seq=out.seq,
    )
    if state.policy is None:
        return _nothing_to_commit(changed(state, selection=(), selected=None), out)
    if state.phase is Phase.SENDING:
        # Cut off among the parked requests: what was released still leaves, each at most once.
        return state, out.then(cmd.Send(effect_id=state.sending[0]))
    return _listing(state, out)


def _discard_requested(state: State, event: ev.DiscardRequested) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    return changed(
        state,
        phase=Phase.DISCARDING,
        discarding=True,
        selection=(),
        selected=None,
        sending=(),
        next_seq=out.seq,
    ), out.then(cmd.Discard())


def _faulted(state: State, event: ev.Faulted) -> tuple[State, Commands]:
    """Fail closed: nothing that is undecided leaves; what is staged is kept for the principal."""
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    state = changed(traffic.ended(state, out), next_seq=out.seq, interruption=f"fault in {event.where}")
    match state.phase:
        case Phase.ASKED:
            return _nothing_to_commit(changed(state, selection=(), selected=None), out)
        case Phase.COMMITTING:
            return changed(state, phase=Phase.STUCK), out.then(cmd.Hold())
        case _:
            return changed(state, phase=Phase.HELD, released=()), out.then(cmd.Hold())
