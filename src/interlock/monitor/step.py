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
from interlock.model.nodes import NodeKind
from interlock.model.phases import ALLOWED, LIVING, Phase
from interlock.model.records import changed
from interlock.monitor import committing, parking, scope, stopping, traffic
from interlock.monitor.codec import event_payload
from interlock.monitor.planned import denied, planned
from interlock.monitor.state import State
from interlock.monitor.writing import Commands, ProtocolError, Writing, oracle_actor

_OF_SCOPE = frozenset(
    one.__name__ for one in (cmd.ListChanges, cmd.RecordIntent, cmd.Commit, cmd.PutBack, cmd.EndScope)
)
"""Commands whose failure ends a living command's scope, and not the command."""


def step(state: State, event: ev.Event) -> tuple[State, Commands]:
    """Take one event.

    Returns: the next state, and the commands to perform in order; the runtime stops at the first that fails
    and tells so by an event.
    Raises: ProtocolError if the event cannot come in this phase (`model.phases.ALLOWED`).
    """
    if isinstance(event, ev.OracleAnswered) and event.inferences:
        return _with_inferences(state, event)
    stage = state.phase if state.living is None else state.living
    if type(event) not in ALLOWED[state.phase] and (
        state.living is None or type(event) not in LIVING[state.living]
    ):
        raise ProtocolError(
            f"`{type(event).__name__}` cannot come while the run is {state.phase.value}",
            hint="report this with the run's ledger: interlock show RUN --json",
        )
    if not _settles(state, stage, event):
        raise ProtocolError(
            f"`{type(event).__name__}` does not settle what is stuck",
            hint=f"interlock recover {state.run_id}",
        )
    after, commands = _take(state, event, stage)
    if after.knowledge is not None and after.knowledge.stops is not None:
        after, commands = stopping.counted(state, after, event, commands)
    if state.living is not None and after.living is None and after.phase is Phase.RUNNING and after.waiting:
        # Who hangs on a parked request had to wait until the scope was over.
        out = Writing(after)
        after, more = parking.go_on(after, out)
        commands = (*commands, *more)
    return after, commands


def _take(state: State, event: ev.Event, stage: Phase) -> tuple[State, Commands]:
    match event:
        # First what comes most often: each case costs a look.
        case ev.RequestMade():
            return traffic.request_made(state, event)
        case ev.ToolCalled():
            return traffic.tool_called(state, event)
        case ev.ResponseReceived() | ev.ToolReturned():
            return _returned(state, event)
        case ev.ActivityObserved() | ev.ActivityLost() | ev.LabelsKnown():
            return _activity(state, event)
        case ev.MessageMade():
            return traffic.message_made(state, event)
        case ev.ActionsAnnounced() | ev.ExchangeRecorded():
            return traffic.exchange_told(state, event)
        case ev.ToolsListed():
            return traffic.tools_listed(state, event)
        case ev.TaskGiven():
            return _task_given(state, event)
        case ev.BoundaryStood():
            return _boundary_stood(state, event)
        case ev.TrafficRefused():
            return traffic.traffic_refused(state, event)
        case ev.CallDenied():
            return _call_denied(state, event)
        case ev.TurnTaken():
            return stopping.turn_taken(state, event)
        case ev.StopReached():
            return stopping.stop_reached(state, event)
        case ev.CommandExited():
            return _command_exited(state, event)
        case ev.ChangesListed():
            return scope.changes_listed(state, event)
        case ev.ModelAsked():
            return _model_asked(state, event)
        case ev.OracleAnswered() if stage is Phase.RUNNING or event.asked:
            return traffic.answered(state, event)
        case ev.OracleAnswered():
            return scope.oracle_answered(state, event)
        case ev.IntentRecorded():
            return committing.intent_recorded(state, event)
        case ev.ScopeCommitted():
            return committing.scope_committed(state, event)
        case ev.CommitFailed():
            return committing.commit_failed(state, event)
        case ev.ResolutionAsked():
            return scope.asked(state, event)
        case ev.ViewRestored():
            return committing.view_restored(state, event)
        case ev.GrantChanged():
            return _grant_changed(state, event)
        case ev.StuckSettled():
            return committing.stuck_settled(state, event)
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
    manifest = planned(event.manifest, state.task) if event.manifest else None
    out = Writing(state)
    node = out.node(NodeKind.APM, state.root_node, "monitor", event_payload(event))
    return changed(
        state,
        phase=Phase.RUNNING,
        next_seq=out.seq,
        roots=event.roots,
        oracle=event.oracle,
        on_conflict=event.on_conflict,
        degraded=event.degraded,
        policy=policy,
        knowledge=rules.Knowledge.started(policy, state.task, state.root_node, event.roots, manifest),
        apm_node=node,
    ), out.then()


