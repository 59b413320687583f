"""Disks that fail, fill up, are taken away or turn read-only: a clear error, nothing lost, nothing half."""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest
from tests.fakes.failing_calls import CHANGING, CREATING, READING, run_failing
from tests.fakes.merge_stand import DONE, NAMES, REFUSED, STUCK, UNSOUND, Stand
from tests.fakes.staged_tree import StagedTree, in_child, mount_tmpfs

from interlock.model.errors import StuckError
from interlock.staging import MergeFailedError, apply, plan, prepare, recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

WRITES = CHANGING | {CREATING}
EVERYTHING = CHANGING | READING
slow = pytest.mark.slow


def fill(top: str) -> None:
    for folder in ("a", "a/b", "c", "c/d"):
        os.mkdir(f"{top}/{folder}")
    for number, folder in enumerate(("", "a/", "a/b/", "c/", "c/d/")):
        for name in ("f0", "f1"):
            write(f"{top}/{folder}{name}", f"{folder}{name}\n")
            os.utime(f"{top}/{folder}{name}", ns=(10**18, 10**18 + number))
    for folder in ("a/b", "a", "c/d", "c"):
        os.utime(f"{top}/{folder}", ns=(10**18, 10**18))


def work(top: str) -> None:
    write(f"{top}/f0", "changed\n")
    write(f"{top}/c/f1", "changed\n")
    os.unlink(f"{top}/f1")
    os.chmod(f"{top}/c/f0", 0o700)
    os.mkdir(f"{top}/new")
    write(f"{top}/new/big", "x" * 300_000)
    os.link(f"{top}/new/big", f"{top}/new/also")
    os.symlink("big", f"{top}/new/link")
    os.rename(f"{top}/a/b", f"{top}/new/moved")
    write(f"{top}/new/moved/f1", "changed\n")
    shutil.rmtree(f"{top}/c/d")
    write(f"{top}/c/d", "was a folder\n")
    os.setxattr(f"{top}/a", "user.t", b"1")


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


@pytest.mark.parametrize(
    ("calls", "error", "step"),
    [
        pytest.param(WRITES, errno.EIO, 4, id="EIO"),
        pytest.param(WRITES, errno.EIO, 1, id="EIO at all", marks=slow),
        pytest.param(WRITES, errno.ENOSPC, 1, id="ENOSPC at all", marks=slow),
        pytest.param(WRITES, errno.EDQUOT, 1, id="EDQUOT at all", marks=slow),
        pytest.param(WRITES, errno.EROFS, 1, id="EROFS at all", marks=slow),
        pytest.param(WRITES, errno.EACCES, 1, id="EACCES at all", marks=slow),
        pytest.param(EVERYTHING, errno.EIO, 1, id="EIO at all that reads too", marks=slow),
    ],
)
def test_a_call_that_fails_once_ends_in_before_or_after_and_is_told_so(
    scratch: str, calls: frozenset[str], error: int, step: int
) -> None:
    stand = Stand(scratch, fill, work)
    moments = range(1, stand.count(calls) + 1, step)
    said: dict[int, int] = {}
    faults = []
    for at in moments:
        ended = stand.failing(calls, at, error)
        said[ended.code] = said.get(ended.code, 0) + 1
        if fault := stand.fault_of(ended):
            faults.append((at, ended.hit, fault))
    print(f"{NAMES[error]}: {len(moments)} moments, {len(faults)} faults, told {said}")
    assert faults == []
    assert {DONE, REFUSED} <= set(said)


@pytest.mark.parametrize(
    ("error", "step"),
    [(errno.ENOSPC, 12), pytest.param(errno.ENOSPC, 1, marks=slow), pytest.param(errno.EROFS, 1, marks=slow)],
)
def test_a_disk_that_stays_bad_is_recovered_from_once_it_is_mended(
    scratch: str, error: int, step: int
) -> None:
    stand = Stand(scratch, fill, work)
    moments = range(1, stand.count(WRITES) + 1, step)
    faults = []
    said = set()
    for at in moments:
        ended = stand.failing(WRITES, at, error, forever=True)
        said.add(ended.code)
        if fault := stand.fault_of(ended):
            faults.append((at, ended.hit, fault))
    print(f"{NAMES[error]} for good: {len(moments)} moments, {len(faults)} faults, told {said}")
    assert faults == []
    assert STUCK in said


def test_a_workspace_without_room_is_left_as_it_was_and_takes_the_merge_when_there_is_room(
    scratch: str,
) -> None:
    stand = Stand(scratch, fill, work)
    stand.reset()

    def run() -> tuple[str, bool, bool]:
        mount_tmpfs(stand.tree.lower, size_bytes=400_000)
        os.chmod(stand.tree.lower, 0o755)
        fill(stand.tree.lower)
        os.utime(stand.tree.lower, ns=(10**18, 10**18))
        write(f"{stand.tree.lower}/ballast", "x" * 150_000)
        os.utime(stand.tree.lower, ns=(10**18, 10**18))
        try:
            stand.prepare()
        except MergeFailedError as error:
            message = error.message
        os.unlink(f"{stand.tree.lower}/ballast")
        os.utime(stand.tree.lower, ns=(10**18, 10**18))
        as_before = stand.look() == stand.before
        return message, as_before, stand.merge() == DONE and stand.look() == stand.after

    message, as_before, merged = in_child(run)
    assert "No space left" in message
    assert as_before
    assert merged


