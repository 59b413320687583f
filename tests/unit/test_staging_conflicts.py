"""What a listing says where the host changed a place under the agent."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.fakes.staged_tree import StagedTree

from interlock.boundary.drains import stamp_clock_ns
from interlock.model.effects import ChangeKind, FileChange, FileType, HostEdit
from interlock.model.places import Place
from interlock.staging import list_changes
from interlock.staging.baseline import Baseline, HostEntry, Touch
from interlock.staging.stamps import before_stamp

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

OVERLAYS = ("redirect", "index", "user")
KINDS = (*OVERLAYS, "copy")
TICK_S = 0.02


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def append(path: str, text: str) -> None:
    with open(path, "a", encoding="ascii") as file:
        file.write(text)


def replaced(path: str, text: str) -> None:
    """Save as an editor does: a new file beside the old one takes its name."""
    write(f"{path}~", text)
    os.rename(f"{path}~", path)


def fill(top: str) -> None:
    for folder in ("d", "d/e", "other"):
        os.mkdir(f"{top}/{folder}")
    for name in ("a", "b", "d/x", "d/y", "d/e/z", "other/x"):
        write(f"{top}/{name}", f"{name}\n")
    os.symlink("a", f"{top}/link")


class Scene:
    """A staged tree and the moment at which its run began."""

    def __init__(self, base: str, kind: str) -> None:
        self.tree = StagedTree.make(base, kind, fill)
        time.sleep(TICK_S)
        self.since_ns = stamp_clock_ns()
        self.inode = os.stat(self.tree.lower).st_ino

    def host(self, edit: Callable[[str], object]) -> None:
        self.tree.as_owner(lambda: (edit(self.tree.lower), None)[1])

    def agent(self, edit: Callable[[str], object]) -> None:
        self.tree.edit(lambda top: (edit(top), None)[1])

    def baseline(self, **more: object) -> Baseline:
        at = Baseline.at(self.since_ns, time.time_ns())
        return replace(at, **{"inodes": {"workspace": self.inode}, **more})  # type: ignore[arg-type]

    def listed(self, **more: object) -> dict[str, FileChange]:
        baseline = self.baseline(**more)
        root, owner = self.tree.root, self.tree.as_owner
        changes = owner(lambda: list(list_changes(root, judges_content=lambda _: False, baseline=baseline)))
        assert len({change.place for change in changes}) == len(changes)
        return {change.place.path: change for change in changes}

    def edits(self, **more: object) -> dict[str, HostEdit | None]:
        return {path: change.host_edit for path, change in self.listed(**more).items()}


@pytest.fixture(params=KINDS)
def scene(scratch: str, request: pytest.FixtureRequest) -> Scene:
    return Scene(scratch, request.param)


@pytest.fixture
def rooted(scratch: str) -> Scene:
    return Scene(scratch, "index")


def test_without_an_edit_of_the_host_nothing_is_a_conflict(scene: Scene) -> None:
    def work(top: str) -> None:
        append(f"{top}/a", "more\n")
        replaced(f"{top}/b", "anew\n")
        os.rename(f"{top}/d/x", f"{top}/d/moved")
        os.unlink(f"{top}/d/y")
        write(f"{top}/new", "new\n")
        shutil.rmtree(f"{top}/other")
        os.chmod(f"{top}/d", 0o700)

    scene.agent(work)
    edits = scene.edits()
    assert set(edits) == {"a", "b", "d", "d/x", "d/y", "d/moved", "new", "other"}
    assert set(edits.values()) == {None}


@pytest.mark.parametrize("how", ["in place", "by rename", "mode", "times kept"])
def test_a_file_that_both_changed_is_a_conflict(scene: Scene, how: str) -> None:
    def edit(top: str) -> None:
        before = os.stat(f"{top}/a")
        if how == "by rename":
            replaced(f"{top}/a", "theirs\n")
        elif how == "mode":
            os.chmod(f"{top}/a", 0o600)
        else:
            write(f"{top}/a", "A\n")
            if how == "times kept":
                os.utime(f"{top}/a", ns=(before.st_atime_ns, before.st_mtime_ns))

    scene.agent(lambda top: append(f"{top}/a", "ours\n"))
    scene.host(edit)
    change = scene.listed()["a"]
    assert (change.kind, change.host_edit) == (ChangeKind.MODIFY, HostEdit.EDITED)
    assert change.before is not None
    if how == "mode":
        assert change.before.mode == 0o600
    else:
        assert change.before.size_bytes == os.stat(f"{scene.tree.lower}/a").st_size


def test_what_the_host_edits_before_the_agent_comes_is_a_conflict_where_nothing_tells(scene: Scene) -> None:
    scene.host(lambda top: write(f"{top}/a", "theirs\n"))
    scene.agent(lambda top: append(f"{top}/a", "ours\n"))
    assert scene.edits()["a"] is HostEdit.EDITED


def test_a_file_that_both_made_is_a_conflict(scene: Scene) -> None:
    scene.agent(lambda top: write(f"{top}/d/new", "ours\n"))
    scene.host(lambda top: write(f"{top}/d/new", "theirs\n"))
    assert scene.edits() == {"d/new": HostEdit.APPEARED}


def test_a_file_that_both_made_alike_is_no_change(scene: Scene) -> None:
    def work(top: str) -> None:
        write(f"{top}/d/new", "same\n")
        write(f"{top}/a", "same\n")
        os.symlink("a", f"{top}/second")

    scene.agent(work)
    scene.host(work)
    assert scene.edits() == {}


def test_a_file_that_the_host_removed_is_gone(scene: Scene) -> None:
    scene.agent(lambda top: append(f"{top}/a", "ours\n"))
    scene.host(lambda top: os.unlink(f"{top}/a"))
    change = scene.listed()["a"]
    # a full copy, and an ordinary user's layer, cannot tell it from a file that the agent moved here
    expected = HostEdit.GONE if scene.tree.kind in ("redirect", "index") else HostEdit.UNCERTAIN
    assert (change.kind, change.before, change.host_edit) == (ChangeKind.CREATE, None, expected)


def test_a_file_that_the_host_moved_away_is_gone(rooted: Scene) -> None:
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    rooted.host(lambda top: os.rename(f"{top}/a", f"{top}/a.old"))
    assert rooted.edits() == {"a": HostEdit.GONE}


def test_a_file_that_the_agent_moved_is_not_gone_where_others_come_and_go(rooted: Scene) -> None:
    rooted.agent(lambda top: os.rename(f"{top}/a", f"{top}/c"))
    rooted.host(lambda top: os.unlink(f"{top}/b"))
    assert rooted.edits() == {"a": None, "c": None}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_the_host_removed_is_gone_with_what_the_agent_wrote_in_it(
    scratch: str, kind: str
) -> None:
    scene = Scene(scratch, kind)

    def work(top: str) -> None:
        append(f"{top}/d/x", "ours\n")
        write(f"{top}/d/new", "ours\n")

    scene.agent(work)
    scene.host(lambda top: shutil.rmtree(f"{top}/d"))
    edits = scene.edits()
    assert edits["d"] is HostEdit.GONE
    assert edits["d/x"] is HostEdit.GONE
    assert edits["d/new"] is None


def test_both_removed_it_is_no_change(scene: Scene) -> None:
    scene.agent(lambda top: os.unlink(f"{top}/a"))
    scene.host(lambda top: os.unlink(f"{top}/a"))
    assert scene.edits() == {}


def test_a_file_that_the_agent_removed_and_the_host_edited_is_a_conflict(scene: Scene) -> None:
    scene.agent(lambda top: os.unlink(f"{top}/a"))
    scene.host(lambda top: append(f"{top}/a", "theirs\n"))
    change = scene.listed()["a"]
    assert (change.kind, change.host_edit) == (ChangeKind.DELETE, HostEdit.EDITED)


@pytest.mark.parametrize("what", ["edited", "added", "removed", "mode", "deep"])
def test_a_removed_folder_in_which_the_host_worked_is_a_conflict(scene: Scene, what: str) -> None:
    edits: dict[str, Callable[[str], object]] = {
        "edited": lambda top: append(f"{top}/d/x", "theirs\n"),
        "added": lambda top: write(f"{top}/d/new", "theirs\n"),
        "removed": lambda top: os.unlink(f"{top}/d/x"),
        "mode": lambda top: os.chmod(f"{top}/d/e/z", 0o600),
        "deep": lambda top: replaced(f"{top}/d/e/z", "theirs\n"),
    }
    scene.agent(lambda top: shutil.rmtree(f"{top}/d"))
    scene.host(edits[what])
    assert scene.edits() == {"d": HostEdit.EDITED}


def test_siblings_in_a_folder_in_which_the_host_works_are_no_conflict(scene: Scene) -> None:
    def work(top: str) -> None:
        append(f"{top}/d/x", "ours\n")
        write(f"{top}/d/new", "ours\n")

    def edit(top: str) -> None:
        write(f"{top}/d/theirs", "theirs\n")
        replaced(f"{top}/d/y", "theirs\n")
        os.unlink(f"{top}/d/e/z")

    scene.agent(work)
    scene.host(edit)
    edits = scene.edits()
    assert edits.pop("d/theirs", None) in (
        None,
        HostEdit.EDITED,
    )  # of a full copy it cannot be told who made it
    assert edits == {"d/new": None, "d/x": None}


def test_what_only_the_host_did_to_a_full_copy_is_no_change(scratch: str) -> None:
    scene = Scene(scratch, "copy")

    def edit(top: str) -> None:
        append(f"{top}/a", "theirs\n")
        os.unlink(f"{top}/b")
        shutil.rmtree(f"{top}/d")
        write(f"{top}/other/new", "theirs\n")
        os.chmod(f"{top}/other", 0o700)

    scene.host(edit)
    assert scene.edits() == {}


def test_a_folder_that_the_agent_moved_carries_the_hosts_edits(rooted: Scene) -> None:
    rooted.agent(lambda top: os.rename(f"{top}/d", f"{top}/moved"))
    rooted.host(lambda top: append(f"{top}/d/x", "theirs\n"))
    assert rooted.edits() == {"moved": None}


def test_in_a_moved_folder_a_file_that_both_changed_is_a_conflict(rooted: Scene) -> None:
    def work(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/moved")
        append(f"{top}/moved/x", "ours\n")
        append(f"{top}/moved/y", "ours\n")

    rooted.agent(work)
    rooted.host(lambda top: append(f"{top}/d/x", "theirs\n"))
    assert rooted.edits() == {"moved": None, "moved/x": HostEdit.EDITED, "moved/y": None}


def test_a_folder_made_anew_does_not_remove_what_the_host_puts_there(scene: Scene) -> None:
    scene.agent(lambda top: os.mkdir(f"{top}/both"))

    def edit(top: str) -> None:
        os.mkdir(f"{top}/both")
        write(f"{top}/both/theirs", "theirs\n")

    scene.host(edit)
    assert set(scene.edits()) <= {"both/theirs"}
    assert scene.edits().get("both/theirs", HostEdit.EDITED) is HostEdit.EDITED


def test_a_mode_that_the_host_changed_is_not_put_back(rooted: Scene) -> None:
    rooted.agent(lambda top: write(f"{top}/d/new", "ours\n"))
    rooted.host(lambda top: os.chmod(f"{top}/d", 0o700))
    assert rooted.edits() == {"d": HostEdit.EDITED, "d/new": None}


@pytest.mark.parametrize("kind", OVERLAYS)
def test_a_link_that_both_made_anew_is_a_conflict(scratch: str, kind: str) -> None:
    scene = Scene(scratch, kind)

    def relink(target: str) -> Callable[[str], None]:
        def work(top: str) -> None:
            os.unlink(f"{top}/link")
            os.symlink(target, f"{top}/link")

        return work

    scene.agent(relink("ours"))
    scene.host(relink("theirs"))
    change = scene.listed()["link"]
    assert change.host_edit is not None
    assert change.before is not None
    assert change.before.link_target == "theirs"


def test_a_type_that_the_host_changed_is_a_conflict(scene: Scene) -> None:
    def edit(top: str) -> None:
        os.unlink(f"{top}/a")
        os.mkdir(f"{top}/a")

    scene.agent(lambda top: append(f"{top}/a", "ours\n"))
    scene.host(edit)
    change = scene.listed()["a"]
    assert (change.kind, change.host_edit) == (ChangeKind.REPLACE, HostEdit.EDITED)
    assert change.before is not None
    assert change.before.type is FileType.DIRECTORY


def test_a_folder_that_the_host_put_in_the_place_of_another_is_found(rooted: Scene) -> None:
    """Its files are old, and were never in this place before."""
    rooted.agent(lambda top: append(f"{top}/d/x", "ours\n"))

    def swap(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/d.old")
        os.rename(f"{top}/other", f"{top}/d")
        os.unlink(write_and_name(f"{top}/d/passing"))

    rooted.host(swap)
    assert rooted.edits() == {"d/x": HostEdit.EDITED}


def write_and_name(path: str) -> str:
    write(path, "")
    return path


@pytest.mark.parametrize("what", ["file", "link"])
def test_a_folder_that_became_something_else_is_a_conflict_where_the_host_worked_in_it(
    scene: Scene, what: str
) -> None:
    def work(top: str) -> None:
        shutil.rmtree(f"{top}/d")
        write(f"{top}/d", "ours\n") if what == "file" else os.symlink("a", f"{top}/d")

    scene.agent(work)
    assert scene.edits() == {"d": None}
    scene.host(lambda top: append(f"{top}/d/e/z", "theirs\n"))
    assert scene.edits() == {"d": HostEdit.EDITED}


@pytest.mark.parametrize("kind", OVERLAYS)
def test_an_old_folder_that_the_host_put_where_the_agent_made_one_is_not_sure(
    scratch: str, kind: str
) -> None:
    scene = Scene(scratch, kind)

    def work(top: str) -> None:
        os.mkdir(f"{top}/n")
        write(f"{top}/n/x", "ours\n")

    scene.agent(work)
    scene.host(lambda top: os.rename(f"{top}/other", f"{top}/n"))
    assert scene.edits() == {"n/x": HostEdit.UNCERTAIN}


def test_an_old_folder_put_in_the_place_of_another_is_not_sure_without_handles(scratch: str) -> None:
    scene = Scene(scratch, "user")
    scene.agent(lambda top: append(f"{top}/d/x", "ours\n"))

    def swap(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/d.old")
        os.rename(f"{top}/other", f"{top}/d")

    scene.host(swap)
    assert scene.edits() == {"d/x": HostEdit.UNCERTAIN}


def test_a_workspace_that_is_another_folder_now_is_a_conflict_throughout(rooted: Scene) -> None:
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    assert set(rooted.edits(inodes={"workspace": 1}).values()) == {HostEdit.EDITED}


def touch_of(
    scene: Scene, path: str, *, sure: bool = True, read: bool = False, digest: str = ""
) -> dict[Place, Touch]:
    seen = HostEntry.of(os.lstat(f"{scene.tree.lower}/{path}"), digest=digest)
    return {Place(root="workspace", path=path): Touch(seen=seen, sure=sure, read=read)}


@pytest.mark.parametrize("kind", OVERLAYS)
def test_an_edit_that_the_agent_found_there_is_no_conflict(scratch: str, kind: str) -> None:
    scene = Scene(scratch, kind)
    scene.host(lambda top: write(f"{top}/a", "theirs\n"))
    touches = touch_of(scene, "a")
    time.sleep(TICK_S)
    scene.agent(lambda top: append(f"{top}/a", "ours\n"))
    assert scene.edits(touches=touches, whole=True) == {"a": None}
    assert scene.edits(touches=touches, whole=False) == {"a": HostEdit.EDITED}
    assert scene.edits(touches=touch_of(scene, "a", sure=False), whole=True) == {"a": HostEdit.UNCERTAIN}
    scene.host(lambda top: append(f"{top}/a", "more\n"))
    assert scene.edits(touches=touches, whole=True) == {"a": HostEdit.EDITED}


def test_a_file_written_blindly_over_the_hosts_is_a_conflict(rooted: Scene) -> None:
    """An overlay may still say that there is nothing where the host just made a file."""
    made = f"{rooted.tree.lower}/made"

    def work(top: str) -> None:
        assert not os.path.exists(f"{top}/made")
        write(made, "theirs\n")
        time.sleep(TICK_S)
        write(f"{top}/made", "ours\n")

    rooted.agent(work)
    assert rooted.edits(touches=touch_of(rooted, "made"), whole=True) == {"made": HostEdit.EDITED}
    assert rooted.edits(whole=True) == {"made": HostEdit.APPEARED}


def test_a_copy_that_the_kernel_made_before_the_edit_is_a_conflict(rooted: Scene) -> None:
    """Copying a large file takes the kernel longer than it takes the host to change it."""
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    rooted.host(lambda top: append(f"{top}/a", "theirs\n"))
    assert rooted.edits(touches=touch_of(rooted, "a"), whole=True) == {"a": HostEdit.EDITED}


def test_what_the_agent_opened_and_left_as_it_was_is_no_change(rooted: Scene) -> None:
    at = os.open(rooted.tree.lower, os.O_RDONLY)
    stamp = before_stamp(at, "a", whole=False)
    os.close(at)
    touches = touch_of(rooted, "a", digest=stamp.digest)

    def work(top: str) -> None:
        with open(f"{top}/a", "r+b"):
            pass

    rooted.agent(work)
    rooted.host(lambda top: append(f"{top}/a", "theirs\n"))
    assert rooted.edits(touches=touches, whole=True) == {}


def test_the_base_of_a_conflict_is_told(rooted: Scene) -> None:
    touches = touch_of(rooted, "a", digest="ab" * 32)
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    rooted.host(lambda top: os.chmod(f"{top}/a", 0o600))
    base = rooted.listed(touches=touches, whole=True)["a"].base
    assert base is not None
    assert (base.mode, base.size_bytes, base.digest) == (0o644, 2, "ab" * 32)


def test_what_this_runs_own_merge_set_is_no_edit_of_the_host(rooted: Scene) -> None:
    rooted.agent(lambda top: (append(f"{top}/a", "1\n"), os.unlink(f"{top}/b"), write(f"{top}/d/new", "1\n")))
    first = rooted.listed()
    rooted.tree.merge()
    merged = {change.place: change.after for change in first.values()}
    assert rooted.edits(merged=merged) == {}

    def again(top: str) -> None:
        append(f"{top}/a", "2\n")
        write(f"{top}/b", "2\n")
        append(f"{top}/d/new", "2\n")

    rooted.agent(again)
    assert rooted.edits(merged=merged) == {"a": None, "b": None, "d/new": None}
    assert rooted.edits()["a"] is HostEdit.EDITED
    rooted.host(lambda top: (append(f"{top}/a", "theirs\n"), write(f"{top}/b", "theirs\n")))
    assert rooted.edits(merged=merged) == {
        "a": HostEdit.EDITED,
        "b": HostEdit.APPEARED,
        "d/new": None,
    }


def test_after_the_clock_was_set_back_nothing_is_sure(scene: Scene) -> None:
    def work(top: str) -> None:
        append(f"{top}/a", "ours\n")
        os.unlink(f"{top}/b")
        write(f"{top}/new", "ours\n")

    scene.agent(work)
    edits = scene.edits(stepped_back=True)
    assert edits == {"a": HostEdit.UNCERTAIN, "b": HostEdit.UNCERTAIN, "new": None}
    known = touch_of(scene, "a")
    assert scene.edits(stepped_back=True, whole=True, touches=known)["a"] in (None, HostEdit.UNCERTAIN)


def test_an_edit_from_the_future_is_not_sure(rooted: Scene) -> None:
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    rooted.host(lambda top: append(f"{top}/a", "theirs\n"))
    assert rooted.edits(now_ns=rooted.since_ns - 10**10) == {"a": HostEdit.UNCERTAIN}


def test_a_file_with_two_names_is_a_conflict_at_both(rooted: Scene) -> None:
    os.link(f"{rooted.tree.lower}/a", f"{rooted.tree.lower}/d/again")
    time.sleep(TICK_S)
    rooted.since_ns = stamp_clock_ns()
    rooted.agent(lambda top: append(f"{top}/a", "ours\n"))
    assert set(rooted.edits().values()) == {None}
    rooted.host(lambda top: append(f"{top}/d/again", "theirs\n"))
    edits = rooted.edits(whole=True, touches=touch_of(rooted, "a"))
    assert edits == {"a": HostEdit.EDITED, "d/again": HostEdit.EDITED}
    assert stat.S_ISREG(os.lstat(f"{rooted.tree.lower}/d/again").st_mode)


@pytest.mark.parametrize("kind", ["redirect", "index"])
@pytest.mark.parametrize("instead", ["nothing", "a file", "a link"])
def test_a_moved_folder_that_the_host_removed_is_a_conflict_and_no_fault(
    scratch: str, kind: str, instead: str
) -> None:
    scene = Scene(scratch, kind)

    def work(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/moved")
        append(f"{top}/moved/x", "more\n")
        write(f"{top}/fresh", "fresh\n")

    scene.tree.edit(work)

    def host(top: str) -> None:
        shutil.rmtree(f"{top}/d")
        if instead == "a file":
            write(f"{top}/d", "mine\n")
        elif instead == "a link":
            os.symlink("other", f"{top}/d")

    scene.host(host)
    found = scene.listed()
    assert found["fresh"].host_edit is None
    assert found["moved"].host_edit is HostEdit.GONE
    assert found["moved/x"].host_edit is HostEdit.GONE
    if instead != "nothing":
        assert found["d"].host_edit is not None
    else:
        assert "d" not in found


def test_a_folder_moved_onto_one_of_the_host_that_lost_its_own_shows_both(scratch: str) -> None:
    scene = Scene(scratch, "redirect")
    scene.tree.edit(lambda top: os.rename(f"{top}/d", f"{top}/moved"))

    def host(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/moved")

    scene.host(host)
    found = scene.listed()
    assert found["moved"].kind is ChangeKind.REPLACE
    assert found["moved"].host_edit is HostEdit.GONE
