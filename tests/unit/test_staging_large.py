"""Host files that are too large to be read, or may not be read: an edit of them is found all the same."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from tests.fakes.staged_tree import StagedTree, snapshot

from interlock.model.effects import ChangeKind
from interlock.staging import ConflictError, plan, stamps

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(stamps, "BEFORE_DIGEST_LIMIT_BYTES", 10)
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def fill(top: str) -> None:
    with open(f"{top}/large", "wb") as file:
        file.write(b"the host's large file")


def edit_in_place(path: str) -> None:
    """Change the content and nothing else that a stamp shows: size, mode and owner stay."""
    with open(path, "r+b") as file:
        file.write(b"THE")
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("kind", ["redirect", "user", "copy"])
@pytest.mark.parametrize("how", ["modify", "delete", "mode"])
def test_a_host_edit_of_a_large_file_since_the_listing_is_a_conflict(
    scratch: str, kind: str, how: str
) -> None:
    tree = StagedTree.make(scratch, kind, fill)

    def work(top: str) -> None:
        if how == "delete":
            os.unlink(f"{top}/large")
        elif how == "mode":
            os.chmod(f"{top}/large", 0o600)
        else:
            with open(f"{top}/large", "ab") as file:
                file.write(b", and more")

    tree.edit(work)
    changes = tree.changes()
    assert [one.place.path for one in changes] == ["large"]
    before = changes[0].before
    assert before is not None
    assert before.digest.startswith(stamps.FACTS_PREFIX)
    plan([tree.root], changes, changes)
    edit_in_place(f"{tree.lower}/large")
    kept = snapshot(tree.lower)
    with pytest.raises(ConflictError):
        plan([tree.root], changes, changes)
    assert snapshot(tree.lower) == kept


def test_a_large_file_that_is_the_same_is_no_change(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    times = os.stat(f"{tree.lower}/large").st_mtime_ns

    def rewrite(top: str) -> None:
        with open(f"{top}/large", "r+b") as file:
            file.write(b"the host's large file")
        os.utime(f"{top}/large", ns=(times, times))

    tree.edit(rewrite)
    assert os.path.exists(f"{tree.upper}/large")
    assert tree.changes() == []


def test_a_large_file_merges(scratch: str) -> None:
    tree = StagedTree.make(scratch, "redirect", fill)
    tree.edit(lambda top: os.truncate(f"{top}/large", 15))
    assert [one.kind for one in tree.changes()] == [ChangeKind.MODIFY]
    tree.merge()
    assert os.path.getsize(f"{tree.lower}/large") == 15
