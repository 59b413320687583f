"""A host that changes at the worst moment: before any single system call of a merge.

The kernel stops the merging process at its Nth call, the host is edited, and the process goes on: so every window
between a look and a step is tried, and none is left to chance.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.failing_calls import NUMBERS
from tests.fakes.merge_stand import DONE, REFUSED, STUCK, UNSOUND, Stand

from interlock.staging import recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

MINE = "the person's own edit\n"


def fill(top: str) -> None:
    os.mkdir(f"{top}/d")
    for name in ("f", "d/f", "d/gone", "d/moves"):
        write(f"{top}/{name}", f"{name}, old\n")
        os.utime(f"{top}/{name}", ns=(10**18, 10**18))
    for name in ("d", "."):
        os.utime(f"{top}/{name}", ns=(10**18, 10**18))


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


def replaced(path: str) -> Callable[[str], object]:
    """Edit as most editors do: a new file renamed over the old one."""

    def edit(top: str) -> None:
        write(f"{top}/{path}.new", MINE)
        os.rename(f"{top}/{path}.new", f"{top}/{path}")

    return edit


def in_place(path: str) -> Callable[[str], object]:
    return lambda top: write(f"{top}/{path}", MINE)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [replaced, in_place])
def test_an_edit_before_any_call_of_the_merge_survives(
    scratch: str, how: Callable[[str], Callable[[str], object]], step: int
) -> None:
    """Either the merge refuses, or it had come first and the edit stands on top of it."""
    stand = Stand(scratch, fill, lambda top: write(f"{top}/f", "the agent's\n"))
    seen = set()
    calls = stand.count(NUMBERS)
    for at in range(1, calls + 1, step):
        status = stand.edited(NUMBERS, at, how("f"))
        seen.add(status)
        assert status in (DONE, REFUSED, STUCK, UNSOUND), at
        assert read(f"{stand.tree.lower}/f") == MINE, (at, status)
        if status == STUCK:
            os.unlink(f"{stand.tree.lower}/f")  # moved away, as the hint says
            recover(stand.tree.journal)
            assert read(f"{stand.tree.lower}/f") in ("f, old\n", "the agent's\n")
    print(f"{how.__name__}: {calls // step} moments")
    assert {DONE, REFUSED} <= seen


def edits_below_d(top: str) -> None:
    write(f"{top}/d/f", "the agent's\n")
    write(f"{top}/d/new", "the agent's\n")
    os.unlink(f"{top}/d/gone")
    os.rename(f"{top}/d/moves", f"{top}/moved")


def tree_of(top: str) -> dict[str, str]:
    return {
        os.path.relpath(f"{base}/{name}", top): read(f"{base}/{name}")
        for base, _folders, names in os.walk(top)
        for name in names
        if not os.path.islink(f"{base}/{name}")
    }


BEFORE = {name: f"{name}, old\n" for name in ("f", "d/f", "d/gone", "d/moves")}
AFTER = {"f": "f, old\n", "d/f": "the agent's\n", "d/new": "the agent's\n", "moved": "d/moves, old\n"}


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_folder_that_becomes_a_link_before_any_call_leads_no_write_outside(scratch: str, step: int) -> None:
    stand = Stand(scratch, fill, edits_below_d)
    moments = range(1, stand.count(NUMBERS) + 1, step)

    def link_away(top: str) -> None:
        os.rename(f"{top}/d", f"{top}/aside")
        fill(stand.outside)
        os.symlink(f"{stand.outside}/d", f"{top}/d")

    seen = set()
    for at in moments:
        status = stand.edited(NUMBERS, at, link_away)
        seen.add(status)
        assert status in (DONE, REFUSED, STUCK, UNSOUND), at
        assert tree_of(stand.outside) == BEFORE, (at, status)
        if status == STUCK:
            os.unlink(f"{stand.tree.lower}/d")
            os.rename(f"{stand.tree.lower}/aside", f"{stand.tree.lower}/d")
            want = AFTER if recover(stand.tree.journal) == "finished" else BEFORE
            assert tree_of(stand.tree.lower) == want, at
    print(f"{len(moments)} moments")
    assert {DONE, REFUSED, STUCK} <= seen


def test_a_clock_that_went_back_hides_no_change_of_the_agent(scratch: str) -> None:
    """Staged files older than the host's, from before 1970, and from far ahead."""

    def work(top: str) -> None:
        for name, stamp in (("f", -(10**18)), ("d/f", 4 * 10**18), ("d/gone", 0)):
            write(f"{top}/{name}", f"{name}, new\n")
            os.utime(f"{top}/{name}", ns=(stamp, stamp))

    stand = Stand(scratch, fill, work)
    stand.reset()
    assert stand.merge() == DONE
    for name, stamp in (("f", -(10**18)), ("d/f", 4 * 10**18), ("d/gone", 0)):
        assert read(f"{stand.tree.lower}/{name}") == f"{name}, new\n"
        assert os.stat(f"{stand.tree.lower}/{name}").st_mtime_ns == stamp


def test_a_host_edit_with_the_old_time_and_the_old_size_is_still_found(scratch: str) -> None:
    stand = Stand(scratch, fill, lambda top: write(f"{top}/f", "the agent's\n"))
    stand.reset()
    write(f"{stand.tree.lower}/f", "F, OLD\n")
    os.utime(f"{stand.tree.lower}/f", ns=(10**18, 10**18))
    assert stand.merge() == REFUSED
    assert read(f"{stand.tree.lower}/f") == "F, OLD\n"
