"""The state of the fold: everything the next decision may depend on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from interlock.model.commands import Blend
from interlock.model.effects import Channel, Effect
from interlock.model.events import OnConflict
from interlock.model.phases import Phase
from interlock.model.places import Root
from interlock.model.records import dataclass
from interlock.model.redactions import Redacted
from interlock.model.verdicts import Decision, SemanticException, Verdict
from interlock.policy import Knowledge, Policy
from interlock.policy.tools.pinning import NO_PINS, Pins


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """An effect with its verdict and the node that recorded it.

    Takes: `node`, the seq of the deciding check (parent of what follows: deferred, blocked, resolution);
    `call`, the seq of the node that proposed it.
    """

    effect: Effect
    verdict: Verdict
    node: int
    call: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A request that holds a placeholder: what the placeholder stands for is settled first.

    Takes: `subjects`, the parked requests that it hangs on; `inside`, whether it asks the boundary itself for the
    answer of one.
    """

    item: Decided
    subjects: tuple[str, ...]
    inside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Objected:
    """A refusal that says which check failed, of an effect that was asked about while the command runs.

    Takes: `kind`, of effects for which corrections are counted; `question`, by which the same is known again; `node`,
    of the answer; `attempt`, 1 for a first proposal, one more for each correction.
    """

    kind: str
    question: tuple[object, ...] | None
    node: int
    attempt: int
    exception: SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands after the events so far.

    Holds: `batches` are the decided effects of the current listing, in order of proposal; `released`, while
    a commit is under way, are the effects it merges and sends; `refused` are the final refusals of this listing.
    Of the network: `flying` have left and are not yet answered; `opened` wait for an oracle while the command runs;
    `parked` wait for the scope's end; `resolving` are those of them that the oracle is asked about in mid-run,
    `sending` those that leave now, in order; `waiting` hang on a parked one. Of a scope that is resolved while the
    command lives: `living` is where its resolution stands, while `phase` stays RUNNING.
    """

    phase: Phase = Phase.NEW
    next_seq: int = 0
    run_id: str = ""
    task: str = ""
    argv: tuple[str, ...] = ()
    started_at_ns: str = ""
    roots: tuple[Root, ...] = ()
    oracle: str = ""
    policy: Policy | None = None
    knowledge: Knowledge | None = None
    degraded: tuple[str, ...] = ()
    root_node: int = 0
    apm_node: int = 0
    proposed: int = 0
    batches: tuple[tuple[Decided, ...], ...] = ()
    latest: Decided | None = None
    """What the last request or message came to."""
    flying: Mapping[str, Decided] = field(default_factory=dict)
    """By effect id, in the order in which they left; never changed in place: a step copies it."""
    opened: tuple[Decided, ...] = ()
    parked: tuple[Decided, ...] = ()
    resolving: tuple[str, ...] = ()
    sending: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    objected: tuple[Objected, ...] = ()
    """Since the command began, or since the principal last had a scope resolved."""
    turned_away: int = 0
    """How many requests were refused while the command ran."""
    selection: tuple[str, ...] = ()
    selected: frozenset[str] | None = None
    """The effects to resolve now, with all that they need; None for every one."""
    released: tuple[str, ...] = ()
    blends: tuple[Blend, ...] = ()
    """Of the released changes those that are merged in part, or together with the host's own edit."""
    redactions: tuple[Redacted, ...] = ()
    """Of the parked requests that were released those that leave redacted."""
    parts: tuple[str, ...] = ()
    """What of the commit is still to begin: files, requests."""
    attempt: int = 1
    """Which attempt at `sending[0]` is under way."""
    stuck_on: str = ""
    """The parked request that did not succeed, until the principal chooses how to go on."""
    on_conflict: OnConflict = OnConflict.ASK
    living: Phase | None = None
    living_oracle: str = ""
    living_conflict: OnConflict = OnConflict.ASK
    grants_kept: int = 0
    """How many grants were there when the present scope began: a discard takes back the later ones."""
    refused: tuple[Decided, ...] = ()
    committed: int = 0
    """How many effects were merged or sent so far."""
    exit_code: int = -1
    exit_signal: int = 0
    interruption: str = ""
    discarding: bool = False
    given_up: str = ""
    """Why a merge that is neither done nor undone was left as it is by the principal."""

    @property
    def resolver(self) -> str:
        """Return who resolves the scope that is being resolved."""
        return self.oracle if self.living is None else self.living_oracle

    @property
    def conflict_choice(self) -> OnConflict:
        """Return what is done about conflicts in the scope that is being resolved."""
        return self.on_conflict if self.living is None else self.living_conflict

    @property
    def pins(self) -> Pins:
        """Return the tools that were offered so far."""
        return NO_PINS if self.knowledge is None else self.knowledge.pins

    def redacted(self, effect_id: str) -> Redacted | None:
        """Return how a parked request leaves that is redacted, None for one that leaves as it is."""
        return next((one for one in self.redactions if one.effect.id == effect_id), None)

    def decided(self) -> tuple[Decided, ...]:
        """Return the effects of the scope: parked requests, then the current listing, in order of proposal."""
        return (*self.parked, *(item for batch in self.batches for item in batch))

    def released_of(self, *, files: bool) -> tuple[str, ...]:
        """Return the released changes of files, or the released requests and calls, in order of proposal."""
        wanted = set(self.released)
        return tuple(
            item.effect.id
            for item in self.decided()
            if item.effect.id in wanted and (item.effect.channel is Channel.FILE) is files
        )

    def with_decision(self, decision: Decision) -> tuple[Decided, ...]:
        """Return the selected effects of the scope that have this decision."""
        return tuple(
            item for item in self.decided() if item.verdict.decision is decision and self.selects(item.effect)
        )

    def selects(self, effect: Effect) -> bool:
        """Tell whether the effect is to be resolved now (`apply RUN PATH…`), or stays held."""
        return self.selected is None or effect.id in self.selected

    def names(self, effect: Effect) -> bool:
        """Tell whether the selection names the effect: its id, its place or URL, or a folder above it."""
        return any(
            wanted in (effect.id, effect.object)
            or (effect.object.startswith(wanted) and wanted.endswith(":"))
            or effect.object.startswith(wanted + "/")
            for wanted in self.selection
        )
