"""Undo of what a staged tree merged, as the runtime does it, without a run around."""

import os

from tests.fakes.staged_tree import StagedTree

from interlock.model.places import Place
from interlock.staging import UndoPlan, close_undo, kept, pending_undo, perform_undo, plan_undo


def top_of(tree: StagedTree) -> str:
    return os.path.join(os.path.dirname(tree.journal), "undo")


def undo(
    tree: StagedTree, *paths: str, except_changed: bool = False, done: frozenset[str] = frozenset()
) -> UndoPlan:
    """Undo the last merge of the tree, where its plan allows it, and return the plan."""

    def run() -> UndoPlan:
        last = kept(top_of(tree))[-1]
        assert not last.why_not, last.why_not
        places = tuple(Place(root="workspace", path=path) for path in paths)
        planned = plan_undo(last, selection=places, except_changed=except_changed, done=done)
        if planned.wal is not None:
            perform_undo(planned, top_of(tree), {"at": "now"})
            close_undo(top_of(tree), last)
        return planned

    return tree.as_owner(run)


def settle(tree: StagedTree) -> bool:
    """End an undo that was cut off, as the next one does first; True if it came to its end."""
    doing = pending_undo(top_of(tree))
    if doing is None:
        return False
    (mine,) = (one for one in kept(top_of(tree)) if one.number == doing.number)
    close_undo(top_of(tree), mine)
    return True
