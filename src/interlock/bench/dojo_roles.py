"""The role files of AgentDojo's suites, whole or with parts of their trust taken away."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from interlock.model.errors import InputError


class Level(StrEnum):
    """How much of a role file counts.

    `none` is no defence: everything is released. `deny`: nothing vouches for anything. `task`: the user's words alone;
    `system`, with the user's own state; `directory`, with curated listings too; `strings`, the same, but every value is
    a plain text that must stand there as it is, whatever its type; `full`, the role file as it is.
    """

    NONE = "none"
    DENY = "deny"
    TASK = "task"
    SYSTEM = "system"
    DIRECTORY = "directory"
    STRINGS = "strings"
    FULL = "full"


_KEPT = {
    Level.DENY: frozenset[str](),
    Level.TASK: frozenset[str](),
    Level.SYSTEM: frozenset({"own"}),
    Level.DIRECTORY: frozenset({"own", "directory"}),
    Level.STRINGS: frozenset({"own", "directory"}),
}
_PLAIN = frozenset({"trust", "echo", "level"})
"""What is left of an answer's description below `full`: none of its fields counts by itself."""


def role_text(suite: str) -> str:
    """Return the shipped role file of a suite. Raises: InputError."""
    place = files("interlock.bench") / "suites" / "agentdojo" / f"{suite}.yaml"
    if not suite.isidentifier() or not place.is_file():
        raise InputError(
            f"no role file for the suite `{suite}`", hint="use banking, slack, travel or workspace"
        )
    return place.read_text(encoding="utf-8")


@cache
def at_level(text: str, level: Level) -> str:
    """Take trust away from a role file: below `full` no field of an answer counts, no source is delegated to, and only
    the kept kinds of trust vouch."""
    kept = _KEPT.get(level)
    if kept is None:
        return text
    whole: dict[str, Any] = yaml.safe_load(text)
    whole.pop("delegate", None)
    if level is Level.DENY:
        whole["trusted"] = []
    for tool in whole["tools"].values():
        output = {name: value for name, value in tool.get("output", {}).items() if name in _PLAIN}
        if output.get("trust", "none") not in kept:
            output["trust"] = "none"
        tool["output"] = output
        for declared in ("steers", "acts") if level is Level.STRINGS else ():
            tool[declared] = dict.fromkeys(tool.get(declared, {}), "text")
    return yaml.safe_dump(whole, sort_keys=True, allow_unicode=True)


@cache
def _tools(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)["tools"]
    return found


def is_effect(text: str, tool: str) -> bool:
    """Say whether a tool is more than a read, by a role file; one that is not declared is."""
    return (_tools(text).get(tool) or {}).get("effect") != "read"


def steering(text: str, tool: str) -> tuple[str, ...]:
    """Return the arguments that steer a tool, by a role file."""
    return tuple((_tools(text).get(tool) or {}).get("steers", {}))
