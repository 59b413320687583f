"""What a listing says of a staged layer, and what it refuses to do."""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.staged_edits import fill
from tests.fakes.staged_tree import StagedTree, in_child

from interlock.model.effects import ChangeKind, FileChange, Hazard
from interlock.model.errors import IntegrityError
from interlock.model.events import Staging
from interlock.staging import StagedRoot, count_below, discard, list_changes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")
pytestmark = needs_root


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def by_path(changes: list[FileChange]) -> dict[str, FileChange]:
    return {change.place.path: change for change in changes}


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


@pytest.mark.parametrize("kind", ["redirect", "plain", "index", "user"])
def test_a_copied_up_but_unchanged_file_is_no_change(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, lambda top: fill(top, links=False))

    def touch(top: str) -> None:
        for path in (f"{top}/f0", f"{top}/a/b/f1"):
            with open(path, "r+b"):
                pass
            status = os.stat(path)
            os.chmod(path, 0o600)
            os.chmod(path, stat.S_IMODE(status.st_mode))

    tree.edit(touch)
    assert os.path.exists(f"{tree.upper}/f0")
    assert tree.changes() == []


def test_a_forged_time_does_not_hide_a_change(scratch: str) -> None:
    for kind in ("redirect", "copy"):
        tree = (
            StagedTree.make(os.path.join(scratch, kind), kind, fill)
            if os.mkdir(f"{scratch}/{kind}") is None
            else None
        )
        assert tree is not None

        def forge(top: str) -> None:
            status = os.stat(f"{top}/f0")
            with open(f"{top}/f0", "r+b") as file:
                file.write(b"F")
            os.utime(f"{top}/f0", ns=(status.st_atime_ns, status.st_mtime_ns))

        tree.edit(forge)
        assert [change.kind for change in tree.changes()] == [ChangeKind.MODIFY]


