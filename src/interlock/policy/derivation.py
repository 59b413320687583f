"""Derivations: which steering values come from something trusted, and by which rule.

The rules, each small enough to be checked again from the recorded text alone:
- `under-root`: a path of plain data below a folder that the principal gave to the run;
- `named-in-task`, `named-in-file`: the principal's words, or a file that the policy trusts, name the value.
"""

from collections.abc import Sequence

from interlock.model.effects import Channel, Effect, Hazard, Value
from interlock.model.places import WORKSPACE, Place
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import STATE_PREFIX, full_path
from interlock.policy.executable import cues_of, named_by_base
from interlock.policy.matching import find_token
from interlock.policy.provenance import Knowledge

UNDER_ROOT = "under-root"
NAMED_IN = "named-in-"
PATH_ROLES = frozenset({"path", "source"})
LINK_ROLE = "link-target"
Needle = tuple[str, tuple[str, ...]]
"""What to look for, and what may stand directly before it."""
MIN_VALUE_LENGTH = 4


def derive(knowledge: Knowledge, effect: Effect, value: Value) -> Derivation | None:
    """Return a derivation of one steering value, None where there is none.

    Holds: deterministic; the task is looked at first, then the trusted reads in their order.
    """
    if effect.channel is not Channel.FILE:
        return _named(knowledge, value, [(value.text, ())]) if _telling(value.text) else None
    change = effect.change
    if change is None or any(hazard is not Hazard.OUTWARD_LINK for hazard in change.hazards):
        # No word of the task makes a device or a set-id bit safe to merge unseen.
        return None
    if value.role == LINK_ROLE:
        return _named(knowledge, value, [(value.text, ())]) if _telling(value.text) else None
    if value.role not in PATH_ROLES:
        return None
    place = change.place if value.role == "path" else change.source
    if place is None or place.path != value.text:
        return None
    if not effect.facets and not change.hazards:
        if place.root == WORKSPACE or place.root.startswith(STATE_PREFIX):
            return Derivation(
                role=value.role, value=value.text, rule=UNDER_ROOT, node=knowledge.task_node, start=0, end=0
            )
        return None
    return _named_place(knowledge, effect, value, place)


def _named_place(knowledge: Knowledge, effect: Effect, value: Value, place: Place) -> Derivation | None:
    path = full_path(place)
    parts = path.split("/")
    heads: tuple[str, ...] = ("./",) if place.root == WORKSPACE else ("~/", "$home/", "./")
    needles: list[Needle] = [
        ("/".join(parts[start:]), heads if start == 0 else ()) for start in range(len(parts) - 1)
    ]
    kinds = {facet.kind for facet in effect.facets}
    base = parts[-1]
    # The base name must be enough for every kind that the change is of; a hazard alone has no such name.
    by_base = bool(kinds) and all(named_by_base(kind, path) for kind in kinds)
    needed = [cues_of(kind) for kind in sorted(kinds) if not named_by_base(kind, path)]
    base_needles: list[Needle] = []
    if kinds and (by_base or all(needed)):
        base_needles = [(base, heads if len(parts) == 1 else ())]
    return _named(knowledge, value, needles, base_needles, needed)


def _named(
    knowledge: Knowledge,
    value: Value,
    needles: Sequence[Needle],
    base_needles: Sequence[Needle] = (),
    cues: Sequence[tuple[str, ...]] = (),
) -> Derivation | None:
    for source in knowledge.sources:
        span = None
        for needle, heads in needles:
            span = find_token(source.text, needle, heads=heads)
            if span is not None:
                break
        if span is None and all(_any_cue(source.text, words) for words in cues):
            for needle, heads in base_needles:
                span = find_token(source.text, needle, heads=heads)
        if span is not None:
            return Derivation(
                role=value.role,
                value=value.text,
                rule=NAMED_IN + source.kind,
                node=source.node,
                start=source.offset + span[0],
                end=source.offset + span[1],
            )
    return None


def _any_cue(text: str, words: tuple[str, ...]) -> bool:
    return any(find_token(text, word) is not None for word in words)


def _telling(text: str) -> bool:
    return len(text.strip()) >= MIN_VALUE_LENGTH
