"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.agents.script import Asked, Called, Reply, Tool
from tests.agents.wire import Event, Wire, number, texts

_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def asked(request: Mapping[str, Any], path: str = "") -> Asked:
    """Read a request. Takes: `path`, which names the model, and whether the answer is streamed."""
    declared = [one for each in request.get("tools") or [] for one in each.get("functionDeclarations") or []]
    tools = tuple(
        Tool(
            each["name"],
            (each.get("parametersJsonSchema") or each.get("parameters") or {}).get("properties") or {},
        )
        for each in declared
    )
    results, last = 0, ""
    for content in request.get("contents") or []:
        parts = content.get("parts") or []
        results += sum("functionResponse" in part for part in parts)
        if content.get("role") == "user":
            last = texts(parts)
    wanted = request.get("generationConfig") or {}
    model, _, method = path.rpartition("/")[2].partition(":")
    return Asked(
        tools,
        results,
        last,
        model,
        method.startswith("stream"),
        wanted.get("responseJsonSchema") or wanted.get("responseSchema"),
    )


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return the answer as one object."""
    return _answer([_part(reply)], asked, "STOP")


def streamed(reply: Reply, asked: Asked) -> Sequence[Event]:
    """Return the answer as two chunks: what it says, and that it ends."""
    return [Event(_answer([_part(reply)], asked, "")), Event(_answer([{"text": ""}], asked, "STOP"))]


def _part(reply: Reply) -> dict[str, Any]:
    if not isinstance(reply, Called):
        return {"text": reply.text}
    words = {"input": reply.arguments} if isinstance(reply.arguments, str) else reply.arguments
    return {"functionCall": {"id": number("fc"), "name": reply.name, "args": words}}


def _answer(parts: list[dict[str, Any]], asked: Asked, reason: str) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if reason:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate],
        "usageMetadata": _USAGE,
        "modelVersion": asked.model,
        "responseId": number("r"),
    }


GEMINI = Wire("gemini", asked, whole, streamed)
