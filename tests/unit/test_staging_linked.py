"""Host files with several names, in an overlay with an index: which names a staged file stands for."""

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.fakes.staged_tree import KINDS, StagedTree, snapshot

from interlock.boundary.drains import stamp_clock_ns
from interlock.model.effects import ChangeKind, FileChange, HostEdit
from interlock.staging import (
    apply,
    blend,
    copy_tree,
    discard,
    hunks_of,
    linked,
    list_changes,
    plan,
    prepare,
    put_back,
    removing,
    take_snapshot,
    unified_diff,
    waits_for_the_end,
)
from interlock.staging.baseline import Baseline
from interlock.staging.removing import empty_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def three_names(top: str) -> None:
    for folder in ("a", "b", "c"):
        os.mkdir(f"{top}/{folder}")
    write(f"{top}/a/one", "old")
    os.link(f"{top}/a/one", f"{top}/b/two")
    os.link(f"{top}/a/one", f"{top}/c/three")
    os.symlink("a/one", f"{top}/a/link")
    os.link(f"{top}/a/link", f"{top}/b/link", follow_symlinks=False)


def write(path: str, text: str, mode: str = "w") -> None:
    with open(path, mode, encoding="ascii") as file:
        file.write(text)
    os.utime(path, ns=(5, 5))


def replace(top: str) -> None:
    """Write as editors do: beside, then over the old name."""
    write(f"{top}/a/new", "mine")
    os.rename(f"{top}/a/new", f"{top}/a/one")


def exchange(top: str) -> None:
    os.rename(f"{top}/a/one", f"{top}/a/kept")
    write(f"{top}/a/one", "mine")


def retarget(top: str) -> None:
    os.unlink(f"{top}/a/link")
    os.symlink("elsewhere", f"{top}/a/link")
    os.utime(f"{top}/a/link", ns=(5, 5), follow_symlinks=False)


def move_and_change(top: str) -> None:
    os.rename(f"{top}/a/one", f"{top}/a/moved")
    write(f"{top}/a/moved", " and more", "a")


def change_and_remove(top: str) -> None:
    write(f"{top}/a/one", " and more", "a")
    os.unlink(f"{top}/a/one")


def change_and_replace(top: str) -> None:
    write(f"{top}/a/one", " and more", "a")
    replace(top)


def change_and_remove_the_folder(top: str) -> None:
    os.setxattr(f"{top}/a/one", "user.note", b"seen")
    shutil.rmtree(f"{top}/a")
    os.symlink("c", f"{top}/a")


def change_and_exchange_folders(top: str) -> None:
    change_and_remove(top)
    os.rename(f"{top}/b", f"{top}/b2")
    os.rename(f"{top}/c", f"{top}/b")
    os.rename(f"{top}/b2", f"{top}/c")


def close_and_remove(top: str) -> None:
    os.chmod(f"{top}/a/one", 0)
    os.unlink(f"{top}/a/one")


def date_and_remove(top: str) -> None:
    os.utime(f"{top}/a/link", ns=(7, 7), follow_symlinks=False)
    os.unlink(f"{top}/a/link")


def change_and_link_anew(top: str) -> None:
    change_and_remove(top)
    os.link(f"{top}/c/three", f"{top}/a/again")
    os.unlink(f"{top}/c/three")


def change_and_go_on_at_another(top: str) -> None:
    change_and_remove(top)
    write(f"{top}/b/two", " and still more", "a")
    os.unlink(f"{top}/b/two")


def change_and_remove_all(top: str) -> None:
    change_and_remove(top)
    os.unlink(f"{top}/b/two")
    os.unlink(f"{top}/c/three")


