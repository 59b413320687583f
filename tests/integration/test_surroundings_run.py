"""Runs where a checkout or a machine is laid out otherwise: submodules, a gitdir apart, HOME on another disk, tmux, sudo."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time

import pytest
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_folders import COMMIT, git, roots

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="not run: no git")
LOCAL = ("-c", "protocol.file.allow=always")


def superproject(cli: Cli) -> str:
    """Make a repository with a submodule `inner` and return its folder."""
    cli.put("file", "one\n")
    git(cli, cli.workspace, "init", "-q")
    git(cli, cli.workspace, "add", ".")
    git(cli, cli.workspace, "commit", "-qm", "one")
    outer = f"{cli.home}/outer"
    os.mkdir(outer)
    cli.own()
    git(cli, outer, "init", "-q")
    git(cli, outer, *LOCAL, "submodule", "--quiet", "add", cli.workspace, "inner")
    git(cli, outer, "commit", "-qm", "with inner")
    return outer


@needs_git
@pytest.mark.parametrize("where", ["inner", pytest.param("", marks=pytest.mark.slow)])
def test_a_commit_in_a_submodule_reaches_its_repository_and_its_hooks_do_not(cli: Cli, where: str) -> None:
    outer = superproject(cli)
    store = f"{outer}/.git/modules/inner"
    hook = f"{store}/hooks/post-commit"
    script = f"cd {outer}/inner; echo two > file; {COMMIT}; echo evil > {hook}; chmod +x {hook}"
    done = cli.sh(script, cwd=os.path.join(outer, where))
    assert done.returncode == 6, done.stderr
    assert ("git:inner" in roots(cli)) is bool(where)
    assert git(cli, f"{outer}/inner", "log", "--format=%s", "-1").strip() == "two"
    assert git(cli, f"{outer}/inner", "status", "--porcelain") == ""
    assert git(cli, outer, "status", "--porcelain").strip() == "M inner"
    assert not os.path.lexists(hook)
    assert cli.verdict("last", "--replay") == "complete"


@needs_git
@in_one_standing
def test_a_gitdir_apart_is_followed_where_it_names_the_worktree_back_and_else_on_the_users_word(
    cli: Cli,
) -> None:
    store = f"{cli.home}/stores/proj.git"
    os.mkdir(f"{cli.home}/stores")
    cli.put("file", "one\n")
    git(cli, cli.workspace, "init", "-q", f"--separate-git-dir={store}")
    git(cli, cli.workspace, "add", ".")
    git(cli, cli.workspace, "commit", "-qm", "one")
    without = cli.sh(f"echo two > file; {COMMIT}; exit 0")
    assert f"if it is yours: --add-dir {store}".encode() in without.stderr
    assert git(cli, cli.workspace, "log", "--format=%s", "-1").strip() == "one"
    done = cli.sh(f"echo two > file; {COMMIT}", "--add-dir", store)
    assert done.returncode == 0, done.stderr
    assert git(cli, cli.workspace, "log", "--format=%s", "-1").strip() == "two"
    git(cli, cli.workspace, "config", "core.worktree", cli.workspace)
    done = cli.sh(f"echo three > file; {COMMIT.replace('two', 'three')}")
    assert done.returncode == 0, done.stderr
    assert git(cli, cli.workspace, "log", "--format=%s", "-1").strip() == "three"
    assert git(cli, cli.workspace, "status", "--porcelain") == ""


@in_one_standing
@pytest.mark.parametrize("which", ["home", "workspace", pytest.param("state", marks=pytest.mark.slow)])
def test_home_workspace_and_state_may_lie_on_different_file_systems(cli: Cli, which: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: mounts need root")
    apart = f"{cli.base}/apart"
    os.makedirs(apart)
    os.makedirs(cli.state)
    cli.own()
    place = {"home": cli.home, "workspace": apart, "state": cli.state}[which]
    words = cli.words(
        "run", "--task", "add an alias to ~/.bashrc", "--", "sh", "-c", "echo new >> ~/.bashrc; echo a > made"
    )
    kept = f"cat {cli.home}/.bashrc {apart}/made; ls -A {cli.home}"
    before = (
        f"set -e; mount -t tmpfs -o mode=755,uid={cli.uid},gid={cli.uid} none {place}; cd {apart}; "
        f"echo old > {cli.home}/.bashrc; chown {cli.uid}:{cli.uid} {cli.home}/.bashrc; "
        f"setpriv --reuid={cli.uid} --regid={cli.uid} --clear-groups {shlex.join(words)}; {kept}"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", before], env=cli.environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().split()
    assert lines[:3] == ["old", "new", "a"], (done.stdout, done.stderr)
    assert b"degraded" not in done.stderr


@in_one_standing
@pytest.mark.skipif(shutil.which("tmux") is None, reason="not run: no tmux")
def test_in_tmux_the_command_has_the_pane_and_never_the_server(cli: Cli) -> None:
    server = f"{cli.base}/tmux"
    script = cli.put(
        "steps.sh",
        'test -t 0 && echo "TTY $TERM"; stty size\n'
        f"tmux -S {server} kill-server 2>&1 | grep -c -i -e error -e 'no server'\n"
        "trap 'stty size; echo RESIZED' WINCH; touch made; read line; echo \"GOT $line\"; read line; echo AFTER\n",
    )

    def tmux(*words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", server, *words],
            env=cli.environment({"TERM": "xterm-256color"}),
            cwd=cli.workspace,
            capture_output=True,
            check=False,
            text=True,
            **cli.identity(),
        )
        return str(done.stdout)

    def until(word: str) -> str:
        end = time.monotonic() + 20
        while word not in (seen := tmux("capture-pane", "-p", "-S", "-100", "-t", "il")):
            assert time.monotonic() < end, seen
            time.sleep(0.05)
        return seen

    command = shlex.join(cli.words("run", "--", "sh", script))
    tmux("new-session", "-d", "-s", "il", "-x", "91", "-y", "31", f"{command}; echo STATUS $?; sleep 60")
    try:
        seen = until("31 91")
        assert "TTY screen" in seen or "TTY tmux" in seen, seen
        until("\n1\n")
        tmux("send-keys", "-t", "il", "line", "Enter")
        until("GOT line")
        tmux("resize-window", "-t", "il", "-x", "77", "-y", "22")
        tmux("send-keys", "-t", "il", "more", "Enter")
        until("AFTER")
        until("STATUS 0")
        seen = until("RESIZED")
        assert "22 77" in seen, seen
        assert cli.has("made")
    finally:
        tmux("kill-server")
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.slow
def test_sudo_says_whose_files_are_and_takes_no_folder_of_the_callers(cli: Cli) -> None:
    if cli.uid != 0:
        pytest.skip("not run: sudo is root's")
    os.chown(cli.home, 1000, 1000)
    said = cli.sh("true", environment={"SUDO_UID": "1000", "SUDO_USER": "me"})
    assert said.returncode == 0, said.stderr
    assert b"leave sudo out to run as me" in said.stderr
    for folder, names, files in os.walk(cli.home):
        for name in (*names, *files):
            assert "interlock" not in name, (folder, name)
