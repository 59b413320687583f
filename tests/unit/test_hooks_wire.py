"""What agents say to a hook before a tool runs, and what is answered."""

import json

import pytest

from interlock.hooks import AGENTS, denial, read_call
from interlock.model.errors import InputError

EVENTS = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}


def said(agent: str, **changed: object) -> bytes:
    event = {
        "hook_event_name": EVENTS[agent],
        "session_id": "s1",
        "tool_name": "Bash",
        "tool_input": {"command": "ls", "a": 1},
        "tool_use_id": "toolu_1",
        **changed,
    }
    return json.dumps({key: value for key, value in event.items() if value is not None}).encode()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_call_is_read_with_its_arguments_in_one_writing(agent: str) -> None:
    call = read_call(agent, said(agent))
    assert call is not None
    assert (call.call_id, call.tool, call.arguments) == ("toolu_1", "Bash", '{"a":1,"command":"ls"}')


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_need_not_say_the_id(agent: str) -> None:
    call = read_call(agent, said(agent, tool_use_id=None))
    assert call is not None
    assert call.call_id == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_at_other_events_no_tool_is_about_to_run(agent: str) -> None:
    assert read_call(agent, said(agent, hook_event_name="Stop")) is None


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"hook_event_name": 1}',
        b'{"hook_event_name": "PreToolUse", "hook_event_name": "Stop"}',
        said("claude", tool_name=None),
        said("claude", tool_name=""),
        said("claude", tool_name="x" * 201),
        said("claude", tool_input=None),
        said("claude", tool_input="ls"),
        said("claude", tool_use_id=7),
        said("claude", tool_input={"command": "\ud800"}),
        b'{"hook_event_name":' + b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_an_error(broken: bytes) -> None:
    with pytest.raises(InputError):
        read_call("claude", broken)


def test_a_denial_is_the_answer_that_blocks_there() -> None:
    for agent in ("claude", "codex"):
        inner = json.loads(denial(agent, "why"))["hookSpecificOutput"]
        assert inner == {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "why",
        }
    assert json.loads(denial("gemini", "why")) == {"decision": "deny", "reason": "why"}
