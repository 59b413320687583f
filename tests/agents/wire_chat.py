"""OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.agents.script import Asked, Called, Reply, Tool
from tests.agents.wire import Event, Wire, number, texts

_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
_FOLDED = "Observation:"
"""How smolagents hands a tool's result back: as a text of the user."""


def asked(request: Mapping[str, Any], _path: str = "") -> Asked:
    """Read a request."""
    tools = tuple(
        Tool(each["function"]["name"], (each["function"].get("parameters") or {}).get("properties") or {})
        for each in request.get("tools") or []
        if each.get("type") == "function"
    )
    messages = request.get("messages") or []
    results = sum(each.get("role") == "tool" for each in messages)
    said = [texts(each.get("content")) for each in messages if each.get("role") == "user"]
    if not results:
        results = sum(text.count(_FOLDED) for text in said)
    return Asked(
        tools, results, said[-1] if said else "", str(request.get("model", "")), bool(request.get("stream"))
    )


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return the answer as one object."""
    choice = {"index": 0, "message": _message(reply), "finish_reason": _reason(reply)}
    return {**_head(asked), "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def streamed(reply: Reply, asked: Asked) -> Sequence[Event]:
    """Return the answer as chunks: the role, the text or the call in two parts, the reason, the usage."""
    head = {**_head(asked), "object": "chat.completion.chunk"}

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> Event:
        return Event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    parts = [chunk({"role": "assistant", "content": ""})]
    if isinstance(reply, Called):
        (call,) = _message(reply)["tool_calls"]
        text = call["function"]["arguments"]
        half = len(text) // 2
        opening = {**call, "function": {**call["function"], "arguments": text[:half]}}
        parts.append(chunk({"tool_calls": [{"index": 0, **opening}]}))
        parts.append(chunk({"tool_calls": [{"index": 0, "function": {"arguments": text[half:]}}]}))
    else:
        parts.append(chunk({"content": reply.text}))
    return [*parts, chunk({}, _reason(reply)), Event({**head, "choices": [], "usage": _USAGE})]


def _head(asked: Asked) -> dict[str, Any]:
    return {"id": number("chatcmpl-"), "created": 1700000000, "model": asked.model}


def _reason(reply: Reply) -> str:
    return "tool_calls" if isinstance(reply, Called) else "stop"


def _message(reply: Reply) -> dict[str, Any]:
    if not isinstance(reply, Called):
        return {"role": "assistant", "content": reply.text}
    text = reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
    function = {"name": reply.name, "arguments": text}
    call = {"id": number("call_"), "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


CHAT = Wire("chat", asked, whole, streamed, b"data: [DONE]\n\n")
