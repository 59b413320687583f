"""Reading an agent's commits runs nothing that its repository names."""

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from interlock import staging
from interlock.model.events import Staging
from interlock.policy.executable import judges_content
from interlock.runtime.git_commits import Branches
from interlock.staging.roots import StagedRoot

GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.test",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip
PROGRAMS = (
    "core.fsmonitor", "core.pager", "core.sshCommand", "core.alternateRefsCommand", "diff.external", "filter.x.clean",
    "filter.x.smudge", "filter.x.process", "diff.x.textconv", "diff.x.command", "gpg.program", "pager.log",
    "uploadpack.packObjectsHook", "credential.helper",
)  # fmt: skip


def git(where: Path, *words: str, fails: bool = False) -> None:
    done = subprocess.run(["git", *words], cwd=where, env=GIT, check=False, capture_output=True)
    assert fails or done.returncode == 0, done.stderr


@pytest.fixture
def host(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "package.json").write_text('{"name": "x"}\n')
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def hostile(host: Path, script: Path) -> Path:
    """Return a copy with a commit, in which every name of a program leads to one script."""
    staged = host.parent / "staged"
    subprocess.run(["cp", "-a", str(host), str(staged)], check=True)
    (staged / "package.json").write_text('{"name": "x", "scripts": {"install": "evil"}}\n')
    (staged / ".gitattributes").write_text("* filter=y diff=x\n")
    git(staged, "add", "-A")
    git(staged, "commit", "-qm", "evil")
    own = staged / ".git"
    (own / "info" / "attributes").write_text("* filter=x diff=x\n")
    for hook in ("reference-transaction", "post-index-change", "pre-auto-gc", "post-checkout"):
        (own / "hooks" / hook).symlink_to(script)
    for key in PROGRAMS:
        git(staged, "config", key, str(script))
    (staged / "package.json").write_text("changed again\n")
    return staged


def marked(host: Path, staged: Path) -> dict[str, bool]:
    root = StagedRoot(
        name="workspace",
        lower=str(host),
        upper=str(staged),
        mode=Staging.COPY,
        xattr_prefix="user.overlay.",
    )
    branches = Branches()
    found = [branches.marked(root, one) for one in staging.list_changes(root, judges_content=judges_content)]
    return {one.place.path: one.brings_unknown for one in found if one.brings or one.brings_unknown}


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """Return a program, and the file that shows that it ran."""
    shown = tmp_path / "ran"
    script = tmp_path / "trap"
    script.write_text(f"#!/bin/sh\ntouch {shown}\n")
    script.chmod(0o755)
    return script, shown


def test_no_program_of_the_repository_runs(host: Path, trap: tuple[Path, Path]) -> None:
    script, shown = trap
    staged = hostile(host, script)
    assert marked(host, staged) == {".git/refs/heads/main": False}
    assert not shown.exists()
    # the trap works: Git itself, in that folder, does run it
    git(staged, "diff", fails=True)
    assert shown.exists()


def test_a_missing_object_is_fetched_from_nowhere(host: Path, trap: tuple[Path, Path]) -> None:
    script, shown = trap
    staged = hostile(host, script)
    tree = (staged / ".git" / "objects").glob("??/*")
    kept = {one.name for one in (host / ".git" / "objects").glob("??/*")}
    for one in tree:
        if one.name not in kept and b"tree" in _kind(staged, one):
            one.unlink()
    for key, value in {
        "remote.o.promisor": "true",
        "remote.o.url": f"ext::{script}",
        "protocol.ext.allow": "always",
        "extensions.partialClone": "o",
        "core.repositoryFormatVersion": "1",
    }.items():
        git(staged, "config", key, value)
    git(staged, "config", "--unset", "core.fsmonitor")
    assert marked(host, staged) == {".git/refs/heads/main": True}
    assert not shown.exists()


def test_grafts_a_cut_history_and_replacements_hide_nothing(host: Path, tmp_path: Path) -> None:
    staged = hostile(host, tmp_path / "none")
    own = staged / ".git"
    head = (own / "refs" / "heads" / "main").read_text().strip()
    (own / "info" / "grafts").write_text(f"{head}\n")
    (own / "shallow").write_text(f"{head}\n")
    before = (host / ".git" / "refs" / "heads" / "main").read_text().strip()
    (own / "refs" / "replace").mkdir()
    (own / "refs" / "replace" / head).write_text(before + "\n")
    assert marked(host, staged) == {".git/refs/heads/main": False}


@pytest.mark.parametrize("packed", [False, True])
def test_a_lie_about_a_commit_of_the_host_hides_nothing(host: Path, tmp_path: Path, packed: bool) -> None:
    """The host's own commit is said to come after the new one, which would then be no new one."""
    if packed:
        git(host, "gc", "-q")
    staged = hostile(host, tmp_path / "none")
    own = staged / ".git"
    evil = git_text(staged, "rev-parse", "HEAD")
    tree = git_text(staged, "rev-parse", "HEAD~1^{tree}")
    old = git_text(staged, "rev-parse", "HEAD~1")
    who = "a <a@example.test> 2000000000 +0000"
    lie = f"tree {tree}\nparent {evil}\nauthor {who}\ncommitter {who}\n\nx\n".encode()
    path = own / "objects" / old[:2] / old[2:]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(zlib.compress(b"commit %d\0" % len(lie) + lie))
    if packed:
        for one in (own / "objects" / "pack").iterdir():
            one.unlink()
    assert marked(host, staged) == {".git/refs/heads/main": True}


def test_what_speaks_for_objects_counts_as_unknown(host: Path, tmp_path: Path) -> None:
    staged = hostile(host, tmp_path / "none")
    objects = staged / ".git" / "objects"
    (objects / "info").mkdir(exist_ok=True)
    for name in ("info/alternates", "info/commit-graph", "pack/multi-pack-index", f"aa/{'b' * 38}"):
        (objects / name).parent.mkdir(exist_ok=True)
        os.mkfifo(objects / name)
        assert marked(host, staged) == {".git/refs/heads/main": True}
        (objects / name).unlink()
    assert marked(host, staged) == {".git/refs/heads/main": False}


def test_an_object_that_is_staged_twice_counts_as_unknown(host: Path, tmp_path: Path) -> None:
    staged = hostile(host, tmp_path / "none")
    git(staged, "repack", "-q", "-a")
    assert marked(host, staged) == {".git/refs/heads/main": True}
    git(staged, "prune-packed", "-q")
    assert marked(host, staged) == {".git/refs/heads/main": False}


def git_text(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=where, env=GIT, check=True, capture_output=True)
    return done.stdout.decode().strip()


def _kind(staged: Path, path: Path) -> bytes:
    done = subprocess.run(
        ["git", "--git-dir", str(staged / ".git"), "cat-file", "-t", path.parent.name + path.name],
        env=GIT,
        check=True,
        capture_output=True,
    )
    return done.stdout
