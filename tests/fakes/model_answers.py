"""Answers of a model on each wire, with all the events that the real ones have: texts, thoughts and calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini")
NAMED = ("openai-responses", "anthropic")


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Thought:
    text: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True)
class Call:
    call_id: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cut: int = 7


Part = Text | Thought | Call


def request(wire: str, task: str = "do the work", *, streamed: bool = True) -> dict[str, Any]:
    """Return a small request."""
    if wire == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": task}]}]}
    body: dict[str, Any] = {"model": "fake-model", "stream": streamed}
    if wire == "openai-responses":
        return {**body, "input": task, "store": False}
    body["messages"] = [{"role": "user", "content": task}]
    if wire == "openai-chat":
        return {**body, "stream_options": {"include_usage": True}}
    return {**body, "max_tokens": 1000}


def events(wire: str, parts: Sequence[Part], *, number: int = 1, tokens: int = 5) -> list[dict[str, Any]]:
    """Return an answer as the documents of its stream."""
    return {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _messages, "gemini": _gemini
    }[wire](parts, number, tokens)  # fmt: skip


def stream(wire: str, documents: Sequence[Mapping[str, Any]], *, end: str = "\n", done: bool = True) -> bytes:
    """Write documents as server-sent events."""
    out = []
    for one in documents:
        name = f"event: {one['type']}{end}" if wire in NAMED and "type" in one else ""
        out.append(f"{name}data: {json.dumps(one)}{end}{end}")
    if wire == "openai-chat" and done:
        out.append(f"data: [DONE]{end}{end}")
    return "".join(out).encode()


def listed(documents: Sequence[Mapping[str, Any]]) -> bytes:
    """Write documents as the list that Gemini streams without `alt=sse`."""
    return ("[" + "\n,\r\n".join(json.dumps(one, indent=1) for one in documents) + "\n]\n").encode()


def whole(wire: str, parts: Sequence[Part], *, number: int = 1, tokens: int = 5) -> dict[str, Any]:
    """Return an answer as one document."""
    told = events(wire, parts, number=number, tokens=tokens)
    if wire == "openai-responses":
        return dict(told[-1]["response"])
    if wire == "gemini":
        content = [part for one in told for part in one["candidates"][0]["content"]["parts"]]
        last = told[-1]
        return {
            **last,
            "candidates": [{**last["candidates"][0], "content": {"role": "model", "parts": content}}],
        }
    calls = [part for part in parts if isinstance(part, Call)]
    said = "".join(part.text for part in parts if isinstance(part, Text))
    if wire == "openai-chat":
        made = [_function(one, one.call_id, json.dumps(one.arguments)) for one in calls]
        message: dict[str, Any] = {"role": "assistant", "content": said or None}
        if made:
            message["tool_calls"] = made
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
        return {
            **_chat_head(number),
            "object": "chat.completion",
            "choices": [choice],
            "usage": _chat_usage(tokens),
        }
    return {
        **_message(number), "content": [_block(part) for part in parts],
        "stop_reason": "tool_use" if calls else "end_turn", "usage": {"input_tokens": 10, "output_tokens": tokens},
    }  # fmt: skip


def pieces(said: str, size: int) -> list[str]:
    """Cut a text."""
    return [said[at : at + size] for at in range(0, len(said), size)]


def _chat_head(number: int) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "fake-model",
    }


def _chat_usage(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}


def _function(call: Call, call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _chat(parts: Sequence[Part], number: int, tokens: int) -> list[dict[str, Any]]:
    head = _chat_head(number)

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    out = [chunk({"role": "assistant", "content": ""})]
    at = 0
    for part in parts:
        if isinstance(part, Text):
            out += [chunk({"content": one}) for one in pieces(part.text, 4)]
        elif isinstance(part, Thought):
            out.append(chunk({"reasoning_content": part.text}))
        else:
            out.append(chunk({"tool_calls": [{"index": at, **_function(part, part.call_id, "")}]}))
            for one in pieces(json.dumps(part.arguments), part.cut):
                out.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": one}}]}))
            at += 1
    out.append(chunk({}, "tool_calls" if at else "stop"))
    return [*out, {**head, "choices": [], "usage": _chat_usage(tokens)}]


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thought):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return {"type": "tool_use", "id": part.call_id, "name": part.tool, "input": dict(part.arguments)}


def _message(number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "fake-model", "content": [],
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip


def _messages(parts: Sequence[Part], number: int, tokens: int) -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    out: list[dict[str, Any]] = [{"type": "message_start", "message": {**_message(number), "usage": usage}}]
    for at, part in enumerate(parts):
        block = _block(part)
        empty: dict[str, dict[str, Any]] = {
            "text": {"text": ""},
            "thinking": {"thinking": "", "signature": ""},
            "tool_use": {"input": {}},
        }
        out.append(
            {"type": "content_block_start", "index": at, "content_block": {**block, **empty[block["type"]]}}
        )
        if at == 0:
            out.append({"type": "ping"})
        deltas: list[dict[str, Any]]
        if isinstance(part, Text):
            deltas = [{"type": "text_delta", "text": one} for one in pieces(part.text, 4)]
        elif isinstance(part, Thought):
            deltas = [{"type": "thinking_delta", "thinking": one} for one in pieces(part.text, 5)]
            deltas.append({"type": "signature_delta", "signature": part.signature})
        else:
            said = ["", *pieces(json.dumps(part.arguments), part.cut)]
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in said]
        out += [{"type": "content_block_delta", "index": at, "delta": one} for one in deltas]
        out.append({"type": "content_block_stop", "index": at})
    reason = "tool_use" if any(isinstance(part, Call) for part in parts) else "end_turn"
    out.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": tokens},
        }
    )
    return [*out, {"type": "message_stop"}]


def _item(part: Part, name: str) -> dict[str, Any]:
    if isinstance(part, Text):
        content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
        return {
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    if isinstance(part, Thought):
        return {
            "type": "reasoning", "id": f"rs_{name}", "summary": [{"type": "summary_text", "text": part.text}],
            "encrypted_content": part.signature,
        }  # fmt: skip
    return {
        "type": "function_call", "id": f"fc_{name}", "call_id": part.call_id, "name": part.tool,
        "arguments": json.dumps(part.arguments), "status": "completed",
    }  # fmt: skip


def _responses(parts: Sequence[Part], number: int, tokens: int) -> list[dict[str, Any]]:
    response: dict[str, Any] = {
        "id": f"resp_{number}", "object": "response", "created_at": 1700000000, "model": "fake-model", "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "top_p": 1.0,
        "tools": [{"type": "function", "name": "sh", "parameters": {"properties": {"tool_calls": {"type": "array"}}}}],
    }  # fmt: skip
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    out: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    items = [_item(part, f"{number}_{at}") for at, part in enumerate(parts)]
    for at, (part, item) in enumerate(zip(parts, items, strict=True)):
        place = {"output_index": at, "item_id": item["id"]}
        empty: dict[str, dict[str, Any]] = {
            "message": {"content": []},
            "reasoning": {"summary": []},
            "function_call": {"arguments": ""},
        }
        added = {**item, **empty[item["type"]], "status": "in_progress"}
        out.append({"type": "response.output_item.added", "output_index": at, "item": added})
        if isinstance(part, Text):
            place["content_index"] = 0
            made = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            out.append({"type": "response.content_part.added", **place, "part": made})
            for one in pieces(part.text, 4):
                out.append({"type": "response.output_text.delta", **place, "delta": one, "logprobs": []})
            out.append({"type": "response.output_text.done", **place, "text": part.text, "logprobs": []})
            out.append({"type": "response.content_part.done", **place, "part": {**made, "text": part.text}})
        elif isinstance(part, Thought):
            place["summary_index"] = 0
            piece = {"type": "summary_text", "text": ""}
            out.append({"type": "response.reasoning_summary_part.added", **place, "part": piece})
            out.append({"type": "response.reasoning_summary_text.delta", **place, "delta": part.text})
        else:
            for one in pieces(item["arguments"], part.cut):
                out.append({"type": "response.function_call_arguments.delta", **place, "delta": one})
            out.append(
                {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
            )
        out.append({"type": "response.output_item.done", "output_index": at, "item": item})
    usage = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 10 + tokens,
    }  # fmt: skip
    out.append(
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": items, "usage": usage},
        }
    )
    return [{**one, "sequence_number": at} for at, one in enumerate(out)]


def _gemini(parts: Sequence[Part], number: int, tokens: int) -> list[dict[str, Any]]:
    head = {"modelVersion": "fake-model", "responseId": f"r{number}"}
    out: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            made: list[dict[str, Any]] = [{"text": one} for one in pieces(part.text, 4)]
        elif isinstance(part, Thought):
            made = [{"text": part.text, "thought": True}]
        else:
            call = {"id": part.call_id, "name": part.tool, "args": dict(part.arguments)}
            made = [{"functionCall": call, "thoughtSignature": "c2ln"}]
        for one in made:
            out.append({**head, "candidates": [{"content": {"role": "model", "parts": [one]}, "index": 0}]})
    usage = {"promptTokenCount": 10, "candidatesTokenCount": tokens, "totalTokenCount": 10 + tokens}
    last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    return [*out, {**head, "candidates": [last], "usageMetadata": usage}]
