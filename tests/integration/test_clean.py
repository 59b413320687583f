"""A killed run leaves no process, mount or cgroup; what it leaves of files, `runs --clean` removes, and no work."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.failing_calls import CHANGING, run_failing
from tests.fakes.forked_cli import a_cli, become
from tests.integration.conftest import Cli

from interlock import boundary
from interlock.boundary import cgroup


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def cli(request: pytest.FixtureRequest) -> Iterator[Cli]:
    with a_cli(user=request.param == "user") as made:
        yield made


def clean(cli: Cli, *words: str, groups: bool = False) -> dict[str, Any]:
    """Clean up, and return what it tells of this user's state; with `groups` of cgroups too.

    They are the whole machine's: another test's clean-up may be faster by one, or leave one for this.
    """
    done = cli("runs", "--clean", "--json", *words)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    if not groups:
        value["removed"] = [one for one in value["removed"] if not one["path"].startswith("/sys/fs/cgroup/")]
    return value


def gone(cli: Cli) -> None:
    """Nothing of the sandbox lives on, and nothing of it is mounted: within a moment, for the kernel's own work."""
    deadline = time.monotonic() + 5
    while living(cli) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert living(cli) == []
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert cli.base not in file.read()
    assert not os.path.isdir("/run/netns") or not [
        name for name in os.listdir("/run/netns") if "inter" in name
    ]