def test_a_removed_folder_is_one_delete_that_counts(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    tree.edit(lambda top: shutil.rmtree(f"{top}/a"))
    (change,) = tree.changes()
    assert change.kind is ChangeKind.DELETE
    below = sum(len(folders) + len(files) for _, folders, files in os.walk(f"{tree.lower}/a"))
    assert count_below(change) == below > 0


def test_a_moved_folder_is_one_rename_and_what_changed_inside(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)

    def move(top: str) -> None:
        os.rename(f"{top}/a", f"{top}/c/moved")
        os.unlink(f"{top}/c/moved/b/f0")

    tree.edit(move)
    changes = tree.changes()
    assert [(c.kind, c.place.path) for c in changes] == [
        (ChangeKind.RENAME, "c/moved"),
        (ChangeKind.DELETE, "c/moved/b/f0"),
    ]
    assert changes[0].source is not None
    assert changes[0].source.path == "a"


def test_order_is_folders_first_and_names_by_bytes(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", lambda top: None)
    names = ["z", "a", "a/x", "a.b", "a-b", "\udcff", "é", "Z", "z/1", "new\nline", "back\\slash"]

    def make(top: str) -> None:
        for name in names:
            os.mkdir(f"{top}/{name}")

    tree.edit(make)
    paths = [change.place.path for change in tree.changes()]
    assert paths == [
        "Z", "a", "a/x", "a-b", "a.b", "back\\x5cslash", "new\\x0aline", "z", "z/1", "é", "\\xff",
    ]  # fmt: skip
    assert all(path.isprintable() for path in paths)


def test_hazards_are_flagged_and_nothing_is_opened(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)

    def plant(top: str) -> None:
        write(f"{top}/suid", "x")
        os.chmod(f"{top}/suid", 0o4755)
        write(f"{top}/sgid", "x")
        os.chmod(f"{top}/sgid", 0o2755)
        os.mkfifo(f"{top}/fifo")
        os.mknod(f"{top}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(f"{top}/disk", stat.S_IFBLK | 0o600, os.makedev(7, 0))
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(top)
            listener.bind("sock")
        write(f"{top}/cap", "x")
        # cap_net_raw+ep, version 2
        os.setxattr(
            f"{top}/cap", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000")
        )

    tree.edit(plant)
    found = {path: change.hazards for path, change in by_path(tree.changes()).items()}
    assert found == {
        "cap": (Hazard.FILE_CAPABILITY,),
        "disk": (Hazard.DEVICE,),
        "fifo": (Hazard.FIFO,),
        "null": (Hazard.DEVICE,),
        "sgid": (Hazard.SET_ID,),
        "sock": (Hazard.SOCKET,),
        "suid": (Hazard.SET_ID,),
    }


OUTWARD = {
    "abs": "/etc/passwd",
    "up": "../x",
    "a/up2": "../../x",
    "a/b/up3": "../../../x",
    "climb": "a/../../x",
    "through": "a/out/../x",  # a/out leads to a place that is not there yet
    "later": "nowhere/../x",
    "loop": "loop",
    "chain": "a/up/../../x",  # the host's a/up leads to c
    "via": "abs",
    "viadir": "etc/passwd",
    "etc": "/etc",
    "sibling": "/dev/shmx",
}
INWARD = {
    "in": "a/f0",
    "a/in": "../f0",
    "a/b/in": "../../c/f0",
    "dangling": "nowhere/at/all",
    "self": ".",
    "thereandback": "a/b/../f0",
    "hostlink": "a/up/f0",
    "dots": "./a/./b//f0",
}


@pytest.mark.parametrize("kind", ["redirect", "copy"])
def test_links_that_leave_the_root_are_told_from_those_that_stay(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, fill)

    def plant(top: str) -> None:
        for name, target in {**OUTWARD, **INWARD}.items():
            os.symlink(target, f"{top}/{name}")
        os.symlink(f"{tree.lower}/a/f0", f"{top}/absolute-inside")

    tree.edit(plant)
    flagged = {c.place.path for c in tree.changes() if Hazard.OUTWARD_LINK in c.hazards}
    assert flagged == set(OUTWARD)


def test_texts_are_given_where_content_is_judged_and_nowhere_else(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", lambda top: [write(f"{top}/{n}", "old") for n in "abcde"])

    def edit(top: str) -> None:
        write(f"{top}/a", "new")
        write(f"{top}/b", "new")
        Path(f"{top}/c").write_bytes(b"\xff\xfe")
        write(f"{top}/d", "x" * 100)
        os.unlink(f"{top}/e")
        write(f"{top}/f", "")

    tree.edit(edit)
    changes = by_path(
        list(list_changes(tree.root, judges_content=lambda path: path != "b", text_limit_bytes=99))
    )
    texts = {path: (change.before_text, change.after_text) for path, change in changes.items()}
    assert texts == {
        "a": ("old", "new"),
        "b": (None, None),
        "c": ("old", None),
        "d": ("old", None),
        "e": ("old", None),
        "f": (None, ""),
    }


def test_names_of_one_file_all_change_in_an_overlay_with_an_index(scratch: str) -> None:
    tree = StagedTree.make(scratch, "index", fill)

    def append(top: str) -> None:
        with open(f"{top}/e/hard", "a", encoding="ascii") as file:
            file.write("more")

    tree.edit(append)
    changes = tree.changes()
    assert [c.place.path for c in changes] == ["e/hard", "a/hard", "c/f0"]
    tree.merge()
    inodes = {os.stat(f"{tree.lower}/{name}").st_ino for name in ("e/hard", "a/hard", "c/f0")}
    assert len(inodes) == 1
    assert Path(f"{tree.lower}/c/f0").read_text(encoding="ascii").endswith("more")


def test_a_whiteout_in_xattr_form_is_a_removal(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    write(f"{tree.upper}/f0", "")
    os.setxattr(f"{tree.upper}/f0", "trusted.overlay.whiteout", b"y")
    assert [(c.kind, c.place.path) for c in tree.changes()] == [(ChangeKind.DELETE, "f0")]


@pytest.mark.parametrize(
    ("prefix", "mark", "value"),
    [
        ("trusted.overlay.", "redirect", b"/../../etc"),
        ("trusted.overlay.", "redirect", b"/a//b"),
        ("trusted.overlay.", "redirect", b"a/b"),
        ("user.overlay.", "redirect", b"/a"),
    ],
)
def test_marks_that_cannot_be_are_refused(scratch: str, prefix: str, mark: str, value: bytes) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    os.mkdir(f"{tree.upper}/made")
    os.setxattr(f"{tree.upper}/made", prefix + mark, value)
    root = StagedRoot(name="w", lower=tree.lower, upper=tree.upper, xattr_prefix=prefix)
    with pytest.raises(IntegrityError, match="made"):
        list(list_changes(root, judges_content=lambda path: False))


def test_a_file_without_its_bytes_is_refused(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    write(f"{tree.upper}/f0", "")
    os.setxattr(f"{tree.upper}/f0", "trusted.overlay.metacopy", b"")
    with pytest.raises(IntegrityError, match="metacopy"):
        tree.changes()


def test_a_symlink_in_place_of_a_host_folder_is_not_followed(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    tree.edit(lambda top: write(f"{top}/a/made", "x"))
    os.mkdir(f"{scratch}/outside")
    shutil.rmtree(f"{tree.lower}/a")
    os.symlink(f"{scratch}/outside", f"{tree.lower}/a")
    kinds = {c.place.path: c.kind for c in tree.changes()}
    assert kinds == {"a": ChangeKind.REPLACE, "a/made": ChangeKind.CREATE}


def test_an_ordinary_user_lists_files_that_it_may_not_read(scratch: str) -> None:
    tree = StagedTree.make(scratch, "user", lambda top: fill(top, links=False))

    def hide(top: str) -> None:
        write(f"{top}/secret", "x")
        os.chmod(f"{top}/secret", 0o200)
        os.mkdir(f"{top}/closed")
        write(f"{top}/closed/inside", "y")
        os.chmod(f"{top}/closed", 0o300)

    tree.edit(hide)
    changes = by_path(tree.changes())
    assert set(changes) == {"secret", "closed", "closed/inside"}
    assert stat.S_IMODE(os.stat(f"{tree.upper}/secret").st_mode) == 0o200
    tree.merge()
    assert stat.S_IMODE(os.stat(f"{tree.lower}/secret").st_mode) == 0o200
    assert stat.S_IMODE(os.stat(f"{tree.lower}/closed").st_mode) == 0o300
    assert Path(f"{tree.lower}/closed/inside").read_text(encoding="ascii") == "y"


@pytest.mark.slow  # `test_a_large_sparse_file_is_merged_as_one` stays
def test_a_sparse_file_of_two_gibibytes_is_listed_and_merged_with_its_holes(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)

    def make(top: str) -> None:
        with open(f"{top}/big", "wb") as file:
            file.truncate(2 << 30)
            file.seek(1 << 30)
            file.write(b"middle")

    tree.edit(make)
    (change,) = tree.changes()
    assert change.after is not None
    assert change.after.size_bytes == 2 << 30
    tree.merge()
    status = os.stat(f"{tree.lower}/big")
    assert status.st_size == 2 << 30
    assert status.st_blocks * 512 < 1 << 20


def test_folders_nested_too_deep_are_refused(scratch: str) -> None:
    tree = StagedTree.make(scratch, "copy", lambda top: None)

    def nest(top: str) -> None:
        os.chdir(top)
        for _ in range(400):
            os.mkdir("d")
            os.chdir("d")

    in_child(lambda: nest(tree.upper))
    with pytest.raises(IntegrityError, match="nested deeper"):
        tree.changes()
    discard(tree.root)
    assert os.listdir(tree.upper) == []


def test_discard_drops_everything_and_follows_no_link(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    os.mkdir(f"{scratch}/outside")
    write(f"{scratch}/outside/kept", "x")

    def plant(top: str) -> None:
        os.symlink(f"{scratch}/outside", f"{top}/a/out")
        os.mkfifo(f"{top}/fifo")
        os.unlink(f"{top}/f0")

    tree.edit(plant)
    discard(tree.root)
    assert os.listdir(tree.upper) == []
    assert os.listdir(f"{scratch}/outside") == ["kept"]
    assert tree.changes() == []


@pytest.mark.slow
def test_a_hundred_thousand_files(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)

    def make(top: str) -> None:
        for folder in range(100):
            os.mkdir(f"{top}/d{folder}")
            for name in range(1000):
                write(f"{top}/d{folder}/{name}", f"{folder} {name}")

    tree.edit(make)
    assert sum(1 for _ in list_changes(tree.root, judges_content=lambda path: False)) == 100_100
    tree.merge()
    assert len(os.listdir(f"{tree.lower}/d99")) == 1000


def test_a_copy_is_as_the_host(scratch: str) -> None:
    tree = StagedTree.make(scratch, "copy", fill)
    assert tree.root.mode is Staging.COPY
    assert tree.changes() == []
