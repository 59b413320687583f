"""What looks like a tool call, in bytes and in JSON, wherever it stands and whoever would read it there.

The readers of the wires know where calls belong; this knows their looks alone. What looks like a call and was read by
no reader never passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_MARKS = (b"tool", b"call", b"funct", b"input_json", b"\x00")
_ESCAPED = re.compile(rb"\\u00[0-7]")
_KEYS = frozenset(("toolcall", "toolcalls", "functioncall", "functioncalls", "tooluse", "tooluses"))
_TYPES = re.compile(r"_call|tool_?use|tool_?call|function_?call|input_json", re.IGNORECASE)
_DEPTH = 200
_OF_PROVIDER = re.compile(
    r"(?:response\.)?(?:web_search|file_search|code_interpreter|image_generation|mcp)_call(?:$|[._])"
    r"|server_tool_use$|mcp_tool_use$|.*_output$|.*_tool_result$"
)
"""What the provider itself runs, and what came of a call."""


def marked(raw: bytes) -> bool:
    """Say whether some reader could find a call in these bytes: without these letters none is spelled in JSON."""
    low = raw.lower()
    for mark in _MARKS:
        if mark in low:
            return True
    return b"\\u00" in low and _ESCAPED.search(low) is not None


class _Twice(ValueError):
    """A key stands in an object twice: two readers may read two values."""


def strict(data: str | bytes) -> tuple[Any, str]:
    """Read JSON that all readers read alike. Returns: the value, and why it is none such, `""` where it is."""
    try:
        if isinstance(data, bytes):
            data = data.decode("utf-8")
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant), ""
    except _Twice:
        return None, "an object with a key that stands in it twice"
    except (ValueError, RecursionError):
        return None, "no JSON"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def deep(data: bytes, document: Any) -> bool:
    """Say whether a document is nested deeper than is read."""
    if data.count(b"{") + data.count(b"[") <= _DEPTH:
        return False
    level = [document]
    for _ in range(_DEPTH):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def suspects(document: Any, opaque: set[int]) -> Iterator[Any]:
    """Yield each value that looks like a call, or a part of one.

    Takes: `opaque`, the identities of values that are not looked into: they were read, or are data.
    """
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if id(value) in opaque:
            continue
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str) and _TYPES.search(kind) and not _OF_PROVIDER.match(kind):
                yield value
            for key, inner in value.items():
                if isinstance(inner, dict | list) and inner:
                    if key.lower().replace("_", "").replace("-", "") in _KEYS:
                        yield inner
                    waiting.append(inner)
