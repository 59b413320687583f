"""A merge that is killed at any point ends, after recovery, as before or as after: never between."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.crash.edits import plain_effects, twenty_effects
from tests.fakes.staged_edits import fill
from tests.fakes.staged_tree import Snapshot, StagedTree, killed_by, snapshot

from interlock.staging import apply, copy_tree, plan, prepare, recover, syscalls

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

CHANGING = (
    (os, "mkdir"),
    (os, "link"),
    (os, "symlink"),
    (os, "rename"),
    (os, "unlink"),
    (os, "rmdir"),
    (os, "write"),
    (os, "pwrite"),
    (os, "ftruncate"),
    (os, "fsync"),
    (os, "utime"),
    (os, "chown"),
    (os, "chmod"),
    (os, "setxattr"),
    (os, "removexattr"),
    (os, "copy_file_range"),
)
STAGING_CHANGING = ("renameat2", "syncfs")


class Crash(BaseException):
    """What no `except Exception` or `except OSError` of the product may swallow."""


class Fuse:
    """Counts the calls that change something; at the chosen one, before or after it, it burns."""

    def __init__(self, at: int, burn: Callable[[], None]) -> None:
        self.count = 0
        self.at = at
        self._burn = burn

    def tick(self) -> None:
        self.count += 1
        if self.count == self.at:
            self._burn()


@contextmanager
def fused(fuse: Fuse) -> Iterator[None]:
    """Put the fuse around every changing call, of `os` and of staging's own system calls."""
    from interlock.staging import merging, renaming, stepping

    places: list[tuple[object, str]] = [*CHANGING]
    places += [(syscalls, name) for name in STAGING_CHANGING]
    places += [(renaming, "renameat2"), (stepping, "syncfs"), (merging, "syncfs")]
    saved = [(owner, name, getattr(owner, name)) for owner, name in places]

    def wrap(call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **kwargs: object) -> object:
            fuse.tick()
            value = call(*args, **kwargs)
            fuse.tick()
            return value

        return wrapped

    try:
        for owner, name, call in saved:
            setattr(owner, name, wrap(call))
        yield
    finally:
        for owner, name, call in saved:
            setattr(owner, name, call)


def crash() -> None:
    raise Crash


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Bench:
    """One staged tree whose host side is put back before each run."""

    fewest = 20
    """How many changes there are at least."""

    def __init__(self, base: str, kind: str) -> None:
        self.tree = self.made(base, kind)
        self.kept = f"{base}/kept"
        os.mkdir(self.kept)
        self.copy(self.tree.lower, self.kept)
        self.tree.edit(self.effects(kind))
        self.before = self.look()
        self.changes = self.tree.changes()
        assert len(self.changes) >= self.fewest
        self.merge()
        self.after = self.look()
        assert self.after != self.before
        self.reset()

    def made(self, base: str, kind: str) -> StagedTree:
        return StagedTree.make(base, kind, lambda top: fill(top, links=False))

    def effects(self, kind: str) -> Callable[[str], None]:
        return twenty_effects if kind == "redirect" else plain_effects

    def copy(self, source: str, target: str) -> None:
        copy_tree(source, target)

    def look(self) -> Snapshot:
        return snapshot(self.tree.lower, folder_times=True)

    def reset(self) -> None:
        shutil.rmtree(self.tree.lower)
        shutil.rmtree(self.tree.journal, ignore_errors=True)
        os.mkdir(self.tree.lower)
        self.copy(self.kept, self.tree.lower)

    def merge(self) -> None:
        prepare(plan([self.tree.root], self.changes, self.changes), self.tree.journal)
        apply(self.tree.journal)

    def check(self, outcome: str, where: object) -> None:
        want = self.after if outcome == "finished" else self.before
        assert self.look() == want, where
        # nothing of ours is left beside the outcome
        left = [name for name in os.listdir(self.tree.base) if name.startswith(".")]
        assert left == [], where
        if os.path.isdir(self.tree.journal):
            assert set(os.listdir(self.tree.journal)) <= {"outcome"}, where


class LinkedBench(Bench):
    """Host files with several names, changed through one which then went: only the overlay's index holds them.

    The host's inodes stay the same from run to run, since the index knows the files by these.
    """

    fewest = 6

    def made(self, base: str, kind: str) -> StagedTree:
        return StagedTree.make(base, kind, linked_fill)

    def effects(self, kind: str) -> Callable[[str], None]:
        return linked_effects

    def copy(self, source: str, target: str) -> None:
        for folder, folders, files in os.walk(source):
            inside = os.path.join(target, os.path.relpath(folder, source))
            for name in folders:
                os.mkdir(f"{inside}/{name}")
            for name in files:
                os.link(f"{folder}/{name}", f"{inside}/{name}", follow_symlinks=False)
        for folder, _, _ in os.walk(source, topdown=False):
            times = os.stat(folder)
            os.utime(
                os.path.join(target, os.path.relpath(folder, source)),
                ns=(times.st_atime_ns, times.st_mtime_ns),
            )


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def linked_fill(top: str) -> None:
    for folder in ("a", "b", "c"):
        os.mkdir(f"{top}/{folder}")
    for name in ("one", "two"):
        put(f"{top}/a/{name}", "old", "x")
        for folder in ("b", "c"):
            os.link(f"{top}/a/{name}", f"{top}/{folder}/{name}")
    os.symlink("one", f"{top}/a/link")
    os.link(f"{top}/a/link", f"{top}/b/link", follow_symlinks=False)


