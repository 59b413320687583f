"""A run told effect by effect: what was decided, by whom, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum

from interlock.model import events as ev
from interlock.model.effects import Effect
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, SemanticException, Verdict
from interlock.monitor import Decided, event_from_payload, is_event
from interlock.runtime import folders as runs
from interlock.verify import read_nodes
from interlock.verify.replay import Replayed, replay


class Fate(Enum):
    """What became of an effect."""

    COMMITTED = "committed"
    REFUSED = "refused"
    DISCARDED = "discarded"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStory:
    """One effect from proposal to end.

    Takes: `node`, the seq of its deciding check; `resolved_by`, the oracle, "" where the policy alone
    decided; `resolution`, the oracle's reason; `exception`, what the agent was told of a refusal.
    """

    effect: Effect
    verdict: Verdict
    node: int
    fate: Fate
    resolved_by: str = ""
    resolution: str = ""
    exception: SemanticException | None = None


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
    nodes: int = 0

    def with_fate(self, fate: Fate) -> list[EffectStory]:
        """Return the effects with this fate, in order of proposal."""
        return [item for item in self.effects.values() if item.fate is fate]


def tell(path: str) -> RunStory:
    """Read a run's ledger and tell it.

    Raises: IntegrityError if the ledger is not what the fold gives.
    """
    story = RunStory(folder=runs.load(path))
    for event, item in _events(story.folder.ledger):
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
                story.reads.extend(str(read.place) for read in event.reads)
            case ev.ActivityLost():
                story.lost = event.reason
            case ev.CommandExited():
                story.exited = event
            case ev.ChangesListed():
                _listed(story, item.state.batches[-1] if event.changes else ())
            case ev.OracleAnswered():
                _answered(story, event)
            case ev.ScopeCommitted():
                for effect_id in event.applied:
                    _end(story, effect_id, Fate.COMMITTED)
            case ev.ScopeDiscarded():
                for effect_id, record in story.effects.items():
                    if record.fate is Fate.HELD:
                        _end(story, effect_id, Fate.DISCARDED)
            case ev.Interrupted():
                story.interruptions.append(f"{event.trigger}: {event.detail}")
            case ev.Faulted():
                story.interruptions.append(f"fault in {event.where}: {event.reason}")
            case ev.CommitFailed():
                story.interruptions.append(f"commit failed: {event.reason}")
            case ev.Resumed():
                # The listing is made anew, so what was only staged before is told again.
                for effect_id in [key for key, value in story.effects.items() if value.fate is Fate.HELD]:
                    del story.effects[effect_id]
            case ev.IntentRecorded() | ev.DiscardRequested():
                pass
    return story


def _events(ledger: str) -> Iterator[tuple[ev.Event | None, Replayed]]:
    for item in replay(read_nodes(ledger)):
        payload = item.node.payload
        assert payload is not None
        yield (event_from_payload(payload) if is_event(payload) else None), item


def _listed(story: RunStory, batch: tuple[Decided, ...]) -> None:
    for decided in batch:
        verdict = decided.verdict
        refused = verdict.decision is Decision.REFUSE
        story.effects[verdict.effect_id] = EffectStory(
            effect=decided.effect,
            verdict=verdict,
            node=decided.node,
            fate=Fate.REFUSED if refused else Fate.HELD,
            exception=verdict.exception,
        )


def _answered(story: RunStory, event: ev.OracleAnswered) -> None:
    if event.leave_open:
        return
    given: dict[str, ev.Answer] = {}
    for one in event.answers:
        given.setdefault(one.effect_id, one)
    for effect_id, record in story.effects.items():
        if record.fate is not Fate.HELD or record.verdict.decision is not Decision.DEFER:
            continue
        answer = given.get(effect_id)
        released = answer is not None and answer.decision is Decision.RELEASE and not event.fault
        reason = event.fault or (answer.reason if answer is not None else "no answer")
        story.effects[effect_id] = replace(
            record,
            fate=Fate.HELD if released else Fate.REFUSED,
            resolved_by=event.oracle,
            resolution=reason,
        )


def _end(story: RunStory, effect_id: str, fate: Fate) -> None:
    story.effects[effect_id] = replace(story.effects[effect_id], fate=fate)
