"""Where a container or a machine refuses what the boundary needs: what is missing is named, with the flag that gives it.

`container.py` stands for Docker's defaults: its capabilities, its filter, its covered /proc.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import ORDINARY, Cli, _interpreter

from interlock.boundary import surroundings

CONTAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "container.py")
ROOT_LEAVE = ("--drop", "--admin", "--search")

Contained = Callable[..., subprocess.CompletedProcess[bytes]]


class Machine:
    """A user of a machine with a container around. Takes: `uid`, who runs Interlock in it."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli

    def __call__(self, *options: str, words: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
        uid = ("--uid", str(self.cli.uid)) if self.cli.uid else ()
        return subprocess.run(
            [sys.executable, CONTAINER, *options, *uid, "--", *self.cli.words(*words)],
            cwd=self.cli.workspace, env=self.cli.environment(), capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    def run(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        return self(*options, words=("run", "--", "sh", "-c", "echo made > made"))

    def missing(self, *options: str) -> dict[str, str]:
        """Return what doctor says is missing and needed, with its fix."""
        done = self(*options, words=("doctor", "--json"))
        rows = json.loads(done.stdout)
        found = {row["name"]: row["fix"] for row in rows if row["needed"] and not row["available"]}
        assert done.returncode == (3 if found else 0), done.stderr
        return found

    def refused(self, *options: str) -> str:
        """Run where it cannot work. Returns: what the user is told; nothing is left behind."""
        done = self.run(*options)
        assert done.returncode == 3, done.stderr
        assert not self.cli.has("made")
        runs = os.path.join(self.cli.state, "runs")
        assert [name for name in os.listdir(runs) if not name.startswith(".")] == []
        return done.stderr.decode()


@pytest.fixture
def made() -> Iterator[Callable[[str], Machine]]:
    bases: list[str] = []

    def make(standing: str) -> Machine:
        if os.geteuid() != 0:
            pytest.skip("not run: needs root, to stand for a container")
        uid = 0 if standing == "root" else ORDINARY
        interpreter = sys.executable if uid == 0 else _interpreter(uid)
        if not interpreter:
            pytest.skip("not run: no Python that an ordinary user can execute")
        base = tempfile.mkdtemp(prefix="il-around-", dir="/var/tmp")
        bases.append(base)
        os.chmod(base, 0o755)
        cli = Cli(base=base, uid=uid, interpreter=interpreter)
        os.makedirs(cli.workspace)
        cli.own()
        return Machine(cli)

    yield make
    for base in bases:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def root(made: Callable[[str], Machine]) -> Machine:
    return made("root")


@pytest.fixture
def user(made: Callable[[str], Machine]) -> Machine:
    return made("user")


def test_root_without_its_capabilities_is_told_which_to_add(root: Machine) -> None:
    told = root.refused("--drop")
    assert "root lacks capabilities here" in told
    assert "run --cap-add SYS_ADMIN --cap-add DAC_READ_SEARCH" in told
    assert "ordinary user" in told
    assert "--cap-add SYS_ADMIN" in root.missing("--drop")["root-capabilities"]
    assert "DAC_READ_SEARCH" in root.refused("--drop", "--admin")
    assert "SYS_ADMIN" not in root.refused("--drop", "--admin").split("next:")[1]


@pytest.mark.slow
def test_the_named_capabilities_are_enough_for_root_and_none_for_a_user(root: Machine, user: Machine) -> None:
    for machine, options in ((root, ROOT_LEAVE), (user, ("--drop",))):
        assert machine.missing(*options) == {}
        done = machine.run(*options)
        assert (done.returncode, machine.cli.get("made")) == (0, "made\n"), done.stderr


def test_dockers_filter_is_named_with_its_flag(root: Machine, user: Machine) -> None:
    for machine, options in ((root, ROOT_LEAVE), (user, ("--drop",))):
        told = machine.refused(*options, "--refuse", "docker")
        assert "a system-call filter is on this process" in told
        assert "--security-opt seccomp=unconfined" in told
        fixes = machine.missing(*options, "--refuse", "docker")
        assert fixes
        assert all("seccomp=unconfined" in fix for fix in fixes.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["clone", "fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr"]
)
def test_any_call_that_a_filter_refuses_is_told(user: Machine, call: str) -> None:
    told = user.refused("--drop", "--refuse", call)
    assert "next: " in told
    assert "--security-opt seccomp=unconfined" in told


def test_a_covered_proc_is_named_with_its_flag(root: Machine, user: Machine) -> None:
    for machine, options in ((root, ROOT_LEAVE), (user, ("--drop",))):
        assert "systempaths=unconfined" in machine.refused(*options, "--cover")
        assert list(machine.missing(*options, "--cover")) == ["private-proc"]
    both = user.refused("--drop", "--cover", "--refuse", "pivot_root")
    assert "--security-opt seccomp=unconfined --security-opt systempaths=unconfined" in both


def test_root_without_a_cgroup_is_told_and_a_user_needs_none(root: Machine, user: Machine) -> None:
    told = root.refused(*ROOT_LEAVE, "--shut-cgroups")
    assert "cannot be limited for root" in told
    assert "--security-opt writable-cgroups=true" in told
    assert list(root.missing(*ROOT_LEAVE, "--shut-cgroups")) == ["cgroup-pids"]
    assert user.run("--drop", "--shut-cgroups").returncode == 0


def test_a_machine_that_allows_no_user_namespaces_is_told_by_its_setting(root: Machine) -> None:
    told = root.refused("--no-namespaces")
    assert "sysctl -w user.max_user_namespaces=10000" in told
    assert "user.max_user_namespaces" in root.missing("--no-namespaces")["namespaces"]


def test_a_state_folder_on_an_overlay_means_a_full_copy_and_the_same_end(
    root: Machine, user: Machine
) -> None:
    for machine, options in ((root, ROOT_LEAVE), (user, ("--drop",))):
        done = machine(
            *options,
            "--overlay",
            machine.cli.base,
            words=("run", "-v", "--", "sh", "-c", "echo made > made; cat made"),
        )
        assert (done.returncode, done.stdout) == (0, b"made\n"), done.stderr
        shutil.rmtree(f"{machine.cli.base}.layers")


def test_root_of_a_user_namespace_stands_as_an_ordinary_user(root: Machine) -> None:
    done = subprocess.run(
        ["unshare", "-Ur", *root.cli.words("run", "--json", "--", "sh", "-c", "echo made > made")],
        cwd=root.cli.workspace, env=root.cli.environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert root.cli.get("made") == "made\n"


STATUS = "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"


def test_what_is_read_of_a_machine_decides_the_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("container", raising=False)

    def put(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def fix() -> str:
        return surroundings.namespaces_fix(surroundings.look(str(tmp_path)))

    put("proc/self/status", "CapEff:\t0\nSeccomp:\t0\n")
    put("proc/self/uid_map", "         0          0 4294967295\n")
    assert "allow user namespaces" in fix()
    put("proc/self/attr/current", "docker-default (enforce)\n")
    assert "apparmor=unconfined" in fix()
    put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n")
    assert fix() == "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or run as root"
    put("proc/sys/kernel/unprivileged_userns_clone", "0\n")
    assert fix() == "sysctl -w kernel.unprivileged_userns_clone=1; or run as root"
    put("proc/self/status", STATUS)
    put(".dockerenv", "")
    put("proc/version", "Linux version 5.15.1-microsoft-standard-WSL2")
    put(
        "proc/self/mountinfo",
        "1 2 0:5 / /proc rw - proc proc rw\n3 1 0:6 / /proc/kcore rw - tmpfs tmpfs rw\n",
    )
    here = surroundings.look(str(tmp_path))
    assert surroundings.container_run(here) == (
        "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
        "--security-opt systempaths=unconfined"
    )
    assert here.told() == (
        "a Docker container, an ordinary user, under a system-call filter, "
        "under the AppArmor profile docker-default, parts of /proc covered, WSL"
    )
    put("proc/sys/user/max_user_namespaces", "0\n")
    assert "user.max_user_namespaces=10000 on the container's host" in fix()
