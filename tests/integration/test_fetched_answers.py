"""An answer that is fetched later holds no call that nobody decided: a stored response, the rest of a stream, a batch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.audited_agent import POLICY, TASK
from tests.fakes.raw_provider import RawProvider, events, streamed, whole
from tests.integration.conftest import Cli, in_one_standing

pytestmark = in_one_standing


def call(to: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "send_mail",
        "arguments": json.dumps({"to": to, "body": "x"}),
        "status": "completed",
    }


def response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "m",
        "output": list(output),
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    }


TEXT = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "It is done.", "annotations": []}],
}


def rest(item: dict[str, Any]) -> list[bytes]:
    """Return the events of a response after the first ones: the client had those before its connection broke."""
    told: list[dict[str, Any]] = []
    if item["type"] == "function_call":
        told += [
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "fc_1",
                "output_index": 0,
                "delta": "{",
            },
            {
                "type": "response.function_call_arguments.done",
                "item_id": "fc_1",
                "output_index": 0,
                "arguments": item["arguments"],
            },
        ]
    else:
        text = {
            "type": "response.output_text.delta",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
        }
        told += [{**text, "delta": "done."}]
    told += [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response(item)},
    ]
    return events(*({**one, "sequence_number": number} for number, one in enumerate(told, start=4)))


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"custom_id": "1", "response": {"status_code": 200, "body": message}}).encode() + b"\n"


CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "send_mail", "arguments": "{}"}}
ANSWERS: dict[str, Any] = {
    "GET /v1/responses/resp_text": lambda: iter((whole(json.dumps(response(TEXT)).encode()),)),
    "GET /v1/responses/resp_queued": lambda: iter((whole(json.dumps(response(status="queued")).encode()),)),
    "GET /v1/responses/resp_eve": lambda: iter(
        (whole(json.dumps(response(call("eve@evil.test"))).encode()),)
    ),
    "GET /v1/responses/resp_ann": lambda: iter((whole(json.dumps(response(call("ann@a.test"))).encode()),)),
    "GET /v1/responses/resp_text?stream=true&starting_after=3": lambda: streamed(rest(TEXT)),
    "GET /v1/responses/resp_eve?stream=true&starting_after=3": lambda: streamed(rest(call("eve@evil.test"))),
    "POST /v1/responses/resp_eve/cancel": lambda: iter(
        (whole(json.dumps(response(call("eve@evil.test"), status="cancelled")).encode()),)
    ),
    "GET /v1/batches/batch_1": lambda: iter((whole(b'{"id": "batch_1", "status": "completed"}'),)),
    "GET /v1/files/text/content": lambda: iter(
        (
            whole(
                line({"choices": [{"message": {"content": "no call of a tool"}}]}) * 2,
                "application/octet-stream",
            ),
        )
    ),
    "GET /v1/files/calls/content": lambda: iter(
        (
            whole(
                line({"choices": [{"message": {"content": "a"}}]})
                + line({"choices": [{"message": {"tool_calls": [CHAT_CALL]}}]}),
                "application/octet-stream",
            ),
        )
    ),
    "GET /v1/messages/batches/b1/results": lambda: streamed(
        [line({"content": [{"type": "tool_use", "id": "t1", "name": "send_mail", "input": {}}]})]
    ),
    "GET /v1/messages/batches/b2/results": lambda: iter(
        (
            whole(
                line({"content": [{"type": "tool_use", "id": "t1", "name": "send_mail", "input": {}}]}),
                "application/x-jsonl",
            ),
        )
    ),
    "GET /v1/chat/completions/c1": lambda: iter(
        (whole(json.dumps({"choices": [{"message": {"tool_calls": [CHAT_CALL]}}]}).encode()),)
    ),
}


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    made: list[RawProvider] = []

    def answer(number: int, _fields: dict[str, str], body: bytes) -> Iterator[bytes]:
        path = made[0].requests[number][0]
        method = "POST" if path.endswith("/cancel") else "GET"
        found = ANSWERS[f"{method} {path}"]()
        return found  # type: ignore[no-any-return]

    made.append(RawProvider(answer))
    yield made[0]
    made[0].close()


def fetched(cli: Cli, provider: RawProvider, *asked: str, audit: str = "declared") -> list[tuple[int, str]]:
    """Fetch each in one run. Returns: status and body of each."""
    port = provider.port
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'{POLICY}lens: {{audit: {audit}}}\nnetwork:\n  models: ["127.0.0.1:{port}"]\n'
            f'  hosts: [{{host: "127.0.0.1", port: {port}, methods: ["*"]}}]\n'
            f'  publish: [{{port: {port}, to: "127.0.0.1:{port}"}}]\n'
        )
    cli.own()
    lines = [
        f"curl -s -X {one.split()[0]} -w '\\n%{{http_code}}\\n--\\n' '{provider.at}{one.split()[1]}'"
        for one in asked
    ]
    done = cli.sh("; ".join(lines), "--policy", path, "--oracle", "strict", "--task", TASK)
    assert done.returncode == 0, done.stderr
    found = []
    for part in done.stdout.decode().split("\n--\n")[:-1]:
        body, _, status = part.rpartition("\n")
        found.append((int(status), body))
    assert cli.verdict("last", "--replay") == "complete"
    return found


def test_a_stored_response_is_audited_as_when_it_was_asked_for(cli: Cli, provider: RawProvider) -> None:
    asked = [one for one in ANSWERS if "/responses/" in one]
    text, queued, eve, ann, resumed, resumed_eve, cancelled = fetched(cli, provider, *asked)
    assert json.loads(text[1]) == response(TEXT)
    assert json.loads(queued[1]) == response(status="queued")
    assert json.loads(ann[1]) == response(call("ann@a.test"))
    assert resumed[1].encode().strip() == b"".join(rest(TEXT)).strip(), "byte for byte"
    for status, body in (eve, resumed_eve, cancelled):
        assert status == 200
        assert "eve@evil.test" not in body
        assert "send_mail" in body, "it says which call was refused"
        assert "function_call" not in body
    calls = [
        (one["object"], one["fate"]) for one in cli.story()["effects"] if one["operation"] == "tool.send"
    ]
    assert ("tool:send_mail", "refused") in calls
    assert [fate for _object, fate in calls if fate != "refused"] == ["unknown"], "ann's, which nobody made"


def test_other_ways_to_an_answer_pass_as_long_as_they_hold_no_call(cli: Cli, provider: RawProvider) -> None:
    asked = [one for one in ANSWERS if "/responses/" not in one]
    batch, text, calls, under_another_type, anthropic, stored = fetched(cli, provider, *asked)
    assert "send_mail" not in under_another_type[1]
    assert batch == (200, '{"id": "batch_1", "status": "completed"}')
    assert text[0] == 200
    assert text[1].count("no call of a tool") == 2
    for status, body in (calls, anthropic, stored):
        assert status == 403
        assert "tool call" in json.loads(body)["error"]["message"]
        assert "send_mail" not in body


def test_where_nothing_is_audited_all_passes(cli: Cli, provider: RawProvider) -> None:
    asked = ("GET /v1/files/calls/content", "GET /v1/responses/resp_eve")
    for status, body in fetched(cli, provider, *asked, audit="none"):
        assert status == 200
        assert "send_mail" in body
