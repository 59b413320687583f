"""Each wire reads requests as its agents send them, and answers what its clients can put together again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.agents.script import Called, Reply, Said
from tests.agents.wire import Event, Wire
from tests.agents.wire_chat import CHAT
from tests.agents.wire_gemini import GEMINI
from tests.agents.wire_messages import MESSAGES
from tests.agents.wire_responses import RESPONSES

_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
_CALL = Called("Bash", {"command": "echo 'grüße' \"x\""})

CHAT_REQUEST: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "tools": [{"type": "function", "function": {"name": "Bash", "parameters": _SCHEMA}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "the task"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "c", "content": "out"},
    ],
}
RESPONSES_REQUEST: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "tools": [{"type": "namespace", "tools": [{"type": "function", "name": "Bash", "parameters": _SCHEMA}]}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the task"}]},
        {"type": "function_call", "call_id": "c", "name": "Bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "out"},
    ],
}
MESSAGES_REQUEST: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "tools": [{"name": "Bash", "input_schema": _SCHEMA}],
    "messages": [
        {"role": "user", "content": "the task"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "out"},
                {"type": "text", "text": "the task"},
            ],
        },
    ],
}
GEMINI_REQUEST: dict[str, Any] = {
    "tools": [{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": _SCHEMA}]}],
    "contents": [
        {"role": "user", "parts": [{"text": "the task"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "Bash", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "Bash", "response": {}}}, {"text": "the task"}],
        },
    ],
}
_GEMINI_PATH = "/v1beta/models/m:streamGenerateContent"


def _chat_whole(value: Mapping[str, Any]) -> Reply:
    message = value["choices"][0]["message"]
    if not message.get("tool_calls"):
        return Said(message["content"])
    function = message["tool_calls"][0]["function"]
    return Called(function["name"], json.loads(function["arguments"]))


def _chat_streamed(events: Sequence[Event]) -> Reply:
    text, name, arguments = "", "", ""
    for event in events:
        for choice in event.data["choices"]:
            text += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", []):
                name += call["function"].get("name", "")
                arguments += call["function"].get("arguments", "")
    return Called(name, json.loads(arguments)) if name else Said(text)


def _responses_whole(value: Mapping[str, Any]) -> Reply:
    (item,) = value["output"]
    if item["type"] == "message":
        return Said(item["content"][0]["text"])
    if item["type"] == "custom_tool_call":
        return Called(item["name"], item["input"])
    return Called(item["name"], json.loads(item["arguments"]))


def _responses_streamed(events: Sequence[Event]) -> Reply:
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert all(event.name == event.data["type"] for event in events)
    last = events[-1].data
    assert last["type"] == "response.completed"
    return _responses_whole(last["response"])


def _messages_whole(value: Mapping[str, Any]) -> Reply:
    (block,) = value["content"]
    return Said(block["text"]) if block["type"] == "text" else Called(block["name"], block["input"])


def _messages_streamed(events: Sequence[Event]) -> Reply:
    name, text = "", ""
    for event in events:
        assert event.name == event.data["type"]
        if event.name == "content_block_start":
            name = event.data["content_block"].get("name", "")
        if event.name == "content_block_delta":
            text += event.data["delta"].get("text", "") + event.data["delta"].get("partial_json", "")
    return Called(name, json.loads(text)) if name else Said(text)


def _gemini_whole(value: Mapping[str, Any]) -> Reply:
    part = value["candidates"][0]["content"]["parts"][0]
    return (
        Said(part["text"])
        if "text" in part
        else Called(part["functionCall"]["name"], part["functionCall"]["args"])
    )


def _gemini_streamed(events: Sequence[Event]) -> Reply:
    assert [event.data["candidates"][0].get("finishReason") for event in events] == [None, "STOP"]
    return _gemini_whole(events[0].data)


@pytest.mark.parametrize(
    ("wire", "request_", "path"),
    [
        (CHAT, CHAT_REQUEST, ""),
        (RESPONSES, RESPONSES_REQUEST, ""),
        (MESSAGES, MESSAGES_REQUEST, ""),
        (GEMINI, GEMINI_REQUEST, _GEMINI_PATH),
    ],
    ids=lambda value: value.name if isinstance(value, Wire) else "",
)
def test_a_request_is_read(wire: Wire, request_: Mapping[str, Any], path: str) -> None:
    asked = wire.asked(request_, path)
    assert [(tool.name, list(tool.properties)) for tool in asked.tools] == [("Bash", ["command"])]
    assert (asked.results, asked.last, asked.model, asked.streamed) == (1, "the task", "m", True)


@pytest.mark.parametrize("reply", [Said("hello"), _CALL], ids=["said", "called"])
@pytest.mark.parametrize(
    ("wire", "request_", "whole", "streamed"),
    [
        (CHAT, CHAT_REQUEST, _chat_whole, _chat_streamed),
        (RESPONSES, RESPONSES_REQUEST, _responses_whole, _responses_streamed),
        (MESSAGES, MESSAGES_REQUEST, _messages_whole, _messages_streamed),
        (GEMINI, GEMINI_REQUEST, _gemini_whole, _gemini_streamed),
    ],
    ids=["chat", "responses", "messages", "gemini"],
)
def test_an_answer_says_the_same_whole_and_streamed(
    wire: Wire,
    request_: Mapping[str, Any],
    whole: Callable[[Mapping[str, Any]], Reply],
    streamed: Callable[[Sequence[Event]], Reply],
    reply: Reply,
) -> None:
    asked = wire.asked(request_, _GEMINI_PATH)
    assert whole(json.loads(json.dumps(wire.whole(reply, asked)))) == reply
    assert streamed(wire.streamed(reply, asked)) == reply


def test_a_custom_tool_gets_plain_text() -> None:
    asked = RESPONSES.asked({**RESPONSES_REQUEST, "tools": [{"type": "custom", "name": "apply_patch"}]}, "")
    assert asked.tools[0].kind == "custom"
    reply = Called("apply_patch", "*** Begin Patch\n")
    assert _responses_streamed(RESPONSES.streamed(reply, asked)) == reply


def test_an_event_is_spelled_as_a_stream_spells_it() -> None:
    assert Event({"a": 1}, "x").encoded() == b'event: x\ndata: {"a": 1}\n\n'
    assert Event({"a": 1}).encoded() == b'data: {"a": 1}\n\n'


def test_results_that_travel_as_text_of_the_user_are_counted() -> None:
    asked = CHAT.asked({"messages": [{"role": "user", "content": "Observation:\nout"}]}, "")
    assert asked.results == 1
