"""A run told effect by effect: what was decided, by whom, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum

from interlock.model import events as ev
from interlock.model.effects import Effect, Reach
from interlock.model.inferences import Inference
from interlock.model.manifest import Manifest
from interlock.model.moves import Moved, moved_effects
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.model.requests import NetResponse, Outcome
from interlock.model.verdicts import Decision, SemanticException, Verdict
from interlock.monitor import Decided, State, event_from_payload, is_event
from interlock.policy.announced_ties import Tie
from interlock.policy.grants import asked_once, with_twins
from interlock.policy.stopping import STOP, Stops, said
from interlock.runtime import folders as runs
from interlock.runtime.naming_actions import tie_of, ties_of
from interlock.verify import read_nodes
from interlock.verify.replay import Replayed, replay


class Fate(Enum):
    """What became of an effect."""

    COMMITTED = "committed"
    REFUSED = "refused"
    DISCARDED = "discarded"
    HELD = "held"
    SENT = "sent"
    """A request left, and its whole answer came."""
    FAILED = "failed"
    """A request did not reach the far side."""
    UNKNOWN = "unknown"
    """A request was cut off: the far side may have taken it."""


_OUTCOMES = {Outcome.DONE: Fate.SENT, Outcome.FAILED: Fate.FAILED, Outcome.UNKNOWN: Fate.UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStory:
    """One effect from proposal to end.

    Takes: `node`, the seq of its deciding check; `resolved_by`, the oracle, "" where the policy alone
    decided; `resolution`, the oracle's reason; `votes`, of a panel who of it said what; `exception`, what the agent was
    told of a refusal; `response`, what came back for a request; `at`, seq of the node that first shows it: a request's
    own, a file's first seen write, -1 for none; `moved`, where it is one end of a file's move; `tie`, how it stands to
    the model's calls, None where nothing is to be said of it.
    """

    effect: Effect
    verdict: Verdict
    node: int
    fate: Fate
    resolved_by: str = ""
    resolution: str = ""
    votes: tuple[ev.Vote, ...] = ()
    exception: SemanticException | None = None
    response: NetResponse | None = None
    at: int = -1
    moved: Moved | None = None
    tie: Tie | None = None


@dataclass(slots=True)
class RunStory:
    """A whole run as its ledger tells it.

    Takes: `reads`, places that the agent read, in order of their first read; `lost`, why file events are
    missing, if they are.
    """

    folder: runs.RunFolder
    task: ev.TaskGiven | None = None
    stood: ev.BoundaryStood | None = None
    phase: Phase = Phase.NEW
    exited: ev.CommandExited | None = None
    effects: dict[str, EffectStory] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    lost: str = ""
    interruptions: list[str] = field(default_factory=list)
    unreadable: list[ev.TrafficRefused] = field(default_factory=list)
    """Traffic that could not be read, and so went nowhere."""
    manifest: Manifest | None = None
    """The plan that it followed, None for none."""
    taken: frozenset[str] = frozenset()
    """The ids of the steps of the plan that were taken."""
    stops: Stops | None = None
    """What counted towards a stop."""
    denied: list[ev.CallDenied] = field(default_factory=list)
    """System calls that the kernel denied, since the manifest does not authorise them."""
    thrown_away: int = 0
    """Files that the command wrote in HOME where nothing is kept."""
    thrown: tuple[str, ...] = ()
    """The first of them, as paths below HOME."""
    nodes: int = 0
    writes: dict[str, int] = field(default_factory=dict)
    """Place -> seq of the node that first shows a write there."""
    inferences: list[Inference] = field(default_factory=list)
    """Calls of models by oracles, in order."""
    exchanges: list[ev.ExchangeRecorded] = field(default_factory=list)
    """Exchanges of the agent with its own model, in order."""
    listed: list[ev.ToolsListed] = field(default_factory=list)
    """What was offered of tools, in order, where it was new."""

    def with_fate(self, fate: Fate) -> list[EffectStory]:
        """Return the effects with this fate, in order of proposal."""
        return [item for item in self.effects.values() if item.fate is fate]


def tell(path: str) -> RunStory:
    """Read a run's ledger and tell it.

    Raises: IntegrityError if the ledger is not what the fold gives.
    """
    story = RunStory(folder=runs.load(path))
    discarding = False
    hanging: set[str] = set()
    for event, item in events_of(story.folder.ledger):
        story.nodes = item.node.seq + 1
        story.phase = item.state.phase
        if event is None:
            continue
        match event:
            case ev.TaskGiven():
                story.task = event
            case ev.BoundaryStood():
                story.stood = event
            case ev.ActivityObserved():
                story.reads.extend(str(read.place) for read in event.reads if read.closed)
                for write in event.writes:
                    story.writes.setdefault(str(write.place), item.node.seq)
            case ev.ActivityLost():
                story.lost = story.lost if event.listed else event.reason
            case ev.RequestMade() | ev.MessageMade() | ev.ToolCalled():
                _proposed(story, item.state)
            case ev.ResponseReceived() | ev.ToolReturned():
                _came_back(story, event, item.state)
            case ev.TrafficRefused():
                story.unreadable.append(event)
            case ev.CallDenied():
                story.denied.append(event)
            case ev.CommandExited():
                story.exited = event
            case ev.ChangesListed():
                _listed(story, item.state.batches[-1] if event.changes else (), item.state)
                if event.last:
                    story.thrown_away, story.thrown = event.thrown_away, event.thrown
                    _moved(story, item.state)
            case ev.ModelAsked():
                story.inferences.append(event.inference)
            case ev.OracleAnswered():
                _answered(story, event, item.state)
                _refused_in(story, item.state)
            case ev.StuckSettled():
                _refused_in(story, item.state)
            case ev.ViewRestored():
                _view_restored(story, item.state, discarding=discarding)
                discarding = False
            case ev.ScopeCommitted():
                for effect_id in event.applied:
                    _end(story, effect_id, Fate.COMMITTED)
                    # A later write there is another effect, of a later scope.
                    story.writes.pop(story.effects[effect_id].effect.object, None)
            case ev.ScopeDiscarded():
                for effect_id, record in story.effects.items():
                    if record.fate is Fate.HELD:
                        is_unknown = (
                            item.state.given_up
                            and record.effect.change is not None
                            and effect_id in item.state.released
                        )
                        _end(story, effect_id, Fate.UNKNOWN if is_unknown else Fate.DISCARDED)
            case ev.StopReached() | ev.TurnTaken():
                pass  # told of below, with what the fold counted itself
            case ev.Interrupted() if event.trigger.startswith(STOP):
                pass
            case ev.Interrupted():
                story.interruptions.append(f"{event.trigger}: {event.detail}")
            case ev.Faulted():
                story.interruptions.append(f"fault in {event.where}: {event.reason}")
            case ev.CommitFailed():
                story.interruptions.append(f"commit failed: {event.reason}")
            case ev.ResolutionAsked() if event.discard:
                discarding = True
                _view_restored(story, item.state, discarding=True)
            case ev.Resumed() | ev.ResolutionAsked():
                # The listing is made anew, so what was only staged before is told again.
                for effect_id, record in list(story.effects.items()):
                    if record.fate is Fate.HELD and record.effect.change is not None:
                        del story.effects[effect_id]
            case ev.ToolsListed():
                story.listed.append(event)
            case ev.ExchangeRecorded():
                story.exchanges.append(event)
            case ev.ActionsAnnounced() | ev.IntentRecorded() | ev.DiscardRequested():
                pass
        hanging = _hanging(story, item.state, hanging)
        if (known := item.state.knowledge) is not None:
            if known.manifest is not None:
                story.manifest, story.taken = known.manifest, known.progress.taken
            if known.stops is not None and known.stops is not story.stops:
                before = len(story.stops.reached) if story.stops is not None else 0
                story.stops = known.stops
                story.interruptions += [
                    f"{STOP}{one.condition.value}: {said(one)}" for one in known.stops.reached[before:]
                ]
    return story


def events_of(ledger: str) -> Iterator[tuple[ev.Event | None, Replayed]]:
    """Yield the nodes of a ledger, folded again, with the event that each records, None for what follows from one.

    Raises: IntegrityError, if the ledger is not what the fold gives.
    """
    for item in replay(read_nodes(ledger)):
        payload = item.node.payload
        assert payload is not None
        yield (event_from_payload(payload) if is_event(payload) else None), item


def _listed(story: RunStory, batch: tuple[Decided, ...], state: State) -> None:
    ties = ties_of(state, (decided.effect for decided in batch))
    for decided in batch:
        verdict = decided.verdict
        refused = verdict.decision is Decision.REFUSE
        story.effects[verdict.effect_id] = EffectStory(
            effect=decided.effect,
            verdict=verdict,
            node=decided.node,
            fate=Fate.REFUSED if refused else Fate.HELD,
            exception=verdict.exception,
            at=story.writes.get(decided.effect.object, -1),
            tie=ties.get(verdict.effect_id),
        )


def _moved(story: RunStory, state: State) -> None:
    """Tell of a whole listing which of its files were moved."""
    moves = moved_effects(decided.effect for batch in state.batches for decided in batch)
    for effect_id, moved in moves.items():
        story.effects[effect_id] = replace(story.effects[effect_id], moved=moved)


def _proposed(story: RunStory, state: State) -> None:
    """Tell of a request or message at the boundary: refused, held, or left with no answer on record yet."""
    decided = state.latest
    if decided is None:
        return
    effect, verdict = decided.effect, decided.verdict
    if verdict.decision is Decision.REFUSE:
        fate = Fate.REFUSED
    elif verdict.decision is Decision.DEFER or decided in state.parked or _hangs(state, effect):
        fate = Fate.HELD
    elif effect.message is None and effect.id not in state.flying:
        fate = Fate.REFUSED  # it held a placeholder of what is settled
    else:
        fate = Fate.SENT if effect.message is not None else Fate.UNKNOWN
    story.effects[effect.id] = EffectStory(
        effect=effect,
        verdict=verdict,
        node=decided.node,
        fate=fate,
        exception=verdict.exception,
        at=decided.call,
        tie=tie_of(state, effect),
    )


def _hangs(state: State, effect: Effect) -> bool:
    return any(one.item.effect.id == effect.id for one in state.waiting)


def _hanging(story: RunStory, state: State, before: set[str]) -> set[str]:
    """Tell of what held a placeholder and hangs on it no more: it never left. Returns: what still hangs on one."""
    now = {one.item.effect.id for one in state.waiting if not one.inside}
    for effect_id in before - now:
        record = story.effects[effect_id]
        if record.fate is Fate.HELD and effect_id not in state.flying:
            story.effects[effect_id] = replace(record, fate=Fate.REFUSED, resolution="it held a placeholder")
    return now


def _refused_in(story: RunStory, state: State) -> None:
    """Tell of what fell with another effect, or stayed behind one."""
    for item in state.refused:
        record = story.effects.get(item.effect.id)
        if record is not None and record.fate is Fate.HELD:
            exception = item.verdict.exception
            story.effects[item.effect.id] = replace(
                record,
                fate=Fate.REFUSED,
                exception=exception,
                resolution=exception.rationale if exception is not None else "",
            )


def _view_restored(story: RunStory, state: State, *, discarding: bool) -> None:
    """Tell what a living command's discard dropped."""
    parked = {item.effect.id for item in state.parked}
    for effect_id, record in story.effects.items():
        if discarding and record.fate is Fate.HELD and effect_id not in parked:
            _end(story, effect_id, Fate.DISCARDED)