EDITS: dict[str, Callable[[str], None]] = {
    "another file takes one name": replace,
    "another file takes one name, and the old one goes on": exchange,
    "a write through one name": lambda top: write(f"{top}/b/two", " and more", "a"),
    "a write through one name, which then moves": move_and_change,
    "a name moves": lambda top: os.rename(f"{top}/a/one", f"{top}/c/moved"),
    "a name more": lambda top: os.link(f"{top}/a/one", f"{top}/c/more"),
    "a name goes": lambda top: os.unlink(f"{top}/a/one"),
    "a mode through one name": lambda top: os.chmod(f"{top}/c/three", 0o600),
    "a folder with a name moves": lambda top: os.rename(f"{top}/a", f"{top}/c/moved"),
    "a symlink's name is taken": retarget,
    "a symlink's time": lambda top: os.utime(f"{top}/a/link", ns=(7, 7), follow_symlinks=False),
    "a write through one name, which then goes": change_and_remove,
    "a write through one name, which another file then takes": change_and_replace,
    "an attribute through one name, whose folder then goes": change_and_remove_the_folder,
    "a write through one name, which then goes, and the others' folders move": change_and_exchange_folders,
    "a mode through one name, which then goes": close_and_remove,
    "a symlink's time, by a name which then goes": date_and_remove,
    "a write through one name, which then goes, and a new one": change_and_link_anew,
    "writes through one name after another, each of which then goes": change_and_go_on_at_another,
    "a write through one name, and all of them go": change_and_remove_all,
}


