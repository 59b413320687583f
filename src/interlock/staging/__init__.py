"""Staging: the exact diff of a staged layer, and its merge into the host as one.

Names are loaded on first use, since a run needs most of them only when its command has ended.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.staging.copying import copy_tree
    from interlock.staging.errors import ConflictError, MergeFailedError
    from interlock.staging.listing import count_below, list_changes
    from interlock.staging.merge_plan import MergePlan
    from interlock.staging.merging import apply, forget, prepare, recover
    from interlock.staging.planning import plan
    from interlock.staging.removing import discard, remove_tree
    from interlock.staging.roots import StagedRoot
    from interlock.staging.textdiff import unified_diff

__all__ = [
    "ConflictError",
    "MergeFailedError",
    "MergePlan",
    "StagedRoot",
    "apply",
    "copy_tree",
    "count_below",
    "discard",
    "forget",
    "list_changes",
    "plan",
    "prepare",
    "recover",
    "remove_tree",
    "unified_diff",
]

_HOMES = {
    "ConflictError": "errors",
    "MergeFailedError": "errors",
    "MergePlan": "merge_plan",
    "StagedRoot": "roots",
    "apply": "merging",
    "copy_tree": "copying",
    "count_below": "listing",
    "discard": "removing",
    "forget": "merging",
    "list_changes": "listing",
    "plan": "planning",
    "prepare": "merging",
    "recover": "merging",
    "remove_tree": "removing",
    "unified_diff": "textdiff",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
