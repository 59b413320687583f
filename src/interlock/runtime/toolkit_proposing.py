"""From a recorded run to a toolkit that a person can read: what a runtime has already is left out, places are folded.

Source: ours.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.manifest.kernel import rules
from interlock.model.records import dataclass
from interlock.model.toolkits import Access, HostNeed, Limit, LimitNeed, Needs, PathNeed, SystemCallNeed
from interlock.runtime.call_reasons import in_order, reason

if TYPE_CHECKING:
    from interlock.boundary.recorded_calls import Peer
    from interlock.boundary.recording import Recording
    from interlock.model.toolkits import Toolkit

_MANY = 4
"""More files than this in a folder, and the folder stands for them."""
_SHALLOW = 2
"""A folder with fewer parts than this is never named whole: `/etc`, `/var`, a home."""
_WHOLE = (
    "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include", "/usr/local", "/etc/ssl", "/etc/pki",
    "/proc/self", "/dev/shm",  # noqa: S108 - a place that is named, not used
    "/sys/fs/cgroup", "/sys/devices/system/cpu",
)  # fmt: skip
"""Folders of the system that are named whole."""
_ROOTS = ("{workspace}", "{home}", "{tmp}")
_COVERS = {
    Access.READ: frozenset((Access.READ, Access.WRITE, Access.EXECUTE)),
    Access.WRITE: frozenset((Access.WRITE,)),
    Access.EXECUTE: frozenset((Access.EXECUTE,)),
}
_REASONS = {Access.READ: "is read", Access.WRITE: "is changed", Access.EXECUTE: "is started"}
_PROCESSES = (16, 64, 256, 1024, 4096)
_START = "execve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What stands for the places of a toolkit while it is recorded. Takes: absolute paths without links."""

    workspace: str
    home: str
    tmp: str


def needs_of(recording: Recording, where: Where, runtime: Needs) -> Needs:
    """Return what a command needed beyond what its runtime may do anyway."""
    known = {one.name for one in runtime.system_calls}
    calls = {
        name: count
        for name, count in recording.calls
        if name not in known and re.fullmatch(r"[a-z_0-9]+", name)
    }
    for withheld in _withheld(recording):
        calls.pop(withheld.name, None)
    # The first start is the command's own, which is let through.
    if len(recording.programs) <= 1 and calls.get(_START, 0) <= 1:
        calls.pop(_START, None)
    touched: dict[Access, set[str]] = {access: set() for access in Access}
    for one in recording.touched:
        if ":[" not in one.path:
            touched[one.access].add(_placed(one.path, where))
    # The program itself, and its loader, are let through as well.
    if _START not in calls:
        touched[Access.EXECUTE].clear()
    paths: list[PathNeed] = []
    for access in (Access.WRITE, Access.EXECUTE, Access.READ):
        for path in _folded(touched[access]):
            if not _covered(path, access, (*runtime.paths, *paths)):
                paths.append(PathNeed(path=path, access=access, reason=_REASONS[access]))
    return Needs(
        system_calls=tuple([SystemCallNeed(name=name, reason=reason(name)) for name in in_order(calls)]),
        paths=tuple(sorted(paths, key=lambda one: (one.path.startswith("{"), one.path, one.access.value))),
        hosts=_hosts(recording.peers),
        limits=_limits(recording.starts),
    )


def toolkit_from(
    recording: Recording, name: str, argv: tuple[str, ...], where: Where, runtime: Needs
) -> Toolkit:
    """Return a toolkit with one tool, which runs the recorded program with arguments that a plan names."""
    from interlock.manifest.toolkits import toolkit_of
    from interlock.model.toolkits import ToolSpec

    program = os.path.basename(argv[0])
    tool = ToolSpec(
        name=f"{name}_run" if not name.endswith("_run") else name,
        description=f"Run {program}.",
        parameters='{"properties":{"arguments":{"items":{"type":"string"},"type":"array"}},"type":"object"}',
        effect="write",
        steers=(("arguments", "text"),),
    )
    return toolkit_of(
        name, (tool,), needs=needs_of(recording, where, runtime), description=f"what {program} needs"
    )


