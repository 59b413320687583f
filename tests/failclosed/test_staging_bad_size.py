"""A million changes: listed and merged in the time and memory that is printed here."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.staged_tree import StagedTree, in_child

from interlock.staging import apply, list_changes, plan, prepare

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

FOLDER_ENTRIES = 1000


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(
    ("count", "bytes_a_change"),
    [
        (4_000, 8_000),
        pytest.param(100_000, 4_000, marks=pytest.mark.slow),
        pytest.param(1_000_000, 4_000, marks=pytest.mark.slow),
    ],
)
def test_many_new_files_in_folders_that_are_there_are_listed_and_merged(
    scratch: str, count: int, bytes_a_change: int
) -> None:
    """The hardest kind for the log: each file is a step of its own."""
    folders = count // FOLDER_ENTRIES

    def fill(top: str) -> None:
        for number in range(folders):
            os.mkdir(f"{top}/d{number}")

    def work(top: str) -> None:
        for number in range(count):
            os.close(
                os.open(f"{top}/d{number % folders}/f{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            )

    tree = StagedTree.make(scratch, "redirect", fill)
    tree.edit(lambda top: (work(top), None)[1])

    def merge() -> list[str]:
        told: list[str] = []
        start_bytes = peak_bytes()

        def measured(name: str, run: Callable[[], object]) -> object:
            began = time.monotonic()
            value = run()
            grown = (peak_bytes() - start_bytes) / count
            told.append(
                f"{name}: {time.monotonic() - began:.1f} s, {grown:.0f} bytes a change at most so far, "
                f"peak RSS {peak_bytes() / 2**20:.0f} MiB"
            )
            return value

        changes = list_changes(tree.root, judges_content=lambda path: False)
        measured("listed one by one", lambda: sum(1 for _ in changes))
        kept = list(list_changes(tree.root, judges_content=lambda path: False))
        assert len(kept) == count
        made = plan([tree.root], kept, kept)
        measured("planned and copied", lambda: prepare(made, tree.journal))
        measured("merged", lambda: apply(tree.journal))
        assert (peak_bytes() - start_bytes) / count < bytes_a_change
        return told

    for line in in_child(merge):
        print(f"{count:,} changes, {line}")
    assert sum(len(os.listdir(f"{tree.lower}/d{number}")) for number in range(folders)) == count
