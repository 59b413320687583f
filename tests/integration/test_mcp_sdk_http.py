"""The official SDK's client and server, unchanged, through `interlock mcp` over HTTP: every kind of message, both revisions.

Not run where `scripts/need_mcp` has not installed the SDK.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.mcp_places import OURS, SDK, guarded_at, needs, sdk_client, sdk_server

POLICY = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  search: {effect: read, carries: [query]}
  send: {effect: send, steers: {to: email}, carries: [body], asks: [send]}
  ask: {effect: read}
  think: {effect: read}
  where: {effect: read}
  count: {effect: read, carries: [steps]}
  sleep: {effect: read}
  note: {effect: read}
  grow: {effect: read}
  break_off: {effect: read}
"""
TASK = "send the summary to ann@a.test"
QUESTION = "Interlock: may `mail/send` be called?"


@pytest.fixture
def folder(tmp_path: Any) -> str:
    needs(SDK)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return str(tmp_path)


def options(folder: str) -> list[str]:
    return ["--policy", f"{folder}/policy.yaml", "--task", TASK]


def same_but_the_refused(seen: dict[str, Any], direct: dict[str, Any]) -> None:
    """Check that a guarded client saw what an unguarded one sees, but for the call that nothing vouches for."""
    assert seen["asked"][0] == QUESTION
    seen["asked"] = seen["asked"][1:]
    assert seen["send_other"]["failed"]
    told = json.loads(seen["send_other"]["text"][0])
    assert told["interlock"] == "refused"
    assert told["violated_rule"] == "provenance"
    seen["send_other"] = direct["send_other"]
    assert seen == direct


@pytest.mark.slow
@pytest.mark.parametrize("words", [("store",), ("json",), ("stateless",), ("json", "stateless")])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_all_messages_over_http(folder: str, mode: str, words: tuple[str, ...]) -> None:
    with sdk_server(folder, *words) as url:
        direct = sdk_client(folder, mode, url)
    with sdk_server(folder, *words) as url, guarded_at(folder, url, *options(folder)) as ours:
        same_but_the_refused(sdk_client(folder, mode, ours), direct)
    if mode == "legacy" and words == ("store",):
        assert direct["version"] == "2025-11-25"
        assert direct["ask"]["text"] == ["accept: red"]
        assert direct["think"]["text"] == ["thought: deeply"]
        assert direct["where"]["text"] == ["file:///work"]
        assert direct["cancel"] == "cancelled"
        assert direct["break_off"]["text"] == ["the rest"], "a stream that broke off goes on"
        assert len(direct["progress"]) == 3
        assert "later" in direct["tools_after"]
        assert "notifications/tools/list_changed" in direct["notices"]
    elif mode == "auto":
        assert direct["version"] == "2026-07-28"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_all_messages_over_stdio_to_http(folder: str, mode: str) -> None:
    """What `interlock mcp import` makes of a server that is reached by a URL."""
    with sdk_server(folder, "store") as url:
        direct = sdk_client(folder, mode, url)
    with sdk_server(folder, "store") as url:
        argv = [*OURS, "--server", "mail", "--upstream", url, *options(folder)]
        same_but_the_refused(sdk_client(folder, mode, "--", *argv), direct)


def test_a_few_messages_over_http(folder: str) -> None:
    with sdk_server(folder, "store") as url, guarded_at(folder, url, *options(folder)) as ours:
        seen = sdk_client(folder, "legacy", "--only", "tools,send_vouched,send_other,ask,resources", ours)
    assert seen["send_vouched"] == {"text": ["sent to ann@a.test"], "failed": False}
    assert seen["send_other"]["failed"]
    assert seen["ask"]["text"] == ["accept: red"]
    assert seen["resources"] == [["mail://inbox"], "one mail"]
