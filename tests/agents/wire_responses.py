"""OpenAI's responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.agents.script import Asked, Called, Reply, Tool
from tests.agents.wire import Event, Wire, number, texts

_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}


def asked(request: Mapping[str, Any], _path: str = "") -> Asked:
    """Read a request; tools may be grouped in namespaces and may travel as an item of the input."""
    given = request.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = [each for each in given or [] if isinstance(each, dict)]
    tools = [*_tools(request.get("tools"))]
    for each in items:
        if each.get("type") == "additional_tools":
            tools.extend(_tools(each.get("tools")))
    said = [texts(each.get("content")) for each in items if each.get("role") == "user"]
    return Asked(
        tuple(tools),
        sum(str(each.get("type", "")).endswith("_call_output") for each in items),
        said[-1] if said else "",
        str(request.get("model", "")),
        bool(request.get("stream")),
    )


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return the answer as one object."""
    return _response(asked, _item(reply))


def streamed(reply: Reply, asked: Asked) -> Sequence[Event]:
    """Return the answer as events: created, the item's begin, its text, its end, completed."""
    item = _item(reply)
    response = _response(asked, item)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, **_empty(item)}},
    ]
    if item["type"] == "message":
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        text = item["content"][0]["text"]
        told.append({"type": "response.output_text.delta", **place, "delta": text})
        told.append({"type": "response.output_text.done", **place, "text": text})
    told.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    told.append({"type": "response.completed", "response": response})
    return [Event({**each, "sequence_number": at}, each["type"]) for at, each in enumerate(told)]


def _tools(given: Any) -> Iterator[Tool]:
    for each in given or []:
        kind = each.get("type")
        if kind in ("function", "custom"):
            yield Tool(each["name"], (each.get("parameters") or {}).get("properties") or {}, kind)
        elif kind == "local_shell":
            yield Tool("local_shell", {}, kind)
        elif kind == "namespace":
            yield from _tools(each.get("tools"))


def _empty(item: Mapping[str, Any]) -> dict[str, Any]:
    words = {
        "message": ("content", []),
        "function_call": ("arguments", ""),
        "custom_tool_call": ("input", ""),
    }
    name, value = words[item["type"]]
    return {name: value, "status": "in_progress"}


def _item(reply: Reply) -> dict[str, Any]:
    if not isinstance(reply, Called):
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {
            "type": "message", "id": number("msg_"), "role": "assistant", "status": "completed", "content": content,
        }  # fmt: skip
    call: dict[str, Any] = {"status": "completed", "call_id": number("call_"), "name": reply.name}
    if reply.namespace:
        call["namespace"] = reply.namespace
    if isinstance(reply.arguments, str):
        return {"type": "custom_tool_call", "id": number("ctc_"), **call, "input": reply.arguments}
    return {"type": "function_call", "id": number("fc_"), **call, "arguments": json.dumps(reply.arguments)}


def _response(asked: Asked, item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": number("resp_"),
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": asked.model,
        "output": [item],
        "usage": _USAGE,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": False,
        "tools": [],
    }


RESPONSES = Wire("responses", asked, whole, streamed)