def living(cli: Cli) -> list[str]:
    """Return the processes that have something of the test's folder open, as root, or in their words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = os.fsencode(cli.base) in file.read()
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(") ")[2][:1]
        except OSError:
            continue
        if ours and state not in "ZX":
            found.append(pid)
    return found


def cgroups(pid: int) -> list[str]:
    return [
        f"{top}/{name}"
        for top, folders, _ in os.walk("/sys/fs/cgroup")
        for name in folders
        if re.fullmatch(rf"interlock-{pid}-\d+-\d+", name)
    ]


SCRIPT = "for i in 1 2 3; do echo $i > f$i; (setsid sleep 300 &); done; sleep {seconds}; echo end > end"


def killed_run(cli: Cli, moment_s: float, seconds: float) -> int:
    running = subprocess.Popen(
        cli.words("run", "--", "sh", "-c", SCRIPT.format(seconds=seconds)),
        cwd=cli.workspace, env=cli.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **cli.identity(),
    )  # fmt: skip
    time.sleep(moment_s)
    running.kill()
    running.wait()
    return running.pid


def check_after_kill(cli: Cli, pid: int) -> None:
    gone(cli)
    runs = os.path.join(cli.state, "runs")
    for run in os.listdir(runs) if os.path.isdir(runs) else ():
        if not os.path.exists(os.path.join(runs, run, "lock")):
            os.utime(os.path.join(runs, run), (1, 1))  # a minute later
    before = clean(cli, "--dry-run")
    done = clean(cli)
    assert [one["path"] for one in done["removed"]] == [one["path"] for one in before["removed"]]
    deadline = time.monotonic() + 5
    while cgroups(pid) and time.monotonic() < deadline:  # the dead are not yet counted off
        clean(cli)
    assert cgroups(pid) == []
    assert clean(cli)["removed"] == []
    for row in json.loads(cli("runs", "--json").stdout):
        assert row["status"] not in ("damaged", "stuck", "running"), row
    # of a commit that was cut off, all or nothing
    cli("recover")
    present = [name for name in ("f1", "f2", "f3") if cli.has(name)]
    assert present in ([], ["f1", "f2", "f3"])
    for row in json.loads(cli("runs", "--json").stdout):
        if row["status"] in ("cut off", "held"):
            assert cli("discard", row["run"]).returncode == 0
        assert cli.verdict(row["run"], "--replay") == "complete"
    for top, _folders, names in os.walk(cli.home):
        assert not any(name.startswith(".interlock-") for name in (*names, os.path.basename(top))), top


@pytest.mark.parametrize("moment_s", [0.08, 0.14, 0.2])
def test_a_monitor_killed_at_some_moment_leaves_nothing_that_lives(cli: Cli, moment_s: float) -> None:
    check_after_kill(cli, killed_run(cli, moment_s, 0.05))


@pytest.mark.slow
def test_a_monitor_killed_at_many_moments_leaves_nothing_that_lives(cli: Cli) -> None:
    choose = random.Random(11)
    for _ in range(40 if cli.uid == 0 else 10):
        check_after_kill(cli, killed_run(cli, choose.uniform(0.0, 0.4), choose.choice((0.0, 0.05, 5.0))))
        for name in ("f1", "f2", "f3", "end"):
            if cli.has(name):
                os.unlink(os.path.join(cli.workspace, name))


@pytest.mark.slow
def test_a_monitor_killed_at_its_changing_calls_leaves_nothing_that_lives(cli: Cli) -> None:
    """From the first folder of the run to the last removal of its stage."""
    words = ("run", "--", "sh", "-c", SCRIPT.format(seconds=0))
    whole = run_failing(lambda: become(cli, *words), calls=CHANGING, at=0)
    assert whole.code == 0
    for at in range(1, whole.calls, 20):
        for name in ("f1", "f2", "f3", "end"):
            if cli.has(name):
                os.unlink(os.path.join(cli.workspace, name))
        run_failing(lambda: become(cli, *words), calls=CHANGING, at=at)
        check_after_kill(cli, 0)


def test_a_run_that_never_began_is_removed_whole_and_one_being_made_is_not(cli: Cli) -> None:
    cli.sh("true")
    runs = os.path.join(cli.state, "runs")
    young, old = os.path.join(runs, "20300101-000000-000aaa"), os.path.join(runs, "20300101-000000-000bbb")
    for path in (young, old):
        os.makedirs(os.path.join(path, "stage", "0", "upper"))
    cli.own()
    os.utime(old, (1, 1))
    assert [one["what"] for one in clean(cli, "--dry-run")["removed"]] == ["a run that never began"]
    assert os.path.exists(old)
    clean(cli)
    assert os.path.exists(young)
    assert not os.path.exists(old)


def test_closed_runs_go_from_an_age_on_and_open_ones_never(cli: Cli) -> None:
    cli.sh("echo 1 > a")
    cli.sh("echo 1 > b", "--hold")
    ids = [row["run"] for row in json.loads(cli("runs", "--json").stdout)]
    assert clean(cli, "--older-than", "1d")["removed"] == []
    age(cli, 40 * 86_400)
    dry = clean(cli, "--older-than", "30d", "--dry-run")
    assert [one["run"] for one in dry["removed"]] == ids[:1]
    assert dry["size_bytes"] > 0
    done = cli("runs", "--clean", "--older-than", "30d")
    assert done.returncode == 0, done.stderr
    assert b"a closed run, whole" in done.stdout
    assert f"interlock apply {ids[1]}".encode() in done.stdout
    assert os.listdir(os.path.join(cli.state, "runs")) == ids[1:]
    assert cli("apply", "last").returncode == 0
    assert cli.get("b") == "1\n"


def age(cli: Cli, seconds: int) -> None:
    """Let every run be older than it is: as after a clock that went."""
    for run in os.listdir(os.path.join(cli.state, "runs")):
        path = os.path.join(cli.state, "runs", run, "run.json")
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        told["started_at_ns"] = str(int(told["started_at_ns"]) - seconds * 10**9)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(told, file)


def test_a_clock_that_went_back_removes_nothing_young(cli: Cli) -> None:
    cli.sh("echo 1 > a")
    age(cli, -40 * 86_400)
    assert clean(cli, "--older-than", "1m")["removed"] == []
    assert cli("runs").returncode == 0
    assert cli.sh("echo 2 > a").returncode == 0
    assert cli.verdict("last", "--replay") == "complete"


def test_what_a_closed_run_no_longer_needs_is_removed_and_its_evidence_stays(cli: Cli) -> None:
    cli.sh("echo 1 > a")
    (run,) = os.listdir(os.path.join(cli.state, "runs"))
    for name in ("stage/0/upper", "scratch", "journal", "net"):
        os.makedirs(os.path.join(cli.state, "runs", run, name), exist_ok=True)
    with open(os.path.join(cli.state, "runs", run, "keys", "signing"), "wb") as file:
        file.write(bytes(32))
    cli.own()
    clean(cli)
    left = set(os.listdir(os.path.join(cli.state, "runs", run)))
    assert not left & {"stage", "scratch", "journal", "net", "keys"}
    assert cli.verdict(run, "--replay") == "complete"


def test_a_removal_that_was_cut_off_is_ended_by_the_next(cli: Cli) -> None:
    cli.sh("echo 1 > a")
    (run,) = os.listdir(os.path.join(cli.state, "runs"))
    os.rename(os.path.join(cli.state, "runs", run), os.path.join(cli.state, "runs", f".gone-{run}"))
    assert json.loads(cli("runs", "--json").stdout) == []
    assert cli("show", "last").returncode == 2
    assert [one["what"] for one in clean(cli)["removed"]] == ["a closed run, half removed"]
    assert os.listdir(os.path.join(cli.state, "runs")) == []


def test_a_running_run_is_left_alone(cli: Cli) -> None:
    with subprocess.Popen(
        cli.words("run", "--hold", "--", "sh", "-c", "echo 1 > a; echo; read x; ls"),
        cwd=cli.workspace, env=cli.environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **cli.identity(),
    ) as running:  # fmt: skip
        assert running.stdout is not None
        running.stdout.readline()
        done = clean(cli)
        assert (done["removed"], done["kept"]) == ([], [])
        assert json.loads(cli("recover", "--json").stdout)[0]["ending"] == "busy"
        out, _ = running.communicate(b"go\n")
        assert (running.returncode, out) == (0, b"a\n")


def test_the_cgroup_of_a_killed_run_is_removed_and_that_of_a_living_one_is_not(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: the test's own cgroups are root's")
    alive, _ = cgroup.make(boundary.Limits())
    if not alive.folders:
        pytest.skip("not run: no cgroup can be made here")
    for _ in range(5):  # another test's clean-up at the same time may be faster
        pid = os.fork()
        if pid == 0:
            cgroup.make(boundary.Limits())
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        removed = [one["path"] for one in clean(cli, groups=True)["removed"]]
        assert cgroups(pid) == []
        if any(f"interlock-{pid}-" in path for path in removed):
            break
    else:
        pytest.fail("no clean-up here named the cgroup of the dead")
    assert all(os.path.isdir(folder) for folder in alive.folders)
    # of another pid namespace, whose numbers say nothing here
    (parent,) = {os.path.dirname(folder) for folder in alive.folders}
    foreign = f"{parent}/interlock-{pid}-1-1"
    os.mkdir(foreign)
    try:
        assert foreign not in [one["path"] for one in clean(cli, groups=True)["removed"]]
        assert os.path.isdir(foreign)
    finally:
        os.rmdir(foreign)
    alive.remove()


@pytest.mark.parametrize(
    "words", [("--older-than", "30d"), ("--clean", "--older-than", "soon"), ("--dry-run",)]
)
def test_a_wrong_word_is_input(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("runs", *words).returncode == 2
