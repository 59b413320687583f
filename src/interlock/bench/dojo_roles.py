"""The role files of AgentDojo's suites, whole or with parts of their trust taken away."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from typing import Any

import yaml

from interlock.model.errors import InputError


class Level(StrEnum):
    """How much of a role file counts. `none` is no defence: everything is released."""

    NONE = "none"
    TASK = "task"
    SYSTEM = "system"
    DIRECTORY = "directory"
    FULL = "full"


_KEPT = {
    Level.TASK: frozenset[str](),
    Level.SYSTEM: frozenset({"own"}),
    Level.DIRECTORY: frozenset({"own", "directory"}),
}


def role_text(suite: str) -> str:
    """Return the shipped role file of a suite. Raises: InputError."""
    place = files("interlock.bench") / "suites" / "agentdojo" / f"{suite}.yaml"
    if not suite.isidentifier() or not place.is_file():
        raise InputError(
            f"no role file for the suite `{suite}`", hint="use banking, slack, travel or workspace"
        )
    return place.read_text(encoding="utf-8")


def at_level(text: str, level: Level) -> str:
    """Take trust away from a role file: below `full` no field of an answer counts, and only the kept kinds of trust."""
    kept = _KEPT.get(level)
    if kept is None:
        return text
    whole: dict[str, Any] = yaml.safe_load(text)
    for tool in whole["tools"].values():
        output = tool.get("output", {})
        output.pop("fields", None)
        if output.get("trust", "none") not in kept:
            output["trust"] = "none"
        tool["output"] = output
    return yaml.safe_dump(whole, sort_keys=True, allow_unicode=True)


def steering(text: str, tool: str) -> tuple[str, ...]:
    """Return the arguments that steer a tool, by a role file."""
    return tuple((yaml.safe_load(text)["tools"].get(tool) or {}).get("steers", {}))