def linked_effects(top: str) -> None:
    put(f"{top}/a/one", " and more", "a")
    os.unlink(f"{top}/a/one")
    os.chmod(f"{top}/b/two", 0o600)
    os.unlink(f"{top}/b/two")
    os.utime(f"{top}/a/link", ns=(7, 7), follow_symlinks=False)
    os.unlink(f"{top}/a/link")


def put(path: str, text: str, mode: str) -> None:
    with open(path, mode, encoding="ascii") as file:
        file.write(text)
    os.utime(path, ns=(5, 5))


def count_points(bench: Bench) -> int:
    fuse = Fuse(0, crash)
    with fused(fuse):
        bench.merge()
    bench.reset()
    return fuse.count


@pytest.mark.parametrize("kind", ["redirect", "plain", "index"])
def test_a_crash_at_every_changing_call_recovers_to_before_or_after(scratch: str, kind: str) -> None:
    bench = (LinkedBench if kind == "index" else Bench)(scratch, kind)
    points = count_points(bench)
    outcomes = {"finished": 0, "rolled-back": 0, "none": 0}
    for at in range(1, points + 1):
        with pytest.raises(Crash), fused(Fuse(at, crash)):
            bench.merge()
        outcome = recover(bench.tree.journal)
        outcomes[outcome] += 1
        bench.check(outcome, at)
        assert recover(bench.tree.journal) in (outcome, "none" if outcome == "none" else outcome)
        bench.reset()
    print(f"{kind}: {points} crash points, {outcomes}")
    assert outcomes["finished"] > 20
    assert outcomes["rolled-back"] > 20


def test_a_crash_inside_recovery_recovers_as_well(scratch: str) -> None:
    bench = Bench(scratch, "redirect")
    points = count_points(bench)
    tried = 0
    for at in range(7, points + 1, 11):
        for second in (1, 2, 3, 5, 9, 17, 33, 65):
            with pytest.raises(Crash), fused(Fuse(at, crash)):
                bench.merge()
            try:
                with fused(Fuse(second, crash)):
                    recover(bench.tree.journal)
            except Crash:
                tried += 1
            bench.check(recover(bench.tree.journal), (at, second))
            bench.reset()
    assert tried > 50


def test_a_crash_while_a_failed_merge_is_taken_back(scratch: str) -> None:
    """The host takes a place during the merge: the rollback itself is killed at every changing call."""
    bench = Bench(scratch, "redirect")

    def start() -> None:
        prepare(plan([bench.tree.root], bench.changes, bench.changes), bench.tree.journal)
        with open(f"{bench.tree.lower}/new", "w", encoding="ascii") as file:
            file.write("the host's own")
        os.utime(f"{bench.tree.lower}/new", ns=(1, 1))

    before = {**bench.before}
    at = 0
    while True:
        at += 1
        start()
        host = bench.look()["new"]
        try:
            with fused(Fuse(at, crash)):
                recover(bench.tree.journal)
            finished = True
        except Crash:
            finished = False
        assert recover(bench.tree.journal) == "rolled-back"
        seen = bench.look()
        assert seen.pop("new") == host
        seen["."] = before["."]  # the host made a file in it
        assert seen == before, at
        bench.reset()
        if finished:
            break
    assert at > 30


def test_sigkill_for_real(scratch: str) -> None:
    bench = Bench(scratch, "redirect")
    points = count_points(bench)
    for at in range(3, points + 1, max(1, points // 24)):

        def run(at: int = at) -> None:
            with fused(Fuse(at, kill)):
                bench.merge()

        assert killed_by(run)
        bench.check(recover(bench.tree.journal), at)
        bench.reset()


def test_the_intent_is_durable_before_the_first_visible_change(scratch: str) -> None:
    """Wherever the host differs from before, the log is there and was synced."""
    bench = Bench(scratch, "redirect")
    synced: list[str] = []
    first_visible: list[bool] = []
    real_fsync, real_rename = os.fsync, os.rename
    from interlock.staging import renaming

    real_renameat2 = syscalls.renameat2

    def fsync(fd: int) -> None:
        real_fsync(fd)
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    def renameat2(*args: object) -> None:
        if not first_visible:
            journal = bench.tree.journal
            first_visible.append(f"{journal}/wal.new" in synced and synced[-1] == journal)
            assert bench.look() == bench.before
        real_renameat2(*args)  # type: ignore[arg-type]

    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", fsync)
    patch.setattr(renaming, "renameat2", renameat2)
    try:
        bench.merge()
    finally:
        patch.undo()
    assert first_visible == [True]
    assert os.rename is real_rename
