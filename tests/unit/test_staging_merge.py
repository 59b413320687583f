"""What a merge refuses, keeps and leaves behind."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.staged_edits import fill
from tests.fakes.staged_tree import StagedTree, in_child, mount_tmpfs, snapshot

from interlock.model.effects import FileChange
from interlock.model.errors import InputError, IntegrityError, StuckError
from interlock.model.places import Place
from interlock.staging import (
    ConflictError,
    MergeFailedError,
    MergePlan,
    apply,
    forget,
    plan,
    prepare,
    recover,
)
from interlock.staging.journal import locked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def write(path: str, text: str, mode: str = "w") -> None:
    with open(path, mode, encoding="ascii") as file:
        file.write(text)


def read(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


def staged(
    base: str, work: Callable[[str], object], kind: str = "redirect"
) -> tuple[StagedTree, list[FileChange]]:
    tree = StagedTree.make(base, kind, fill)
    tree.edit(lambda top: (work(top), None)[1])
    return tree, tree.changes()


def full_plan(tree: StagedTree, changes: list[FileChange]) -> MergePlan:
    return plan([tree.root], changes, changes)


def many(top: str) -> None:
    write(f"{top}/f0", "changed")
    os.unlink(f"{top}/f1")
    os.chmod(f"{top}/f2", 0o600)
    os.mkdir(f"{top}/made")
    write(f"{top}/made/inside", "x")
    os.rename(f"{top}/a", f"{top}/moved")
    shutil.rmtree(f"{top}/c/d")
    os.unlink(f"{top}/e/f0")
    os.mkdir(f"{top}/e/f0")


HOST_EDITS: dict[str, tuple[str, Callable[[str], object]]] = {
    "a modified file was edited": ("f0", lambda top: write(f"{top}/f0", "host's")),
    "a modified file was edited, same size and time": ("f0", lambda top: forge(f"{top}/f0")),
    "a modified file is gone": ("f0", lambda top: os.unlink(f"{top}/f0")),
    "a modified file became a link": (
        "f0",
        lambda top: (os.unlink(f"{top}/f0"), os.symlink("f2", f"{top}/f0")),
    ),
    "a removed file was edited": ("f1", lambda top: write(f"{top}/f1", "host's")),
    "a file's mode changed": ("f2", lambda top: os.chmod(f"{top}/f2", 0o640)),
    "a created folder's place is taken": ("made", lambda top: os.mkdir(f"{top}/made")),
    "a moved folder is gone": ("moved", lambda top: shutil.rmtree(f"{top}/a")),
    "a moved folder's new place is taken": ("moved", lambda top: write(f"{top}/moved", "x")),
    "a removed folder got a file": ("c/d", lambda top: write(f"{top}/c/d/fresh", "host's")),
    "a file in a removed folder was edited": ("c/d", lambda top: write(f"{top}/c/d/f1", "host's")),
    "a replaced file was edited": ("e/f0", lambda top: write(f"{top}/e/f0", "host's")),
}


def forge(path: str) -> None:
    status = os.stat(path)
    text = read(path)
    write(path, text.swapcase())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("name", HOST_EDITS)
def test_a_host_edit_since_the_listing_is_a_conflict_and_nothing_is_merged(scratch: str, name: str) -> None:
    path, edit = HOST_EDITS[name]
    tree, changes = staged(scratch, many)
    edit(tree.lower)
    before = snapshot(tree.lower)
    with pytest.raises(ConflictError) as caught:
        full_plan(tree, changes)
    assert Place(root="workspace", path=path) in caught.value.places
    assert caught.value.exit_status == 5
    assert snapshot(tree.lower) == before


@pytest.mark.parametrize("name", HOST_EDITS)
def test_a_host_edit_during_the_merge_takes_the_merge_back_and_stays(scratch: str, name: str) -> None:
    tree, changes = staged(scratch, many)
    prepare(full_plan(tree, changes), tree.journal)
    HOST_EDITS[name][1](tree.lower)
    before = snapshot(tree.lower)
    if name == "a modified file was edited, same size and time":
        # between plan and rename there is only the inode's identity; a forger there is root or the user
        apply(tree.journal)
        return
    if name == "a file's mode changed":
        # an attribute that is set to a value is set to it, whatever it was a moment ago
        apply(tree.journal)
        return
    with pytest.raises((ConflictError, MergeFailedError)):
        apply(tree.journal)
    assert snapshot(tree.lower) == before
    assert recover(tree.journal) == "rolled-back"
    assert os.listdir(tree.journal) == ["outcome"]


def test_a_symlink_planted_in_the_way_cannot_lead_a_write_outside(scratch: str) -> None:
    tree, changes = staged(scratch, lambda top: [write(f"{top}/c/d/f0", "x"), write(f"{top}/c/d/new", "y")])
    outside = f"{scratch}/outside"
    shutil.copytree(f"{tree.lower}/c/d", outside)
    prepared = full_plan(tree, changes)
    prepare(prepared, tree.journal)
    os.rename(f"{tree.lower}/c/d", f"{tree.lower}/c/was")
    os.symlink(outside, f"{tree.lower}/c/d")
    seen = snapshot(outside)
    with pytest.raises(MergeFailedError):
        apply(tree.journal)
    assert snapshot(outside) == seen
    # and planted before the plan
    with pytest.raises((ConflictError, IntegrityError)):
        full_plan(tree, changes)
    assert snapshot(outside) == seen


def test_dependencies_are_named(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    with pytest.raises(
        InputError, match=r"`workspace:made/inside` cannot be merged without `workspace:made`"
    ):
        plan([tree.root], changes, [Place(root="workspace", path="made/inside")])
    with pytest.raises(InputError, match="no staged change at `workspace:nowhere`"):
        plan([tree.root], changes, [Place(root="workspace", path="nowhere")])


def test_only_what_is_released_is_merged(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    plan_of_two = plan(
        [tree.root], changes, [Place(root="workspace", path="f0"), Place(root="workspace", path="made")]
    )
    assert [str(place) for place in plan_of_two.merged] == ["workspace:f0", "workspace:made"]
    prepare(plan_of_two, tree.journal)
    apply(tree.journal)
    assert read(f"{tree.lower}/f0") == "changed"
    assert os.listdir(f"{tree.lower}/made") == []
    assert os.path.exists(f"{tree.lower}/f1")
    assert os.path.isdir(f"{tree.lower}/a")


def test_devices_and_sockets_are_skipped_and_said(scratch: str) -> None:
    def plant(top: str) -> None:
        os.mknod(f"{top}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mkdir(f"{top}/made")
        os.mknod(f"{top}/made/socket", stat.S_IFSOCK | 0o666)
        os.unlink(f"{top}/f0")
        os.mknod(f"{top}/f0", stat.S_IFSOCK | 0o666)

    tree, changes = staged(scratch, plant)
    merge_plan = full_plan(tree, changes)
    assert [place.path for place in merge_plan.skipped] == ["f0", "made/socket", "null"]
    prepare(merge_plan, tree.journal)
    apply(tree.journal)
    assert os.listdir(f"{tree.lower}/made") == []
    assert stat.S_ISREG(os.lstat(f"{tree.lower}/f0").st_mode)


def test_a_released_fifo_is_made_with_its_mode_owner_and_times(scratch: str) -> None:
    def plant(top: str) -> None:
        os.mkfifo(f"{top}/fifo")
        os.chmod(f"{top}/fifo", 0o640)
        os.chown(f"{top}/fifo", 1000, 1000)
        os.utime(f"{top}/fifo", ns=(5, 1_000_000_007))
        os.unlink(f"{top}/f0")
        os.mkfifo(f"{top}/f0")
        os.link(f"{top}/f0", f"{top}/other")

    tree, changes = staged(scratch, plant)
    prepare(full_plan(tree, changes), tree.journal)
    apply(tree.journal)
    made = os.lstat(f"{tree.lower}/fifo")
    assert stat.S_ISFIFO(made.st_mode)
    assert (stat.S_IMODE(made.st_mode), made.st_uid, made.st_mtime_ns) == (0o640, 1000, 1_000_000_007)
    assert stat.S_ISFIFO(os.lstat(f"{tree.lower}/f0").st_mode)
    assert os.lstat(f"{tree.lower}/f0").st_ino == os.lstat(f"{tree.lower}/other").st_ino


def test_what_a_file_is_stays_with_it(scratch: str) -> None:
    acl = bytes.fromhex(
        "0200000001000600ffffffff02000400e803000004000400ffffffff10000600ffffffff20000400ffffffff"
    )
    cap = bytes.fromhex("0100000200200000000000000000000000000000")

    def make(top: str) -> None:
        write(f"{top}/made", "x")
        os.chown(f"{top}/made", 1000, 1000)
        os.chmod(f"{top}/made", 0o4711)
        os.setxattr(f"{top}/made", "user.note", b"kept")
        os.setxattr(f"{top}/made", "trusted.note", b"not kept")
        write(f"{top}/shared", "x")
        os.setxattr(f"{top}/shared", "system.posix_acl_access", acl)
        write(f"{top}/cap", "x")
        os.setxattr(f"{top}/cap", "security.capability", cap)
        os.mkdir(f"{top}/folder")
        os.chmod(f"{top}/folder", 0o1777)
        os.utime(f"{top}/folder", ns=(5, 7))

    tree, _ = staged(scratch, make)
    seen = tree.edit(lambda top: snapshot(top, folder_times=True))
    tree.merge()
    assert snapshot(tree.lower, folder_times=True) == seen
    assert os.listxattr(f"{tree.lower}/made") == ["user.note"]


def test_marks_of_an_overlay_never_reach_the_host(scratch: str) -> None:
    def mark(top: str) -> None:
        os.mkdir(f"{top}/made")
        os.setxattr(f"{top}/made", "user.overlay.opaque", b"y")
        write(f"{top}/file", "x")
        os.setxattr(f"{top}/file", "user.overlay.redirect", b"/etc")

    tree, _ = staged(scratch, mark)
    tree.merge()
    assert os.listxattr(f"{tree.lower}/made") == []
    assert os.listxattr(f"{tree.lower}/file") == []


def test_another_file_system_gets_its_own_stage_and_keeps_nothing(scratch: str, tmp_path: Path) -> None:
    if os.stat(scratch).st_dev == tmp_path.stat().st_dev:
        pytest.skip("not run: needs two file systems")
    tree, changes = staged(scratch, many)
    names = sorted(os.listdir(scratch))
    prepare(full_plan(tree, changes), f"{tmp_path}/journal", keep_bytes=0)
    hidden = set(os.listdir(scratch)) - set(names)
    assert [name.startswith(".interlock-") for name in hidden] == [True]
    apply(f"{tmp_path}/journal")
    assert sorted(os.listdir(scratch)) == names
    assert read(f"{tree.lower}/f0") == "changed"


def test_a_full_disk_leaves_the_host_as_it_was(scratch: str) -> None:
    def run() -> tuple[str, bool, list[str]]:
        os.mkdir(f"{scratch}/small")
        mount_tmpfs(f"{scratch}/small", size_bytes=256 << 10)
        shutil.copytree(tree.lower, f"{scratch}/small/lower", symlinks=True)
        copy_of = StagedTree(base=f"{scratch}/small", kind="copy")
        os.mkdir(f"{scratch}/big")
        from interlock.model.events import Staging
        from interlock.staging import StagedRoot, copy_tree, list_changes

        copy_tree(copy_of.lower, f"{scratch}/big")
        write(f"{scratch}/big/huge", "x" * (1 << 20))
        root = StagedRoot(name="workspace", lower=copy_of.lower, upper=f"{scratch}/big", mode=Staging.COPY)
        before = snapshot(copy_of.lower, folder_times=True)
        changes = list(list_changes(root, judges_content=lambda path: False))
        os.mkdir(f"{scratch}/small/run")
        try:
            prepare(plan([root], changes, changes), copy_of.journal)
        except MergeFailedError as error:
            same = snapshot(copy_of.lower, folder_times=True) == before
            return str(error), same, os.listdir(copy_of.journal)
        return "", False, []

    tree = StagedTree.make(scratch, "copy", fill)
    message, same, left = in_child(run)
    assert "No space left" in message
    assert same
    assert left == ["outcome"]


def test_a_staged_file_that_changed_after_the_listing_is_refused(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    before = snapshot(tree.lower, folder_times=True)
    merge_plan = full_plan(tree, changes)
    write(f"{tree.upper}/made/inside", "y")
    with pytest.raises(IntegrityError, match="made/inside"):
        prepare(merge_plan, tree.journal)
    assert snapshot(tree.lower, folder_times=True) == before
    assert recover(tree.journal) == "rolled-back"


def test_two_recoveries_at_once_do_not_meet(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    prepare(full_plan(tree, changes), tree.journal)
    with locked(tree.journal, create=False), pytest.raises(StuckError, match="another process"):
        in_child(lambda: recover(tree.journal))
    assert recover(tree.journal) == "finished"
    assert recover(tree.journal) == "finished"
    forget(tree.journal)
    assert recover(tree.journal) == "none"


def test_a_second_merge_waits_for_the_end_of_the_first(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    merge_plan = full_plan(tree, changes)
    prepare(merge_plan, tree.journal)
    for refused in (lambda: prepare(merge_plan, tree.journal), lambda: forget(tree.journal)):
        with pytest.raises(StuckError):
            refused()
    apply(tree.journal)
    with pytest.raises(StuckError):
        apply(tree.journal)
    assert recover(f"{scratch}/nowhere") == "none"


@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "empty"])
def test_a_damaged_log_is_never_followed(scratch: str, damage: str) -> None:
    tree, changes = staged(scratch, many)
    prepare(full_plan(tree, changes), tree.journal)
    before = snapshot(tree.lower, folder_times=True)
    path = Path(tree.journal) / "wal"
    raw = path.read_bytes()
    path.write_bytes(
        {
            "flip": raw[:200] + bytes([raw[200] ^ 1]) + raw[201:],
            "cut": raw[:-1],
            "grow": raw + b" ",
            "empty": b"",
        }[damage]
    )
    with pytest.raises(IntegrityError):
        recover(tree.journal)
    assert snapshot(tree.lower, folder_times=True) == before


def test_a_root_that_is_another_folder_now_is_stuck_until_it_is_back(scratch: str) -> None:
    tree, changes = staged(scratch, many)
    prepare(full_plan(tree, changes), tree.journal)
    os.rename(tree.lower, f"{tree.lower}.away")
    with pytest.raises(StuckError):
        recover(tree.journal)
    os.mkdir(tree.lower)
    with pytest.raises(StuckError):
        recover(tree.journal)
    assert os.listdir(tree.lower) == []
    os.rmdir(tree.lower)
    os.rename(f"{tree.lower}.away", tree.lower)
    assert recover(tree.journal) in ("finished", "rolled-back")


def test_a_case_only_rename(scratch: str) -> None:
    tree, _ = staged(
        scratch, lambda top: [os.rename(f"{top}/f0", f"{top}/F0"), os.rename(f"{top}/a", f"{top}/A")]
    )
    tree.merge()
    assert {"F0", "A"} <= set(os.listdir(tree.lower))
    assert not {"f0", "a"} & set(os.listdir(tree.lower))


def test_a_folder_keeps_the_time_that_it_got_below_one_that_moved_into_a_new_folder(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", lambda top: os.makedirs(f"{top}/old/in/deep"))

    def work(top: str) -> None:
        os.makedirs(f"{top}/new/folder")
        os.rename(f"{top}/old", f"{top}/new/folder/moved")
        os.utime(f"{top}/new/folder/moved/in/deep", ns=(5, 5))

    tree.edit(work)
    tree.merge()
    assert os.stat(f"{tree.lower}/new/folder/moved/in/deep").st_mtime_ns == 5


def test_folders_that_change_places(scratch: str) -> None:
    def swap(top: str) -> None:
        os.rename(f"{top}/a", f"{top}/t")
        os.rename(f"{top}/c", f"{top}/a")
        os.rename(f"{top}/t", f"{top}/c")

    tree, changes = staged(scratch, swap)
    assert [(c.kind.value, c.place.path) for c in changes] == [("rename", "a"), ("rename", "c")]
    with pytest.raises(InputError):
        plan([tree.root], changes, [changes[0]])
    seen = tree.edit(lambda top: snapshot(top, links=False))
    tree.merge()
    assert snapshot(tree.lower, links=False) == seen


def test_a_user_merges_into_a_folder_that_is_closed_for_writing(scratch: str) -> None:
    tree = StagedTree.make(scratch, "user", lambda top: fill(top, links=False))

    def make(top: str) -> None:
        write(f"{top}/e/made", "x")
        write(f"{top}/e/f0", "changed")
        os.chmod(f"{top}/e", 0o550)

    tree.edit(make)
    in_child(lambda: os.chmod(f"{tree.lower}/e", 0o550))
    assert [c.place.path for c in tree.changes()] == ["e/f0", "e/made"]
    tree.merge()
    assert read(f"{tree.lower}/e/made") == "x"
    assert stat.S_IMODE(os.stat(f"{tree.lower}/e").st_mode) == 0o550


def test_a_user_removes_and_moves_folders_that_are_closed_for_writing(scratch: str) -> None:
    tree = StagedTree.make(scratch, "user", lambda top: fill(top, links=False))

    def close() -> None:
        os.chmod(f"{tree.lower}/a/b", 0o550)
        os.chmod(f"{tree.lower}/a", 0o550)

    in_child(close, user=True)

    def remove(top: str) -> None:
        os.chmod(f"{top}/a", 0o750)
        os.chmod(f"{top}/a/b", 0o750)
        shutil.rmtree(f"{top}/a")

    tree.edit(remove)
    before = snapshot(tree.lower, folder_times=True)
    changes = tree.changes()

    def begin() -> None:
        prepare(full_plan(tree, changes), tree.journal)
        write(f"{tree.lower}/stop", "x")

    tree.as_owner(begin)
    tree.merge_back()
    os.unlink(f"{tree.lower}/stop")
    after = snapshot(tree.lower, folder_times=True)
    after["."] = before["."]
    assert after == before
    tree.merge()
    assert not os.path.exists(f"{tree.lower}/a")


def test_a_folder_that_loses_one_to_a_move_and_then_goes_itself(scratch: str) -> None:
    for name, end in (("gone", None), ("replaced", "a file now")):
        os.mkdir(f"{scratch}/{name}")

        def work(top: str, end: str | None = end) -> None:
            os.rename(f"{top}/a/b/deep", f"{top}/c/kept")
            shutil.rmtree(f"{top}/a")
            if end is not None:
                write(f"{top}/a", end)

        tree, _ = staged(f"{scratch}/{name}", work)
        seen = tree.edit(lambda top: snapshot(top, links=False))
        tree.merge()
        assert snapshot(tree.lower, links=False) == seen


@pytest.mark.parametrize("how", ["file", "symlink"])
def test_a_user_replaces_a_folder_that_is_closed_for_writing(scratch: str, how: str) -> None:
    def fill_closed(top: str) -> None:
        os.mkdir(f"{top}/closed")
        write(f"{top}/closed/f", "f")
        os.chmod(f"{top}/closed", 0o555)

    def work(top: str) -> None:
        os.chmod(f"{top}/closed", 0o755)
        shutil.rmtree(f"{top}/closed")
        if how == "file":
            write(f"{top}/closed", "now a file")
        else:
            os.symlink("elsewhere", f"{top}/closed")

    tree = StagedTree.make(scratch, "user", fill_closed)
    before = snapshot(tree.lower)
    tree.edit(work)
    changes = tree.changes()
    tree.as_owner(lambda: prepare(plan([tree.root], changes, changes), tree.journal))
    tree.merge_back()
    assert snapshot(tree.lower) == before
    tree.merge()
    assert not os.path.isdir(f"{tree.lower}/closed")
    assert os.path.lexists(f"{tree.lower}/closed")