def _call_denied(state: State, event: ev.CallDenied) -> tuple[State, Commands]:
    """Write down what the kernel denied, as any action that a guard refused. Holds: nothing else changes."""
    out = Writing(state)
    call = out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
    denied(out, call, event)
    return changed(state, next_seq=out.seq), out.then()


def _activity(
    state: State, event: ev.ActivityObserved | ev.ActivityLost | ev.LabelsKnown
) -> tuple[State, Commands]:
    assert state.policy is not None
    assert state.knowledge is not None
    out = Writing(state)
    actor = "monitor" if isinstance(event, ev.LabelsKnown) else "agent"
    node = out.node(NodeKind.TOOL_OUTPUT, state.apm_node, actor, event_payload(event))
    if isinstance(event, ev.ActivityObserved):
        knowledge = state.knowledge.with_activity(state.policy, event, node)
    elif isinstance(event, ev.LabelsKnown):
        knowledge = state.knowledge.with_labels(state.policy, event)
    else:
        knowledge = state.knowledge.with_unknown_reads(state.policy, listed=event.listed)
    return changed(state, next_seq=out.seq, knowledge=knowledge), out.then()


def _grant_changed(state: State, event: ev.GrantChanged) -> tuple[State, Commands]:
    assert state.knowledge is not None
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    try:
        knowledge = state.knowledge.with_grant_change(event)
    except rules.GrantError as error:
        raise ProtocolError(str(error)) from error
    return changed(state, next_seq=out.seq, knowledge=knowledge), out.then()


def _command_exited(state: State, event: ev.CommandExited) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "agent", event_payload(event))
    if state.phase is Phase.HELD:
        return changed(state, exit_code=event.code, exit_signal=event.signal, next_seq=out.seq), out.then()
    stuck = state.living is Phase.STUCK
    state = traffic.ended(changed(state, exit_code=event.code, exit_signal=event.signal), out)
    if stuck:
        # A merge of the living command's is neither done nor undone: recovery ends it before anything else.
        return changed(state, living=None, phase=Phase.STUCK, next_seq=out.seq), out.then(cmd.Hold())
    return scope.listing(committing.over(state), out)


def _model_asked(state: State, event: ev.ModelAsked) -> tuple[State, Commands]:
    """Write down that an oracle asked a model. Holds: nothing else changes."""
    out = Writing(state)
    out.node(NodeKind.INFERENCE, state.apm_node, oracle_actor(event.inference.oracle), event_payload(event))
    return changed(state, next_seq=out.seq), out.then()


def _with_inferences(state: State, event: ev.OracleAnswered) -> tuple[State, Commands]:
    """Take each call of a model before the answer that it led to.

    Each is an event of its own, so that a ledger that was cut off between them folds like any other.
    """
    calls: Commands = ()
    for inference in event.inferences:
        state, more = step(state, ev.ModelAsked(inference=inference))
        calls = (*calls, *more)
    after, commands = step(state, changed(event, inferences=()))
    return after, (*calls, *commands)


def _returned(state: State, event: parking.Returned) -> tuple[State, Commands]:
    if event.effect_id not in state.sending[:1]:
        return traffic.returned(state, event)
    if state.phase is Phase.SENDING or state.living is Phase.SENDING:
        return committing.sent(state, event)
    out = Writing(state)
    state = parking.sent(state, out, event)
    if state.sending:
        return changed(state, next_seq=out.seq), out.then(parking.send_of(state, state.sending[0]))
    return parking.go_on(state, out)