@pytest.mark.parametrize("known", [True, False], ids=["by handle", "by walking"])
@pytest.mark.parametrize("name", EDITS)
def test_the_names_that_an_edit_means_change_and_no_others(
    scratch: str, name: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:

        def forbidden(mount_fd: int, handle: linked.Handle) -> os.stat_result | None:
            raise PermissionError

        monkeypatch.setattr(linked, "status_by_handle", forbidden)
    tree = StagedTree.make(scratch, "index", three_names)
    bare = f"{scratch}/bare"
    os.mkdir(bare)
    copy_tree(tree.lower, bare)
    tree.edit(EDITS[name])
    tree.merge()
    EDITS[name](bare)
    assert snapshot(tree.lower) == snapshot(bare)


def test_a_file_that_took_the_place_of_one_name_says_nothing_of_the_others(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)
    tree.edit(replace)
    assert [(one.kind, one.place.path) for one in tree.changes()] == [(ChangeKind.MODIFY, "a/one")]


def test_a_name_that_moved_still_is_the_hosts_file(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)
    ino = os.stat(f"{tree.lower}/b/two").st_ino
    tree.edit(EDITS["a name moves"])
    tree.merge()
    assert os.stat(f"{tree.lower}/c/moved").st_ino == ino


@pytest.fixture
def changed(scratch: str) -> StagedTree:
    """Make a tree whose agent wrote through one of three names, and removed that name."""
    tree = StagedTree.make(scratch, "index", three_names)
    tree.edit(change_and_remove)
    return tree


def said(changes: list[FileChange]) -> list[tuple[str, str]]:
    return [(one.kind.value, one.place.path) for one in changes]


ALL = [("delete", "a/one"), ("modify", "b/two"), ("modify", "c/three")]


def test_what_only_the_index_holds_is_listed_at_each_name_that_shows_it(changed: StagedTree) -> None:
    found = changed.changes(judges=lambda path: True)
    assert said(found) == ALL
    assert [one.after_text for one in found[1:]] == ["old and more"] * 2


def test_a_review_shows_what_only_the_index_holds(changed: StagedTree) -> None:
    for change in changed.changes()[1:]:
        assert "+old and more" in unified_diff(changed.root, change)
        assert hunks_of(changed.root, change) == ()  # the host's file has several names


def test_a_review_shows_what_the_layer_has_at_another_name(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)
    tree.edit(EDITS["a write through one name"])
    changes = tree.changes()
    assert said(changes) == [("modify", "b/two"), ("modify", "a/one"), ("modify", "c/three")]
    for change in changes:
        assert "+old and more" in unified_diff(tree.root, change)


@pytest.mark.parametrize("kept", ["a/one", "b/two", "c/three"])
def test_a_name_that_is_refused_keeps_the_hosts_file(changed: StagedTree, kept: str) -> None:
    ino = os.stat(f"{changed.lower}/{kept}").st_ino
    changed.merge([one for one in changed.changes() if one.place.path != kept])
    for name in {"a/one", "b/two", "c/three"} - {kept, "a/one"}:
        assert read(f"{changed.lower}/{name}") == "old and more"
    assert os.path.exists(f"{changed.lower}/a/one") == (kept == "a/one")
    assert (read(f"{changed.lower}/{kept}"), os.stat(f"{changed.lower}/{kept}").st_ino) == ("old", ino)
    # what was refused is still staged, and nothing else
    assert said(changed.changes()) == [one for one in ALL if one[1] == kept]


def test_a_name_that_alone_is_left_on_the_host_can_be_released_later(
    scratch: str, changed: StagedTree
) -> None:
    for path in ("a/one", "b/two"):
        changed.merge([one for one in changed.changes() if one.place.path == path])
    shutil.rmtree(f"{scratch}/run/undo")  # which keeps the old file at its other names
    assert os.stat(f"{changed.lower}/c/three").st_nlink == 1
    (last,) = changed.changes()
    assert len(hunks_of(changed.root, last)) == 1
    part = blend(changed.root, last, hunks=[1], into=scratch)
    prepare(plan([changed.root], [last], [last], {last.place: part}), changed.journal)
    apply(changed.journal)
    assert read(f"{changed.lower}/c/three") == "old and more"
    changed.merge()  # of the attributes alone
    assert changed.changes() == []


def test_an_attribute_of_the_last_name_is_a_new_file_too(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)
    tree.edit(close_and_remove)
    for path in ("a/one", "b/two", "c/three"):
        tree.merge([one for one in tree.changes() if one.place.path == path])
        shutil.rmtree(f"{scratch}/run/undo")
    assert stat.S_IMODE(os.stat(f"{tree.lower}/c/three").st_mode) == 0
    assert tree.changes() == []


def test_a_name_outside_of_the_root_keeps_the_old_content(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)
    outside = f"{scratch}/outside"
    os.link(f"{tree.lower}/a/one", outside)
    tree.edit(change_and_remove_all)
    assert said(tree.changes()) == [("delete", path) for path in ("a/one", "b/two", "c/three")]
    tree.merge()
    assert read(outside) == "old"


def test_a_host_that_wrote_through_another_name_meanwhile_is_a_conflict(changed: StagedTree) -> None:
    time.sleep(0.02)
    since_ns = stamp_clock_ns()
    write(f"{changed.lower}/c/three", "the host's")
    baseline = Baseline.at(since_ns, time.time_ns())
    found = list(list_changes(changed.root, judges_content=lambda path: False, baseline=baseline))
    assert said(found) == ALL
    assert [one.host_edit for one in found] == [HostEdit.EDITED] * 3


def test_a_discard_leaves_nothing_in_the_index(changed: StagedTree) -> None:
    changed.edit(lambda top: write(f"{top}/b/two", "!", "a"))
    discard(changed.root)
    assert changed.changes() == []
    assert os.listdir(changed.root.index) == []
    assert changed.edit(lambda top: read(f"{top}/a/one")) == "old"


def test_a_discard_that_was_cut_off_after_the_index_lists_nothing_that_nobody_did(
    changed: StagedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[int] = []

    def cut_off(fd: int) -> None:
        if emptied:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        emptied.append(fd)
        empty_folder(fd)

    monkeypatch.setattr(removing, "empty_folder", cut_off)
    with pytest.raises(OSError, match="Input/output"):
        discard(changed.root)
    assert said(changed.changes()) == ALL[:1]


def test_a_snapshot_holds_what_only_the_index_holds(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)

    def live(top: str) -> None:
        change_and_remove(top)
        date_and_remove(top)
        write(f"{top}/c/new", "new")
        paused: list[str] = []

        @contextmanager
        def pause() -> Iterator[None]:
            os.unlink(f"{top}/b/two")  # the last moment in which the agent moves
            write(f"{top}/c/three", "!", "a")
            yield
            paused.append("")

        (copy,) = take_snapshot([tree.root], f"{scratch}/run/snapshot", pause)
        changes = list(list_changes(copy, judges_content=lambda path: False))
        assert paused
        assert changes == tree.changes()
        assert ("attributes", "b/link") in said(changes)
        # all of it waits: the overlay finds these files by the host's inodes
        waiting = waits_for_the_end([copy], changes)
        assert said([one for index, one in enumerate(changes) if index not in waiting]) == [
            ("create", "c/new")
        ]

    tree.edit(live)


def test_a_name_that_alone_is_left_waits_for_the_end_as_well(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", three_names)

    def live(top: str) -> None:
        change_and_remove(top)
        os.unlink(f"{tree.lower}/a/one")
        os.unlink(f"{tree.lower}/b/two")
        changes = tree.changes()
        assert said(changes) == [("modify", "c/three")]
        assert waits_for_the_end([tree.root], changes) == {0}

    tree.edit(live)


@pytest.mark.parametrize(
    "edit",
    [change_and_remove, change_and_exchange_folders, change_and_go_on_at_another, date_and_remove],
    ids=lambda edit: edit.__name__,
)
def test_a_living_agents_view_is_put_back_with_all_names_together(
    scratch: str, edit: Callable[[str], None]
) -> None:
    tree = StagedTree.make(scratch, "index", three_names)

    def live(top: str) -> None:
        before = snapshot(top)
        edit(top)
        assert put_back(tree.root, top, None).failed == ()
        assert tree.changes() == []
        assert snapshot(top) == before
        # and once more: what the index still has from before is no change
        edit(top)
        assert put_back(tree.root, top, None).failed == ()
        assert (tree.changes(), snapshot(top)) == ([], before)

    tree.edit(live)


@pytest.mark.parametrize("number", range(3))
def test_a_name_that_is_put_back_alone_leaves_what_was_done_at_the_others(scratch: str, number: int) -> None:
    tree = StagedTree.make(scratch, "index", three_names)

    def live(top: str) -> None:
        change_and_remove(top)
        places = [one.place for one in tree.changes()]
        done = put_back(tree.root, top, [places[number]])
        assert done.failed == ()
        left = [one.place for one in tree.changes()]
        assert places[number] not in left
        for place in places:
            if place in left and place.path != "a/one":
                assert read(f"{top}/{place.path}") == "old and more"
        assert read(f"{top}/{places[number].path}") == "old"

    tree.edit(live)


def read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_says_how_many_names_outside_of_the_root_keep_the_old_file(scratch: str, kind: str) -> None:
    def filled(top: str) -> None:
        for name in ("a", "b", "one", "alone"):
            with open(f"{top}/{name}", "w", encoding="ascii") as file:
                file.write("old\n")
        os.link(f"{top}/a", f"{top}/a2")
        os.link(f"{top}/a", f"{scratch}/lower-a")
        os.link(f"{top}/a", f"{scratch}/lower-a2")
        os.link(f"{top}/b", f"{top}/b2")
        os.link(f"{top}/one", f"{scratch}/lower-one")

    tree = StagedTree.make(scratch, kind, filled)

    def edited(top: str) -> None:
        for name in ("a", "b", "alone"):
            with open(f"{top}/{name}", "a", encoding="ascii") as file:
                file.write("more\n")
        os.chmod(f"{top}/one", 0o600)

    tree.edit(edited)
    told = {one.place.path: one.outside_names for one in tree.changes()}
    assert {name: told[name] for name in ("a", "b", "one", "alone")} == {"a": 2, "b": 0, "one": 1, "alone": 0}
    tree.merge()
    for name in ("lower-a", "lower-a2", "lower-one"):
        with open(f"{scratch}/{name}", encoding="ascii") as file:
            assert file.read() == "old\n"
        assert os.stat(f"{scratch}/{name}").st_mode & 0o777 == 0o644
