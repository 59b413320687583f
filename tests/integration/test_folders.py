"""More folders than the workspace: those that the user adds, and a repository's own folder outside of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import pytest
from tests.integration.conftest import Cli

WHO = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
COMMIT = "git -c user.name=a -c user.email=a@b commit -qam two"


def git(cli: Cli, folder: str, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=cli.environment(WHO),
        capture_output=True,
        check=True,
        **cli.identity(),
    )
    return str(done.stdout, "utf-8")


def other(cli: Cli) -> str:
    folder = os.path.join(cli.home, "other")
    os.mkdir(folder)
    cli.own()
    return folder


def roots(cli: Cli) -> set[str]:
    with open(os.path.join(cli.state, "runs", os.listdir(f"{cli.state}/runs")[-1], "run.json")) as file:
        return {line.split('"')[3] for line in file if '"name"' in line}


def test_a_folder_that_is_added_is_staged_also_through_a_link(cli: Cli) -> None:
    folder = other(cli)
    os.symlink(folder, f"{cli.workspace}/there")
    script = f"echo a > {folder}/a; echo b > there/b; ln -s {folder}/a link; ln -s ../other/b near"
    held = cli.sh(script, "--add-dir", "../other", "--hold")
    assert held.returncode == 0, held.stderr
    assert os.listdir(folder) == []
    assert cli("apply", "last").returncode == 0
    assert sorted(os.listdir(folder)) == ["a", "b"]
    assert cli.get("link") == "a\n"
    assert cli.get("near") == "b\n"
    assert cli.verdict("last", "--replay") == "complete"
    assert cli("undo", "last").returncode == 0
    assert os.listdir(folder) == []


@pytest.mark.slow
def test_a_link_out_of_an_added_folder_is_a_hazard_as_it_is_in_the_workspace(cli: Cli) -> None:
    folder = other(cli)
    os.symlink("/etc", f"{folder}/out")
    cli.own()
    done = cli.sh(f"ln -s {folder}/out/passwd one; ln -s ../other/../../x two", "--add-dir", folder)
    assert done.returncode == 6
    assert not cli.has("one")
    assert not cli.has("two")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "says"),
    [
        (".", b"inside the workspace"),
        ("..", b"holds HOME"),
        ("../none", b"not there"),
        ("../.ssh", b"hidden"),
    ],
)
def test_a_folder_that_cannot_be_added_is_refused_with_the_fix(cli: Cli, folder: str, says: bytes) -> None:
    os.mkdir(f"{cli.home}/.ssh")
    cli.own()
    done = cli.sh("true", "--add-dir", folder)
    assert done.returncode == 2
    assert says in done.stderr
    assert b"next: " in done.stderr


@pytest.mark.slow
def test_an_added_folder_that_is_a_link_means_what_it_leads_to(cli: Cli) -> None:
    folder = other(cli)
    os.mkdir(f"{cli.home}/.ssh")
    os.symlink(".ssh", f"{cli.home}/keys")
    os.symlink("other", f"{cli.home}/alias")
    cli.own()
    assert cli.sh("true", "--add-dir", "../keys").returncode == 2
    assert cli.sh(f"echo a > {folder}/a", "--add-dir", "../alias").returncode == 0
    assert os.listdir(folder) == ["a"]


@pytest.mark.slow
def test_below_a_repository_the_whole_of_it_is_the_workspace(cli: Cli) -> None:
    git(cli, cli.workspace, "init", "-q")
    cli.put("deep/er/file", "x")
    below = f"{cli.workspace}/deep/er"
    done = cli.sh("pwd; echo a > ../../top", "-v", cwd=below)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == below
    assert b"the repository's top folder" in done.stderr
    assert cli.get("top") == "a\n"
    cli.sh("echo b > ../../top2; exit 0", "--workspace", ".", cwd=below)
    assert not cli.has("top2")


@pytest.mark.skipif(shutil.which("git") is None, reason="not run: no git")
def test_a_commit_in_a_worktree_reaches_the_repository_and_its_hooks_do_not(cli: Cli) -> None:
    cli.put("file", "one\n")
    git(cli, cli.workspace, "init", "-q")
    git(cli, cli.workspace, "add", ".")
    git(cli, cli.workspace, "commit", "-qm", "one")
    tree = f"{cli.home}/tree"
    git(cli, cli.workspace, "worktree", "add", "-q", "-b", "side", tree)
    hook = f"{cli.workspace}/.git/hooks/post-commit"
    done = cli.sh(
        f"echo two > file; {COMMIT}; echo evil > {hook}; chmod +x {hook}; git config core.pager evil",
        cwd=tree,
    )
    assert done.returncode == 6, done.stderr
    assert "git:project" in roots(cli)
    assert git(cli, tree, "log", "--format=%s", "-1", "side").strip() == "two"
    assert git(cli, tree, "status", "--porcelain") == ""
    assert not os.path.lexists(hook)
    assert "evil" not in cli.get(".git/config")


def test_a_written_git_file_leads_the_run_nowhere(cli: Cli) -> None:
    keys = f"{cli.home}/.ssh"
    os.mkdir(keys)
    for name in ("objects", "refs"):
        os.mkdir(f"{keys}/{name}")
    for name, text in (("HEAD", "x"), ("id", "key"), ("config", f"[core]\n\tworktree = {cli.workspace}\n")):
        with open(f"{keys}/{name}", "w") as file:
            file.write(text)
    cli.put(".git", f"gitdir: {keys}\n")
    done = cli.sh(f"cat {keys}/id; echo evil > {keys}/id; exit 0")
    assert b"key" not in done.stdout
    assert not any(name.startswith("git:") for name in roots(cli))
    with open(f"{keys}/id") as file:
        assert file.read() == "key"


@pytest.mark.slow
def test_a_workspace_below_a_folder_that_only_root_may_pass_is_reached(cli: Cli) -> None:
    if cli.uid != 0 or not os.path.isdir("/srv"):
        pytest.skip("not run: needs root and /srv")
    shut = tempfile.mkdtemp(dir="/srv")
    try:
        os.mkdir(f"{shut}/work")
        os.mkdir(f"{shut}/beside")
        done = cli.sh("echo a > made; ls ..; echo b > ../beside/b; exit 0", cwd=f"{shut}/work")
        assert done.returncode == 0, done.stderr
        assert done.stdout == b"work\n"
        assert os.listdir(f"{shut}/work") == ["made"]
        assert os.listdir(f"{shut}/beside") == []
    finally:
        shutil.rmtree(shut)
