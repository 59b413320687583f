"""The answer of a tool, as the agent reads it: what of it counts as read."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from interlock.boundary.mcp.messages import value_in
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an answer says. Takes: `says`, a text or a JSON value; `failed`, whether the tool says that it failed."""

    says: Any
    failed: bool = False


def told(result: Mapping[str, Any]) -> Told:
    """Return what the result of `tools/call` says.

    Holds: total; what the agent may read is in it: where text and structure say two things, both.
    """
    failed = result.get("isError") is True
    content = result.get("content")
    shape = result.get("structuredContent")
    if not isinstance(content, list):
        return Told(says=_plain(result), failed=failed)
    texts = _texts(content)
    if texts is None:
        says: Any = {"content": [_block(one) for one in content]}
        return Told(says=says if shape is None else {**says, "structuredContent": shape}, failed=failed)
    value = value_in(texts[0]) if len(texts) == 1 else None
    if shape is not None:
        same = (
            [{"result": texts[0]}, *([] if value is None else [value, {"result": value}])]
            if texts
            else [shape]
        )
        if len(texts) <= 1 and shape in same:
            return Told(says=shape, failed=failed)
        return Told(says={"content": texts, "structuredContent": shape}, failed=failed)
    return Told(says="\n".join(texts) if value is None else value, failed=failed)


def told_of(result: Mapping[str, Any]) -> Told:
    """Return what any other result says: of a resource, a prompt, a completion."""
    return Told(says=_plain({key: value for key, value in result.items() if key != "_meta"}))


def _texts(content: Sequence[Any]) -> list[str] | None:
    """Return the texts of an answer that has nothing else, None for any other."""
    found = []
    for one in content:
        if not isinstance(one, dict) or one.get("type") != "text" or not isinstance(one.get("text"), str):
            return None
        found.append(one["text"])
    return found


def _block(one: Any) -> Any:
    return _plain(one) if isinstance(one, dict) else one


def _plain(value: Any) -> Any:
    """Return a value with what is no text for a reader (pictures, sounds, files) as its digest."""
    if isinstance(value, dict):
        return {
            key: f"sha256:{sha256(inner.encode('utf-8', 'surrogatepass')).hexdigest()}"
            if key in ("data", "blob") and isinstance(inner, str)
            else _plain(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value
