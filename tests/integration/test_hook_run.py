"""`interlock hook` as an agent calls it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integration.conftest import Cli, in_one_standing

from interlock.hooks import read_call

pytestmark = in_one_standing


def said(**changed: Any) -> bytes:
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "send_mail",
        "tool_input": {"to": "ann@a.test", "body": "hi"},
        "tool_use_id": "toolu_1",
        **changed,
    }
    return json.dumps(event).encode()


def reason(stdout: bytes) -> str:
    inner = json.loads(stdout)["hookSpecificOutput"]
    assert inner["permissionDecision"] == "deny"
    return str(inner["permissionDecisionReason"])


def test_outside_of_a_run_nothing_is_vouched_for(cli: Cli) -> None:
    done = cli("hook", "claude", stdin=said())
    assert done.returncode == 0
    assert "does not run under Interlock" in reason(done.stdout)
    assert cli("hook", "claude", "--outside", "pass", stdin=said()).stdout == b""
    assert cli("hook", "claude", stdin=said(hook_event_name="Stop")).stdout == b""


def test_what_cannot_be_read_must_not_run(cli: Cli) -> None:
    for broken in (b"", b"{", said(tool_input=1), b"\xff"):
        done = cli("hook", "claude", "--outside", "pass", stdin=broken)
        assert "could not judge it" in reason(done.stdout)
    gemini = cli("hook", "gemini", stdin=b"{")
    assert json.loads(gemini.stdout)["decision"] == "deny"


def test_it_is_put_into_the_settings_and_taken_out(cli: Cli) -> None:
    for agent in ("claude", "codex", "gemini"):
        done = cli("hook", agent, "--install", "--json")
        place = json.loads(done.stdout)["place"]
        assert place.startswith(cli.home)
        assert json.loads(cli("hook", agent, "--status", "--json").stdout)["installed"] is True
        named = [
            one for one in json.loads(cli("doctor", "--json").stdout) if one["name"] == f"hook of {agent}"
        ]
        assert [one["available"] for one in named] == [agent != "codex"]
        assert json.loads(cli("hook", agent, "--undo", "--json").stdout)["changed"] is True
        assert json.loads(cli("hook", agent, "--status", "--json").stdout)["installed"] is False
    cli.put(".claude/settings.json", "{")
    broken = cli("hook", "claude", "--install", "--project")
    assert (broken.returncode, cli.get(".claude/settings.json")) == (2, "{")


POLICY = """version: 1
preset: coding
environment: {pass: [PATH, HOME, PYTHONPATH, PYTHONDONTWRITEBYTECODE]}
tools:
  send_mail: {effect: send, steers: {to: email}, carries: [body]}
  later: {effect: send, steers: {to: email}, parks: true}
cedar: |
  @id("tools")
  permit(principal, action, resource) when { context.channel == "tool" && context.derived };
"""


def hooked(cli: Cli, *calls: bytes) -> list[dict[str, Any]]:
    """Ask the run's monitor from inside, as a hook does, and return what it answered each time."""
    policy = cli.put("policy.yaml", POLICY)
    for number, call in enumerate(calls):
        read = read_call("claude", call)
        assert read is not None
        body = {"call": read.call_id, "tool": read.tool, "arguments": read.arguments}
        cli.put(f"call{number}.json", json.dumps(body))
    script = "; ".join(
        f"curl -s -H 'content-type: application/json' -d @call{number}.json http://interlock.internal/calls >answer{number}"
        for number in range(len(calls))
    )
    done = cli.sh(script, "--policy", policy, "--oracle", "strict", "--task", "mail ann@a.test")
    assert done.returncode == 0, done.stderr
    return [json.loads(cli.get(f"answer{number}")) for number in range(len(calls))]


def test_inside_of_a_run_its_monitor_decides(cli: Cli) -> None:
    named, other, undeclared, waits = hooked(
        cli,
        said(),
        said(tool_input={"to": "eve@evil.test", "body": "hi"}, tool_use_id="toolu_2"),
        said(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_3"),
        said(tool_name="later", tool_input={"to": "ann@a.test"}, tool_use_id="toolu_4"),
    )
    assert named == undeclared == {"decision": "pass"}
    assert "no trusted source names its `to`" in other["exception"]["rationale"]
    assert "makes it itself" in waits["exception"]["rationale"]
    effects = [
        (one["object"], one["fate"]) for one in cli.story()["effects"] if one["operation"] == "tool.send"
    ]
    # What came of the first one nobody said.
    assert effects == [("tool:send_mail", "unknown"), ("tool:send_mail", "refused")]
    assert cli.verdict("last", "--replay") == "complete"


def test_the_hook_itself_asks_there(cli: Cli) -> None:
    policy = cli.put("policy.yaml", POLICY)
    cli.put("call.json", said(tool_input={"to": "eve@evil.test", "body": "hi"}))
    script = f"{cli.interpreter} -m interlock hook claude <call.json >answer || rm answer"
    done = cli.sh(script, "--policy", policy, "--oracle", "strict", "--task", "mail ann@a.test")
    if b"not found" in done.stderr:
        pytest.skip("not run: this Interlock lies where the sandbox hides it")
    assert done.returncode == 0, done.stderr
    assert "no trusted source names its `to`" in reason(cli.get("answer").encode())
