"""Merges into one workspace exclude each other, and whoever waits learns for whom."""

import os
import random
import signal
import stat
import time
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.staged_tree import StagedTree, in_child

from interlock.model.effects import FileChange
from interlock.model.errors import StuckError
from interlock.runtime import merging_lock
from interlock.runtime.merging_lock import workspace_lock
from interlock.staging import ConflictError, apply, plan, prepare, recover


def silent(line: str) -> None:
    del line


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path_factory.mktemp("state"))
    monkeypatch.setenv("INTERLOCK_STATE", path)
    return path


@pytest.fixture
def holder(tmp_path: object) -> Iterator[Callable[[str], int]]:
    """Start a process that holds a path's lock until the test ends; returns its id."""
    started: list[int] = []

    def hold(path: str) -> int:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            with workspace_lock([path], silent):
                os.write(writing, b"x")
                signal.pause()
        os.close(writing)
        assert os.read(reading, 1) == b"x"
        os.close(reading)
        started.append(pid)
        return pid

    yield hold
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_second_merge_waits_says_for_whom_and_gives_up_in_the_end(
    tmp_path: object, holder: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging_lock, "NOTE_AFTER_S", 0.05)
    monkeypatch.setattr(merging_lock, "LONGEST_WAIT_S", 0.3)
    pid = holder(str(tmp_path))
    notes: list[str] = []
    with pytest.raises(StuckError, match=f"process {pid}"), workspace_lock([str(tmp_path)], notes.append):
        pytest.fail("two at once")
    assert len(notes) == 1
    assert f"process {pid}" in notes[0]


@pytest.mark.parametrize("other", ["..", "below", "."])
def test_a_workspace_inside_another_one_is_the_same_matter(
    tmp_path: object, holder: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(merging_lock, "LONGEST_WAIT_S", 0.05)
    os.mkdir(f"{tmp_path}/below")
    holder(str(tmp_path))
    with pytest.raises(StuckError), workspace_lock([f"{tmp_path}/{other}"], silent):
        pytest.fail("two at once")


def test_neighbours_merge_at_the_same_time(tmp_path: object, holder: Callable[[str], int]) -> None:
    for name in ("one", "other"):
        os.mkdir(f"{tmp_path}/{name}")
    holder(f"{tmp_path}/one")
    began = time.monotonic()
    with workspace_lock([f"{tmp_path}/other"], silent):
        assert time.monotonic() - began < 1


def test_the_lock_goes_with_a_killed_process(tmp_path: object) -> None:
    pid = os.fork()
    if pid == 0:
        with workspace_lock([str(tmp_path)], silent):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    with workspace_lock([str(tmp_path)], silent):
        pass


def test_the_same_process_may_take_it_again_and_gives_it_back(tmp_path: object, state: str) -> None:
    with workspace_lock([str(tmp_path)], silent), workspace_lock([str(tmp_path)], silent):
        pass

    def free() -> None:
        with workspace_lock([str(tmp_path)], silent):
            pass

    in_child(free)
    modes = {
        stat.S_IMODE(os.stat(os.path.join(state, "locks", name)).st_mode)
        for name in os.listdir(f"{state}/locks")
    }
    assert modes == {0o600}


def test_a_link_to_the_workspace_is_the_workspace(
    tmp_path: object, holder: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging_lock, "LONGEST_WAIT_S", 0.05)
    os.mkdir(f"{tmp_path}/real")
    os.symlink("real", f"{tmp_path}/link")
    holder(f"{tmp_path}/real")
    with pytest.raises(StuckError), workspace_lock([f"{tmp_path}/link"], silent):
        pytest.fail("two at once")


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")
@pytest.mark.parametrize("rounds", [5, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("one_state_folder", [True, False])
def test_two_runs_commit_to_one_workspace_at_once_and_none_loses_the_others_work(
    tmp_path: object, rounds: int, *, one_state_folder: bool
) -> None:
    """Also without the lock, as root and an ordinary user have it: each step finds what changed under it."""
    choose = random.Random(7)
    outcomes = {"conflict": 0, "clean": 0, "both": 0}
    for number in range(rounds):
        base = f"{tmp_path}/{number}"
        os.mkdir(base)
        overlap = choose.random() < 0.5
        trees = two_trees(base, overlap)
        changes = [tree.changes() for tree in trees]
        children = []
        for tree, staged in zip(trees, changes, strict=True):
            pid = os.fork()
            if pid == 0:
                status = 99
                try:
                    if not one_state_folder:
                        os.environ["INTERLOCK_STATE"] = f"{tree.base}/state"
                    status = merge(tree, staged)
                finally:
                    os._exit(status)
            children.append(pid)
        said = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        lower = trees[0].lower
        assert set(said) <= {0, 10}, said
        for one, status in enumerate(said):
            assert os.path.exists(f"{lower}/own{one}") == (status == 0)
        winners = [one for one, status in enumerate(said) if status == 0]
        if overlap:
            # one came first, and what it wrote stands; in the worst case each saw the other and went back
            assert len(winners) == 1 or (not winners and not one_state_folder), said
            assert read(f"{lower}/shared") == (f"run {winners[0]}\n" if winners else "old\n")
        elif one_state_folder:
            assert len(winners) == 2, said
        outcomes["conflict" if len(winners) == 1 else "clean" if winners else "both"] += 1
        assert all(recover(tree.journal) in ("finished", "rolled-back", "none") for tree in trees)
    print(outcomes)
    assert outcomes["conflict"] > 0
    assert outcomes["clean"] > 0


def two_trees(base: str, overlap: bool) -> tuple[StagedTree, StagedTree]:
    """Stage two runs over one folder; with `overlap` both change the same file."""

    def fill(top: str) -> None:
        write(f"{top}/shared", "old\n")

    first = StagedTree.make(base, "redirect", fill)
    os.mkdir(f"{base}/second")
    second = StagedTree.make(f"{base}/second", "redirect", lambda top: None)
    os.rmdir(second.lower)
    os.symlink(first.lower, second.lower)
    for number, tree in enumerate((first, second)):

        def work(top: str, number: int = number) -> None:
            write(f"{top}/own{number}", f"run {number}\n")
            if overlap:
                write(f"{top}/shared", f"run {number}\n")

        tree.edit(work)
    return first, second


def merge(tree: StagedTree, staged: list[FileChange]) -> int:
    with workspace_lock([tree.lower], silent):
        try:
            prepare(plan([tree.root], staged, staged), tree.journal)
            apply(tree.journal)
        except ConflictError:
            return 10
    return 0


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
