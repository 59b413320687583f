"""Resolution while the agent lives: its view goes back to the host's, a snapshot is its layer, a commit stays."""

import os
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.staged_edits import Edit, fill, make
from tests.fakes.staged_examples import examples, lists_of_edits, scratch
from tests.fakes.staged_tree import KINDS, Snapshot, StagedTree, snapshot

from interlock.model.effects import FileChange
from interlock.staging import (
    StagedRoot,
    apply,
    list_changes,
    plan,
    prepare,
    put_back,
    shield,
    take_snapshot,
    waits_for_the_end,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

edits = lists_of_edits()
quick = examples(6)


def listed(root: StagedRoot) -> list[FileChange]:
    return list(list_changes(root, judges_content=lambda path: False))


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits)
def test_put_back_makes_the_view_what_the_host_has(kind: str, edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=kind in ("copy", "index")))

        def live(top: str) -> tuple[list[FileChange], tuple[object, ...], Snapshot, Snapshot]:
            before = snapshot(top, folder_times=True, links=False)
            make(top, edits)
            done = put_back(tree.root, top, None)
            return listed(tree.root), done.failed, before, snapshot(top, folder_times=True, links=False)

        left, failed, before, after = tree.edit(live)
        assert failed == ()
        assert left == []
        assert after == before


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits, picks=st.lists(st.booleans(), min_size=30, max_size=30))
def test_put_back_at_some_places_leaves_the_others(kind: str, edits: list[Edit], picks: list[bool]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=False))

        def live(top: str) -> None:
            make(top, edits)
            before = listed(tree.root)
            places = [one.place for number, one in enumerate(before) if picks[number % 30]]
            done = put_back(tree.root, top, places)
            assert done.failed == ()
            assert set(places) <= set(done.places)
            after = {change.place: change for change in listed(tree.root)}
            assert not after.keys() & set(done.places)
            assert after == {change.place: change for change in before if change.place not in done.places}

        tree.edit(live)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(edits=edits)
def test_a_snapshot_lists_what_its_layer_lists(kind: str, edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, fill)

        def live(top: str) -> None:
            make(top, edits)
            (copy,) = take_snapshot([tree.root], f"{base}/run/snapshot", nullcontext)
            assert listed(copy) == listed(tree.root)

        tree.edit(live)


def commit(tree: StagedTree, journal: str) -> tuple[list[FileChange], list[FileChange]]:
    """Commit under the mounted overlay what may be: from a snapshot. Returns: the changes that wait, the merged."""
    (copy,) = take_snapshot([tree.root], f"{journal}-snapshot", nullcontext)
    changes = listed(copy)
    waiting = waits_for_the_end([copy], changes)
    held = [change for index, change in enumerate(changes) if index in waiting]
    released = [change for index, change in enumerate(changes) if index not in waiting]
    prepare(plan([copy], changes, released), journal)
    shield([tree.root], released)
    apply(journal)
    return held, released


@pytest.mark.parametrize("kind", ["index", "user", "copy"])
@quick
@given(first=edits, second=edits)
def test_a_commit_under_the_living_agent_changes_nothing_that_it_sees(
    kind: str, first: list[Edit], second: list[Edit]
) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=kind in ("copy", "index")))

        def live(top: str) -> Snapshot:
            make(top, first)
            before = snapshot(top, links=False)
            held, _ = commit(tree, f"{base}/run/first")
            assert snapshot(top, links=False) == before
            # only what waits is left: nothing that was committed shows a second time
            assert [change.place for change in listed(tree.root)] == [change.place for change in held]
            make(top, second)
            return snapshot(top, links=False)

        seen = tree.edit(live)
        assert tree.edit(lambda top: snapshot(top, links=False)) == seen  # mounted anew, nothing remembered
        tree.merge()
        assert snapshot(tree.lower, links=False) == seen


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(kind="append", first=0, second=0, third=0)],
        [Edit(kind="unlink", first=13, second=0, third=0), Edit(kind="xattr", first=28, second=0, third=38)],
        [Edit(kind="remove-folder", first=0, second=0, third=0)],
        [
            Edit(kind="remove-folder", first=1, second=0, third=0),
            Edit(kind="link", first=20, second=1, third=1),
        ],
    ],
)
def test_put_back_keeps_the_hosts_hard_links_together(edits: list[Edit]) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, "index", fill)

        def live(top: str) -> None:
            before = snapshot(top)
            make(top, edits)
            assert put_back(tree.root, top, None).failed == ()
            assert listed(tree.root) == []
            assert snapshot(top) == before

        tree.edit(live)
