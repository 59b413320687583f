"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.agents.script import Asked, Called, Reply, Tool
from tests.agents.wire import Event, Wire, number, texts

_USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def asked(request: Mapping[str, Any], _path: str = "") -> Asked:
    """Read a request."""
    tools = tuple(
        Tool(each["name"], (each.get("input_schema") or {}).get("properties") or {})
        for each in request.get("tools") or []
        if "name" in each
    )
    results, last = 0, ""
    for message in request.get("messages") or []:
        content = message.get("content")
        if isinstance(content, list):
            results += sum(part.get("type") == "tool_result" for part in content if isinstance(part, dict))
        if message.get("role") == "user":
            last = texts(content)
    return Asked(tools, results, last, str(request.get("model", "")), bool(request.get("stream")))


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return the answer as one object."""
    return {**_head(asked), "content": [_block(reply)], "stop_reason": _reason(reply), "usage": _USAGE}


def streamed(reply: Reply, asked: Asked) -> Sequence[Event]:
    """Return the answer as events: the message's begin, one block, the reason, its end."""
    start = {**_head(asked), "content": [], "stop_reason": None, "usage": _USAGE}
    block = _block(reply)
    if isinstance(reply, Called):
        empty: dict[str, Any] = {**block, "input": {}}
        text = json.dumps(block["input"])
        half = len(text) // 2
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:half], text[half:])]
    else:
        empty = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": reply.text}]
    reason = {"stop_reason": _reason(reply), "stop_sequence": None}
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": _USAGE},
        {"type": "message_stop"},
    ]
    return [Event(each, each["type"]) for each in told]


def _head(asked: Asked) -> dict[str, Any]:
    return {
        "id": number("msg_"), "type": "message", "role": "assistant", "model": asked.model, "stop_sequence": None,
    }  # fmt: skip


def _reason(reply: Reply) -> str:
    return "tool_use" if isinstance(reply, Called) else "end_turn"


def _block(reply: Reply) -> dict[str, Any]:
    if not isinstance(reply, Called):
        return {"type": "text", "text": reply.text}
    words = {"input": reply.arguments} if isinstance(reply.arguments, str) else reply.arguments
    return {"type": "tool_use", "id": number("toolu_"), "name": reply.name, "input": words}


MESSAGES = Wire("messages", asked, whole, streamed)
