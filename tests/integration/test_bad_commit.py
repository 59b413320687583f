"""Commits into places that are full, gone or on another disk: told clearly, and made good by the next apply."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest
from tests.fakes.forked_cli import a_cli
from tests.integration.conftest import Cli


@pytest.fixture
def cli() -> Iterator[Cli]:
    with a_cli() as made:
        yield made


def in_namespace(cli: Cli, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own; `$IL` is the command line, `$W` a workspace, `$S` the state.

    The workspace lies beside the home, since other file systems are mounted over it.
    """
    os.makedirs(f"{cli.base}/ws")
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=cli.base,
        env=cli.environment(
            {"IL": f"{cli.interpreter} -m interlock", "W": f"{cli.base}/ws", "S": cli.state, "PS4": ""}
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


STAGE = "cd $W && $IL run --hold -- sh -c 'echo new > a; head -c 600000 /dev/zero > big' 2>/dev/null"
TRY = "$IL apply last 2>err; echo $?; cat err >&2; cat a; ls -A"


def check_told_and_made_good(cli: Cli, done: subprocess.CompletedProcess[str], status: str) -> None:
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    first = lines.index("--")
    assert status in lines[:first], done.stdout + done.stderr
    assert "old" in lines[:first]
    assert "big" not in lines[:first]
    assert lines[first + 1 :] == ["2 committed, 0 refused", "0", "new", "a", "ballast", "big", "err"], (
        done.stdout + done.stderr
    )


def test_a_workspace_without_room_keeps_its_files_and_takes_them_later(cli: Cli) -> None:
    done = in_namespace(
        cli,
        f"mount -t tmpfs -o size=1m none $W && echo old > $W/a && head -c 500000 /dev/zero > $W/ballast && {STAGE};"
        f"{TRY}; echo --; : > ballast; {TRY}",
    )
    check_told_and_made_good(cli, done, "5")
    assert "No space left" in done.stderr


def test_a_state_folder_without_room_releases_nothing_and_goes_on_later(cli: Cli) -> None:
    """The ledger, the log and the stage lie there."""
    os.makedirs(cli.state)
    done = in_namespace(
        cli,
        f"echo old > $W/a; : > $W/ballast; mount -t tmpfs -o size=2m none $S && {STAGE}; head -c 4000000 /dev/zero > $S/ballast 2>/dev/null;"
        f"{TRY}; echo --; rm $S/ballast; {TRY}",
    )
    check_told_and_made_good(cli, done, "4")
    assert "No space left" in done.stderr


def test_both_without_room(cli: Cli) -> None:
    done = in_namespace(
        cli,
        f"mkdir -p $S; mount -t tmpfs -o size=3m none $S && mkdir $S/w && mount --bind $S/w $W && echo old > $W/a;"
        f"INTERLOCK_STATE=$S/s; export INTERLOCK_STATE; : > $W/ballast; {STAGE};"
        f"head -c 4000000 /dev/zero > $S/ballast 2>/dev/null; cd $W; {TRY}; echo --; rm $S/ballast; {TRY}",
    )
    assert "Traceback" not in done.stderr
    first, _, second = done.stdout.partition("--\n")
    assert "old" in first, done.stdout + done.stderr
    assert "big" not in first
    assert "2 committed, 0 refused" in second, done.stdout + done.stderr


def test_a_workspace_on_another_file_system_is_committed_to_and_nothing_is_left_beside_it(cli: Cli) -> None:
    done = in_namespace(
        cli,
        "mount -t tmpfs -o size=4m none $W && cd $W && mkdir -p d/e && echo old > a && echo 1 > d/e/f &&"
        "$IL run -- sh -c 'echo new > a; mv d moved; mkdir n; echo 2 > n/g'; echo $?;"
        "cat a moved/e/f n/g; ls -A; $IL verify last --replay | head -1",
    )
    lines = done.stdout.splitlines()
    assert lines[:7] == ["0", "new", "1", "2", "a", "moved", "n"], done.stdout + done.stderr


def test_a_workspace_that_vanished_is_said_and_takes_the_commit_when_it_is_back(cli: Cli) -> None:
    cli.put("a", "old\n")
    cli.sh("echo new > a", "--hold")
    away = f"{cli.workspace}.away"
    os.rename(cli.workspace, away)
    done = cli("apply", "last", cwd=cli.base)
    assert done.returncode in (4, 5)
    assert cli.workspace.encode() in done.stderr
    assert b"Traceback" not in done.stderr
    with open(os.path.join(away, "a"), encoding="utf-8") as file:
        assert file.read() == "old\n"
    os.rename(away, cli.workspace)
    assert cli("apply", "last").returncode == 0
    assert cli.get("a") == "new\n"


def test_a_read_only_workspace_is_said_and_takes_the_commit_later(cli: Cli) -> None:
    done = in_namespace(
        cli,
        "mount -t tmpfs -o size=4m none $W && cd $W && echo old > a && mount -o remount,ro $W &&"
        "$IL run -- sh -c 'echo new > a'; echo $?; cat a; mount -o remount,rw $W; $IL apply last; cat a; ls -A",
    )
    assert "Traceback" not in done.stderr
    assert "Read-only" in done.stderr
    assert done.stdout.splitlines() == ["5", "old", "1 committed, 0 refused", "new", "a"], (
        done.stdout + done.stderr
    )


def test_two_commits_at_once_never_lose_the_firsts_work(cli: Cli) -> None:
    """Both as processes of their own; the one that comes second finds the first's work as edits of the host."""
    cli.put("shared", "old\n")
    runs = []
    for who in ("one", "two"):
        script = f"echo {who} > shared; echo {who} > own-{who}"
        runs.append(cli.outcome(cli.sh(script, "--hold", "--json"))["run"])
    both = [
        subprocess.Popen(
            cli.words("apply", run, "--json"), cwd=cli.workspace, env=cli.environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **cli.identity(),
        )
        for run in runs
    ]  # fmt: skip
    said = [one.communicate() for one in both]
    whole = [
        one.returncode == 0 and json.loads(out)["committed"] == 2
        for one, (out, _) in zip(both, said, strict=True)
    ]
    assert whole.count(True) == 1, said
    winner = ("one", "two")[whole.index(True)]
    assert cli.get("shared") == f"{winner}\n"
    assert cli.has(f"own-{winner}")
    for run in runs:
        cli("discard", run)
        assert cli.verdict(run, "--replay") == "complete"
    assert cli.get("shared") == f"{winner}\n"


def test_another_file_system_below_the_workspace_is_not_merged_into(cli: Cli) -> None:
    """The command sees the folder below the mount: what it does there does not fit what the host shows."""
    done = in_namespace(
        cli,
        f"mkdir $W/d {cli.base}/other && echo under > $W/d/f && echo over > {cli.base}/other/f && cd $W &&"
        f"mount --bind {cli.base}/other d; $IL run --hold -- sh -c 'cat d/f; echo new > d/f; mv d/f moved' 2>/dev/null;"
        f"$IL apply last; echo $?; ls -A . d; umount d; cat d/f {cli.base}/other/f; $IL discard last | wc -l",
    )
    assert "Traceback" not in done.stderr
    assert "cross-device" in done.stderr
    lines = ["under", "0 committed, 0 refused", "4", ".:", "d", "", "d:", "f", "under", "over", "1"]
    assert done.stdout.splitlines() == lines, done.stdout + done.stderr
