"""The official SDK's client in a real run talks to a server of the SDK through the sandbox's proxy, where its messages are read.

Not run where `scripts/need_mcp` has not installed the SDK.
"""

from __future__ import annotations

import glob
import json
import os
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.fakes.mcp_places import PLACE, ROOT, SDK, needs, sdk_client, sdk_server
from tests.integration.conftest import ORDINARY, Cli, _interpreter

TASK = "send the summary to ann@a.test"
POLICY = """version: 1
preset: none
environment: {{pass: [PATH, HOME]}}
trusted: [{{task: true}}]
network:
  hosts: [{{host: "127.0.0.1", port: {port}, methods: [POST, GET, DELETE]}}]
  publish: [{{port: {port}, to: "127.0.0.1:{port}"}}]
tools:
  127.0.0.1/search: {{effect: read, carries: [query]}}
  127.0.0.1/send: {{effect: send, steers: {{to: email}}, carries: [body]}}
{tools}
cedar: |
  @id("files-and-requests")
  permit(principal, action, resource) when {{ context.channel == "file" || context.channel == "net" }};
  @id("vouched")
  permit(principal, action, resource) when {{ context.derived }};
"""
READS = (
    "".join(
        f"  127.0.0.1/{name}: {{effect: read}}\n"
        for name in ("ask", "think", "where", "sleep", "note", "grow", "break_off")
    )
    + "  127.0.0.1/count: {effect: read, carries: [steps]}"
)


def policy_for(cli: Cli, url: str, tools: str) -> str:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(POLICY.format(port=urlsplit(url).port, tools=tools))
    cli.own()
    return path


def in_run(cli: Cli, url: str, *words: str, tools: str = READS, task: str = TASK) -> dict[str, Any]:
    """Run the SDK's client in the sandbox. Returns: what it saw."""
    policy = policy_for(cli, url, tools)
    (packages,) = glob.glob(os.path.join(PLACE, "lib", "python3.*", "site-packages"))
    client = os.path.join(ROOT, "tests", "fakes", "mcp_sdk", "client.py")
    # That of the tests stands below a home, which the sandbox hides.
    python = _interpreter(ORDINARY) if os.geteuid() == 0 else cli.interpreter
    line = " ".join((python, client, *words, url))
    cli.put("agent.sh", f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={packages} exec {line}\n")
    done = cli(
        "run", "--policy", policy, "--task", task, "--oracle", "strict", "--", "sh", "agent.sh", timeout=150
    )
    assert done.stdout, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert isinstance(seen, dict)
    assert cli.verdict("last", "--replay") == "complete"
    return seen


def calls(cli: Cli) -> list[tuple[str, str]]:
    return [
        (item["object"], item["fate"])
        for item in cli.story()["effects"]
        if item["operation"].startswith("tool.")
    ]


def refusal(seen: dict[str, Any], name: str) -> dict[str, Any]:
    """Check that a call was refused, and its client told why."""
    assert seen[name]["failed"]
    told = json.loads(seen[name]["text"][0])
    assert told["interlock"] == "refused"
    assert isinstance(told, dict)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("words", [("store",), ("json",), ("stateless",), ("json", "stateless")])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_all_messages_are_the_same_but_the_call_that_nothing_vouches_for(
    cli: Cli, mode: str, words: tuple[str, ...]
) -> None:
    needs(SDK)
    with sdk_server(cli.base, *words) as url:
        direct = sdk_client(cli.base, mode, url)
    with sdk_server(cli.base, *words) as url:
        seen = in_run(cli, url, mode)
    assert refusal(seen, "send_other")["violated_rule"] == "provenance"
    assert seen == {**direct, "send_other": seen["send_other"]}
    made = calls(cli)
    assert made[:3] == [
        ("tool:127.0.0.1/search", "sent"),
        ("tool:127.0.0.1/send", "sent"),
        ("tool:127.0.0.1/send", "refused"),
    ]
    if mode == "legacy" and words == ("store",):
        assert direct["think"]["text"] == ["thought: deeply"], "it is asked on the stream of the server's own"
        assert direct["break_off"]["text"] == ["the rest"], "the result comes on another stream"
        others = [one for one in made[3:] if one[1] != "sent"]
        assert others in ([], [("tool:127.0.0.1/sleep", "failed")]), "the one that its client gave up"


def test_a_few_messages_in_a_run(cli: Cli) -> None:
    needs(SDK)
    with sdk_server(cli.base, "store") as url:
        only = "tools,search,send_vouched,send_other,count,think"
        seen = in_run(cli, url, "legacy", "--only", only)
    assert seen["send_vouched"] == {"text": ["sent to ann@a.test"], "failed": False}
    assert refusal(seen, "send_other")["violated_rule"] == "provenance"
    assert seen["think"]["text"] == ["thought: deeply"]
    assert len(seen["progress"]) == 3
    story = cli.story()["effects"]
    (post,) = [
        item for item in story if item["object"] == "tool:127.0.0.1/send" and item["fate"] == "refused"
    ]
    assert post["decision"] == "defer"


def test_a_server_that_renames_tools_in_mid_session(cli: Cli) -> None:
    needs(SDK)
    with sdk_server(cli.base, "json") as url:
        only = "tools,search,note,rename,tools_renamed,find,note_again"
        tools = READS + "\n  127.0.0.1/rename: {effect: read}"
        seen = in_run(cli, url, "legacy", "--only", only, tools=tools)
    assert seen["note"]["text"] == ["noted"]
    assert "note" in seen["tools"]
    assert "note" not in seen["tools_renamed"], "what is described anew is held"
    assert "find" in seen["tools_renamed"]
    refusal(seen, "find")
    refusal(seen, "note_again")


def test_a_revision_that_is_not_known(cli: Cli) -> None:
    needs(SDK)
    script = (
        "curl -s -w ' %{http_code}' -X POST -H 'content-type: application/json' -H 'accept: application/json' "
        "-H 'mcp-protocol-version: 2031-01-01' "
        """-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{}}}' """
    )
    with sdk_server(cli.base, "json") as url:
        done = cli.sh(script + url, "--policy", policy_for(cli, url, READS), "--task", TASK)
    body, _, status = done.stdout.decode().rpartition(" ")
    assert status == "400"
    assert "not known" in json.loads(body)["error"]["message"]
    assert calls(cli) == []
