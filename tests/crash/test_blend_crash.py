"""A merge of files in part, or with the host's own edit, is as safe from a crash as any other."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.test_staging_crash import Crash, Fuse, crash, fused
from tests.fakes.staged_tree import Snapshot, StagedTree, snapshot

from interlock.model.effects import HostEdit
from interlock.model.places import Place
from interlock.staging import Substitute, apply, blend, copy_tree, plan, prepare, recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

BASE = "".join(f"line {number}\n" for number in range(40)).encode()
BLENDED = ("part", "merged", "same")


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def edit(top: str, *changes: tuple[str, bytes, bytes]) -> None:
    for name, old, new in changes:
        path = Path(f"{top}/{name}")
        path.write_bytes(path.read_bytes().replace(old, new))


class Blended:
    """A host file that is released in part, one that is merged, one that the host has already, and a plain one."""

    def __init__(self, base: str) -> None:
        self.tree = StagedTree.make(
            base,
            "redirect",
            lambda top: [Path(f"{top}/{name}").write_bytes(BASE) for name in (*BLENDED, "plain")],
        )
        self.tree.edit(self.agent)
        edit(self.tree.lower, ("merged", b"line 9\n", b"host\n"), ("same", b"line 3\n", b"agent\n"))
        self.kept = f"{base}/kept"
        os.mkdir(self.kept)
        copy_tree(self.tree.lower, self.kept)
        os.mkdir(f"{base}/blends")
        stamp = {"size_bytes": len(BASE), "digest": hashlib.sha256(BASE).hexdigest()}
        self.changes = [
            replace(change, host_edit=HostEdit.EDITED, base=replace(change.before, **stamp))  # type: ignore[type-var]
            if change.place.path in ("merged", "same")
            else change
            for change in self.tree.changes()
        ]
        self.substitutes = self.made()

    @staticmethod
    def agent(top: str) -> None:
        edit(
            top,
            ("part", b"line 3\n", b"agent\n"),
            ("part", b"line 30\n", b"agent\n"),
            ("merged", b"line 30\n", b"agent\n"),
            ("same", b"line 3\n", b"agent\n"),
            ("plain", b"line 3\n", b"agent\n"),
        )
        os.chmod(f"{top}/same", 0o755)

    def made(self) -> dict[Place, Substitute]:
        made = {}
        for change in self.changes:
            merged = change.host_edit is not None
            if change.place.path in BLENDED:
                made[change.place] = blend(
                    self.tree.root,
                    change,
                    hunks=() if merged else (2,),
                    merge=merged,
                    base=BASE,
                    into=f"{self.tree.base}/blends",
                )
        return made

    def merge(self) -> None:
        made = plan([self.tree.root], self.changes, self.changes, self.substitutes)
        prepare(made, self.tree.journal)
        apply(self.tree.journal)

    def look(self) -> Snapshot:
        """All but the times of the blended files, which are those of each merge."""
        found = snapshot(self.tree.lower)
        return {name: (*facts[:5], *facts[6:]) if name in BLENDED else facts for name, facts in found.items()}

    def reset(self) -> None:
        shutil.rmtree(self.tree.lower)
        shutil.rmtree(self.tree.journal, ignore_errors=True)
        shutil.rmtree(f"{self.tree.base}/run/undo", ignore_errors=True)
        os.mkdir(self.tree.lower)
        copy_tree(self.kept, self.tree.lower)


def test_a_crash_at_every_changing_call_recovers_to_before_or_after(scratch: str) -> None:
    bench = Blended(scratch)
    before = bench.look()
    fuse = Fuse(0, crash)
    with fused(fuse):
        bench.merge()
    after = bench.look()
    texts = {name: Path(f"{bench.tree.lower}/{name}").read_bytes() for name in BLENDED}
    assert texts == {
        "part": BASE.replace(b"line 30\n", b"agent\n"),
        "merged": BASE.replace(b"line 9\n", b"host\n").replace(b"line 30\n", b"agent\n"),
        "same": BASE.replace(b"line 3\n", b"agent\n"),
    }
    assert os.stat(f"{bench.tree.lower}/same").st_mode & 0o777 == 0o755
    outcomes = {"finished": 0, "rolled-back": 0, "none": 0}
    for at in range(1, fuse.count + 1):
        bench.reset()
        with pytest.raises(Crash), fused(Fuse(at, crash)):
            bench.merge()
        outcome = recover(bench.tree.journal)
        outcomes[outcome] += 1
        assert bench.look() == (after if outcome == "finished" else before), at
    assert outcomes["finished"] > 10
    assert outcomes["rolled-back"] > 10
