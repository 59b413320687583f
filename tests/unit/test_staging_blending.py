"""A text released in part, or merged with the host's own edit: what reaches the host, and what never does."""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.staged_tree import KINDS, StagedTree, snapshot

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.errors import InputError, IntegrityError
from interlock.model.places import Place
from interlock.staging import (
    ConflictError,
    StagedRoot,
    Substitute,
    apply,
    blend,
    hunks_of,
    merge_three,
    merged_diff,
    plan,
    prepare,
    unified_diff,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

BASE = "".join(f"line {number}\n" for number in range(40)).encode()
AGENT = (
    BASE.replace(b"line 3\n", b"agent 3\n").replace(b"line 20\n", b"").replace(b"line 38\n", b"38\nagent\n")
)
HOST = BASE.replace(b"line 12\n", b"host 12\n")


@pytest.fixture
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield base
    shutil.rmtree(base)


def fill(top: str) -> None:
    put(f"{top}/f", BASE, mode=0o640)
    os.utime(f"{top}/f", ns=(10**18, 10**18))
    os.mkdir(f"{top}/d")
    put(f"{top}/d/g", BASE)
    put(f"{top}/other", b"other\n")


def put(path: str, data: bytes, mode: int | None = None) -> None:
    Path(path).write_bytes(data)
    if mode is not None:
        os.chmod(path, mode)


def staged(
    base: str,
    work: Callable[[str], object],
    kind: str = "redirect",
    host: Callable[[str], object] | None = None,
) -> tuple[StagedTree, dict[str, FileChange]]:
    """Edit as the agent, then as the host; return what is listed by path."""
    tree = StagedTree.make(base, kind, fill)
    tree.edit(lambda top: (work(top), None)[1])
    if host is not None:
        tree.as_owner(lambda: (host(tree.lower), None)[1])
    os.mkdir(f"{base}/blends", 0o700)
    if kind == "user":
        os.chown(f"{base}/blends", 1000, 1000)
    return tree, {change.place.path: change for change in tree.changes()}


def conflict(change: FileChange, base: bytes = BASE) -> FileChange:
    """The change as a listing with a baseline gives it."""
    assert change.before is not None
    stamp = replace(change.before, size_bytes=len(base), digest=hashlib.sha256(base).hexdigest())
    return replace(change, host_edit=HostEdit.EDITED, base=stamp)


def edits(top: str) -> None:
    put(f"{top}/f", AGENT)
    os.chmod(f"{top}/f", 0o750)
    os.setxattr(f"{top}/f", "user.agent", b"1")


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def merge(tree: StagedTree, changes: dict[str, FileChange], *substitutes: Substitute) -> None:
    everything = list(changes.values())

    def run() -> None:
        made = plan([tree.root], everything, everything, {one.place: one for one in substitutes})
        prepare(made, tree.journal)
        apply(tree.journal)

    tree.as_owner(run)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_chosen_hunks_reach_the_host_with_what_else_was_staged(scratch: str, kind: str) -> None:
    tree, changes = staged(scratch, edits, kind)
    hunks = tree.as_owner(lambda: hunks_of(tree.root, changes["f"]))
    assert [(hunk.number, hunk.added, hunk.removed) for hunk in hunks] == [(1, 1, 1), (2, 0, 1), (3, 2, 1)]
    one = tree.as_owner(
        lambda: blend(tree.root, changes["f"], hunks=(1, 3), base=None, into=f"{scratch}/blends")
    )
    assert stat.S_IMODE(os.stat(one.path).st_mode) == 0o600
    began = time.time_ns()
    merge(tree, changes, one)
    wanted = AGENT.replace(b"line 19\n", b"line 19\nline 20\n")
    assert read(f"{tree.lower}/f") == wanted
    status = os.stat(f"{tree.lower}/f")
    assert stat.S_IMODE(status.st_mode) == 0o750
    assert os.getxattr(f"{tree.lower}/f", "user.agent") == b"1"
    # nobody made this content before, so it is dated now
    assert began <= status.st_mtime_ns <= time.time_ns()


def test_the_hunks_are_those_of_the_shown_difference(scratch: str) -> None:
    tree, changes = staged(scratch, edits)
    headers = [line for line in unified_diff(tree.root, changes["f"]).splitlines() if line[:2] == "@@"]
    assert headers == [hunk.header for hunk in hunks_of(tree.root, changes["f"])]


def test_a_new_file_is_one_hunk_and_a_text_in_a_moved_folder_has_its_own(scratch: str) -> None:
    def work(top: str) -> None:
        put(f"{top}/new", b"one\ntwo")
        os.rename(f"{top}/d", f"{top}/moved")
        put(f"{top}/moved/g", AGENT)

    tree, changes = staged(scratch, work)
    (hunk,) = hunks_of(tree.root, changes["new"])
    assert hunk.lines == ("+one", "+two", "\\ No newline at end of file")
    assert len(hunks_of(tree.root, changes["moved/g"])) == 3
    assert "-line 3\n" in unified_diff(tree.root, changes["moved/g"])
    into = f"{scratch}/blends"
    made = [
        blend(tree.root, changes["new"], hunks=(1,), base=None, into=into),
        blend(tree.root, changes["moved/g"], hunks=(2,), base=None, into=into),
    ]
    merge(tree, changes, *made)
    assert read(f"{tree.lower}/new") == b"one\ntwo"
    assert read(f"{tree.lower}/moved/g") == BASE.replace(b"line 20\n", b"")


def test_a_clean_merge_reaches_the_host_and_is_what_was_shown(scratch: str) -> None:
    tree, changes = staged(scratch, edits, host=lambda top: put(f"{top}/f", HOST))
    changes["f"] = conflict(changes["f"])
    assert hunks_of(tree.root, changes["f"]) == ()
    shown = merged_diff(tree.root, changes["f"], base=BASE)
    assert shown.startswith("merge f\n--- a/f\n+++ b/f\n@@ ")
    assert "-line 3\n+agent 3\n" in shown
    assert "host 12" not in [line[1:] for line in shown.splitlines() if line[0] in "+-"]
    one = blend(tree.root, changes["f"], merge=True, base=BASE, into=f"{scratch}/blends")
    merge(tree, changes, one)
    assert read(f"{tree.lower}/f") == AGENT.replace(b"line 12\n", b"host 12\n")


def test_where_the_host_has_all_of_it_only_the_attributes_change(scratch: str) -> None:
    host = AGENT.replace(b"line 12\n", b"host 12\n")
    tree, changes = staged(scratch, edits, host=lambda top: put(f"{top}/f", host))
    changes["f"] = conflict(changes["f"])
    assert "the host has all of it already" in merged_diff(tree.root, changes["f"], base=BASE)
    one = blend(tree.root, changes["f"], merge=True, base=BASE, into=f"{scratch}/blends")
    before = os.stat(f"{tree.lower}/f")
    merge(tree, changes, one)
    after = os.stat(f"{tree.lower}/f")
    assert read(f"{tree.lower}/f") == host
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert stat.S_IMODE(after.st_mode) == 0o750


@pytest.mark.parametrize(
    ("agents", "hosts", "merged"), [(0o640, 0o600, 0o600), (0o750, 0o640, 0o750), (0o755, 0o600, 0o755)]
)
@pytest.mark.parametrize("same", [False, True])
def test_a_merge_keeps_the_hosts_attributes_where_the_agent_changed_none(
    scratch: str, agents: int, hosts: int, merged: int, same: bool
) -> None:
    def agent(top: str) -> None:
        put(f"{top}/f", AGENT, mode=agents)

    def host(top: str) -> None:
        put(f"{top}/f", AGENT if same else HOST, mode=hosts)
        os.setxattr(f"{top}/f", "user.host", b"1")
        os.chown(f"{top}/f", 0, 7)

    tree, changes = staged(scratch, agent, host=host)
    change = changes["f"]
    assert change.before is not None
    stamp = replace(
        change.before, gid=0, mode=0o640, size_bytes=len(BASE), digest=hashlib.sha256(BASE).hexdigest()
    )
    changes["f"] = replace(change, host_edit=HostEdit.EDITED, base=stamp)
    one = blend(tree.root, changes["f"], merge=True, base=BASE, into=f"{scratch}/blends")
    merge(tree, changes, one)
    status = os.stat(f"{tree.lower}/f")
    assert (stat.S_IMODE(status.st_mode), status.st_gid) == (merged, 7)
    assert os.getxattr(f"{tree.lower}/f", "user.host") == b"1"
    wanted = AGENT if same else AGENT.replace(b"line 12\n", b"host 12\n")
    assert read(f"{tree.lower}/f") == wanted


def test_a_merge_that_is_not_clean_never_becomes_a_file(scratch: str) -> None:
    tree, changes = staged(
        scratch, edits, host=lambda top: put(f"{top}/f", BASE.replace(b"line 3\n", b"host 3\n"))
    )
    change = conflict(changes["f"])
    for attempt in (
        lambda: merged_diff(tree.root, change, base=BASE),
        lambda: blend(tree.root, change, merge=True, base=BASE, into=f"{scratch}/blends"),
    ):
        with pytest.raises(InputError, match="both sides changed 1 place differently"):
            attempt()
    assert os.listdir(f"{scratch}/blends") == []


def test_the_way_back_leaves_the_host_as_it_was(scratch: str) -> None:
    tree, changes = staged(scratch, edits)
    one = blend(tree.root, changes["f"], hunks=(2,), base=None, into=f"{scratch}/blends")
    before = snapshot(tree.lower)
    everything = list(changes.values())
    prepare(plan([tree.root], everything, everything, {one.place: one}), tree.journal)
    assert snapshot(tree.lower) == before
    tree.merge_back()
    assert snapshot(tree.lower) == before


def refused(scratch: str, change: FileChange, root: StagedRoot, **how: object) -> str:
    with pytest.raises((InputError, IntegrityError, ConflictError)) as caught:
        blend(root, change, into=f"{scratch}/blends", **{"base": None, **how})  # type: ignore[arg-type]
    assert os.listdir(f"{scratch}/blends") == []
    assert "agent" not in caught.value.message.replace("the agent began", "")
    assert caught.value.hint
    return f"{type(caught.value).__name__}: {caught.value.message}"


def test_what_cannot_be_had_is_said(scratch: str) -> None:
    def work(top: str) -> None:
        edits(top)
        put(f"{top}/binary", b"a\0b")
        put(f"{top}/latin", "é".encode("latin-1"))
        put(f"{top}/large", b"x\n" * (600 << 10))
        os.unlink(f"{top}/other")
        os.chmod(f"{top}/d/g", 0o600)

    tree, changes = staged(scratch, work)

    def said(path: str, **how: object) -> str:
        return refused(scratch, changes[path], tree.root, **how)

    assert "there is no hunk 4" in said("f", hunks=(1, 4))
    assert "there is no hunk 0" in said("f", hunks=(0,))
    assert "either merged or released by hunks" in said("f")
    assert "either merged or released by hunks" in said("f", hunks=(1,), merge=True)
    assert "is no text" in said("binary", hunks=(1,))
    assert "is no text" in said("latin", hunks=(1,))
    assert "larger than 1 MiB" in said("large", hunks=(1,))
    assert "it is removed" in said("other", hunks=(1,))
    assert "only its attributes change" in said("d/g", hunks=(1,))
    assert "the host did not change it" in said("f", merge=True, base=BASE)
    changes["f"] = conflict(changes["f"])
    assert "the host changed it too" in said("f", hunks=(1,))
    assert "was not kept" in said("f", merge=True)
    assert "IntegrityError: what was kept" in said("f", merge=True, base=BASE + b"x")
    for edit, words in ((HostEdit.APPEARED, "both sides made it"), (HostEdit.GONE, "removed it")):
        changes["f"] = replace(changes["f"], host_edit=edit)
        assert words in said("f", merge=True, base=BASE)
    for path in ("binary", "latin", "large", "other", "d/g"):
        assert hunks_of(tree.root, changes[path]) == ()


def test_a_side_that_is_not_what_was_listed_is_never_used(scratch: str) -> None:
    tree, changes = staged(scratch, edits)
    put(f"{tree.lower}/f", HOST)
    assert "ConflictError" in refused(scratch, changes["f"], tree.root, hunks=(1,))
    put(f"{tree.lower}/f", BASE)
    put(f"{tree.upper}/f", HOST)
    assert "IntegrityError" in refused(scratch, changes["f"], tree.root, hunks=(1,))
    os.unlink(f"{tree.lower}/f")
    os.symlink(f"{tree.lower}/other", f"{tree.lower}/f")
    assert "IntegrityError" in refused(scratch, changes["f"], tree.root, hunks=(1,))


@pytest.mark.parametrize("kind", ["redirect", "index", "copy"])
def test_a_file_with_several_names_is_never_blended(scratch: str, kind: str) -> None:
    tree = StagedTree.make(scratch, kind, lambda top: (fill(top), os.link(f"{top}/f", f"{top}/d/hard")))
    tree.edit(
        lambda top: (edits(top), put(f"{top}/new", b"x\n"), os.link(f"{top}/new", f"{top}/new2"), None)[3]
    )
    os.mkdir(f"{scratch}/blends")
    for change in tree.changes():
        if change.kind in (ChangeKind.MODIFY, ChangeKind.CREATE):
            assert hunks_of(tree.root, change) == ()
            assert "names" in refused(scratch, change, tree.root, hunks=(1,))


def test_a_substitute_that_was_changed_or_belongs_to_nothing_ends_the_merge(scratch: str) -> None:
    tree, changes = staged(scratch, edits)
    one = blend(tree.root, changes["f"], hunks=(1,), base=None, into=f"{scratch}/blends")
    before = snapshot(tree.lower)
    elsewhere = Place(root="workspace", path="other")
    with pytest.raises(InputError, match="no released file"):
        plan([tree.root], list(changes.values()), [changes["f"]], {elsewhere: one})
    put(one.path, b"something else")
    with pytest.raises(IntegrityError, match="not what was listed"):
        merge(tree, changes, one)
    assert snapshot(tree.lower) == before


def test_blending_again_gives_the_same_file(scratch: str) -> None:
    tree, changes = staged(scratch, edits)
    into = f"{scratch}/blends"
    first, second = (blend(tree.root, changes["f"], hunks=(1,), base=None, into=into) for _ in range(2))
    assert first == second
    assert first.after.digest == hashlib.sha256(read(second.path)).hexdigest()


def test_a_merge_takes_nothing_from_any_git_setting_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "repository"], check=True)
    for name in ("config", "repository/.git/config"):
        (tmp_path / name).write_text("[merge]\n\tconflictstyle = merge\n[core\n", encoding="ascii")
    monkeypatch.chdir(tmp_path / "repository")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"):
        monkeypatch.setenv(name, str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "repository/.git"))
    opened = len(os.listdir("/proc/self/fd"))
    merged = merge_three(b"a\n", b"b\n", b"c\n")
    assert merged.conflicts == 1
    assert merged.data == b"<<<<<<< host\nb\n||||||| base\na\n=======\nc\n>>>>>>> agent\n"
    clean = merge_three(b"a\r\nb\r\nc\r\nd\r\ne", b"A\r\nb\r\nc\r\nd\r\ne", b"a\r\nb\r\nc\r\nd\r\nE")
    assert (clean.data, clean.conflicts) == (b"A\r\nb\r\nc\r\nd\r\nE", 0)
    with pytest.raises(InputError, match="cannot merge"):
        merge_three(b"a\0", b"b\0", b"c\0")
    assert os.listdir(tmp_path / "temporary") == []
    assert len(os.listdir("/proc/self/fd")) == opened


def test_without_git_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError) as caught:
        merge_three(b"a\n", b"b\n", b"a\n")
    assert "git" in caught.value.message
    assert "install git" in caught.value.hint


def test_a_folder_has_no_hunks() -> None:
    stamp = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0)
    change = FileChange(kind=ChangeKind.CREATE, place=Place(root="w", path="d"), after=stamp)
    assert hunks_of(StagedRoot(name="w", lower="/nowhere", upper="/nowhere"), change) == ()
