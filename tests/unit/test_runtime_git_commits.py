"""What a branch brings that may run, on real repositories and full copies of them."""

import hashlib
import os
import subprocess
import time
import zlib
from pathlib import Path

import pytest

from interlock import staging
from interlock.model.effects import ChangeKind, FileChange
from interlock.model.events import Staging
from interlock.policy.executable import facets_of, judges_content
from interlock.runtime import git_commits
from interlock.runtime.git_commits import Branches
from interlock.staging.roots import StagedRoot

GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.test",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip
CI = ".github/workflows/ci.yml"


def git(where: Path, *words: str, given: str = "") -> str:
    done = subprocess.run(
        ["git", *words], cwd=where, env=GIT, check=True, capture_output=True, input=given.encode()
    )
    return done.stdout.decode().strip()


def write(where: Path, path: str, text: str) -> None:
    (where / path).parent.mkdir(parents=True, exist_ok=True)
    (where / path).write_text(text)


def commit(where: Path, **files: str) -> str:
    for path, text in files.items():
        write(where, path, text)
    git(where, "add", "-A")
    git(where, "commit", "-qm", "x")
    return git(where, "rev-parse", "HEAD")


class Sides:
    """A host's folder, and the full copy of it that an agent works on."""

    def __init__(self, folder: Path) -> None:
        self.host, self.staged = folder / "host", folder / "staged"
        self.host.mkdir()

    def copy(self) -> Path:
        subprocess.run(["cp", "-a", str(self.host), str(self.staged)], check=True)
        return self.staged

    def root(self, name: str = "workspace", below: str = "") -> StagedRoot:
        lower, upper = (os.path.join(side, below) for side in (self.host, self.staged))
        return StagedRoot(
            name=name, lower=lower, upper=upper, mode=Staging.COPY, xattr_prefix="user.overlay."
        )

    def marked(self, name: str = "workspace", below: str = "") -> dict[str, FileChange]:
        """Return the changes that bring something, or of which it cannot be told."""
        root, branches = self.root(name, below), Branches()
        marked = (
            branches.marked(root, change)
            for change in staging.list_changes(root, judges_content=judges_content)
        )
        return {one.place.path: one for one in marked if one.brings or one.brings_unknown}

    def brought(self, name: str = "workspace", below: str = "") -> dict[str, set[str]]:
        marked = self.marked(name, below)
        assert not [path for path, change in marked.items() if change.brings_unknown]
        return {path: {one.path for one in change.brings} for path, change in marked.items()}

    def unknown(self) -> set[str]:
        return {path for path, change in self.marked().items() if change.brings_unknown}


@pytest.fixture(params=["sha1", "sha256"])
def hash_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return began(tmp_path, "sha1")


def began(folder: Path, hash_name: str) -> Sides:
    made = Sides(folder)
    git(made.host, "init", "-q", "-b", "main", f"--object-format={hash_name}")
    commit(made.host, **{"app.py": "1\n", "package.json": '{"name": "x"}\n', CI: "on: push\n"})
    return made


def test_a_commit_that_holds_a_workflow_is_told_by_its_branch(tmp_path: Path, hash_name: str) -> None:
    sides = began(tmp_path, hash_name)
    commit(sides.copy(), **{CI: "evil\n", "app.py": "2\n"})
    assert sides.brought() == {".git/refs/heads/main": {CI}}
    (facet,) = facets_of(sides.marked()[".git/refs/heads/main"])
    assert facet.kind == "ci"
    assert facet.reason.startswith(f"a commit that it brings changes `{CI}`: ")


def test_an_ordinary_commit_brings_nothing(tmp_path: Path, hash_name: str) -> None:
    sides = began(tmp_path, hash_name)
    staged = sides.copy()
    commit(staged, **{"app.py": "2\n", "src/new.py": "3\n", "package.json": '{"name": "y"}\n'})
    git(staged, "checkout", "-q", "-b", "topic/one")
    commit(staged, **{"app.py": "4\n"})
    git(staged, "pack-refs", "--all")
    assert sides.marked() == {}


def test_no_worktree_file_is_needed(sides: Sides) -> None:
    staged = sides.copy()
    blob = git(staged, "hash-object", "-w", "--stdin", given="evil")
    low = git(staged, "mktree", given=f"100644 blob {blob}\tevil.yml\n")
    mid = git(staged, "mktree", given=f"040000 tree {low}\tworkflows\n")
    top = git(staged, "mktree", given=f"040000 tree {mid}\t.github\n")
    made = git(staged, "commit-tree", "-m", "x", "-p", "HEAD", top)
    git(staged, "update-ref", "refs/heads/quiet", made)
    assert ".github/workflows/evil.yml" in sides.brought()[".git/refs/heads/quiet"]


def test_a_place_that_came_and_went_within_the_history_counts(sides: Sides) -> None:
    staged = sides.copy()
    write(staged, ".vscode/tasks.json", "{}")
    commit(staged)
    (staged / ".vscode" / "tasks.json").unlink()
    commit(staged)
    assert sides.brought()[".git/refs/heads/main"] == {".vscode/tasks.json"}


