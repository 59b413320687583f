"""Merge, then undo: the host is what it was, to the last link and time, or keeps what others did since."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.staged_edits import Edit, fill, make
from tests.fakes.staged_examples import examples, lists_of_edits, scratch
from tests.fakes.staged_tree import KINDS, StagedTree, snapshot
from tests.fakes.undone import top_of, undo

from interlock.model.dependencies import requirements
from interlock.model.effects import FileChange

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

edits = lists_of_edits()
quick = examples(7)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits)
def test_an_undo_gives_the_tree_before_exactly(kind: str, edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, fill)
        before = snapshot(tree.lower, folder_times=True)
        inodes = {path: os.lstat(f"{tree.lower}/{path}").st_ino for path in before}
        tree.edit(lambda top: make(top, edits))
        if not tree.changes():
            return
        tree.merge()
        planned = undo(tree)
        assert planned.changed == ()
        assert planned.is_whole
        assert snapshot(tree.lower, folder_times=True) == before
        # not a copy of what was there: that very file
        assert {path: os.lstat(f"{tree.lower}/{path}").st_ino for path in before} == inodes
        assert os.listdir(f"{top_of(tree)}/1") == ["undone"]
        assert sorted(os.listdir(base)) == ["lower", "merged", "run", "upper", "work"]


@pytest.mark.parametrize("kind", ["redirect", "copy"])
@quick
@given(edits=edits, picks=st.lists(st.booleans(), min_size=60, max_size=60))
def test_two_merges_are_undone_one_after_the_other(kind: str, edits: list[Edit], picks: list[bool]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=False))
        seen = [snapshot(tree.lower, folder_times=True)]
        tree.edit(lambda top: make(top, edits))
        changes = tree.changes()
        released = closure(changes, picks)
        if not released or len(released) == len(changes):
            return
        tree.merge(released)
        seen.append(snapshot(tree.lower, folder_times=True))
        assert undo(tree).changed == ()
        assert snapshot(tree.lower, folder_times=True) == seen[0]


@quick
@given(edits=edits, later=edits)
def test_what_others_did_since_stays_and_the_rest_goes_back(edits: list[Edit], later: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, "redirect", lambda top: fill(top, links=False))
        tree.edit(lambda top: make(top, edits))
        if not tree.changes():
            return
        tree.merge()
        merged = snapshot(tree.lower, links=False)
        make(tree.lower, later)
        now = snapshot(tree.lower, links=False)
        planned = undo(tree)
        if planned.changed:
            assert planned.wal is None
            assert snapshot(tree.lower, links=False) == now
            planned = undo(tree, except_changed=True)
        after = snapshot(tree.lower, links=False)
        mine = {path for path in now if now[path] != merged.get(path)}
        moved = [step for step in planned.steps if step.back_to is not None]
        if not moved:
            for path in mine:
                if now[path][0] != 0o040000:  # a folder's attributes may be ours to take back in part
                    assert after.get(path) == now[path], path


def closure(changes: list[FileChange], picks: list[bool]) -> list[FileChange]:
    needs = requirements(changes)
    todo = [index for index in range(len(changes)) if picks[index % len(picks)]]
    chosen: set[int] = set()
    while todo:
        index = todo.pop()
        if index not in chosen:
            chosen.add(index)
            todo += needs[index]
    return [changes[index] for index in sorted(chosen)]
