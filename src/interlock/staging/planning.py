"""The plan of a merge: the steps that turn the host's folders into what was released."""

from collections.abc import Collection, Mapping, Sequence

from interlock.model.dependencies import unmet
from interlock.model.effects import FileChange, FileType
from interlock.model.errors import InputError, IntegrityError
from interlock.model.places import Place
from interlock.staging.errors import ConflictError
from interlock.staging.layers import opened
from interlock.staging.merge_plan import MergePlan, Substitute, substituted, takes_substitute
from interlock.staging.root_planning import RootPlan
from interlock.staging.roots import StagedRoot

_SPECIAL = (FileType.SOCKET, FileType.CHARACTER_DEVICE, FileType.BLOCK_DEVICE)


def plan(
    roots: Sequence[StagedRoot],
    changes: Sequence[FileChange],
    released: Collection[FileChange | Place],
    substitutes: Mapping[Place, Substitute] | None = None,
) -> MergePlan:
    """Plan the merge of the released changes and check that the host still is as it was listed.

    Takes: `changes`, the complete listings of the roots, in their order; `released`, some of them, as
    changes or as places (a place stands for every change there); `substitutes`, by place, what released files
    hold instead of their staged bytes.
    Raises: InputError, where a released change cannot be merged without one that is not, or a substitute
    is for no released file; ConflictError, where the host differs from a `before`; IntegrityError where it
    cannot be read.
    """
    instead = substitutes or {}
    chosen = _chosen(changes, released)
    missing = unmet(changes, chosen)
    if missing:
        pairs = "; ".join(
            f"`{changes[index].place}` cannot be merged without `{changes[need].place}`"
            for index, need in missing[:5]
        )
        more = f" (and {len(missing) - 5} more)" if len(missing) > 5 else ""
        raise InputError(pairs + more, hint="release both, or refuse both")
    skipped = [i for i in sorted(chosen) if _is_special(changes[i])]
    picked = [substituted(changes[i], instead) for i in sorted(chosen) if not _is_special(changes[i])]
    for place in instead.keys() - {change.place for change in picked if takes_substitute(change)}:
        raise InputError(f"`{place}` is no released file, so nothing can stand for its bytes")
    planners: list[RootPlan] = []
    for number, root in enumerate(roots):
        mine = [change for change in picked if change.place.root == root.name]
        if not mine:
            continue
        listed = [change for change in changes if change.place.root == root.name]
        try:
            with opened(root) as opened_root:
                planners.append(RootPlan(opened_root, number, mine, listed, instead))
        except OSError as error:
            raise IntegrityError(
                f"root `{root.name}` cannot be read for the merge: {error.strerror}",
                hint="nothing was changed",
            ) from error
    conflicts = tuple(place for planner in planners for place in planner.conflicts)
    if conflicts:
        shown = ", ".join(f"`{place}`" for place in conflicts[:5])
        more = f" and {len(conflicts) - 5} more" if len(conflicts) > 5 else ""
        raise ConflictError(
            f"the host changed since the changes were listed: {shown}{more}",
            places=conflicts,
            hint="look at both sides, then list the changes again; nothing was merged",
        )
    return MergePlan(
        roots=tuple(roots),
        items=tuple(item for planner in planners for item in planner.items),
        takes=tuple(take for planner in planners for take in planner.sorted_takes()),
        puts=tuple(put for planner in planners for put in planner.puts),
        adjusts=tuple(adjust for planner in planners for adjust in planner.adjusts),
        restores=tuple(adjust for planner in planners for adjust in planner.restores),
        merged=tuple(change.place for change in picked),
        skipped=tuple(changes[i].place for i in skipped),
    )


def _chosen(changes: Sequence[FileChange], released: Collection[FileChange | Place]) -> frozenset[int]:
    places = {one for one in released if isinstance(one, Place)}
    keys = {(one.kind, one.place) for one in released if isinstance(one, FileChange)}
    known = {change.place for change in changes}
    for place in sorted((places | {place for _, place in keys}) - known, key=str):
        raise InputError(f"no staged change at `{place}`", hint="list the changes again")
    return frozenset(
        index
        for index, change in enumerate(changes)
        if change.place in places or (change.kind, change.place) in keys
    )


def _is_special(change: FileChange) -> bool:
    return change.after is not None and change.after.type in _SPECIAL
