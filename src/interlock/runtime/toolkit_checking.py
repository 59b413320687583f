"""What is odd in a toolkit though it can be read, and what its tools need with a runtime."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.manifest.kernel import rules
from interlock.manifest.needs import union
from interlock.model.errors import InputError
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import Access

if TYPE_CHECKING:
    from interlock.model.toolkits import Needs, Toolkit

_TRIED = frozenset(("io_uring_setup",))
"""Calls that programs try, and do without."""
_INTERPRETERS = ("python", "node")
_ABROAD = ("socket", "connect")


def needs_for(kit: Toolkit, runtime: str, tool: str = "") -> Needs:
    """Return what a toolkit needs with a runtime. Takes: `tool`, the only one that counts, `""` for all.

    Raises: InputError, for a tool that it has not.
    """
    from interlock.manifest.document import near
    from interlock.runtime.toolkits import load_runtime

    names = [one.name for one in kit.tools]
    if tool and tool not in names:
        raise InputError(f"`{kit.name}` has no tool `{tool}`", hint=near(tool, names or ["none"]))
    mine = [one.needs for one in kit.tools if tool in ("", one.name)]
    return union([load_runtime(runtime).needs, kit.needs, *mine])


def runtime_for(command: Sequence[str]) -> str:
    """Return the runtime that ships for a program, by its name: `python3.12` is a Python."""
    name = os.path.basename(command[0])
    return next((one for one in _INTERPRETERS if name.rstrip("0123456789.") == one), "native")


def notes(kit: Toolkit) -> tuple[str, ...]:
    """Return what is odd, in words.

    Raises: InputError, for a call that no kernel of x86_64 has.
    """
    whole = union([kit.needs, *(one.needs for one in kit.tools)])
    calls = {one.name for one in whole.system_calls}
    for name in sorted(calls):
        if name not in NUMBERS:
            from interlock.manifest.document import near

            raise InputError(f"no system call of x86_64 is named `{name}`", hint=near(name, NUMBERS))
    found = [
        f"`{call.name}` is refused whatever a toolkit says: {call.reason}"
        for call in rules.RESTRICTED
        # What falls back to an older call is named so that the attempt is not told as a refusal.
        if call.name in calls and call.rule is rules.Rule.DENY and call.name not in _TRIED
    ]
    if whole.hosts and kit.tools and not calls.issuperset(_ABROAD):
        found.append("it names hosts, and not the calls `socket` and `connect` to reach them")
    starts = "execve" in calls
    places = any(one.access is Access.EXECUTE for one in whole.paths)
    if starts and not places:
        found.append("it may start programs, and names no place from which (access: execute)")
    if places and not starts:
        found.append(
            "it names places to start programs from, and not `execve`: only the tool's own program starts"
        )
    if any(one.path in ("/", "{home}") for one in whole.paths):
        found.append("it names a whole disk or home: name the parts")
    return tuple(found)


def remedy(call: str, advice: str, use: str) -> str:
    """Return what would allow a refused call, or why nothing does. Takes: `use`, the toolkit as it was named."""
    kept = next((one for one in rules.RESTRICTED if one.name == call and one.rule is rules.Rule.DENY), None)
    if kept is not None:
        return f"the sandbox refuses it whatever a toolkit says: {kept.reason}"
    return (
        f"to allow it, add to `{use}`: {advice}"
        if advice
        else "no toolkit can allow it: it has no name on x86_64"
    )


def absent(kit: Toolkit) -> tuple[str, ...]:
    """Return the places that are not on this machine: no rule is made for them."""
    roots = {"{workspace}": os.getcwd(), "{home}": os.path.expanduser("~"), "{tmp}": tempfile.gettempdir()}
    found = []
    for need in union([kit.needs, *(one.needs for one in kit.tools)]).paths:
        head = next((one for one in roots if need.path.startswith(one)), "")
        place = roots[head] + need.path.removeprefix(head) if head else need.path
        if not os.path.exists(place):
            found.append(need.path)
    return tuple(dict.fromkeys(found))
