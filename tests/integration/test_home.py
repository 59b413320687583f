"""The root `home`: what the policy names of HOME is staged and reviewed, and nothing else of it is kept."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from tests.integration.conftest import Cli

TASK = ("--task", "add an alias to ~/.bashrc")


def write(cli: Cli, path: str, text: str, mode: int = 0o644) -> None:
    full = os.path.join(cli.home, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    os.chmod(full, mode)
    cli.own()


def read(cli: Cli, path: str) -> str:
    with open(os.path.join(cli.home, path)) as file:
        return file.read()


def test_a_file_that_the_task_names_is_changed_and_the_rest_of_home_is_thrown_away(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n", 0o600)
    done = cli.sh(
        "cd; cp -p .bashrc t; echo new >> t; mv t .bashrc; echo x > junk; echo y > .zshrc.bak", *TASK
    )
    assert done.returncode == 0, done.stderr
    assert read(cli, ".bashrc") == "old\nnew\n"
    status = os.stat(f"{cli.home}/.bashrc")
    assert (status.st_mode & 0o777, status.st_uid) == (0o600, cli.uid)
    assert not {"junk", "t", ".zshrc.bak"} & set(os.listdir(cli.home))
    assert cli.verdict("last", "--replay") == "complete"
    assert cli("undo", "last").returncode == 0
    assert read(cli, ".bashrc") == "old\n"


def test_a_file_that_was_moved_to_where_nothing_is_kept_stays_where_it_was(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n")
    done = cli.sh("cd; mv .bashrc .bashrc.bak; echo done > project/made", *TASK)
    assert done.returncode == 0, done.stderr
    assert read(cli, ".bashrc") == "old\n"
    assert not os.path.exists(f"{cli.home}/.bashrc.bak")
    assert cli.get("made") == "done\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_what_nothing_keeps_of_home_is_told(cli: Cli) -> None:
    write(cli, "letter.txt", "dear\n")
    script = (
        "cd; mkdir -p docs .cache/x; echo a > docs/report.md; echo b >> letter.txt; echo c > .cache/x/y; "
        "echo done > project/made"
    )
    done = cli.sh(script)
    assert (done.returncode, cli.get("made"), read(cli, "letter.txt")) == (0, "done\n", "dear\n")
    assert b"2 files that it wrote in HOME are not kept: interlock show " in done.stderr
    assert "not kept  2 in HOME: ~/docs/report.md, ~/letter.txt\n" in cli("show", "last").stdout.decode()
    story = cli.story()
    assert (story["thrown_away"], story["thrown"]) == (2, ["docs/report.md", "letter.txt"])
    assert cli.verdict("last", "--replay") == "complete"
    assert cli.outcome(cli.sh(script, "--json"))["thrown_away"] == 2
    assert cli.sh("echo again > made").stderr == b""


def test_what_the_task_does_not_name_is_refused(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n")
    done = cli.sh(
        "echo evil >> ~/.bashrc; echo evil > ~/.zshrc; mkdir -p ~/.config/git/hooks; echo > ~/.config/git/hooks/pre-commit",
        "--task",
        "tidy the project",
    )
    assert done.returncode == 6
    assert read(cli, ".bashrc") == "old\n"
    assert not os.path.lexists(f"{cli.home}/.zshrc")
    assert not os.path.lexists(f"{cli.home}/.config/git/hooks/pre-commit")


@pytest.mark.slow
def test_a_held_change_meets_what_the_user_wrote_meanwhile(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n")
    assert cli.sh("echo new > ~/.bashrc", "--hold", *TASK).returncode == 0
    assert b"+new" in cli("diff", "last", f"{cli.home}/.bashrc").stdout
    write(cli, ".bashrc", "mine\n")
    assert cli("apply", "last").returncode != 0
    assert read(cli, ".bashrc") == "mine\n"


def test_no_key_is_shown_or_changed_through_a_glob(cli: Cli) -> None:
    write(cli, ".ssh/authorized_keys", "key\n")
    write(cli, ".config/git/credentials", "https://me:token@example.com\n")
    policy = os.path.join(cli.base, "policy.yaml")
    with open(policy, "w") as file:
        file.write('version: 1\nhome: ["~/.ssh/**", "~/.config/git/**"]\n')
    os.chmod(policy, 0o644)
    done = cli.sh(
        "cat ~/.ssh/* ~/.config/git/credentials; echo evil > ~/.ssh/authorized_keys; rm -rf ~/.config ~/.ssh; exit 0",
        "--policy",
        policy,
        "--task",
        "write .ssh/authorized_keys and .config/git/credentials",
    )
    assert b"token" not in done.stdout
    assert b"key" not in done.stdout
    assert read(cli, ".ssh/authorized_keys") == "key\n"
    assert "token" in read(cli, ".config/git/credentials")


def test_a_link_in_the_place_of_a_named_file_leads_to_no_other(cli: Cli) -> None:
    write(cli, "dotfiles/bashrc", "old\n")
    outside = os.path.join(cli.base, "outside")
    os.mkdir(outside)
    os.symlink("dotfiles/bashrc", f"{cli.home}/.bashrc")
    os.symlink(f"{outside}/profile", f"{cli.home}/.profile")
    cli.own()
    done = cli.sh(
        "echo new > ~/.bashrc; echo new > ~/.profile; exit 0", "--task", "change ~/.bashrc and ~/.profile"
    )
    assert done.returncode == 0
    assert os.readlink(f"{cli.home}/.bashrc") == "dotfiles/bashrc"
    assert read(cli, "dotfiles/bashrc") == "old\n"
    assert os.listdir(outside) == []


@pytest.mark.slow
def test_a_full_copy_leaves_home_out_and_says_so(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n")
    done = cli.sh("echo new > ~/.bashrc; echo x > made", "--staging", "copy", "-v", *TASK)
    assert done.returncode == 0, done.stderr
    assert b"HOME is not copied" in done.stderr
    assert read(cli, ".bashrc") == "old\n"
    assert cli.get("made") == "x\n"


def test_the_state_folder_may_lie_in_home_and_stays_hidden(cli: Cli) -> None:
    write(cli, ".bashrc", "old\n")
    state = f"{cli.home}/.local/state/interlock"
    done = cli.sh(f"ls -A {state}; echo new > ~/.bashrc", *TASK, environment={"INTERLOCK_STATE": state})
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert read(cli, ".bashrc") == "new\n"


def under_mounts(cli: Cli, mounts: str, script: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run a script behind the boundary, with mounts of the test's own made before."""
    if cli.uid != 0:
        pytest.skip("not run: mounts need root")
    words = cli.words("run", "-v", *options, "--", "sh", "-c", script)
    before = f"set -e; cd {cli.home}; {mounts}; cd {cli.workspace}; exec " + shlex.join(words)
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", before], env=cli.environment(), capture_output=True, check=False
    )


