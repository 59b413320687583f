"""Derivations: which steering values come from something trusted, and by which rule.

The rules, each small enough to be checked again from the recorded text alone:
- `under-root`: a path of plain data below a folder that the principal gave to the run;
- `named-in-task`, `named-in-file`: the principal's words, or a file that the policy trusts, name the value.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from interlock.model.effects import Channel, Effect, Facet, FileChange, Hazard, Value
from interlock.model.places import FOLDER_PREFIX, GIT_PREFIX, HOME, WORKSPACE, Place
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import STATE_PREFIX, full_path
from interlock.policy.derivations import names
from interlock.policy.executable import asks_in_words, change_of, cues_of, facets_of, named_by_base
from interlock.policy.matching import find_token
from interlock.policy.provenance import Knowledge
from interlock.policy.sources import Found, Source, Sources

UNDER_ROOT = "under-root"
NAMED_IN = "named-in-"
PATH_ROLES = frozenset({"path", "source"})
LINK_ROLE = "link-target"
_GIVEN = (STATE_PREFIX, FOLDER_PREFIX, GIT_PREFIX)
"""Roots beside the workspace that the principal gave to the run, in a policy or by where the command was started."""
Needle = tuple[str, tuple[str, ...]]
"""What to look for, and what may stand directly before it."""
MIN_VALUE_LENGTH = 4


def derive(knowledge: Knowledge, effect: Effect, value: Value) -> Derivation | None:
    """Return a derivation of one steering value, None where there is none.

    Holds: deterministic; the task is looked at first, then the trusted reads in their order.
    """
    if effect.channel is not Channel.FILE:
        return (
            _named(knowledge, value, [(value.text, ())], form=names.PHRASE) if _telling(value.text) else None
        )
    change = effect.change
    if change is None or any(hazard is not Hazard.OUTWARD_LINK for hazard in change.hazards):
        # No word of the task makes a device or a set-id bit safe to merge unseen.
        return None
    if value.role == LINK_ROLE:
        return (
            _named(knowledge, value, [(value.text, ())], form=names.PHRASE) if _telling(value.text) else None
        )
    if value.role not in PATH_ROLES:
        return None
    place = change.place if value.role == "path" else change.source
    if place is None or place.path != value.text:
        return None
    if not effect.facets and not change.hazards:
        if place.root in (WORKSPACE, HOME) or place.root.startswith(_GIVEN):
            return Derivation(
                role=value.role, value=value.text, rule=UNDER_ROOT, node=knowledge.task_node, start=0, end=0
            )
        return None
    if change.brings and value.role == "path":
        return _named_branch(knowledge, effect, value, change)
    return _named_place(knowledge, effect.facets, value, place)


def _named_branch(
    knowledge: Knowledge, effect: Effect, value: Value, change: FileChange
) -> Derivation | None:
    """Derive a branch whose commits bring what may run: all of that has to be named, and not the branch.

    What the branch is beside (it cannot be told what it holds; a hazard) has to be named as ever.
    """
    found: Derivation | None = None
    for one in change.brings:
        there = change_of(change, one)
        facets = facets_of(there)
        if not facets:
            continue
        found = _named_place(knowledge, facets, value, there.place)
        if found is None:
            return None
    own = facets_of(replace(change, brings=()))
    if own or change.hazards:
        return _named_place(knowledge, own, value, change.place)
    return found


def _named_place(
    knowledge: Knowledge, facets: Sequence[Facet], value: Value, place: Place
) -> Derivation | None:
    path = full_path(place)
    parts = path.split("/")
    at_home = place.root == HOME or place.root.startswith(STATE_PREFIX)
    heads: tuple[str, ...] = ("~/", "$home/", "./") if at_home else ("./",)
    needles: list[Needle] = [
        ("/".join(parts[start:]), heads if start == 0 else ()) for start in range(len(parts) - 1)
    ]
    kinds = {facet.kind for facet in facets}
    base = parts[-1]
    # The base name must be enough for every kind that the change is of; a hazard alone has no such name.
    by_base = bool(kinds) and all(named_by_base(kind, path) for kind in kinds)
    needed = [cues_of(kind) for kind in sorted(kinds) if not named_by_base(kind, path)]
    base_needles: list[Needle] = []
    if kinds and (by_base or all(needed)):
        base_needles = [(base, heads if len(parts) == 1 else ())]
    always = [cues_of(kind) for kind in sorted(kinds) if asks_in_words(kind)]
    return _named(knowledge, value, needles, base_needles, needed, always=always)


def _named(
    knowledge: Knowledge,
    value: Value,
    needles: Sequence[Needle],
    base_needles: Sequence[Needle] = (),
    cues: Sequence[tuple[str, ...]] = (),
    *,
    always: Sequence[tuple[str, ...]] = (),
    form: str = "",
) -> Derivation | None:
    sources = knowledge.sources
    fits: dict[int, bool] = {}
    for number, rank, found in heapq.merge(
        *(_ranked(sources, needle, rank) for rank, needle in enumerate([*needles, *base_needles])), key=_order
    ):
        if number not in fits:
            fits[number] = all(_any_cue(sources, number, words) for words in always)
        if not fits[number]:
            continue
        if rank < len(needles) or all(_any_cue(sources, number, words) for words in cues):
            return Derivation(
                role=value.role,
                value=value.text,
                rule=NAMED_IN + found.item.kind,
                node=found.item.node,
                start=found.item.offset + found.start,
                end=found.item.offset + found.end,
                pointer=found.item.pointer,
                form=form or (names.PATH_TAIL if rank < len(needles) else names.BASE_NAME),
            )
    return None


def _ranked(sources: Sources, needle: Needle, rank: int) -> Iterator[tuple[int, int, Found[Source]]]:
    text, heads = needle
    for found in sources.every(partial(find_token, value=text, heads=heads), text):
        yield found.number, rank, found


def _order(each: tuple[int, int, Found[Source]]) -> tuple[int, int]:
    return each[:2]


def _any_cue(sources: Sources, number: int, words: tuple[str, ...]) -> bool:
    return any(
        True for word in words for _ in sources.every(partial(find_token, value=word), word, only=number)
    )


def _telling(text: str) -> bool:
    return len(text.strip()) >= MIN_VALUE_LENGTH
