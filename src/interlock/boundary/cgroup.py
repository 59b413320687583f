"""A cgroup for one run where one can be had: the only limit on processes that binds uid 0."""

import contextlib
import itertools
import os
import time

from interlock.boundary.plan import Limits
from interlock.model.records import dataclass

_PREFIX = "interlock-"
_FREEZING_S = 3.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The folders of one run's cgroup, and what they enforce."""

    folders: tuple[str, ...]
    facts: tuple[str, ...]

    def add(self, pid: int) -> None:
        """Move a process in; its children are born inside."""
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", str(pid))

    def freeze(self) -> bool | None:
        """Let nothing inside take another step.

        Returns: whether all stands still; None, if this cgroup cannot do it. One of version 1 is left alone: what
        it froze cannot be killed, so a monitor that is killed then would leave its processes behind for good.
        """
        for folder in self.folders:
            try:
                _write(f"{folder}/cgroup.freeze", "1")
            except OSError:
                continue
            end = time.monotonic() + _FREEZING_S
            while "frozen 1" not in _read(f"{folder}/cgroup.events"):
                if time.monotonic() > end:
                    self.thaw()
                    return False
                time.sleep(0.001)
            return True
        return None

    def thaw(self) -> None:
        """Let all go on."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                _write(f"{folder}/cgroup.freeze", "0")

    def remove(self) -> None:
        """Remove the empty cgroup."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.002)  # the last process is dead but not yet counted off
                else:
                    break


def make(limits: Limits) -> tuple[Group, tuple[str, ...]]:
    """Make a cgroup with these limits.

    Returns: the group (perhaps without folders), and the limits that no cgroup here enforces.
    """
    wanted = [("pids", "pids.max", "pids.max", limits.processes)]
    if limits.memory_bytes is not None:
        wanted.append(("memory", "memory.max", "memory.limit_in_bytes", limits.memory_bytes))
    folders: list[str] = []
    facts: list[str] = []
    missing: list[str] = []
    for controller, unified_file, legacy_file, value in wanted:
        for parent, file in _candidates(controller, unified_file, legacy_file):
            folder = _child(parent, folders)
            if folder is None:
                continue
            try:
                _write(f"{folder}/{file}", str(value))
            except OSError:
                if folder not in folders:
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)
                continue
            if folder not in folders:
                folders.append(folder)
            facts.append(f"{file}={value}")
            break
        else:
            missing.append(controller)
    return Group(folders=tuple(folders), facts=tuple(facts)), tuple(missing)


def _candidates(controller: str, unified_file: str, legacy_file: str) -> list[tuple[str, str]]:
    mounts: dict[str, str] = {}
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields = line.split(" ")
            if fields[2] == "cgroup2":
                mounts[""] = fields[1]
            elif fields[2] == "cgroup":
                mounts.update((option, fields[1]) for option in fields[3].split(","))
    found: list[tuple[str, str]] = []
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            _, names, path = line.rstrip("\n").split(":", 2)
            if controller in names.split(",") and controller in mounts:
                found.append((mounts[controller] + path.rstrip("/"), legacy_file))
            elif not names and "" in mounts:
                own = mounts[""] + path.rstrip("/")
                # A cgroup with processes cannot hand controllers down, so a sibling is tried too.
                found.extend((parent, unified_file) for parent in (own, os.path.dirname(own)))
    return [
        (parent, file)
        for parent, file in found
        if file == legacy_file or controller in _read(f"{parent}/cgroup.subtree_control").split()
    ]


def _child(parent: str, folders: list[str]) -> str | None:
    for folder in folders:
        if os.path.dirname(folder) == parent:
            return folder
    _sweep(parent)
    folder = f"{parent}/{_PREFIX}{os.getpid()}-{_pid_namespace()}-{next(_numbers)}"
    try:
        os.mkdir(folder)
    except OSError:
        return None
    return folder


def leftovers() -> tuple[str, ...]:
    """Return the cgroups of runs whose monitor is gone; a start removes those that it comes upon."""
    parents = {
        parent
        for controller, unified_file, legacy_file in (
            ("pids", "pids.max", "pids.max"),
            ("memory", "memory.max", "memory.limit_in_bytes"),
        )
        for parent, _ in _candidates(controller, unified_file, legacy_file)
    }
    return tuple(sorted(path for parent in parents for path in _ownerless(parent)))


def _ownerless(parent: str) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(_PREFIX):
                owner, _, rest = name[len(_PREFIX) :].partition("-")
                # a number of another pid namespace (a container that shares the cgroup) says nothing here
                ours = rest.startswith(f"{_pid_namespace()}-")
                if ours and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                    found.append(f"{parent}/{name}")
    return found


def _pid_namespace() -> int:
    """Return the number of the pid namespace that our own pid is counted in."""
    return os.stat("/proc/self/ns/pid").st_ino


def _sweep(parent: str) -> None:
    """Remove what monitors that were killed left behind; a cgroup in use cannot be removed."""
    for path in _ownerless(parent):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
