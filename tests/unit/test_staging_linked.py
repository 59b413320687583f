"""Host files with several names, in an overlay with an index: which names a staged file stands for."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.staged_tree import StagedTree, snapshot

from interlock.model.effects import ChangeKind
from interlock.staging import copy_tree, linked

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
