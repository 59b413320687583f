"""What is removed at one place and lives on at another is not removed from the host without the other."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.staged_edits import fill
from tests.fakes.staged_tree import KINDS, StagedTree, snapshot

from interlock.model.dependencies import unmet
from interlock.model.effects import ChangeKind
from interlock.staging import plan

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def move(source: str, target: str) -> None:
    """Move as `mv` does: by a copy with its times where the overlay cannot rename."""
    try:
        os.rename(source, target)
    except OSError:
        shutil.copytree(source, target, symlinks=True)
        shutil.rmtree(source)


def needs(tree: StagedTree) -> dict[str, tuple[str, ...]]:
    gone = (ChangeKind.DELETE, ChangeKind.REPLACE)
    return {one.place.path: one.needs for one in tree.changes() if one.kind in gone}


CASES: dict[str, tuple[Callable[[str], object], dict[str, tuple[str, ...]]]] = {
    "a file": (lambda top: os.rename(f"{top}/f0", f"{top}/moved"), {"f0": ("moved",)}),
    "a file into a new folder": (
        lambda top: (os.mkdir(f"{top}/new"), os.rename(f"{top}/a/f1", f"{top}/new/f1")),
        {"a/f1": ("new/f1",)},
    ),
    "a file over another one": (
        lambda top: (grown(f"{top}/a/f1"), os.rename(f"{top}/f0", f"{top}/a/f1")),
        {"f0": ("a/f1",)},
    ),
    "a file of which a link stands where it was": (
        lambda top: (os.rename(f"{top}/f0", f"{top}/moved"), os.symlink("moved", f"{top}/f0")),
        {"f0": ("moved",)},
    ),
    "a file that became a folder with it inside": (
        lambda top: (
            os.rename(f"{top}/f0", f"{top}/moved"),
            os.mkdir(f"{top}/f0"),
            os.rename(f"{top}/moved", f"{top}/f0/moved"),
        ),
        {"f0": ("f0/moved",)},
    ),
    "a file that is removed": (lambda top: os.unlink(f"{top}/f0"), {"f0": ()}),
    "a file beside a new one": (
        lambda top: (os.unlink(f"{top}/f0"), shutil.copy(f"{top}/f1", f"{top}/copy")),
        {"f0": ()},
    ),
    "a file of the same size and time": (
        lambda top: (
            other(f"{top}/f0", f"{top}/moved"),
            os.unlink(f"{top}/f0"),
        ),
        {"f0": ()},
    ),
}


def grown(path: str) -> None:
    with open(path, "a", encoding="ascii") as file:
        file.write("more\n")


def other(like: str, path: str) -> None:
    status = os.stat(like)
    with open(path, "w", encoding="ascii") as file:
        file.write("x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_a_removal_names_where_the_content_went(scratch: str, kind: str, case: str) -> None:
    edit, wanted = CASES[case]
    tree = StagedTree.make(scratch, kind, lambda top: fill(top, links=False))
    tree.edit(lambda top: (edit(top), None)[1])
    assert needs(tree) == wanted


@pytest.mark.parametrize("kind", ["plain", "user", "copy"])
def test_a_folder_that_was_moved_by_a_copy_stands_with_each_of_its_files(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, lambda top: fill(top, links=False))
    tree.edit(lambda top: move(f"{top}/a/b", f"{top}/e/b"))
    found = needs(tree)
    assert sorted(found) == ["a/b"]
    assert sorted(found["a/b"]) == sorted(
        f"e/b/{name}" for name in ("f0", "f1", "f2", "deep/f0", "deep/f1", "deep/f2")
    )


WITH_ORIGIN = ("redirect", "plain", "index")


@pytest.mark.parametrize("kind", KINDS)
def test_an_overlay_of_root_knows_a_moved_file_again_after_it_was_edited(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, lambda top: fill(top, links=False))

    def work(top: str) -> None:
        os.rename(f"{top}/f0", f"{top}/moved")
        grown(f"{top}/moved")
        os.rename(f"{top}/c/f0", f"{top}/c/other-name")
        grown(f"{top}/c/other-name")
        os.rename(f"{top}/c", f"{top}/d") if kind in ("redirect", "index") else None
        os.rename(f"{top}/a/b/f0", f"{top}/out")
        shutil.rmtree(f"{top}/a/b")

    tree.edit(work)
    found = needs(tree)
    if kind not in WITH_ORIGIN:
        assert not any(found.values())
        return
    assert found["f0"] == ("moved",)
    assert found["a/b"] == ("out",)
    assert ("d/other-name" if kind != "plain" else "c/other-name",) in found.values()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_two_names_on_the_host_was_not_moved_when_one_is_edited(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, fill)

    def work(top: str) -> None:
        grown(f"{top}/c/f0")
        os.unlink(f"{top}/e/hard")

    tree.edit(work)
    assert needs(tree) == {"e/hard": ()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_place_keeps_the_moved_file_at_the_old_one(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, lambda top: fill(top, links=False))
    before = snapshot(tree.lower)
    tree.edit(lambda top: (os.rename(f"{top}/f0", f"{top}/c/hook"), os.unlink(f"{top}/f1")))
    changes = tree.changes()
    chosen = {index for index, one in enumerate(changes) if one.place.path != "c/hook"}
    while missing := unmet(changes, frozenset(chosen)):
        chosen -= {index for index, _ in missing}
    released = [changes[index] for index in sorted(chosen)]
    assert [one.place.path for one in released] == ["f1"]
    tree.merge(released)
    assert snapshot(tree.lower)["f0"] == before["f0"]


def test_a_removal_alone_is_refused_with_the_place_that_it_needs(scratch: str) -> None:
    from interlock.model.errors import InputError

    tree = StagedTree.make(scratch, "redirect", lambda top: fill(top, links=False))
    tree.edit(lambda top: os.rename(f"{top}/f0", f"{top}/moved"))
    changes = tree.changes()
    alone = [one for one in changes if one.kind is ChangeKind.DELETE]
    with pytest.raises(InputError, match="`workspace:f0` cannot be merged without `workspace:moved`"):
        plan([tree.root], changes, alone)
