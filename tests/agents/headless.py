"""An agent's output under Interlock and without it: the same bytes, but for what the agent itself makes anew each time."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.agents.catalogue import Agent

JSON = frozenset({"claude", "codex"})
"""The agents that are asked for JSON here."""

_OWN = re.compile(r"(?:^|_)(?:id|uuid|ms|at|time|timestamp)$|^id$|duration|thread_id|session_id")
_MEMORY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WORKSPACE = re.compile(r"/[^\s\"']*/work/[a-z]+-[a-z0-9_]{8}(?=/)")


def same_output(agent: Agent, bare: bytes, ours: bytes) -> list[str]:
    """Return how the output of an agent that was asked for JSON differs, line by line."""
    if agent.name not in JSON:
        return []
    left, right = neutral(bare), neutral(ours)
    if left == right:
        return []
    pairs = zip(left, right, strict=False)
    at = next(
        (number for number, (one, other) in enumerate(pairs) if one != other), min(len(left), len(right))
    )
    return [f"the JSON output differs in line {at + 1} ({len(left)} lines bare, {len(right)} ours)"]


def neutral(output: bytes) -> list[str]:
    """Return the lines of an output without the ids, the times and the folder that are the run's own."""
    lines = []
    for line in output.decode(errors="replace").splitlines():
        try:
            text = json.dumps(_neutral(json.loads(line)))
        except ValueError:
            text = line
        lines.append(_WORKSPACE.sub("/work", _MEMORY.sub("ID", text)))
    return lines


def _neutral(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "own" if _OWN.search(name) and not isinstance(part, dict | list) else _neutral(part)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_neutral(part) for part in value]
    return value
