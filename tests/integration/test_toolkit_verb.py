"""`interlock toolkit`: what ships, a mistake with its line, a command tried under a toolkit, and one recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.boundary import landlock, notifying
from interlock.cli.toolkit import main
from interlock.manifest.toolkits import load_toolkit
from interlock.model.errors import InputError

NEEDS_KERNEL = pytest.mark.skipif(
    not landlock.abi() or not notifying.possible(), reason="not run: no Landlock or seccomp notification here"
)


def _verb(*words: str, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "interlock", "toolkit", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )


def test_what_ships_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    told = capsys.readouterr().out
    assert all(
        name in told for name in ("shell", "git", "python", "node", "curl", "runtimes/native", "gmail")
    )
    assert main(["list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 5 + 38 + 3


def test_a_toolkit_is_shown_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "git"]) == 0
    shown = capsys.readouterr().out
    assert load_toolkit(shown, "shown").name == "git"
    assert main(["show", "runtimes/node", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interlock"] == "runtime/1"


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "interlock: toolkit/1\nname: own\nversion: 1\ndescription: d\nneeds:\n  system_calls: {opnat: why}\n"
        "tools:\n  go: {effect: write}\n"
    )
    with pytest.raises(InputError) as error:
        main(["check", str(file)])
    assert "opnat" in error.value.message
    assert "openat" in error.value.hint
    file.write_text(file.read_text().replace("opnat: why", "openat: why").replace("write", "wrte"))
    with pytest.raises(InputError, match=r"own\.yaml:8:"):
        main(["check", str(file)])


def test_what_is_odd_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "interlock: toolkit/1\nname: own\nversion: 1\ndescription: d\n"
        "needs:\n  system_calls: {execve: starts, mount: mounts}\n  hosts: [{host: a.example, reason: r}]\n"
        '  paths: [{path: "{home}", access: read, reason: r}]\ntools:\n  go: {effect: write}\n'
    )
    assert main(["check", str(file)]) == 0
    told = capsys.readouterr().out
    for words in (
        "`mount` is refused whatever",
        "names hosts",
        "no place from which",
        "a whole disk or home",
    ):
        assert words in told


@NEEDS_KERNEL
def test_a_command_is_tried_and_what_is_missing_named(tmp_path: Path) -> None:
    fine = _verb("check", "shell", "--", "sh", "-c", "echo x > f; cat f", place=tmp_path)
    assert (fine.returncode, fine.stdout) == (0, "x\n")
    assert "no call was refused" in fine.stderr
    less = _verb("check", "git", "--tool", "git_status", "--", "unshare", "-U", "true", place=tmp_path)
    assert less.returncode == 6
    assert "refused: unshare; the sandbox refuses it whatever a toolkit says" in less.stderr
    more = _verb("check", "git", "--", "sh", "-c", "mkfifo p", place=tmp_path)
    assert "to allow it, add to `git`: needs: {system_calls: {mknodat: " in more.stderr
    wrong = _verb("check", "git", "--tool", "git_stat", "--", "true", place=tmp_path)
    assert (wrong.returncode, "did you mean `git_status`" in wrong.stderr) == (2, True)


@NEEDS_KERNEL
def test_a_recorded_command_runs_under_what_was_proposed(tmp_path: Path) -> None:
    script = "mkdir -p d; echo a > d/f; sort d/f | uniq > g; rm -r d; date > /dev/null"
    done = _verb(
        "record", "--name", "sorter", "--out", "sorter.yaml", "--", "sh", "-c", script, place=tmp_path
    )
    assert done.returncode == 0, done.stderr
    kit = load_toolkit((tmp_path / "sorter.yaml").read_text(), "sorter.yaml")
    calls = {one.name for one in kit.needs.system_calls}
    assert {"execve", "mkdir", "unlinkat"} <= calls
    assert "read" not in calls
    assert len(kit.needs.paths) < 20
    tried = _verb("check", "./sorter.yaml", "--", "sh", "-c", script, place=tmp_path)
    assert tried.returncode == 0, tried.stderr
    assert "no call was refused" in tried.stderr
    again = _verb("record", "--out", "sorter.yaml", "--", "true", place=tmp_path)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


@NEEDS_KERNEL
def test_the_command_s_own_output_is_kept_out_of_the_proposal(tmp_path: Path) -> None:
    done = _verb("record", "--", "sh", "-c", "echo from the command; exit 3", place=tmp_path)
    assert done.returncode == 0
    assert load_toolkit(done.stdout, "stdout").name == "sh"
    assert "from the command" in done.stderr
    assert "exit 3" in done.stdout


@NEEDS_KERNEL
def test_far_ends_are_recorded(tmp_path: Path) -> None:
    code = "import socket; s = socket.socket(); s.connect_ex(('127.0.0.1', 9)); open('made', 'w').write('x')"
    done = _verb("record", "--", sys.executable, "-c", code, place=tmp_path)
    kit = load_toolkit(done.stdout, "stdout")
    assert [(one.host, one.port) for one in kit.needs.hosts] == [("127.0.0.1", 9)]
    assert ("{workspace}", "write") in [(one.path, one.access.value) for one in kit.needs.paths]
    assert (tmp_path / "made").exists()
    assert os.listdir(tmp_path) == ["made"]
