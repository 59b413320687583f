"""The Claude Agent SDK with its real command line and a scripted model: in-process tools, and what the CLI runs itself.

Skipped where the package, or the command line in its wheel, is not there; `scripts/need_adapters` installs both.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.guarded import MAIL, READ, fates, later, monitor, quick_folder, results

from interlock.model.errors import InputError
from interlock.runtime.story import Fate

pytestmark = pytest.mark.filterwarnings("default")

sdk: Any = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


def _tools(sent: list[str]) -> list[Any]:
    async def send(arguments: dict[str, Any]) -> dict[str, Any]:
        sent.append(arguments["to"])
        return {"content": [{"type": "text", "text": f"sent to {arguments['to']}"}]}

    async def search(arguments: dict[str, Any]) -> dict[str, Any]:
        failed = arguments["query"] == "bad"
        return {"content": [{"type": "text", "text": '[{"from":"eve@evil.test"}]'}], "is_error": failed}

    return [
        sdk.tool("send_mail", "Send a mail", {"to": str, "body": str})(send),
        sdk.tool("send_later", "Send a mail, some time", {"to": str, "body": str})(send),
        sdk.tool("search", "Search the mail", {"query": str})(search),
    ]


ROLES: dict[str, Any] = {"send_mail": MAIL, "search": READ, "send_later": later()}


def test_in_process_tools_are_guarded_where_they_run() -> None:
    from interlock.sdk.adapters.claude import guard_tools

    sent: list[str] = []
    guarded = monitor()
    mail, after, search = guard_tools(guarded, _tools(sent), ROLES)

    async def main() -> list[Any]:
        async with guarded:
            return [
                await search.handler({"query": "x"}),
                await search.handler({"query": "bad"}),
                await mail.handler({"to": "ann@a.test", "body": "x"}),
                await mail.handler({"to": "eve@evil.test", "body": "x"}),
                await after.handler({"to": "bob@b.test", "body": "x"}),
            ]

    answers = asyncio.run(main())
    assert sent == ["ann@a.test"]
    assert [one.get("is_error", False) for one in answers] == [False, True, False, True, False]
    assert json.loads(answers[3]["content"][0]["text"])["interlock"] == "refused"
    assert json.loads(answers[4]["content"][0]["text"])["interlock"] == "placeholder"
    assert guarded.last is not None
    assert [fate for _name, fate in fates(guarded.last)] == [
        Fate.SENT, Fate.FAILED, Fate.SENT, Fate.REFUSED, Fate.REFUSED,
    ]  # fmt: skip
    with pytest.raises(InputError, match="no in-process tool"):
        guard_tools(monitor(), [print])


def test_the_hooks_let_pass_what_is_vouched_for_and_deny_the_rest() -> None:
    from interlock.sdk.adapters.claude import Hooks

    guarded = monitor(task="write notes.txt")
    hooks = Hooks(
        guarded,
        {
            "Write": {"effect": "write", "steers": {"file_path": "path"}, "carries": ["content"]},
            "Later": later(steers={"to": "email"}, carries=["body"]),
        },
        beside=["mail"],
    )

    def given(name: str, number: int, **arguments: str) -> dict[str, Any]:
        return {"tool_name": name, "tool_input": arguments, "tool_use_id": f"toolu_{number}"}

    async def main() -> list[dict[str, Any]]:
        async with guarded:
            found = [
                await hooks.before(given("Write", 1, file_path="notes.txt", content="x"), None, None),
                await hooks.after(
                    {**given("Write", 1), "tool_response": {"filePath": "notes.txt"}}, None, None
                ),
                await hooks.before(given("Write", 2, file_path="/etc/passwd", content="x"), None, None),
                await hooks.before(given("Bash", 3, command="rm -r /"), None, None),
                await hooks.before(given("Later", 4, to="bob@b.test", body="x"), None, None),
                await hooks.before(given("mcp__mail__send_mail", 5, to="x"), None, None),
                await hooks.before(given("Write", 6, file_path="notes.txt", content="y"), None, None),
                await hooks.after({**given("Write", 6), "error": "no space"}, None, None),
                await hooks.before(given("Write", 7, file_path="notes.txt", content="z"), None, None),
            ]
        return found

    answers = asyncio.run(main())
    denied = [one.get("hookSpecificOutput", {}).get("permissionDecision", "") for one in answers]
    assert denied == ["", "", "deny", "deny", "deny", "", "", "", ""]
    assert guarded.last is not None
    assert fates(guarded.last) == [
        ("Write", Fate.SENT), ("Write", Fate.REFUSED), ("Bash", Fate.REFUSED), ("Write", Fate.FAILED),
        ("Write", Fate.UNKNOWN),
    ]  # fmt: skip
    assert [one.get("text") for one in results(guarded.last)][:2] == ['{"filePath":"notes.txt"}', "no space"]


def _cli() -> str:
    path = os.path.join(os.path.dirname(sdk.__file__), "_bundled", "claude")
    if not os.access(path, os.X_OK):
        pytest.skip("this wheel of claude-agent-sdk brings no command line for this machine")
    return path


def test_the_real_command_line_reads_refusals_and_makes_only_what_was_let_through() -> None:
    from tests.agents.model_server import ModelServer
    from tests.agents.script import Script

    from interlock.sdk.adapters.claude import Hooks, guard_tools

    cli, sent = _cli(), list[str]()
    with quick_folder() as home, quick_folder() as folder:
        guarded = monitor(task=f"send the summary to ann@a.test and write {folder}/notes.txt")
        server = sdk.create_sdk_mcp_server("mail", tools=guard_tools(guarded, _tools(sent), ROLES))
        hooks = Hooks(
            guarded,
            {"Write": {"effect": "write", "steers": {"file_path": "path"}, "carries": ["content"]}},
            beside=["mail"],
        )
        steps: list[dict[str, Any]] = [
            {"tool": "mcp__mail__search", "arguments": {"query": "mail"}},
            {"tool": "mcp__mail__send_mail", "arguments": {"to": "ann@a.test", "body": "x"}},
            {"tool": "mcp__mail__send_mail", "arguments": {"to": "eve@evil.test", "body": "x"}},
            {"tool": "Write", "arguments": {"file_path": f"{folder}/notes.txt", "content": "x"}},
            {"tool": "Write", "arguments": {"file_path": f"{folder}/other.sh", "content": "x"}},
            {"say": "done"},
        ]
        model = ModelServer(Script(tuple(steps), folder))
        environment = {
            "HOME": home,
            "ANTHROPIC_BASE_URL": model.at,
            "ANTHROPIC_API_KEY": "sk-of-the-script",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        options = sdk.ClaudeAgentOptions(
            cli_path=cli,
            cwd=folder,
            env=environment,
            mcp_servers={"mail": server},
            allowed_tools=["mcp__mail__search", "mcp__mail__send_mail"],
            permission_mode="bypassPermissions",
            hooks=hooks.for_options(),
            model="claude-sonnet-4-5",
            max_turns=12,
        )

        async def main() -> list[Any]:
            async with guarded:
                return [message async for message in sdk.query(prompt="go", options=options)]

        try:
            messages = asyncio.run(asyncio.wait_for(main(), 240))
        finally:
            model.close()
        assert sent == ["ann@a.test"]
        assert os.listdir(folder) == ["notes.txt"]
    assert any(type(one).__name__ == "ResultMessage" for one in messages)
    assert guarded.last is not None
    assert fates(guarded.last) == [
        ("search", Fate.SENT), ("send_mail", Fate.SENT), ("send_mail", Fate.REFUSED),
        ("Write", Fate.SENT), ("Write", Fate.REFUSED),
    ]  # fmt: skip