def _came_back(story: RunStory, event: ev.ResponseReceived | ev.ToolReturned, state: State) -> None:
    """Tell how a request or call came back; where a parked one failed, those after it were refused with it."""
    record = story.effects.get(event.effect_id)
    response = event.response if isinstance(event, ev.ResponseReceived) else None
    if record is not None:
        story.effects[event.effect_id] = replace(record, fate=_OUTCOMES[event.outcome], response=response)
    if record is None or record.fate is not Fate.HELD or event.outcome is Outcome.DONE:
        return
    parked = {item.effect.id for item in state.parked}
    for effect_id, other in story.effects.items():
        # What was parked and is neither settled nor parked any more went down with it.
        if other.fate is Fate.HELD and other.effect.reach is Reach.PARKABLE and effect_id not in parked:
            why = f"{event.effect_id} before it did not succeed"
            story.effects[effect_id] = replace(other, fate=Fate.REFUSED, resolution=why)


def _answered_now(story: RunStory, event: ev.OracleAnswered, state: State) -> None:
    """Tell what an oracle said while the command ran, on requests that waited or were parked."""
    given = {one.effect_id: one for one in reversed(event.answers)}
    parked = {item.effect.id for item in state.parked}
    # of equal ones that waited one was asked about, and its answer was that of all
    held = [one.effect for one in _open(story) if one.effect.id in event.asked or one.effect.id not in parked]
    standing = asked_once((one for one in held if one.id not in parked), whole=False)
    standing |= asked_once((one for one in held if one.id in parked), whole=True)
    given = with_twins(given, standing)
    for effect_id in (*event.asked, *(twin for twin, one in standing.items() if twin != one in event.asked)):
        record = story.effects.get(effect_id)
        if record is None or record.fate is not Fate.HELD:
            continue
        answer = given.get(effect_id)
        silent = event.fault or event.leave_open
        released = not silent and answer is not None and answer.decision is Decision.RELEASE
        if released and answer is not None and answer.redact:
            released = effect_id in state.flying  # else it could not be redacted
        if effect_id in parked:
            fate = Fate.HELD
        elif released:
            fate = Fate.SENT if record.effect.message is not None else Fate.UNKNOWN
        else:
            fate = Fate.REFUSED
        story.effects[effect_id] = replace(
            record,
            fate=fate,
            resolved_by=event.oracle,
            votes=tuple(vote for vote in event.votes if effect_id in vote.effects),
            resolution=_said(event, answer),
        )


