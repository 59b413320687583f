"""The resolution of a scope: listed, decided, asked about, and handed to the commit; over files and parked requests.

The same functions serve the scope at the command's end and one that is resolved while the command lives
(`State.living`); where the two differ, it is said at the place.
"""

from interlock import policy as rules
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.records import changed
from interlock.model.redactions import Redacted
from interlock.model.verdicts import Decision, SemanticException
from interlock.monitor import parking
from interlock.monitor.closure import needs_of, unmet, with_needed
from interlock.monitor.codec import event_payload, plain
from interlock.monitor.committing import FILES, REQUESTS, at, nothing_to_commit, over, requests_first
from interlock.monitor.exceptions import (
    refused_by_answer,
    refused_conflict,
    refused_discarded,
    refused_with,
)
from interlock.monitor.redacting import redacted
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import (
    Commands,
    ProtocolError,
    Writing,
    blocked_node,
    check_nodes,
    oracle_actor,
)


def listing(state: State, out: Writing) -> tuple[State, Commands]:
    """Begin: what is staged is listed anew."""
    state = at(
        changed(state, next_seq=out.seq, batches=(), released=(), refused=(), blends=(), redactions=()),
        Phase.LISTING,
    )
    if state.living is None:
        state = changed(state, flying={}, opened=(), resolving=(), sending=(), waiting=())
    return state, out.then(cmd.ListChanges(living=state.living is not None))


def changes_listed(state: State, event: ev.ChangesListed) -> tuple[State, Commands]:
    """Decide a batch of staged changes; after the last one, go on."""
    assert state.policy is not None
    assert state.knowledge is not None
    out = Writing(state)
    call = out.node(NodeKind.TOOL_CALL, state.apm_node, "agent", event_payload(event))
    if event.changes:
        effects = rules.characterise(state.policy, state.knowledge, event.changes, state.proposed + 1)
        verdicts = rules.decide(state.policy, state.knowledge, effects)
        deciding = check_nodes(out, call, verdicts)
        batch = tuple(
            _theirs(state, Decided(effect=effect, verdict=verdict, node=deciding[verdict.effect_id]))
            for effect, verdict in zip(effects, verdicts, strict=True)
        )
        for item in batch:
            if item.verdict.decision is Decision.DEFER:
                out.node(
                    NodeKind.DEFERRED,
                    item.node,
                    "monitor",
                    {"effect": item.effect.id, "object": item.effect.object, "reason": item.verdict.reason},
                    verdict=Decision.DEFER.value,
                )
        refused = tuple(item for item in batch if item.verdict.decision is Decision.REFUSE)
        for item in refused:
            assert item.verdict.exception is not None
            blocked_node(out, item, item.verdict.exception)
        state = changed(
            state,
            proposed=state.proposed + len(batch),
            batches=(*state.batches, batch),
            refused=(*state.refused, *refused),
        )
    state = changed(state, next_seq=out.seq)
    if not event.last:
        return state, out.then()
    return _ready(state, out)


def _theirs(state: State, item: Decided) -> Decided:
    """Refuse a conflict where the principal said beforehand that the host's version stays."""
    if state.conflict_choice is not ev.OnConflict.THEIRS or not _is_conflict(item.effect):
        return item
    if item.verdict.decision is Decision.REFUSE:
        return item
    exception = refused_conflict(item.effect, "the principal said that the host's version stays")
    return changed(item, verdict=changed(item.verdict, decision=Decision.REFUSE, exception=exception))


def _is_conflict(effect: Effect) -> bool:
    return effect.change is not None and effect.change.host_edit is not None


def _ready(state: State, out: Writing) -> tuple[State, Commands]:
    """All effects are decided: resolve the scope, or leave it open."""
    items = state.decided()
    if state.selection:
        named = {item.effect.id for item in items if state.names(item.effect)}
        state = changed(state, selected=with_needed(named, needs_of(items)))
    elif state.living is not None:
        # What the command does from now on belongs to the next scope.
        state = changed(state, selected=frozenset(item.effect.id for item in items))
    if state.living is not None and state.selected is not None:
        late = {
            item.effect.id for item in items if item.effect.change is not None and item.effect.change.waits
        }
        state = changed(state, selected=state.selected - late)
    deferred = state.with_decision(Decision.DEFER)
    conflicts = tuple(item for item in deferred if _is_conflict(item.effect))
    if conflicts and state.conflict_choice is ev.OnConflict.REFUSE:
        out.node(
            NodeKind.INTERRUPT,
            state.apm_node,
            "monitor",
            {"conflicts": [item.effect.id for item in conflicts], "reason": "the host changed them too"},
        )
        return _hold(state, out, conflicts=tuple(item.effect.object for item in conflicts))
    if state.resolver == "hold":
        return _hold(state, out)
    if deferred:
        return at(state, Phase.DEFERRED), out.then(
            cmd.Ask(oracle=state.resolver, deferred=parking.asked_about(deferred))
        )
    return _resolve(state, out, released=())


def _hold(state: State, out: Writing, *, conflicts: tuple[str, ...] = ()) -> tuple[State, Commands]:
    """Leave the scope open."""
    state = changed(state, next_seq=out.seq)
    if state.living is not None:
        why = f"the host changed {len(conflicts)} of these places too" if conflicts else ""
        return over(state), out.then(cmd.EndScope(held=True, why=why))
    return changed(state, phase=Phase.HELD), out.then(cmd.Hold(conflicts=conflicts))


