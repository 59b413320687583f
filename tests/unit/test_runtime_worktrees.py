"""Which folders of Git outside of a workspace are followed: those that name the `.git` file back, no others."""

import os
import subprocess
from pathlib import Path

import pytest

from interlock.runtime.worktrees import repositories_outside, repository_name, top_of

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "sub" / "file").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def followed(workspace: Path) -> list[tuple[str, bool]]:
    return [(one.folder, one.proven) for one in repositories_outside(str(workspace))]


def test_a_worktree_leads_to_the_common_folder(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "../tree")
    git(repo, "worktree", "add", "-q", "-b", "two", "../all/deep/tree")
    assert followed(tmp_path / "tree") == [(f"{repo}/.git", True)]
    assert followed(tmp_path / "all") == [(f"{repo}/.git", True)]
    assert followed(repo) == []
    (found,) = repositories_outside(str(tmp_path / "tree"))
    assert found.name == "repo"


def test_a_submodule_leads_to_its_own_folder_and_one_inside_nowhere(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "repo", "outer")
    git(tmp_path / "outer", "submodule", "add", "-q", str(repo), "inner")
    assert followed(tmp_path / "outer" / "inner") == [(f"{tmp_path}/outer/.git/modules/inner", True)]
    assert followed(tmp_path / "outer") == []


def test_a_written_git_file_is_not_followed(repo: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "sub").mkdir(parents=True)
    git(repo, "worktree", "add", "-q", "../tree")
    for text in (f"gitdir: {repo}/.git", f"gitdir: {repo}/.git/worktrees/tree", "gitdir: ../repo/.git\n"):
        (mine / ".git").write_text(text)
        assert not any(proven for _folder, proven in followed(mine))
        assert top_of(str(mine / "sub"), "/home") is None
    keys = tmp_path / ".ssh"
    keys.mkdir()
    (keys / "config").write_text(f"[core]\nworktree = {mine}\n")
    for text in (f"gitdir: {keys}", "gitdir: ", "", "x" * 100_000, "gitdir: \0"):
        (mine / ".git").write_text(text)
        assert not any(proven for _folder, proven in followed(mine))
    (mine / ".git").unlink()
    (mine / ".git").symlink_to(tmp_path / "tree" / ".git")
    assert followed(mine) == []


def test_a_common_folder_that_another_one_names_is_not_taken(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "../tree")
    (repo / ".git" / "worktrees" / "tree" / "commondir").write_text(str(tmp_path))
    assert followed(tmp_path / "tree") == [(f"{repo}/.git", False)]


def test_the_top_of_a_repository_is_its_own_folder(repo: Path, tmp_path: Path) -> None:
    assert top_of(f"{repo}/sub", "/home") == str(repo)
    assert top_of(str(repo), "/home") == str(repo)
    assert top_of(f"{repo}/sub", str(repo)) is None
    assert top_of(str(tmp_path), "/home") is None
    git(repo, "worktree", "add", "-q", "../tree")
    assert top_of(f"{tmp_path}/tree/sub", "/home") == f"{tmp_path}/tree"
    (repo / "sub" / ".git").mkdir()
    assert top_of(f"{repo}/sub", "/home") == str(repo)


def test_a_repository_is_named_by_its_folder() -> None:
    assert repository_name("/home/me/repo/.git") == "repo"
    assert repository_name("/srv/tool.git") == "tool"
    assert repository_name("/.git") == "repository"
