"""Stops every process of the sandbox but the first, and lets them go on: for where no cgroup can freeze them.

Only the kernel's own stop counts: a process is taken to stand still when its state says so. SIGKILL still ends
what is stopped, so a monitor that is killed in a pause leaves nothing behind.
"""

import contextlib
import os
import signal
import time

DEADLINE_S = 3.0
_POLITE_S = 0.25
_EACH_S = 0.02
_IN_KERNEL_S = 0.2
_STILL = frozenset("TtZXx")
_STATE, _PARENT = 0, 1


def stop_all() -> frozenset[int] | None:
    """Stop all.

    Returns: the processes that stood still before, which are not ours to let go on; None, if some would not stop
    (then all go on).
    Holds: the caller is the first process of a pid namespace that /proc shows.
    """
    before = frozenset(pid for pid, fields in _processes().items() if fields[_STATE] == "T")
    _stop_parents_first()
    # To all at once, for those that the polite way missed: the kernel lets no fork slip through between.
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGSTOP)
    began = time.monotonic()
    pause = 0.0005
    while moving := _moving():
        waited = time.monotonic() - began
        # One that waits in the kernel (for a disk; for the child of a vfork) stops before its next own step.
        if moving == {"D"} and waited > _IN_KERNEL_S:
            break
        if waited > DEADLINE_S:
            go_on(before)
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    return before


def _stop_parents_first() -> None:
    """Stop what can be stopped in an order in which no shell sees a child stop, and takes it for a stopped job."""
    end = time.monotonic() + _POLITE_S
    slow: set[int] = set()
    while time.monotonic() < end:
        processes = _processes()
        moving = {
            pid for pid, fields in processes.items() if fields[_STATE] not in _STILL and pid not in slow
        }
        next_ones = [pid for pid in moving if int(processes[pid][_PARENT]) not in moving]
        if not next_ones:
            return
        for pid in next_ones:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + _EACH_S
        while waited_for := [pid for pid in next_ones if _moves(pid)]:
            if time.monotonic() > until:
                slow.update(waited_for)  # a parent that waits for the child of a vfork, say
                break
            time.sleep(0.0002)


def _moves(pid: int) -> bool:
    fields = _fields(f"/proc/{pid}/stat")
    return bool(fields) and fields[_STATE] not in _STILL


def go_on(before: frozenset[int]) -> None:
    """Let all go on but those that stood still before.

    Children come first, so that no shell sees a child of its own stopped and takes it for a stopped job.
    """
    processes = _processes()

    def depth(pid: int) -> int:
        steps = 0
        while pid in processes and steps <= len(processes):
            pid = int(processes[pid][_PARENT])
            steps += 1
        return steps

    for pid in sorted(processes, key=depth, reverse=True):
        if pid not in before:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)


def _processes() -> dict[int, list[str]]:
    """Return state and parent of each process but the first."""
    found: dict[int, list[str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            fields = _fields(f"/proc/{name}/stat")
            if fields:
                found[int(name)] = fields
    return found


def _moving() -> set[str]:
    """Return the states of all threads that do not stand still."""
    states: set[str] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        try:
            tasks = os.listdir(f"/proc/{name}/task")
        except OSError:
            continue
        for task in tasks:
            fields = _fields(f"/proc/{name}/task/{task}/stat")
            if fields and fields[_STATE] not in _STILL:
                states.add(fields[_STATE])
    return states


def _fields(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            # The name in brackets may hold anything.
            return file.read().rpartition(b") ")[2].decode("ascii").split(" ", 2)[:2]
    except OSError:
        return []
