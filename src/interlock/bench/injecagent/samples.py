"""Arguments that a tool takes, made by seed, so that flows can be written for any of the 330 tools."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from interlock.bench.injecagent.catalogue import spec
from interlock.bench.injecagent.shapes import Kind, Shape
from interlock.bench.injecagent.values import value_of


def arguments(name: str, seed: int = 0) -> dict[str, Any]:
    """Return arguments that the tool takes: all that it asks for, and the first other one where it asks for none."""
    known = spec(name)
    schema = json.loads(known.parameters)
    wanted = schema.get("required", []) or [*schema["properties"]][:1]
    kinds = dict(known.steers)
    found = {}
    for one in wanted:
        drawn = hashlib.sha256(f"{seed}\0{name}\0{one}".encode()).digest()
        found[one] = _value(
            schema["properties"][one], one, kinds.get(one, ""), name, int.from_bytes(drawn[:8], "big")
        )
    return found


def _value(schema: dict[str, Any], name: str, kind: str, tool: str, drawn: int) -> Any:
    match schema["type"]:
        case "array":
            inner = schema.get("items", {"type": "string"})
            return [_value(inner, name, kind, tool, drawn)]
        case "object":
            return {"name": _value({"type": "string"}, name, "name", tool, drawn)}
        case told:
            return value_of(Shape(name=name, kind=Kind(told), trusted=kind), tool, drawn)