def oracle_answered(state: State, event: ev.OracleAnswered) -> tuple[State, Commands]:
    """Take the oracle's word on the scope, within its bounds: silence, nonsense and anything unasked refuse."""
    out = Writing(state)
    node = out.node(NodeKind.RESOLUTION, state.apm_node, oracle_actor(event.oracle), event_payload(event))
    if event.leave_open:
        return _hold(state, out)
    # Bounded: only what was deferred can be answered, and the first answer on an effect stands.
    answers: dict[str, ev.Answer] = {}
    for answer in event.answers:
        answers.setdefault(answer.effect_id, answer)
    deferred = state.with_decision(Decision.DEFER)
    answers = rules.with_twins(answers, rules.asked_once((item.effect for item in deferred), whole=True))
    released: list[str] = []
    blends: list[cmd.Blend] = []
    redactions: list[Redacted] = []
    refused: list[Decided] = []
    for item in state.with_decision(Decision.DEFER):
        given = answers.get(item.effect.id)
        wrong = _wrong(item.effect, given)
        if given is not None and given.decision is Decision.RELEASE and not event.fault and not wrong:
            if given.redact:
                made = redacted(state, out, item, event, node)
                if isinstance(made, SemanticException):
                    refused.append(_refused(out, item, made))
                else:
                    released.append(item.effect.id)
                    redactions.append(made)
                continue
            released.append(item.effect.id)
            assert state.knowledge is not None
            state = changed(state, knowledge=state.knowledge.with_grant(item.effect, node))
            if given.hunks or given.merge:
                blends.append(cmd.Blend(effect_id=item.effect.id, hunks=given.hunks, merge=given.merge))
            continue
        if _is_conflict(item.effect):
            exception = refused_conflict(item.effect, wrong or event.fault or (given.reason if given else ""))
        else:
            exception = refused_by_answer(state.policy, item, event, given, wrong)
        refused.append(_refused(out, item, exception))
    state = changed(
        state,
        next_seq=out.seq,
        refused=(*state.refused, *refused),
        blends=tuple(blends),
        redactions=tuple(redactions),
    )
    return _resolve(state, out, released=tuple(released))


def _refused(out: Writing, item: Decided, exception: SemanticException) -> Decided:
    blocked_node(out, item, exception)
    return changed(item, verdict=changed(item.verdict, decision=Decision.REFUSE, exception=exception))


def _wrong(effect: Effect, answer: ev.Answer | None) -> str:
    """Say what makes a release no answer to this effect, `""` where nothing does."""
    if answer is None or answer.decision is not Decision.RELEASE:
        return ""
    if _is_conflict(effect) and not answer.merge:
        return "the host changed it too, and only the merge of both may be released"
    if answer.merge and not _is_conflict(effect):
        return "there is nothing to merge it with"
    if answer.redact and (answer.hunks or answer.merge):
        return "what is redacted is neither merged nor released by hunks"
    if answer.hunks and (effect.change is None or answer.merge):
        return "it has no hunks that could be released alone"
    return ""


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
    everything = tuple(
        item.effect.id for item in items if item.effect.id in chosen and item.effect.id not in fallen
    )
    kept = set(everything)
    state = changed(
        state,
        next_seq=out.seq,
        refused=(*state.refused, *refused),
        blends=tuple(blend for blend in state.blends if blend.effect_id in kept),
    )
    if not everything:
        return nothing_to_commit(state, out)
    payload: dict[str, object] = {"intent": "commit", "effects": list(everything)}
    if state.redactions:
        payload["redacted"] = [one.effect.id for one in state.redactions]
    if state.blends:
        payload["blends"] = [plain(blend) for blend in state.blends]
    out.node(NodeKind.RESOLUTION, state.apm_node, "monitor", payload, verdict=Decision.RELEASE.value)
    parts = (REQUESTS, FILES) if requests_first(state) else (FILES, REQUESTS)
    state = changed(state, next_seq=out.seq, released=everything, parts=parts)
    return at(state, Phase.INTENDED), out.then(
        cmd.RecordIntent(released=everything, blends=state.blends, prepare=parts[0] == FILES)
    )


def asked(state: State, event: ev.ResolutionAsked) -> tuple[State, Commands]:
    """Resolve the scope while the command lives.

    Raises: ProtocolError, if one is being resolved already.
    """
    if state.living is not None or state.resolving or state.sending:
        raise ProtocolError("a scope is being resolved already")
    out = Writing(state)
    out.node(NodeKind.RESOLUTION, state.apm_node, "principal", event_payload(event))
    state = changed(
        state,
        living=Phase.LISTING,
        living_oracle=event.oracle,
        living_conflict=event.on_conflict,
        selection=event.selection,
        selected=None,
        objected=(),
        next_seq=out.seq,
    )
    return _discard_living(state, out) if event.discard else listing(state, out)


def _discard_living(state: State, out: Writing) -> tuple[State, Commands]:
    """Drop all that is staged and parked; the labels that this scope's grants gave go with it."""
    state = parking.drop_parked(state, out)
    assert state.knowledge is not None
    knowledge = changed(state.knowledge, grants=state.knowledge.grants[: state.grants_kept])
    state = changed(state, knowledge=knowledge, batches=(), refused=(), blends=(), next_seq=out.seq)
    told = cmd.Notify(refusals=(("", "all that was staged", refused_discarded()),))
    return changed(state, living=Phase.DISCARDING), out.then(told, cmd.PutBack(effects=None))
