"""What of an answer beside the wires may be a tool call."""

from __future__ import annotations

import json

import pytest

from interlock.boundary.lens.beside import call_in
from interlock.boundary.lens.reading import is_fetched, wire_of

CALL = {"type": "function_call", "name": "send", "arguments": "{}"}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(CALL),
        json.dumps({"data": [{"output": [CALL]}]}),
        json.dumps({"a": 1})
        + "\n"
        + json.dumps({"content": [{"type": "tool_use", "name": "x", "input": {}}]}),
        json.dumps({"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]}),
        json.dumps({"candidates": [{"content": {"parts": [{"functionCall": {"name": "x"}}]}}]}),
        json.dumps(CALL)[:-2],
        '{"type": "x", "type": "function_call"}',
        '{"\\u0074ype": "functio\\u006e_call", "name": "x"}',
        "[" * 300 + '"tool_call"' + "]" * 300,
        'tool_use: {"half',
    ],
)
def test_what_may_be_a_call_is_one(body: str) -> None:
    assert call_in(body.encode())


@pytest.mark.parametrize(
    "body",
    [
        "",
        json.dumps({"status": "in_progress", "request_counts": {"total": 1}}),
        json.dumps({"data": [{"id": "m", "supported_parameters": ["tools", "tool_choice"]}]}),
        json.dumps({"tools": [{"type": "function", "function": {"name": "x"}}]}),
        "plain text about a page\n\x7fELF",
        json.dumps({"text": "call me"}) + "\n" + json.dumps({"text": "a tool"}),
    ],
)
def test_what_is_none_is_none(body: str) -> None:
    assert not call_in(body.encode())


def test_an_answer_under_its_id_is_of_its_wire() -> None:
    for path in ("/v1/responses/resp_1", "/openai/v1/responses/resp_1/", "/v1/responses/resp_1/cancel"):
        assert wire_of(path) == "openai-responses"
        assert is_fetched(path)
    for path in (
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/r/input_items",
        "/v1/files/responses",
    ):
        assert not is_fetched(path)