def here() -> Where:
    """Return the places of this process."""
    return Where(
        workspace=os.path.realpath(os.getcwd()),
        home=os.path.realpath(os.path.expanduser("~")),
        tmp=os.path.realpath(tempfile.gettempdir()),
    )


def heading(recording: Recording, argv: tuple[str, ...], runtime: str) -> tuple[str, ...]:
    """Return the comment above a proposed toolkit: from what it came, and what a person has to look at."""
    calls = sum(count for _, count in recording.calls)
    ended = f"signal {recording.signal}" if recording.signal else f"exit {recording.code}"
    lines = [
        f"Proposed from one run of `{shlex.join(argv)[:200]}` ({ended}, {calls} calls).",
        f"Left out: what the runtime `{runtime}` may do anyway. What this run did not need is not here.",
        "Read each line, write better reasons, and describe the tool; then: interlock toolkit check FILE -- COMMAND",
    ]
    if recording.code or recording.signal or not recording.whole:
        lines.append("It did not end well, so more may be needed.")
    lines += [f"`{call.name}` was made and cannot be allowed: {call.reason}" for call in _withheld(recording)]
    odd = [name for name, _ in recording.calls if not re.fullmatch(r"[a-z_0-9]+", name)]
    lines += [f"Made and without a name here: {', '.join(odd)}."] if odd else []
    return tuple(lines)


def _withheld(recording: Recording) -> list[rules.Call]:
    made = {name for name, _ in recording.calls}
    return [one for one in rules.RESTRICTED if one.name in made and one.rule is rules.Rule.DENY]


def _placed(path: str, where: Where) -> str:
    """A path with the place of a toolkit at its head, the innermost one; another process's own folder is one's own."""
    roots = sorted(
        zip(_ROOTS, (where.workspace, where.home, where.tmp), strict=True), key=lambda one: -len(one[1])
    )
    for word, base in roots:
        if base != "/" and (path == base or path.startswith(f"{base}/")):
            return word + path[len(base) :]
    return re.sub(r"^/proc/[0-9]+(?=/|$)", "/proc/self", path)


def _folded(paths: Iterable[str]) -> tuple[str, ...]:
    """Return few places that hold all paths: known folders whole, and any in which many files lie."""
    whole: set[str] = set()
    rest: set[str] = set()
    for path in paths:
        home = next(
            (one for one in (*_WHOLE, "{workspace}", "{tmp}") if path == one or path.startswith(f"{one}/")),
            "",
        )
        (whole if home else rest).add(home or path)
    return tuple(sorted(whole | set(_gathered("", sorted(rest)))))


def _gathered(folder: str, paths: list[str]) -> list[str]:
    """Return the places for the paths below a folder: itself where it holds many, else those of its parts."""
    if folder in paths:
        return [folder]
    below: dict[str, list[str]] = {}
    for path in paths:
        rest = path[len(folder) + 1 :] if folder else path.removeprefix("/")
        first = rest.split("/", 1)[0]
        start = "" if path.startswith("{") and not folder else "/"
        below.setdefault(f"{folder}{start}{first}", []).append(path)
    deep = len([part for part in folder.split("/") if part]) >= _SHALLOW
    if deep and len(paths) > _MANY and len(below) > 1:
        return [folder]
    found: list[str] = []
    for inner, mine in sorted(below.items()):
        found += mine if mine == [inner] else _gathered(inner, mine)
    return found


def _covered(path: str, access: Access, needs: Iterable[PathNeed]) -> bool:
    return any(
        one.access in _COVERS[access] and (path == one.path or path.startswith(one.path.rstrip("/") + "/"))
        for one in needs
    )


def _hosts(peers: Iterable[Peer]) -> tuple[HostNeed, ...]:
    return tuple(
        [HostNeed(host=one.address, port=one.port, reason="is connected to; write its name") for one in peers]
    )


def _limits(starts: int) -> tuple[LimitNeed, ...]:
    if not starts:
        return ()
    most = next((one for one in _PROCESSES if one >= 2 * starts), 2 * starts)
    return (
        LimitNeed(limit=Limit.PROCESSES, most=most, reason=f"{starts} were started while it was recorded"),
    )
