"""The conversation of a client with a server, as a script: what each side says, and where it may go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.boundary.mcp.conversing import MAX_UNDER_WAY, Conversation
from interlock.boundary.mcp.moves import (
    Back,
    Cancelled,
    Dropped,
    Guarded,
    Listed,
    Onward,
    Ours,
    Replied,
    Returned,
)


class Script:
    """Says one message after the other, and says what became of each."""

    def __init__(self) -> None:
        self.talk = Conversation("ours-")

    def client(self, method: str = "", params: Any = None, *, number: Any = None, **more: Any) -> Any:
        return self.talk.from_client(_message(method, params, number, more))

    def server(self, method: str = "", params: Any = None, *, number: Any = None, **more: Any) -> Any:
        return self.talk.from_server(_message(method, params, number, more))


def _message(method: str, params: Any, number: Any, more: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", **more}
    if method:
        message["method"] = method
    if params is not None:
        message["params"] = params
    if number is not None:
        message["id"] = number
    return json.dumps(message).encode()


@pytest.fixture
def script() -> Script:
    return Script()


def error_of(move: Any) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(move.raw)["error"]
    return error


ARRANGED = [
    "ping",
    "tools/list",
    "resources/list",
    "prompts/list",
    "logging/setLevel",
    "subscriptions/listen",
]


@pytest.mark.parametrize("method", ARRANGED)
def test_what_only_arranges_passes_and_its_answer_once(script: Script, method: str) -> None:
    assert isinstance(script.client(method, number=1), Onward)
    answer = script.server(result={"tools": []}, number=1)
    assert isinstance(answer, Onward | Listed)
    assert isinstance(script.server(result={}, number=1), Dropped)


@pytest.mark.parametrize(
    ("method", "params", "tool", "arguments"),
    [
        ("tools/call", {"name": "send", "arguments": {"to": "ann"}}, "send", {"to": "ann"}),
        ("tools/call", {"name": "send"}, "send", {}),
        (
            "resources/read",
            {"uri": "x", "_meta": {}, "requestState": "s"},
            "mcp:resources.read",
            {"uri": "x"},
        ),
        ("prompts/get", {"name": "p"}, "mcp:prompts.get", {"name": "p"}),
        ("tasks/result", {"taskId": "t"}, "mcp:tasks.result", {"taskId": "t"}),
        ("vendor/wipe", {"disk": 1}, "mcp:vendor.wipe", {"disk": 1}),
    ],
)
def test_what_does_something_is_decided_first(
    script: Script, method: str, params: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    move = script.client(method, params, number=1)
    assert isinstance(move, Guarded)
    assert (move.tool, move.arguments) == (tool, arguments)


def test_an_answer_to_a_call_that_the_server_never_got_goes_nowhere(script: Script) -> None:
    script.client("tools/call", {"name": "send"}, number=1)
    assert isinstance(script.server(result={"content": []}, number=1), Dropped)
    script.talk.sent(1)
    assert isinstance(script.server(result={"content": []}, number=1), Returned)
    assert isinstance(script.server(result={"content": []}, number=1), Dropped)


def test_an_answer_with_another_kind_of_id_is_none(script: Script) -> None:
    script.client("ping", number=1)
    assert isinstance(script.server(result={}, number="1"), Dropped)
    assert isinstance(script.server(result={}, number=1), Onward)


def test_half_an_answer_ends_its_request_with_an_error(script: Script) -> None:
    script.client("tools/list", number=1)
    move = script.talk.from_server(b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}')
    assert isinstance(move, Dropped)  # not even its id can be told
    move = script.talk.from_server(b'{"jsonrpc":"2.0","id":1,"result":[]}')
    assert isinstance(move, Onward)
    assert "error" in json.loads(move.raw)


def test_an_id_that_is_in_use_is_refused_without_answering_the_first(script: Script) -> None:
    script.client("ping", number=1)
    again = script.client("tools/call", {"name": "send"}, number=1)
    assert isinstance(again, Back)
    assert json.loads(again.raw)["id"] is None
    assert isinstance(script.server(result={}, number=1), Onward)
    assert isinstance(script.client("ping", number=1), Onward)


def test_nobody_may_take_our_ids(script: Script) -> None:
    ours = script.talk.own_id(to_server=False)
    assert isinstance(script.client("ping", number=ours), Back)
    assert isinstance(script.server("roots/list", number=ours), Back)
    assert isinstance(script.server(result={"action": "accept"}, number=ours), Dropped)
    assert isinstance(script.client(result={"action": "accept"}, number=ours), Ours)
    assert isinstance(script.client(result={"action": "accept"}, number=ours), Dropped)


def test_only_the_side_that_we_asked_can_answer_us(script: Script) -> None:
    ours = script.talk.own_id(to_server=True)
    assert isinstance(script.client(result={}, number=ours), Dropped)
    assert isinstance(script.server(result={}, number=ours), Ours)


def test_too_many_requests_at_once_are_refused(script: Script) -> None:
    for number in range(MAX_UNDER_WAY):
        assert isinstance(script.client("ping", number=number), Onward)
    assert isinstance(script.client("ping", number=MAX_UNDER_WAY), Back)
    script.server(result={}, number=0)
    assert isinstance(script.client("ping", number=MAX_UNDER_WAY), Onward)


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
def test_what_the_server_asks_passes_and_the_answer_is_decided(script: Script, method: str) -> None:
    assert isinstance(script.server(method, {"message": "?"}, number=7), Onward)
    move = script.client(result={"roots": []}, number=7)
    assert isinstance(move, Replied)
    assert (move.request.method, move.request.params) == (method, {"message": "?"})
    assert isinstance(script.client(result={}, number=7), Dropped)


def test_a_ping_of_the_server_is_answered_undecided(script: Script) -> None:
    assert isinstance(script.server("ping", number=7), Onward)
    assert isinstance(script.client(result={}, number=7), Onward)


def test_what_is_not_known_goes_nowhere(script: Script) -> None:
    asked = script.server("vendor/run", number=7)
    assert isinstance(asked, Back)
    assert error_of(asked)["code"] == -32601
    assert isinstance(script.server("notifications/vendor"), Dropped)
    assert isinstance(script.client("notifications/vendor"), Dropped)


@pytest.mark.parametrize(
    "method",
    ["progress", "message", "tools/list_changed", "resources/updated", "cancelled", "tasks/status"],
)
def test_notifications_of_the_server_pass(script: Script, method: str) -> None:
    assert isinstance(script.server(f"notifications/{method}", {"requestId": 1}), Onward)


def test_a_held_call_is_cancelled_without_a_word_to_the_server(script: Script) -> None:
    script.client("tools/call", {"name": "send"}, number=1)
    held = script.client("notifications/cancelled", {"requestId": 1})
    assert held == Cancelled(id=1, raw=b"")
    script.talk.sent(1)
    made = script.client("notifications/cancelled", {"requestId": 1})
    assert isinstance(made, Cancelled)
    assert made.raw


def test_what_was_cancelled_is_answered_to_nobody(script: Script) -> None:
    script.client("tools/list", number=1)
    assert isinstance(script.client("notifications/cancelled", {"requestId": 1}), Onward)
    assert isinstance(script.server(result={"tools": []}, number=1), Dropped)
    assert isinstance(script.client("notifications/cancelled", {"requestId": True}), Onward)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_known_revision_is_agreed_on(script: Script, version: str) -> None:
    script.client("initialize", {"protocolVersion": "2031-01-01", "capabilities": {}}, number=1)
    assert isinstance(script.server(result={"protocolVersion": version}, number=1), Onward)
    assert isinstance(script.client("ping", number=2), Onward)


def test_an_unknown_revision_ends_the_conversation(script: Script) -> None:
    script.client("initialize", {"protocolVersion": "2031-01-01", "capabilities": {}}, number=1)
    move = script.server(result={"protocolVersion": "2031-01-01"}, number=1)
    assert "2031-01-01" in error_of(move)["message"]
    assert "2025-11-25" in error_of(move)["data"]["supported"]
    assert isinstance(script.client("tools/call", {"name": "send"}, number=2), Back)
    assert isinstance(script.server("sampling/createMessage", number=3), Back)


def test_a_request_that_stands_alone_says_its_revision(script: Script) -> None:
    said = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    can: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    move = script.client("tools/call", {"name": "send", "_meta": {**said, **can}}, number=1)
    assert isinstance(move, Guarded)
    assert move.modern
    assert move.elicits
    alone = script.client("tools/call", {"name": "send", "_meta": said}, number=2)
    assert isinstance(alone, Guarded)
    assert not alone.elicits
    unknown = {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    refused = script.client("tools/call", {"name": "send", "_meta": unknown}, number=3)
    assert error_of(refused)["code"] == -32022
    assert error_of(refused)["data"]["requested"] == "2031-01-01"


def test_a_server_offers_no_revision_that_is_not_known(script: Script) -> None:
    script.client("server/discover", number=1)
    move = script.server(result={"supportedVersions": ["2031-01-01", "2026-07-28"]}, number=1)
    assert json.loads(move.raw)["result"]["supportedVersions"] == ["2026-07-28"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 1},
        {"name": "send", "arguments": []},
        {"name": "send", "arguments": {"to": "ann", "To": "eve"}},
        {"name": "mcp:resources.read", "arguments": {}},
    ],
)
def test_a_call_that_cannot_be_read_is_refused(script: Script, params: dict[str, Any]) -> None:
    assert isinstance(script.client("tools/call", params, number=1), Back)
    assert isinstance(script.client("ping", number=1), Onward)


def test_a_list_that_cannot_be_read_is_held(script: Script) -> None:
    script.client("tools/list", number=1)
    move = script.server(result={"tools": [{"description": "no name"}]}, number=1)
    assert "held" in error_of(move)["message"]