def _settles(state: State, stage: Phase, event: ev.Event) -> bool:
    """Say whether an event fits what is stuck: a parked request is settled, a merge ended or given up."""
    if isinstance(event, ev.DiscardRequested) and event.given_up:
        return stage in (Phase.INTENDED, Phase.COMMITTING, Phase.STUCK) and not state.stuck_on
    if state.phase is Phase.STUCK:
        return isinstance(event, ev.StuckSettled | ev.DiscardRequested) == bool(state.stuck_on)
    return not (isinstance(event, ev.DiscardRequested) and state.phase in (Phase.INTENDED, Phase.COMMITTING))


def _scope_discarded(state: State, event: ev.ScopeDiscarded) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.TOOL_OUTPUT, state.apm_node, "monitor", event_payload(event))
    outcome = outcome_of(state)
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


def outcome_of(state: State) -> str:
    """Return what a run came to, as its seal says it."""
    if state.given_up:
        return "unknown"
    return "discarded" if state.discarding else "committed" if state.committed else "nothing-committed"


def _interrupted(state: State, event: ev.Interrupted) -> tuple[State, Commands]:
    """Stop here: what is staged is kept, and nothing of it leaves without a later word of the principal."""
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    state = changed(traffic.ended(state, out), next_seq=out.seq, interruption=event.trigger)
    if state.phase is Phase.ASKED:
        return committing.nothing_to_commit(changed(state, selection=(), selected=None), out)
    return changed(committing.over(state), phase=Phase.HELD), out.then(cmd.Hold())


def _resumed(state: State, event: ev.Resumed) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    interruption = state.interruption
    if not interruption and state.phase is not Phase.HELD:
        interruption = f"cut off while {state.phase.value}"
    state = changed(
        state,
        oracle=event.oracle,
        on_conflict=event.on_conflict,
        selection=event.selection,
        selected=None,
        interruption=interruption,
        next_seq=out.seq,
    )
    if state.policy is None:
        return committing.nothing_to_commit(changed(state, selection=(), selected=None), out)
    if state.phase is Phase.SENDING:
        # Cut off among the parked requests: what was released still leaves, each at most once.
        return state, out.then(parking.send_of(state, state.sending[0], state.attempt))
    return scope.listing(changed(committing.over(state), selection=event.selection), out)


def _discard_requested(state: State, event: ev.DiscardRequested) -> tuple[State, Commands]:
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    return changed(
        state,
        phase=Phase.DISCARDING,
        discarding=True,
        given_up=event.given_up,
        selection=(),
        selected=None,
        sending=(),
        living=None,
        stuck_on="",
        next_seq=out.seq,
    ), out.then(cmd.Discard())


def _faulted(state: State, event: ev.Faulted) -> tuple[State, Commands]:
    """Fail closed: nothing that is undecided leaves; what is staged is kept for the principal."""
    out = Writing(state)
    out.node(NodeKind.INTERRUPT, state.apm_node, "monitor", event_payload(event))
    if state.living is not None and event.where in _OF_SCOPE:
        # The scope could not be resolved; the command goes on, and all of it is still staged.
        stuck = state.living is Phase.COMMITTING
        state = changed(state, living=Phase.STUCK) if stuck else committing.over(state)
        return changed(state, next_seq=out.seq), out.then(cmd.EndScope(held=True, why=event.reason))
    state = changed(
        traffic.ended(state, out), next_seq=out.seq, interruption=f"fault in {event.where}", living=None
    )
    match state.phase:
        case Phase.ASKED:
            return committing.nothing_to_commit(changed(state, selection=(), selected=None), out)
        case Phase.COMMITTING:
            return changed(state, phase=Phase.STUCK), out.then(cmd.Hold())
        case Phase.DISCARDING:
            # All is decided and done; what is left of the stage goes with the next process that takes the run up.
            return state, out.then()
        case _:
            return changed(state, phase=Phase.HELD, released=(), parts=(), blends=()), out.then(cmd.Hold())
