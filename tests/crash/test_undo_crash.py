"""A keep or an undo that is killed at any point: the host is before or after, never between; no rubbish stays."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from tests.crash.test_staging_crash import Bench, Crash, Fuse, crash, fused, kill
from tests.fakes.staged_tree import killed_by, snapshot
from tests.fakes.undone import settle, top_of, undo

from interlock.staging import drop_kept, kept, recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")
EVERY = int(os.environ.get("INTERLOCK_CRASH_EVERY", "5"))


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def restart(bench: Bench) -> None:
    bench.reset()
    drop_kept(top_of(bench.tree))


def merged(bench: Bench) -> None:
    restart(bench)
    bench.merge()


def points_of_undo(bench: Bench) -> int:
    merged(bench)
    fuse = Fuse(0, crash)
    with fused(fuse):
        undo(bench.tree)
    assert bench.look() == bench.before
    return fuse.count


def check_settled(bench: Bench, where: object) -> None:
    """After the next start the host is before or after the undo, and one more undo ends it."""
    finished = settle(bench.tree)
    assert bench.look() == (bench.before if finished else bench.after), where
    left = kept(top_of(bench.tree))[-1]
    if left.is_undone:
        assert bench.look() == bench.before, where
    else:
        assert undo(bench.tree).changed == (), where
    assert bench.look() == bench.before, where
    assert os.listdir(f"{top_of(bench.tree)}/1") == ["undone"], where
    assert os.listdir(f"{top_of(bench.tree)}/journal") == [], where


def test_a_crash_at_the_changing_calls_of_an_undo_recovers_to_before_or_after(scratch: str) -> None:
    bench = Bench(scratch, "redirect")
    points = points_of_undo(bench)
    for at in range(1, points + 1, EVERY):
        merged(bench)
        with pytest.raises(Crash), fused(Fuse(at, crash)):
            undo(bench.tree)
        if kept(top_of(bench.tree))[-1].is_undone:
            # what it took away was being removed: the next start goes on with that
            settle(bench.tree)
            assert bench.look() == bench.before, at
            continue
        check_settled(bench, at)
    print(f"undo: {points} crash points, every {EVERY}.")
    assert points > 100


def test_sigkill_in_an_undo_for_real(scratch: str) -> None:
    bench = Bench(scratch, "redirect")
    points = points_of_undo(bench)
    for at in range(2, points + 1, max(1, points // 12)):
        merged(bench)

        def run(at: int = at) -> None:
            with fused(Fuse(at, kill)):
                undo(bench.tree)

        assert killed_by(run)
        settle(bench.tree)
        assert bench.look() in (bench.before, bench.after), at


def test_a_crash_while_a_merge_is_kept_loses_at_most_the_undo(scratch: str) -> None:
    bench = Bench(scratch, "redirect")
    restart(bench)
    fuse = Fuse(0, crash)
    with fused(fuse):
        bench.merge()
    first = fuse.count - 60  # the keeping comes last
    kept_after = 0
    for at in range(max(1, first), fuse.count + 1):
        restart(bench)
        with pytest.raises(Crash), fused(Fuse(at, crash)):
            bench.merge()
        outcome = recover(bench.tree.journal)
        bench.check(outcome, at)
        told = kept(top_of(bench.tree))
        if outcome == "finished" and told and not told[-1].why_not:
            kept_after += 1
            assert undo(bench.tree).changed == (), at
            assert bench.look() == bench.before, at
    assert kept_after > 5


def test_a_kept_merge_beside_a_workspace_elsewhere_is_known_whenever_a_crash_comes(
    scratch: str, tmp_path: object
) -> None:
    if os.stat(scratch).st_dev == os.stat(str(tmp_path)).st_dev:
        pytest.skip("not run: needs two file systems")
    bench = Bench(scratch, "redirect")
    journal = f"{tmp_path}/merge"
    from interlock.staging import apply, plan, prepare

    def merge() -> None:
        prepare(plan([bench.tree.root], bench.changes, bench.changes), journal)
        apply(journal)

    restart(bench)
    fuse = Fuse(0, crash)
    with fused(fuse):
        merge()
    before = snapshot(bench.tree.base, folder_times=True)["."]
    assert any(name.startswith(".interlock-") for name in os.listdir(bench.tree.base))
    drop_kept(f"{tmp_path}/undo")
    assert not any(name.startswith(".") for name in os.listdir(bench.tree.base))
    assert snapshot(bench.tree.base, folder_times=True)["."] == before
    for at in range(fuse.count - 50, fuse.count + 1):
        bench.reset()
        with pytest.raises(Crash), fused(Fuse(at, crash)):
            merge()
        recover(journal)
        assert bench.look() in (bench.before, bench.after), at
        drop_kept(f"{tmp_path}/undo")
        shutil.rmtree(journal)
        assert not any(name.startswith(".") for name in os.listdir(bench.tree.base)), at
