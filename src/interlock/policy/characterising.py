"""Changes become effects: what they steer by, what they carry, where they may go, and why they would run."""

from collections.abc import Sequence

from interlock.model.effects import ChangeKind, Channel, Effect, FileChange, Hazard, Reach, Value
from interlock.model.labels import Confidentiality
from interlock.policy.declaration import Policy
from interlock.policy.derivation import LINK_ROLE
from interlock.policy.executable import facets_of
from interlock.policy.provenance import Knowledge

STATE_CLEARANCE = Confidentiality.CRITICAL
"""Mediated state has the highest clearance: what lies there has not left. Source: KAIROS, policy."""


def characterise(
    policy: Policy, knowledge: Knowledge, changes: Sequence[FileChange], first: int
) -> tuple[Effect, ...]:
    """Return the effects of staged changes, one each, in order.

    Takes: `first`, the number of the first effect; ids are `e1`, `e2` …
    """
    carried = knowledge.read_level
    return tuple(
        _effect(policy, knowledge, change, f"e{number}", carried)
        for number, change in enumerate(changes, first)
    )


def _effect(
    policy: Policy, knowledge: Knowledge, change: FileChange, effect_id: str, carried: Confidentiality
) -> Effect:
    steering = [Value(role="path", text=change.place.path)]
    if change.kind is ChangeKind.RENAME and change.source is not None:
        steering.append(Value(role="source", text=change.source.path))
    if Hazard.OUTWARD_LINK in change.hazards and change.after is not None:
        steering.append(Value(role=LINK_ROLE, text=change.after.link_target))
    if change.kind is ChangeKind.DELETE:
        carried = Confidentiality.PUBLIC
    elif change.after_text:
        carried = max(carried, knowledge.level_in(change.after_text))
    return Effect(
        id=effect_id,
        channel=Channel.FILE,
        operation=f"file.{change.kind.value}",
        object=str(change.place),
        reach=Reach.STAGEABLE,
        steering=tuple(steering),
        carried=max(carried, policy.level_of(change.place)) if change.after is not None else carried,
        clearance=STATE_CLEARANCE,
        facets=facets_of(change),
        change=change,
    )
