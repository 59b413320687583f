"""Between an editor and its agent: what passes, what is Interlock's own, and what goes nowhere."""

import json
from typing import Any

import pytest

from interlock.acp.wire import Between, Moves, permission


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def read(one: bytes) -> dict[str, Any]:
    value = json.loads(one)
    assert isinstance(value, dict)
    return value


def between() -> Between:
    return Between("/work", "il-1-")


def test_the_agent_is_told_that_the_editor_does_nothing_for_it() -> None:
    capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True, "other": 1}
    moves = between().from_client(
        line(id=0, method="initialize", params={"protocolVersion": 1, "clientCapabilities": capabilities})
    )
    assert read(moves.to_agent[0])["params"] == {
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "other": 1,
        },
    }


@pytest.mark.parametrize(
    "method", ["fs/write_text_file", "fs/read_text_file", "terminal/create", "whatever/else", "session/other"]
)
def test_what_the_agent_asks_of_the_editor_all_the_same_is_an_error(method: str) -> None:
    moves = between().from_agent(line(id=7, method=method, params={"path": "/etc/passwd"}))
    assert moves.to_client == ()
    assert read(moves.to_agent[0])["id"] == 7
    assert read(moves.to_agent[0])["error"]["code"] == -32601


@pytest.mark.parametrize(
    "odd",
    [
        b"{\n",
        b"[]\n",
        b'[{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file"}]\n',
        b'{"jsonrpc":"2.0","id":1,"method":"session/update","method":"fs/write_text_file"}\n',
        b'{"jsonrpc":"2.0","id":{},"method":"session/update"}\n',
        b'{"jsonrpc":"2.0","id":NaN,"result":1}\n',
        b'{"jsonrpc":"2.0","method":["session/update"]}\n',
        b"\xff\n",
    ],
)
def test_a_line_that_cannot_be_read_reaches_nobody(odd: bytes) -> None:
    for moves in (between().from_agent(odd), between().from_client(odd)):
        assert moves.to_agent == ()
        assert moves.to_client == ()
        assert moves.note


def test_an_unknown_notification_goes_nowhere() -> None:
    moves = between().from_agent(line(method="editor/run", params={}))
    assert (moves.to_agent, moves.to_client) == ((), ())


def test_updates_and_the_agents_own_questions_pass() -> None:
    for message in (
        line(method="session/update", params={"sessionId": "s", "update": {}}),
        line(id=3, method="session/request_permission", params={"sessionId": "s"}),
        line(id=4, result={"sessionId": "s"}),
    ):
        assert [read(one) for one in between().from_agent(message).to_client] == [read(message)]


def test_a_turns_last_line_waits_until_the_turn_is_settled() -> None:
    one = between()
    prompt = line(id=2, method="session/prompt", params={"sessionId": "s", "prompt": []})
    assert one.from_client(prompt) == Moves(to_agent=(prompt,), began="s")
    over = one.from_agent(line(id=2, result={"stopReason": "end_turn"}))
    assert (over.over, over.to_client) == ("s", ())
    assert read(over.last)["result"] == {"stopReason": "end_turn"}
    again = one.from_agent(line(id=2, result={}))
    assert (again.over, len(again.to_client)) == ("", 1)


def test_only_an_answer_to_our_own_question_is_ours() -> None:
    one = between()
    chosen = line(id="il-1-1", result={"outcome": {"outcome": "selected", "optionId": "release"}})
    assert one.from_client(chosen) == Moves(answered=("il-1-1", "release"))
    dismissed = line(id="il-1-2", result={"outcome": {"outcome": "cancelled"}})
    assert one.from_client(dismissed) == Moves(answered=("il-1-2", ""))
    broken = line(id="il-1-3", error={"code": 1, "message": "no"})
    assert one.from_client(broken) == Moves(answered=("il-1-3", ""))
    others = line(id=9, result={"outcome": {"outcome": "selected", "optionId": "release"}})
    assert one.from_client(others).to_agent == (others,)


def test_an_agent_cannot_take_an_id_of_ours() -> None:
    moves = between().from_agent(line(id="il-1-1", method="session/request_permission", params={}))
    assert moves.to_client == ()
    assert read(moves.to_agent[0])["error"]["message"] == "the id is taken"


@pytest.mark.parametrize(
    ("folder", "staged"), [("/work", True), ("/work/a", True), ("/workshop", False), ("a", False)]
)
def test_a_session_is_in_the_workspace(folder: str, staged: bool) -> None:
    moves = between().from_client(line(id=1, method="session/new", params={"cwd": folder, "mcpServers": []}))
    assert bool(moves.to_agent) is staged
    if not staged:
        assert "interlock acp --workspace" in read(moves.to_client[0])["error"]["message"]


def test_a_question_of_ours_is_a_permission_request() -> None:
    asked = read(
        permission("il-1-1", "s", title="t", text="why", options=(("release", "Release", "allow_once"),))
    )
    assert asked["method"] == "session/request_permission"
    assert asked["params"]["options"] == [{"optionId": "release", "name": "Release", "kind": "allow_once"}]
