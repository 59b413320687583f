"""The state of the fold: everything the next decision may depend on, and nothing else."""

from __future__ import annotations

from interlock.model.effects import Effect
from interlock.model.phases import Phase
from interlock.model.places import Root
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, Verdict
from interlock.policy import Knowledge, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """An effect with its verdict and the node that recorded it.

    Takes: `node`, the seq of the deciding check (parent of what follows: deferred, blocked, resolution).
    """

    effect: Effect
    verdict: Verdict
    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands after the events so far.

    Holds: `batches` are the decided effects of the current listing, in order of proposal; `released`, while
    a commit is under way, are the effects it merges; `refused` are the final refusals of this listing.
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
    selection: tuple[str, ...] = ()
    selected: frozenset[str] | None = None
    """The effects to resolve now, with all that they need; None for every one."""
    released: tuple[str, ...] = ()
    refused: tuple[Decided, ...] = ()
    committed: int = 0
    """How many effects were merged in earlier resolutions of this run."""
    exit_code: int = -1
    exit_signal: int = 0
    interruption: str = ""
    discarding: bool = False

    def decided(self) -> tuple[Decided, ...]:
        """Return the effects of the current listing in order of proposal."""
        return tuple(item for batch in self.batches for item in batch)

    def with_decision(self, decision: Decision) -> tuple[Decided, ...]:
        """Return the selected effects of the current listing that have this decision."""
        return tuple(
            item
            for batch in self.batches
            for item in batch
            if item.verdict.decision is decision and self.selects(item.effect)
        )

    def selects(self, effect: Effect) -> bool:
        """Tell whether the effect is to be resolved now (`apply RUN PATH…`), or stays held."""
        return self.selected is None or effect.id in self.selected

    def names(self, effect: Effect) -> bool:
        """Tell whether the selection names the effect's place or a folder above it."""
        return any(
            effect.object == wanted or wanted.endswith(":") or effect.object.startswith(wanted + "/")
            for wanted in self.selection
            if effect.object.startswith(wanted)
        )