def test_content_decides_where_the_table_says_so(sides: Sides) -> None:
    staged = sides.copy()
    commit(staged, **{"package.json": '{"name": "x", "scripts": {"postinstall": "evil"}}\n'})
    assert sides.brought() == {".git/refs/heads/main": {"package.json"}}
    (one,) = sides.marked()[".git/refs/heads/main"].brings
    assert (one.kind, one.before_text) == (ChangeKind.MODIFY, '{"name": "x"}\n')


def test_a_link_into_such_a_place_counts_and_another_does_not(sides: Sides) -> None:
    staged = sides.copy()
    (staged / "docs").symlink_to(".git/hooks")
    (staged / "plain").symlink_to("app.py")
    commit(staged)
    assert sides.brought() == {".git/refs/heads/main": {"docs"}}


def test_packed_and_detached_branches_are_seen(sides: Sides) -> None:
    staged = sides.copy()
    git(staged, "checkout", "-q", "--detach")
    commit(staged, **{CI: "evil\n"})
    git(staged, "branch", "other")
    git(staged, "pack-refs", "--all")
    assert sides.brought() == {".git/HEAD": {CI}, ".git/packed-refs": {CI}}


def test_a_replacement_of_an_object_is_seen(sides: Sides) -> None:
    staged = sides.copy()
    old = git(staged, "rev-parse", "HEAD")
    commit(staged, **{CI: "evil\n"})
    git(staged, "replace", old, "HEAD")
    git(staged, "reset", "-q", "--soft", old)
    assert sides.brought() == {f".git/refs/replace/{old}": {CI}}
    git(staged, "replace", "-d", old)
    tree = git(staged, "rev-parse", "HEAD^{tree}")
    git(staged, "replace", tree, git(staged, "mktree"))
    assert sides.unknown() == {f".git/refs/replace/{tree}"}


def test_what_was_fetched_tagged_or_stashed_is_in_no_branch_yet(sides: Sides) -> None:
    staged = sides.copy()
    made = commit(staged, **{CI: "evil\n"})
    for name in ("refs/remotes/origin/main", "refs/tags/v1", "refs/stash"):
        git(staged, "update-ref", name, made)
    git(staged, "reset", "-q", "--hard", "HEAD~1")
    assert sides.marked() == {}
    # the host has the fetched branch now, and still no branch of its own
    subprocess.run(["cp", "-a", f"{staged}/.git/.", f"{sides.host}/.git"], check=True)
    git(staged, "update-ref", "refs/heads/main", "refs/remotes/origin/main")
    assert sides.brought() == {".git/refs/heads/main": {CI}}


def test_work_that_the_host_committed_itself_may_be_amended_rebased_and_merged(sides: Sides) -> None:
    commit(sides.host, **{CI: "on: pull_request\n", "b.py": "1\n"})
    git(sides.host, "checkout", "-q", "-b", "topic", "HEAD~1")
    commit(sides.host, **{"Makefile": "all:\n\tcc\n"})
    staged = sides.copy()
    git(staged, "merge", "-q", "--no-edit", "main")
    assert sides.marked() == {}
    git(staged, "reset", "-q", "--hard", "HEAD~1")
    git(staged, "rebase", "-q", "main")
    git(staged, "checkout", "-q", "main")
    write(staged, "b.py", "2\n")
    git(staged, "commit", "-qa", "--amend", "--no-edit")
    assert sides.marked() == {}


def test_what_only_a_merge_commit_changes_is_seen(sides: Sides) -> None:
    git(sides.host, "branch", "topic")
    staged = sides.copy()
    commit(staged, **{"a.py": "1\n"})
    git(staged, "checkout", "-q", "topic")
    commit(staged, **{"b.py": "1\n"})
    git(staged, "merge", "-q", "--no-commit", "main")
    commit(staged, **{CI: "evil\n"})
    assert sides.brought() == {".git/refs/heads/topic": {CI}}


def test_nested_bare_and_linked_repositories_are_seen(sides: Sides) -> None:
    git(sides.host, "init", "-q", "-b", "main", "sub")
    commit(sides.host / "sub", **{"x.py": "1\n"})
    git(sides.host, "clone", "-q", "--bare", "sub", "store.git")
    staged = sides.copy()
    commit(staged / "sub", **{".vscode/tasks.json": "{}"})
    git(staged / "sub", "push", "-q", "../store.git", "main")
    git(staged, "worktree", "add", "-q", "--detach", "linked")
    commit(staged / "linked", **{CI: "evil\n"})
    assert sides.brought() == {
        ".git/worktrees/linked/HEAD": {CI},
        "sub/.git/refs/heads/main": {"sub/.vscode/tasks.json"},
        "store.git/refs/heads/main": {".vscode/tasks.json"},
    }


def test_a_repository_outside_of_the_workspace_is_seen(sides: Sides) -> None:
    commit(sides.copy(), **{CI: "evil\n"})
    assert sides.brought("git:host", ".git") == {"refs/heads/main": {CI}}