def remount(target: str, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", target], check=True, capture_output=True)


@pytest.mark.parametrize("when", ["before the copy", "before the steps"])
def test_a_workspace_that_turns_read_only_is_left_as_it_was(scratch: str, when: str) -> None:
    stand = Stand(scratch, fill, work)
    stand.reset()

    def run() -> tuple[int, bool, str, bool]:
        mount_tmpfs(stand.tree.lower, size_bytes=4_000_000)
        os.chmod(stand.tree.lower, 0o755)
        fill(stand.tree.lower)
        os.utime(stand.tree.lower, ns=(10**18, 10**18))
        if when == "before the copy":
            remount(stand.tree.lower, "ro")
            said = stand.merge()
        else:
            stand.prepare()
            remount(stand.tree.lower, "ro")
            said = stand.told(lambda: apply(stand.tree.journal))
        as_before = {**stand.look(), ".": ()} == {**stand.before, ".": ()} or len(
            [name for name in os.listdir(stand.tree.lower) if name.startswith(".interlock")]
        ) == 1
        remount(stand.tree.lower, "rw")
        outcome = recover(stand.tree.journal)
        whole = stand.look() == (stand.after if outcome == "finished" else stand.before)
        return said, as_before, outcome, whole

    said, as_before, outcome, whole = in_child(run)
    assert said in (REFUSED, STUCK)
    assert as_before
    assert whole, outcome


def test_a_workspace_that_vanished_in_the_merge_is_waited_for(scratch: str) -> None:
    stand = Stand(scratch, fill, work)
    stand.reset()
    stand.prepare()
    os.rename(stand.tree.lower, f"{scratch}/elsewhere")
    for make in (False, True):
        if make:
            os.mkdir(stand.tree.lower)
        with pytest.raises(StuckError) as caught:
            recover(stand.tree.journal)
        assert caught.value.hint
    assert os.listdir(stand.tree.lower) == []
    os.rmdir(stand.tree.lower)
    os.rename(f"{scratch}/elsewhere", stand.tree.lower)
    outcome = recover(stand.tree.journal)
    assert stand.look() == (stand.after if outcome == "finished" else stand.before)


def test_a_file_system_mounted_over_a_folder_of_the_workspace_is_not_merged_into(scratch: str) -> None:
    stand = Stand(scratch, fill, work)
    for at in ("new", "c", "a"):
        stand.reset()
        if at == "new":
            os.mkdir(f"{stand.tree.lower}/new")

        def run(at: str = at) -> tuple[int, list[str], str]:
            mount_tmpfs(f"{stand.tree.lower}/{at}", size_bytes=400_000)
            said = stand.merge()
            inside = os.listdir(f"{stand.tree.lower}/{at}")
            return said, inside, read(f"{stand.tree.lower}/f0")

        said, inside, first = in_child(run)
        assert said in (REFUSED, UNSOUND), at
        assert inside == []
        assert first == "f0\n"


@pytest.mark.parametrize("when", ["before the copy", "before the steps"])
def test_a_right_that_is_lost_before_the_merge_leaves_the_host_as_it_was(scratch: str, when: str) -> None:
    """A folder of an ordinary user is given to root, after the listing or after the copy."""
    tree = StagedTree.make(scratch, "user", fill)
    tree.edit(lambda top: (write(f"{top}/c/f0", "changed\n"), write(f"{top}/c/new", "new\n"))[0])
    changes = tree.changes()
    folder = f"{tree.lower}/c"

    def copy() -> None:
        prepare(plan([tree.root], changes, changes), tree.journal)

    def look() -> tuple[str, bool]:
        return read(f"{folder}/f0"), os.path.exists(f"{folder}/new")

    if when == "before the steps":
        tree.as_owner(copy)
    os.chown(folder, 0, 0)
    os.chmod(folder, 0o755)
    steps = (copy,) if when == "before the copy" else ()
    said = tree.as_owner(
        lambda: Stand.told(lambda: [step() for step in (*steps, lambda: apply(tree.journal))])
    )
    assert said in (REFUSED, STUCK)
    assert look() == ("c/f0\n", False)
    if when == "before the steps":
        os.chown(folder, 1000, 1000)
    outcome = tree.as_owner(lambda: recover(tree.journal))
    assert look() == (("changed\n", True) if outcome == "finished" else ("c/f0\n", False))


@pytest.mark.parametrize(
    ("error", "words"),
    [(errno.EDQUOT, "quota exceeded"), (errno.ENOSPC, "No space left"), (errno.EIO, "Input/output error")],
)
def test_why_the_copy_failed_is_said_with_the_next_step(scratch: str, error: int, words: str) -> None:
    """Quotas are not in every kernel: the error that they give is made here."""
    stand = Stand(scratch, fill, work)
    stand.reset()

    def run() -> int:
        try:
            stand.merge_bare()
        except MergeFailedError as failed:
            write(f"{scratch}/said", f"{failed.message}\n{failed.hint}")
            return REFUSED
        return DONE

    ended = run_failing(run, calls=("pwrite64", "copy_file_range"), at=1, error=error)
    assert ended.code == REFUSED
    message, hint = read(f"{scratch}/said").split("\n")
    assert words in message
    assert "nothing was changed" in hint
    assert stand.look() == stand.before
