"""A full copy tells moves and removals apart by times alone: what it cannot tell is a conflict, never a loss."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.staged_tree import StagedTree, snapshot

from interlock.model.effects import ChangeKind, FileChange
from interlock.staging import Baseline, list_changes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

TICK_S = 0.02
"""The kernel stamps files no finer than this."""


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def fill(top: str) -> None:
    os.makedirs(f"{top}/old/sub/deep")
    os.mkdir(f"{top}/beside")
    for name in ("old/x", "old/sub/y", "old/sub/deep/z", "beside/f"):
        with open(f"{top}/{name}", "w", encoding="ascii") as file:
            file.write(name)


def listed(
    base: str, agent: Callable[[str], object], host: Callable[[str], object] | None = None
) -> tuple[StagedTree, list[FileChange]]:
    tree = StagedTree.make(base, "copy", fill)
    time.sleep(TICK_S)
    since_ns = time.time_ns()
    tree.edit(lambda top: (agent(top), None)[1])
    if host is not None:
        host(tree.lower)
    baseline = Baseline.at(since_ns, time.time_ns())
    return tree, list(list_changes(tree.root, judges_content=lambda path: False, baseline=baseline))


def test_a_moved_folder_brings_all_that_lies_in_it(scratch: str) -> None:
    tree, changes = listed(scratch, lambda top: os.rename(f"{top}/old", f"{top}/new"))
    assert [(one.kind, one.place.path, one.host_edit) for one in changes] == [
        (ChangeKind.CREATE, "new", None),
        (ChangeKind.CREATE, "new/sub", None),
        (ChangeKind.CREATE, "new/sub/deep", None),
        (ChangeKind.CREATE, "new/sub/deep/z", None),
        (ChangeKind.CREATE, "new/sub/y", None),
        (ChangeKind.CREATE, "new/x", None),
        (ChangeKind.DELETE, "old", None),
    ]
    tree.merge(changes)
    assert snapshot(tree.lower) == snapshot(tree.upper)


def test_a_moved_folder_takes_the_place_of_another_with_all_that_lies_in_it(scratch: str) -> None:
    def move(top: str) -> None:
        shutil.rmtree(f"{top}/beside")
        os.rename(f"{top}/old", f"{top}/beside")

    tree, changes = listed(scratch, move)
    assert [one for one in changes if one.host_edit is not None] == []
    tree.merge(changes)
    assert snapshot(tree.lower) == snapshot(tree.upper)


def test_where_the_host_changed_beside_it_a_move_is_a_conflict_and_nothing_of_it_is_left_out(
    scratch: str,
) -> None:
    _tree, changes = listed(
        scratch,
        lambda top: os.rename(f"{top}/old", f"{top}/new"),
        lambda top: os.mkdir(f"{top}/of the host"),
    )
    new = {one.place.path: one.host_edit for one in changes if one.place.path.startswith("new")}
    assert sorted(new) == ["new", "new/sub", "new/sub/deep", "new/sub/deep/z", "new/sub/y", "new/x"]
    assert None not in new.values()


def test_an_old_folder_that_the_host_moves_where_the_agent_made_one_loses_nothing(scratch: str) -> None:
    def host(top: str) -> None:
        os.unlink(f"{top}/old/sub/y")
        os.rename(f"{top}/old/sub", f"{top}/made")

    _tree, changes = listed(scratch, lambda top: os.mkdir(f"{top}/made"), host)
    assert [
        one.place.path for one in changes if one.kind is ChangeKind.DELETE and one.host_edit is None
    ] == []


def test_a_move_that_is_in_doubt_never_leaves_its_removal_alone(scratch: str) -> None:
    """With `--on-conflict theirs` the new place is refused; the old one must not go without it."""

    def agent(top: str) -> None:
        os.rename(f"{top}/old", f"{top}/new")
        os.unlink(f"{top}/beside/f")

    tree, changes = listed(scratch, agent, lambda top: os.mkdir(f"{top}/of the host"))
    before = snapshot(tree.lower)
    tree.merge([one for one in changes if one.host_edit is None])
    assert {"old", "old/x", "old/sub/deep/z"} <= snapshot(tree.lower).keys()
    assert snapshot(tree.lower) == before


def test_a_moved_file_that_is_in_doubt_never_leaves_its_removal_alone(scratch: str) -> None:
    def agent(top: str) -> None:
        os.rename(f"{top}/old/x", f"{top}/moved")

    tree, changes = listed(scratch, agent, lambda top: os.mkdir(f"{top}/of the host"))
    assert [one.kind for one in changes if one.host_edit is None] == []
    tree.merge(changes)
    assert "moved" in snapshot(tree.lower)


def test_a_removal_is_no_conflict_where_nothing_is_in_doubt(scratch: str) -> None:
    def agent(top: str) -> None:
        os.unlink(f"{top}/old/x")
        os.rename(f"{top}/old/sub", f"{top}/old/new")

    _tree, changes = listed(scratch, agent, lambda top: os.unlink(f"{top}/beside/f"))
    assert {one.place.path for one in changes if one.kind is ChangeKind.DELETE and one.host_edit is None} == {
        "old/x",
        "old/sub",
    }


def test_a_move_that_is_in_doubt_leaves_no_file_alone_in_the_old_place(scratch: str) -> None:
    def agent(top: str) -> None:
        os.rename(f"{top}/old", f"{top}/new")
        with open(f"{top}/old", "w", encoding="ascii") as file:
            file.write("a file by now")

    tree, changes = listed(scratch, agent, lambda top: os.mkdir(f"{top}/of the host"))
    before = snapshot(tree.lower)
    tree.merge([one for one in changes if one.host_edit is None])
    assert snapshot(tree.lower) == before
