"""`interlock hook` as an agent calls it."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.conftest import Cli, in_one_standing

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