def _said(event: ev.OracleAnswered, answer: ev.Answer | None) -> str:
    """Return the reason of an answer in words, and that it had the request leave redacted."""
    if event.fault or answer is None:
        return event.fault or "no answer"
    return f"redacted: {answer.reason}" if answer.redact else answer.reason


def _open(story: RunStory) -> list[EffectStory]:
    """Return the deferred effects that are not resolved yet."""
    return [
        one
        for one in story.effects.values()
        if one.fate is Fate.HELD and one.verdict.decision is Decision.DEFER
    ]


def _answered(story: RunStory, event: ev.OracleAnswered, state: State) -> None:
    if event.asked:
        _answered_now(story, event, state)
        return
    if event.leave_open:
        return
    given: dict[str, ev.Answer] = {}
    for one in event.answers:
        given.setdefault(one.effect_id, one)
    given = with_twins(given, asked_once((one.effect for one in _open(story)), whole=True))
    for effect_id, record in story.effects.items():
        if record.fate is not Fate.HELD or record.verdict.decision is not Decision.DEFER:
            continue
        answer = given.get(effect_id)
        released = answer is not None and answer.decision is Decision.RELEASE and not event.fault
        reason = _said(event, answer)
        story.effects[effect_id] = replace(
            record,
            fate=Fate.HELD if released else Fate.REFUSED,
            resolved_by=event.oracle,
            votes=tuple(vote for vote in event.votes if effect_id in vote.effects),
            resolution=reason,
        )


def _end(story: RunStory, effect_id: str, fate: Fate) -> None:
    story.effects[effect_id] = replace(story.effects[effect_id], fate=fate)
