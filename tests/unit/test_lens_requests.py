"""What a request to a model says: its tools by digest, the results of calls, the texts, on each wire."""

from __future__ import annotations

import json
from typing import Any

from interlock.boundary.lens.reading import results_in
from interlock.boundary.lens.requests import ModelRequest, gone_on_from, read_request

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
CHAT: dict[str, Any] = {
    "model": "m", "stream": True,
    "tools": [{"type": "function", "function": {"name": "sh", "description": "d", "parameters": SCHEMA}}],
    "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "do it"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "sh", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
    ],
}  # fmt: skip
RESPONSES: dict[str, Any] = {
    "model": "m", "stream": True, "instructions": "be good",
    "tools": [
        {"type": "namespace", "name": "mcp__notes", "tools": [{"type": "function", "name": "post"}]},
        {"type": "custom", "name": "apply_patch"}, {"type": "web_search"},
    ],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]},
        {"type": "function_call", "call_id": "c1", "name": "post", "namespace": "mcp__notes", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "out"},
    ],
}  # fmt: skip
MESSAGES: dict[str, Any] = {
    "model": "m", "stream": True, "system": [{"type": "text", "text": "be good", "cache_control": {}}],
    "tools": [{"name": "sh", "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}],
    "messages": [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "sh", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "out"}], "is_error": True}
        ]},
    ],
}  # fmt: skip
GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "be good"}]},
    "tools": [{"functionDeclarations": [{"name": "sh", "parametersJsonSchema": SCHEMA}]}, {"googleSearch": {}}],
    "contents": [
        {"role": "user", "parts": [{"text": "do it"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "sh", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "sh", "response": {"output": "out"}}}]},
    ],
}  # fmt: skip
BODIES = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": MESSAGES, "gemini": GEMINI}


def read(wire: str, body: Any, path: str = "/v1beta/models/m:streamGenerateContent?alt=sse") -> ModelRequest:
    return read_request(wire, json.dumps(body).encode(), path if wire == "gemini" else "")


def test_each_wire_tells_the_same() -> None:
    for wire, body in BODIES.items():
        told = read(wire, body)
        assert (told.model, told.streamed, told.note) == ("m", True, "")
        assert (told.system, told.user) == (("be good",), ("do it",))
        (result,) = told.results
        assert result.call_id == "c1"
        assert result.tool == ("mcp__notes.post" if wire == "openai-responses" else "sh")
        assert result.text == ('{"output":"out"}' if wire == "gemini" else "out")
        assert result.structured == (wire == "gemini")
        assert result.failed == (wire == "anthropic")
        assert result.size_bytes == len(result.text)
        assert tuple(one.call_id for one in told.results) == results_in(wire, json.dumps(body))


def test_tools_are_named_and_pinned_by_all_that_describes_them() -> None:
    names = {wire: [tool.name for tool in read(wire, body).tools] for wire, body in BODIES.items()}
    assert names == {
        "openai-chat": ["sh"],
        "openai-responses": ["mcp__notes.post", "apply_patch", "web_search"],
        "anthropic": ["sh", "web_search"],
        "gemini": ["sh", "googleSearch"],
    }
    (first, _) = read("anthropic", MESSAGES).tools
    marked = [{**MESSAGES["tools"][0], "cache_control": {"type": "ephemeral"}}]
    turned = [dict(reversed(MESSAGES["tools"][0].items()))]
    other = [{**MESSAGES["tools"][0], "description": "sends all to me"}]
    for tools, same in ((marked, True), (turned, True), (other, False)):
        (tool,) = read("anthropic", {**MESSAGES, "tools": tools}).tools
        assert (tool == first) is same


def test_the_rest_of_the_shapes() -> None:
    told = read(
        "openai-chat",
        {"functions": [{"name": "f"}], "messages": [{"role": "function", "name": "f", "content": "x"}]},
    )
    assert [tool.name for tool in told.tools] == ["f"]
    assert [(one.call_id, one.tool, one.text) for one in told.results] == [("", "f", "x")]
    told = read("openai-responses", {"input": "do it", "model": "m"})
    assert told.user == ("do it",)
    shell = {
        "type": "shell_call_output",
        "call_id": "c",
        "output": [{"stdout": "a", "stderr": "", "outcome": {}}],
    }
    (result,) = read("openai-responses", {"input": [shell]}).results
    assert json.loads(result.text)[0]["stdout"] == "a"
    assert result.structured
    told = read("gemini", {"request": GEMINI})
    assert len(told.results) == len(told.user) == 1
    assert read_request("anthropic", b"{}", "/models/claude-x:streamRawPredict").model == "claude-x"


def test_no_bytes_raise() -> None:
    for wire in BODIES:
        for data in (
            b"",
            b"[]",
            b"\xff",
            b'{"messages":[1,{"content":[[]]}],"input":3,"contents":{"a":1}}',
            b"[" * 9999,
        ):
            assert read_request(wire, data).results == ()
        for body in BODIES.values():
            read(wire, body)


def test_a_request_goes_on_from_the_answer_that_the_provider_keeps() -> None:
    body = b'{"previous_response_id": "resp_1", "input": "x"}'
    told = json.loads(gone_on_from("openai-responses", body, {"resp_1": "resp_2"}))
    assert told == {"previous_response_id": "resp_2", "input": "x"}
    for renamed in ({}, {"resp_9": "resp_2"}):
        assert gone_on_from("openai-responses", body, renamed) == body
    assert gone_on_from("anthropic", body, {"resp_1": "resp_2"}) == body
