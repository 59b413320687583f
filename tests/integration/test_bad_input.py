"""Input and machines that are not as hoped for: a clear word, and nothing lost or released."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from tests.integration.conftest import Cli, in_one_standing


def test_a_run_without_a_command_says_what_is_missing(cli: Cli) -> None:
    done = cli("run", "--")
    assert done.returncode == 2
    assert b"command" in done.stderr


def test_an_unknown_verb_run_effect_and_oracle_are_said(cli: Cli) -> None:
    for words, expected in (
        (("frobnicate",), b"frobnicate"),
        (("show", "20200101-000000-ffffff"), b"20200101-000000-ffffff"),
        (("run", "--oracle", "strikt", "--", "true"), b"strict"),
        (("verify", "/nowhere/at/all"), b"/nowhere/at/all"),
        (("run", "--task-file", "/nowhere", "--", "true"), b"/nowhere"),
        (("run", "--policy", "/nowhere", "--", "true"), b"policy init"),
    ):
        done = cli(*words)
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr
        assert b"Traceback" not in done.stderr


def test_errors_are_json_when_asked(cli: Cli) -> None:
    done = cli("show", "none", "--json")
    assert json.loads(done.stderr)["error"]["code"] == "input"


def test_an_unreadable_workspace_is_said(cli: Cli) -> None:
    if cli.uid == 0:
        pytest.skip("not run: root can read every folder")
    locked = os.path.join(cli.base, "locked")
    os.mkdir(locked, 0o700)
    done = cli("run", "--workspace", locked, "--", "true")
    assert done.returncode == 2
    assert b"cannot be read" in done.stderr


def test_a_state_folder_inside_the_workspace_is_refused(cli: Cli) -> None:
    done = cli("run", "--", "true", environment={"INTERLOCK_STATE": os.path.join(cli.workspace, "state")})
    assert done.returncode == 2
    assert b"INTERLOCK_STATE" in done.stderr
    assert not cli.has("state")


def test_a_full_disk_loses_nothing_of_the_host_and_releases_nothing(cli: Cli) -> None:
    """The stage and the ledger lie on a file system of 3 MiB, and the command fills it."""
    if cli.uid:
        pytest.skip("not run: mounting needs root")
    cli.put("a.txt", "old\n")
    os.makedirs(cli.state)
    command = " ".join(
        ["mount -t tmpfs -o size=3m none", cli.state, "&& exec", cli.interpreter, "-m interlock run -- sh -c"]
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{command} 'echo new > a.txt; head -c 20000000 /dev/zero > big'"],
        cwd=cli.workspace,
        env=cli.environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr
    assert cli.get("a.txt") in ("old\n", "new\n")
    assert not cli.has("big") or os.path.getsize(os.path.join(cli.workspace, "big")) < 4 << 20


def test_a_ledger_that_cannot_be_written_releases_nothing(cli: Cli) -> None:
    """The disk below the state folder is full before the gate: what is staged stays staged."""
    if cli.uid:
        pytest.skip("not run: mounting needs root")
    cli.put("a.txt", "old\n")
    os.makedirs(cli.state)
    # More small changes than their ledger nodes find room for: the stage itself takes little.
    script = "i=0; while [ $i -lt 400 ]; do : > f$i; i=$((i+1)); done; echo new > a.txt; head -c 2900000 /dev/zero > ~/fill"
    done = subprocess.run(
        [
            "unshare", "-m", "sh", "-c",
            f"mount -t tmpfs -o size=700k none {cli.state} && {cli.interpreter} -m interlock run -- sh -c '{script}'; "
            f"echo status $?; ls {cli.workspace} | wc -l; cat {cli.workspace}/a.txt",
        ],
        cwd=cli.workspace,
        env=cli.environment(),
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    status, names, content = done.stdout.split("\n")[:3]
    assert (status, content) in (("status 4", "old"), ("status 0", "new")), done.stdout + done.stderr
    assert int(names) == (1 if content == "old" else 401)


@in_one_standing
def test_a_large_sparse_file_is_merged_as_one(cli: Cli) -> None:
    done = cli.sh("truncate -s 2G big; printf end >> big")
    assert done.returncode == 0, done.stderr
    status = os.stat(os.path.join(cli.workspace, "big"))
    assert status.st_size == (2 << 30) + 3
    assert status.st_blocks * 512 < 1 << 20


def test_a_file_over_the_limit_is_stopped_inside(cli: Cli) -> None:
    done = cli.sh("truncate -s 9G big || echo stopped; ls big 2>/dev/null; rm -f big")
    assert b"stopped" in done.stdout


def test_a_workspace_on_stacked_overlays_is_staged_as_a_copy(cli: Cli) -> None:
    """The kernel stacks overlays two deep and no more: the third is a full copy, said once."""
    if cli.uid:
        pytest.skip("not run: mounting needs root")
    base = os.path.join(cli.base, "stack")
    for name in ("l", "u1", "w1", "m1", "u2", "w2", "m2"):
        os.makedirs(os.path.join(base, name))
    with open(os.path.join(base, "l", "a.txt"), "w", encoding="utf-8") as file:
        file.write("old\n")
    script = (
        f"cd {base} && mount -t overlay o -o lowerdir=l,upperdir=u1,workdir=w1 m1 && "
        "mount -t overlay o -o lowerdir=m1,upperdir=u2,workdir=w2 m2 && cd m2 && "
        f"{cli.interpreter} -m interlock run -v -- sh -c 'cat a.txt; echo new > a.txt; mkdir d; echo 1 > d/f'; "
        "echo $?; cat a.txt d/f"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env=cli.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "old\n0\nnew\n1\n", done.stdout + done.stderr
    assert "copy" in done.stderr


def test_a_file_system_mounted_below_home_is_shown_to_roots_command(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: mounting needs root")
    os.mkdir(os.path.join(cli.home, "disk"))
    script = f"mount -t tmpfs none {cli.home}/disk && {cli.interpreter} -m interlock run -- true"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=cli.workspace,
        env=cli.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_hundred_thousand_files_are_listed_decided_and_merged(cli: Cli) -> None:
    script = (
        "i=0; while [ $i -lt 100 ]; do mkdir d$i; i=$((i+1)); done; "
        "/usr/bin/python3 -c \"\nfor i in range(100000):\n open(f'd{i%100}/f{i}','w').write(str(i))\""
    )
    done = cli.sh(script, timeout=600)
    assert done.returncode == 0, done.stderr
    assert sum(len(files) for _folder, _names, files in os.walk(cli.workspace)) == 100_000
    assert cli.verdict("last", "--replay") == "complete"
