"""Staging: the exact diff of a staged layer, and its merge into the host as one.

Names are loaded on first use, since a run needs most of them only when its command has ended.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.staging.baseline import Baseline
    from interlock.staging.blending import blend, hunks_of, merged_diff
    from interlock.staging.copying import copy_tree
    from interlock.staging.errors import ConflictError, MergeFailedError
    from interlock.staging.hunks import Hunk, with_hunks
    from interlock.staging.keeping import KEEP_BYTES, Kept, drop_kept, kept, kept_bytes, write_file
    from interlock.staging.listing import count_below, list_changes
    from interlock.staging.living import shield, waits_for_the_end
    from interlock.staging.merge_plan import MergePlan, Substitute
    from interlock.staging.merging import apply, forget, give_up, prepare, recover
    from interlock.staging.planning import plan
    from interlock.staging.putting_back import PutBack, put_back
    from interlock.staging.removing import discard, remove_tree
    from interlock.staging.roots import StagedRoot
    from interlock.staging.snapshot import take_snapshot
    from interlock.staging.syscalls import syncfs
    from interlock.staging.textdiff import unified_diff
    from interlock.staging.three_sides import three_sides
    from interlock.staging.three_way import Merged, merge_three
    from interlock.staging.undo_entries import Deed
    from interlock.staging.undo_merge import Doing, close_undo, pending_undo, perform_undo
    from interlock.staging.undoing import UndoPlan, plan_undo
    from interlock.staging.unsaved import Unsaved

__all__ = [
    "KEEP_BYTES",
    "Baseline",
    "ConflictError",
    "Deed",
    "Doing",
    "Hunk",
    "Kept",
    "MergeFailedError",
    "MergePlan",
    "Merged",
    "PutBack",
    "StagedRoot",
    "Substitute",
    "UndoPlan",
    "Unsaved",
    "apply",
    "blend",
    "close_undo",
    "copy_tree",
    "count_below",
    "discard",
    "drop_kept",
    "forget",
    "give_up",
    "hunks_of",
    "kept",
    "kept_bytes",
    "list_changes",
    "merge_three",
    "merged_diff",
    "pending_undo",
    "perform_undo",
    "plan",
    "plan_undo",
    "prepare",
    "put_back",
    "recover",
    "remove_tree",
    "shield",
    "syncfs",
    "take_snapshot",
    "three_sides",
    "unified_diff",
    "waits_for_the_end",
    "with_hunks",
    "write_file",
]

_HOMES = {
    "Baseline": "baseline",
    "ConflictError": "errors",
    "Deed": "undo_entries",
    "Doing": "undo_merge",
    "Hunk": "hunks",
    "KEEP_BYTES": "keeping",
    "Kept": "keeping",
    "MergeFailedError": "errors",
    "MergePlan": "merge_plan",
    "Merged": "three_way",
    "PutBack": "putting_back",
    "StagedRoot": "roots",
    "Substitute": "merge_plan",
    "UndoPlan": "undoing",
    "Unsaved": "unsaved",
    "apply": "merging",
    "blend": "blending",
    "close_undo": "undo_merge",
    "copy_tree": "copying",
    "count_below": "listing",
    "discard": "removing",
    "drop_kept": "keeping",
    "forget": "merging",
    "give_up": "merging",
    "hunks_of": "blending",
    "kept": "keeping",
    "kept_bytes": "keeping",
    "list_changes": "listing",
    "merge_three": "three_way",
    "merged_diff": "blending",
    "pending_undo": "undo_merge",
    "perform_undo": "undo_merge",
    "plan": "planning",
    "plan_undo": "undoing",
    "prepare": "merging",
    "put_back": "putting_back",
    "recover": "merging",
    "remove_tree": "removing",
    "shield": "living",
    "syncfs": "syscalls",
    "take_snapshot": "snapshot",
    "three_sides": "three_sides",
    "unified_diff": "textdiff",
    "waits_for_the_end": "living",
    "with_hunks": "hunks",
    "write_file": "keeping",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
