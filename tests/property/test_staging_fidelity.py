"""List, release, merge: the host ends as if the same edits had been made on it."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.staged_edits import EDITS, Edit, fill, make
from tests.fakes.staged_examples import examples, lists_of_edits, scratch
from tests.fakes.staged_tree import KINDS, StagedTree, snapshot
from tests.fakes.wild_edits import WILD, wild_fill
from tests.fakes.wild_run import mixed_make

from interlock.model.dependencies import requirements
from interlock.model.effects import FileChange
from interlock.staging import StagedRoot, apply, copy_tree, plan, prepare

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

edits = lists_of_edits()
wild_edits = lists_of_edits((*EDITS, *WILD), highest=60, fewest=4, most=16)
quick = examples(8)
KEEP_LINKS = ("copy", "index")


def bare_copy(tree: StagedTree) -> str:
    bare = f"{tree.base}/bare"
    os.mkdir(bare)
    copy_tree(tree.lower, bare)
    return bare


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits)
def test_a_full_release_equals_the_bare_edits(kind: str, edits: list[Edit]) -> None:
    with scratch() as base:
        # without an index a lower's hard links part on the first write, inside the overlay already
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=kind in KEEP_LINKS))
        bare = bare_copy(tree)
        done, seen = tree.edit(lambda top: (make(top, edits), snapshot(top, folder_times=True, links=False)))
        tree.merge()
        # as the command saw it (an overlay's inode numbers do not tell links), and as it would be without us
        assert snapshot(tree.lower, folder_times=True, links=False) == seen
        tree.as_owner(lambda: make(bare, edits, done))
        assert snapshot(tree.lower) == snapshot(bare)
        assert sorted(os.listdir(base)) == ["bare", "lower", "merged", "run", "upper", "work"]
        assert os.listdir(tree.journal) == ["outcome"]


def rare_edits_equal_the_bare(kind: str, edits: list[Edit]) -> None:
    with scratch() as base:
        try:
            tree = StagedTree.make(base, kind, lambda top: wild_fill(top, links=kind in KEEP_LINKS))
            bare = bare_copy(tree)
            if kind == "user":
                os.chown(bare, 1000, 1000)
            done = tree.edit(lambda top: mixed_make(top, edits))
            tree.merge()
            if len(done) == len(edits):
                tree.as_owner(lambda: mixed_make(bare, edits, done))
                assert snapshot(tree.lower) == snapshot(bare)
        finally:
            open_up(base)


def open_up(base: str) -> None:
    for folder, _, _ in os.walk(base):
        os.chmod(folder, 0o700)


@pytest.mark.parametrize("kind", KINDS)
@examples(8)
@given(edits=wild_edits)
def test_rare_edits_merge_as_if_made_bare(kind: str, edits: list[Edit]) -> None:
    rare_edits_equal_the_bare(kind, edits)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@examples(400)
@given(edits=wild_edits)
def test_rare_edits_merge_as_if_made_bare_often(kind: str, edits: list[Edit]) -> None:
    rare_edits_equal_the_bare(kind, edits)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits, picks=st.lists(st.booleans(), min_size=60, max_size=60))
def test_a_partial_release_merges_just_that(kind: str, edits: list[Edit], picks: list[bool]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=False))
        before = snapshot(tree.lower)
        tree.edit(lambda top: make(top, edits))
        changes = tree.changes()
        released = closure(changes, picks)
        tree.merge(released)
        after = snapshot(tree.lower)
        named = [change.place.path for change in released]
        named += [change.source.path for change in released if change.source is not None]
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                text = escaped(path)
                # a change shows at a released place, below one (a removed or moved folder), or as a peer
                covered = any(text == name or text.startswith(f"{name}/") for name in named)
                same_but_links = (before.get(path) or (0,))[:-1] == (after.get(path) or (1,))[:-1]
                assert covered or same_but_links, (path, before.get(path), after.get(path))
        if len(released) == len(changes):
            assert after == tree.edit(lambda top: snapshot(top)) or kind in ("redirect", "index")


def escaped(path: str) -> str:
    from interlock.model.places import path_text

    return path_text(os.fsencode(path))


def closure(changes: list[FileChange], picks: list[bool]) -> list[FileChange]:
    """Take the picked changes and everything that they need."""
    needs = requirements(changes)
    todo = [index for index in range(len(changes)) if picks[index % len(picks)]]
    chosen: set[int] = set()
    while todo:
        index = todo.pop()
        if index not in chosen:
            chosen.add(index)
            todo += needs[index]
    return [changes[index] for index in sorted(chosen)]


@quick
@given(edits=edits)
def test_listing_again_after_a_copy_was_merged_finds_nothing(edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, "copy", fill)
        tree.edit(lambda top: make(top, edits))
        tree.merge()
        assert tree.changes() == []


@quick
@given(edits=edits)
def test_a_rolled_back_merge_leaves_the_host_as_it_was(edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, "redirect", lambda top: fill(top, links=False))
        tree.edit(lambda top: make(top, edits))
        before = snapshot(tree.lower, folder_times=True)
        changes = tree.changes()
        if not changes:
            return
        prepare(plan([tree.root], changes, changes), tree.journal)
        tree.merge_back()
        assert snapshot(tree.lower, folder_times=True) == before


def test_two_roots_merge_as_one() -> None:
    with scratch() as base:
        os.mkdir(f"{base}/one")
        os.mkdir(f"{base}/two")
        one = StagedTree.make(f"{base}/one", "redirect", fill)
        two = StagedTree.make(f"{base}/two", "plain", fill)
        one.edit(lambda top: os.unlink(f"{top}/f0"))
        two.edit(lambda top: os.mkdir(f"{top}/made"))
        second = StagedRoot(name="state", lower=two.lower, upper=two.upper)
        changes = one.changes()
        from interlock.staging import list_changes

        changes += list(list_changes(second, judges_content=lambda path: False))
        prepare(plan([one.root, second], changes, changes), one.journal)
        apply(one.journal)
        assert not os.path.exists(f"{one.lower}/f0")
        assert os.path.isdir(f"{two.lower}/made")
