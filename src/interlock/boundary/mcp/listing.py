"""A listing of tools: each definition with its digest, so that another description of the same tool is noticed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any

from interlock.model.records import dataclass
from interlock.model.tools import ToolDefinition

MAX_TOOLS = 2_000
"""So many tools of one page are read; a longer page is held as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of tools.

    Takes: `tools`, as the server described them; `read_only`, those whose annotations say that they only read, with
    the names of their arguments; `shaped`, names that declare the shape of their answer; `last`, whether no page
    follows; `fault`, why the page cannot be read.
    """

    tools: tuple[ToolDefinition, ...] = ()
    read_only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shaped: frozenset[str] = frozenset()
    last: bool = True
    fault: str = ""


def read_listing(result: Mapping[str, Any]) -> Listing:
    """Read the result of `tools/list`. Holds: total; where one tool cannot be read, none is."""
    given = result.get("tools")
    if not isinstance(given, list) or len(given) > MAX_TOOLS:
        return Listing(fault="its list of tools is no list, or has too many")
    tools: list[ToolDefinition] = []
    read_only: dict[str, tuple[str, ...]] = {}
    shaped = set()
    for one in given:
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str) or not name or len(name) > 200:
            return Listing(fault="one of its tools has no name that can be read")
        tools.append(ToolDefinition(name=name, digest=digest(one)))
        notes = one.get("annotations")
        if isinstance(notes, dict) and notes.get("readOnlyHint") is True:
            read_only[name] = _arguments(one.get("inputSchema"))
        if "outputSchema" in one:
            shaped.add(name)
    return Listing(
        tools=tuple(tools),
        read_only=read_only,
        shaped=frozenset(shaped),
        last=not result.get("nextCursor"),
    )


def _arguments(schema: object) -> tuple[str, ...]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(properties) if isinstance(properties, dict) else ()


def digest(definition: Mapping[str, Any]) -> str:
    """Return SHA-256 in hex of the canonical JSON of a whole definition."""
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


def without(result: Mapping[str, Any], held: Iterable[str]) -> dict[str, Any]:
    """Return a listing's result without some of its tools."""
    names = frozenset(held)
    return {**result, "tools": [one for one in result["tools"] if one["name"] not in names]}