def test_a_shallow_clone_can_be_told_apart(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    far = began(tmp_path / "far", "sha1").host
    commit(far, **{"app.py": "2\n"})
    sides = Sides(tmp_path)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{far}", "host")
    staged = sides.copy()
    commit(staged, **{"app.py": "3\n"})
    assert sides.marked() == {}
    commit(staged, **{CI: "evil\n"})
    assert sides.brought() == {".git/refs/heads/main": {CI}}


def test_two_hundred_commits_take_one_look(sides: Sides) -> None:
    staged = sides.copy()
    stream = ["reset refs/heads/main\nfrom refs/heads/main^0\n"]
    for number in range(200):
        stream.append(f"commit refs/heads/main\ncommitter a <a@example.test> {number} +0000\ndata 1\nx\n")
        stream.append(f"M 100644 inline f{number}.py\ndata 1\n1\n")
    stream.append(f"M 100644 inline {CI}\ndata 4\nevil\n")
    git(staged, "fast-import", "--quiet", "--force", given="".join(stream))
    began_at = time.monotonic()
    assert sides.brought() == {".git/refs/heads/main": {CI}}
    assert time.monotonic() - began_at < 2


def test_more_than_can_be_shown_counts_as_unknown(sides: Sides) -> None:
    staged = sides.copy()
    for number in range(git_commits.MOST_BROUGHT + 1):
        write(staged, f".github/workflows/{number}.yml", "x")
    commit(staged)
    (change,) = sides.marked().values()
    assert change.brings_unknown
    assert len(change.brings) == git_commits.MOST_BROUGHT
    assert {facet.kind for facet in facets_of(change)} == {"ci", "unjudged"}


def test_a_missing_object_counts_as_unknown(sides: Sides) -> None:
    staged = sides.copy()
    commit(staged, **{CI: "evil\n"})
    tree = git(staged, "rev-parse", "HEAD^{tree}")
    (staged / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert sides.unknown() == {".git/refs/heads/main"}


def test_content_that_is_not_what_its_name_says_counts_as_unknown(sides: Sides) -> None:
    staged = sides.copy()
    commit(staged, **{"package.json": '{"name": "x", "scripts": {"postinstall": "evil"}}\n'})
    blob = git(staged, "rev-parse", "HEAD:package.json")
    path = staged / ".git" / "objects" / blob[:2] / blob[2:]
    path.unlink()
    harmless = b'{"name": "x"}'
    path.write_bytes(zlib.compress(b"blob %d\0" % len(harmless) + harmless))
    assert hashlib.sha1(b"blob %d\0" % len(harmless) + harmless).hexdigest() != blob
    assert sides.unknown() == {".git/refs/heads/main"}


def test_without_git_a_branch_counts_as_unknown(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(sides.copy(), **{"app.py": "2\n"})
    monkeypatch.setenv("PATH", "bin:/nonexistent")
    assert sides.unknown() == {".git/refs/heads/main"}


def test_a_git_that_takes_too_long_counts_as_unknown(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit(sides.copy(), **{"app.py": "2\n"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(git_commits, "DEADLINE_S", 0.2)
    assert sides.unknown() == {".git/refs/heads/main"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".git/refs/heads/x", "ref: refs/remotes/origin/x\n"),
        (".git/refs/heads/x", "ref: refs/heads/../remotes/x\n"),
        (".git/refs/heads/x", "not an id\n"),
        (".git/refs/heads/x", ""),
        (".git/refs/heads/x", "a" * 64),
        (".git/refs/heads/x", "a" * 40),
        (".git/HEAD", "ref: refs/tags/v1\n"),
        (".git/packed-refs", "nonsense\n"),
        (".git/reftable/0x01.ref", "REFT"),
        ("new/.git/refs/heads/main", "b" * 40),
        ("store/refs/heads/main", "b" * 40 + "\n"),
        ("store/packed-refs", "b" * 40 + " refs/heads/x\n"),
    ],
)
def test_a_reference_of_another_kind_counts_as_unknown(sides: Sides, path: str, content: str) -> None:
    write(sides.copy(), path, content)
    assert sides.unknown() == {path}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".git/HEAD", "ref: refs/heads/topic\n"),
        (".git/logs/HEAD", f"{'a' * 40} {'b' * 40} a <a@example.test> 1 +0000\n"),
        (".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n"),
        ("docs/refs/heads/notes", "words\n"),
        ("src/HEAD", "words\n"),
        ("store/packed-refs", f"{'b' * 40} refs/remotes/origin/x\n"),
    ],
)
def test_what_gives_no_branch_a_commit_is_left_alone(sides: Sides, path: str, content: str) -> None:
    write(sides.copy(), path, content)
    assert sides.marked() == {}


def test_a_reference_that_is_a_link_or_a_pipe_counts_as_unknown(sides: Sides) -> None:
    staged = sides.copy()
    (staged / ".git" / "refs" / "heads" / "x").symlink_to("../remotes/x")
    os.mkfifo(staged / ".git" / "refs" / "heads" / "y")
    (staged / ".git" / "refs" / "replace").symlink_to("remotes")
    assert sides.unknown() == {
        ".git/refs/heads/x",
        ".git/refs/heads/y",
        ".git/refs/replace",
    }