@pytest.mark.slow
def test_other_file_systems_below_home_are_shown_and_not_written(cli: Cli) -> None:
    write(cli, ".gitconfig", "")
    write(cli, "real", "[user]\n")
    for folder in ("disk", ".ssh"):
        os.mkdir(f"{cli.home}/{folder}")
    done = under_mounts(
        cli,
        "mount -t tmpfs t disk; echo shown > disk/file; mount -t tmpfs t .ssh; echo key > .ssh/id;"
        " mount --bind real .gitconfig",
        "cat ~/disk/file ~/.gitconfig ~/.ssh/*; echo x > ~/disk/new || echo no > ~/.bashrc",
        *TASK,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"shown\n[user]\n"
    assert read(cli, ".bashrc") == "no\n"


@pytest.mark.slow
def test_a_workspace_on_a_file_system_of_its_own_below_home_works(cli: Cli) -> None:
    done = under_mounts(
        cli,
        f"mount -t tmpfs t {cli.workspace}",
        "echo a > made; test -e made && echo b > ~/.bashrc",
        *TASK,
    )
    assert done.returncode == 0, done.stderr
    assert b"2 committed" in done.stderr
    assert read(cli, ".bashrc") == "b\n"


@pytest.mark.slow
def test_in_a_container_whose_root_is_an_overlay_the_work_goes_on_a_copy(cli: Cli) -> None:
    for folder in ("upper", "work"):
        os.mkdir(f"{cli.base}/{folder}")
    done = under_mounts(
        cli,
        f"mount -t overlay o -o lowerdir={cli.home},upperdir={cli.base}/upper,workdir={cli.base}/work {cli.home}",
        "echo a > made; echo b > ~/.bashrc",
        *TASK,
    )
    assert done.returncode == 0, done.stderr
    assert b"what the command changes in it is thrown away" in done.stderr
    assert os.listdir(f"{cli.base}/upper/project") == ["made"]


@pytest.mark.slow
def test_two_runs_in_one_home_do_not_stop_each_other(cli: Cli) -> None:
    second = os.path.join(cli.home, "second")
    os.mkdir(second)
    write(cli, ".bashrc", "old\n")
    assert cli.sh("echo one >> ~/.bashrc", "--hold", *TASK).returncode == 0
    done = cli.sh("echo two > file", "--task", "write", cwd=second)
    assert done.returncode == 0, done.stderr
    (first, _second) = sorted(os.listdir(f"{cli.state}/runs"))
    assert cli("apply", first).returncode == 0
    assert read(cli, ".bashrc") == "old\none\n"
