"""Calls as they are gathered from a wire: bounded, and written in one canonical way."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from interlock.model.actions import AnnouncedCall

CALLS = 256
"""So many calls of one answer are read."""
GATHERED_CHARS = 4 * 1024 * 1024
"""Of one answer's arguments, all calls together."""
ARGUMENTS_CHARS = 8 * 1024
"""What the arguments of one announced call may be as text."""
_STRING_CHARS = (1000, 200, 50)
_NAME_CHARS = 200
_DEPTH = 40


def loads(text: str | bytes) -> Any:
    """Read JSON as strangers send it; None for anything that is none."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return None


def record(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a JSON list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a JSON string, an empty one for anything else."""
    return value if isinstance(value, str) else ""


class Gathered:
    """The calls of one answer, by the wire's own key, in the order in which they began.

    Holds: never more than the bounds; `note` says once what was left out.
    """

    def __init__(self) -> None:
        self.note = ""
        self._calls: dict[object, _Call] = {}
        self._chars = 0

    def begin(self, key: object, *, call_id: str = "", tool: str = "") -> None:
        """Begin a call, or learn more of one that began."""
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= CALLS:
                self.note = self.note or "more calls than are read"
                return
            call = self._calls[key] = _Call()
        call.call_id = call.call_id or call_id
        call.tool = call.tool or tool

    def id_of(self, key: object) -> str:
        """Return the id of a call that began, `""` for none."""
        call = self._calls.get(key)
        return "" if call is None else call.call_id

    def more(self, key: object, part: str) -> None:
        """Take a part of a call's arguments."""
        call = self._calls.get(key)
        if call is None or not part:
            return
        if self._chars + len(part) > GATHERED_CHARS:
            self.note = self.note or "arguments larger than are read"
            call.cut = True
            return
        self._chars += len(part)
        call.parts.append(part)

    def whole(self, key: object, value: Any, *, raw: bool = False) -> None:
        """Take a call's whole arguments, instead of what was gathered.

        Takes: `raw`, whether a text is the argument itself, and no JSON of it.
        """
        call = self._calls.get(key)
        if call is not None:
            call.value = value
            call.raw = raw
            call.is_whole = True

    def as_text(self, key: object) -> None:
        """Say that a call's gathered arguments are the argument itself, and no JSON of it."""
        call = self._calls.get(key)
        if call is not None:
            call.raw = True

    def calls(self) -> tuple[AnnouncedCall, ...]:
        """Return what was gathered; a call without a name is none."""
        return tuple(
            AnnouncedCall(
                call_id=_clean(call.call_id), tool=_clean(call.tool), arguments=canonical(call.argument())
            )
            for call in self._calls.values()
            if call.tool
        )


class _Call:
    __slots__ = ("call_id", "cut", "is_whole", "parts", "raw", "tool", "value")

    def __init__(self) -> None:
        self.call_id = ""
        self.tool = ""
        self.parts: list[str] = []
        self.value: Any = None
        self.raw = False
        self.cut = False
        self.is_whole = False

    def argument(self) -> Any:
        found = self.value if self.is_whole else "".join(self.parts)
        if not isinstance(found, str) or self.raw:
            return found
        if not found.strip():
            return {}
        read = loads(found)
        # Arguments that are no JSON (cut off, or never meant to be) are shown as the text that they are.
        return found if read is None and found.strip() != "null" else read


def canonical(value: Any) -> str:
    """Write arguments as canonical JSON text within the bound; what is cut is named by size and digest."""
    for limit in _STRING_CHARS:
        said = _written(_shortened(value, limit, 0))
        if len(said) <= ARGUMENTS_CHARS:
            return said
    whole = _written(_shortened(value, GATHERED_CHARS, 0))
    return _written({"cut": f"{len(whole)} characters sha256:{_digest(whole)}"})


def _written(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return _valid(said)


def _shortened(value: Any, limit: int, depth: int) -> Any:
    if isinstance(value, str):
        if len(value) <= limit:
            return value
        return f"{value[:limit]}… ({len(value)} characters sha256:{_digest(value)})"
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    if isinstance(value, dict | list) and depth >= _DEPTH:
        return "…"
    if isinstance(value, dict):
        return {key: _shortened(item, limit, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, limit, depth + 1) for item in value]
    return value


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _valid(value: str) -> str:
    """Replace lone surrogates: the ledger holds text that UTF-8 can write."""
    return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value


def _clean(value: str) -> str:
    return _valid(value[:_NAME_CHARS])
