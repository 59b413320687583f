"""An agent that speaks ACP behind the boundary, with an editor at the other end."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from tests.integration.conftest import Cli, in_one_standing

pytestmark = in_one_standing

AGENT = r"""
import json, os, subprocess, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=number, result={"protocolVersion": 1, "given": message["params"]["clientCapabilities"]})
    elif method == "session/new":
        say(id=number, result={"sessionId": "s1"})
    elif method == "session/prompt":
        words = message["params"]["prompt"][0]["text"]
        if words == "write":
            open("notes.txt", "w").write("hello\n")
            os.makedirs(".git/hooks", exist_ok=True)
            open(".git/hooks/pre-commit", "w").write("#!/bin/sh\nid\n")
            os.chmod(".git/hooks/pre-commit", 0o755)
        elif words == "fetch":
            done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x=1",
                                   "http://collector.test/in"], capture_output=True, text=True)
            say(method="session/update", params={"sessionId": "s1", "update": {"got": done.stdout}})
        elif words == "escape":
            say(id="f1", method="fs/write_text_file", params={"sessionId": "s1", "path": os.getcwd() + "/out.txt",
                                                              "content": "x"})
            say(method="session/update", params={"sessionId": "s1", "update": json.loads(sys.stdin.readline())})
        say(id=number, result={"stopReason": "end_turn"})
"""


class Editor:
    """Answers each permission request by the option of its choice, and keeps what it was told."""

    def __init__(self, cli: Cli, option: str) -> None:
        cli.put("agent.py", AGENT)
        cli("run", "--oracle", "strict", "--", "true")  # first loads cost time, not here
        self.relay = subprocess.Popen(
            cli.words(
                "acp", "--workspace", cli.workspace, "--task", "write notes.txt", "--", "python3", "agent.py"
            ),
            cwd=cli.workspace,
            env=cli.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **cli.identity(),
        )
        self.option = option
        self.asked: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self._number = 0
        self._late = threading.Timer(60, self.relay.kill)
        self._late.start()
        self.given = self.call("initialize", protocolVersion=1, clientCapabilities={"terminal": True})
        self.call("session/new", cwd=cli.workspace, mcpServers=[])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._say({"id": self._number, "method": method, "params": params})
        assert self.relay.stdout is not None
        for line in self.relay.stdout:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.asked.append(message["params"])
                outcome = (
                    {"outcome": "selected", "optionId": self.option}
                    if self.option
                    else {"outcome": "cancelled"}
                )
                self._say({"id": message["id"], "result": {"outcome": outcome}})
            elif "method" in message:
                self.told.append(message["params"]["update"])
            elif message["id"] == self._number:
                return dict(message)
        assert self.relay.stderr is not None
        raise AssertionError(self.relay.stderr.read().decode())

    def prompt(self, words: str) -> dict[str, Any]:
        return self.call("session/prompt", sessionId="s1", prompt=[{"type": "text", "text": words}])

    def close(self) -> int:
        self.relay.communicate(timeout=60)
        self._late.cancel()
        return self.relay.returncode

    def _say(self, message: dict[str, Any]) -> None:
        assert self.relay.stdin is not None
        self.relay.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.relay.stdin.flush()


def test_each_turn_is_reviewed_at_the_editor_and_merged(cli: Cli) -> None:
    editor = Editor(cli, "release")
    assert editor.given["result"]["given"]["terminal"] is False
    assert editor.prompt("write")["result"] == {"stopReason": "end_turn"}
    # Before the editor heard that the turn is over, what it released was there.
    assert cli.get("notes.txt") == "hello\n"
    assert cli.has(".git/hooks/pre-commit")
    (asked,) = editor.asked
    assert "pre-commit" in asked["toolCall"]["title"]
    assert "+id" in asked["toolCall"]["content"][0]["content"]["text"]
    assert editor.close() == 0
    assert cli.verdict("last", "--replay") == "complete"


def test_what_is_refused_there_is_not_merged_and_the_rest_is(cli: Cli) -> None:
    editor = Editor(cli, "refuse")
    editor.prompt("write")
    assert cli.get("notes.txt") == "hello\n"
    assert not cli.has(".git/hooks/pre-commit")
    assert "1 refused" in str(editor.told)
    editor.close()
    assert cli.verdict("last", "--replay") == "complete"


def test_a_request_that_waits_is_asked_about_while_the_agent_works(cli: Cli) -> None:
    editor = Editor(cli, "refuse")
    editor.prompt("fetch")
    assert len(editor.asked) == 1, editor.asked
    assert "http://collector.test/in" in editor.asked[0]["toolCall"]["title"]
    assert editor.told[0] == {"got": "403"}
    editor.close()
    assert cli.verdict("last", "--replay") == "complete"


def test_a_dismissed_review_leaves_all_staged(cli: Cli) -> None:
    editor = Editor(cli, "")
    editor.prompt("write")
    assert not cli.has("notes.txt")
    assert "stays staged" in str(editor.told)
    editor.close()
    assert not cli.has(".git/hooks/pre-commit")
    assert cli("apply", "last").returncode == 0
    assert cli.get("notes.txt") == "hello\n"


def test_the_editor_writes_nothing_for_the_agent(cli: Cli) -> None:
    editor = Editor(cli, "refuse")
    editor.prompt("escape")
    editor.close()
    assert editor.told[0]["error"]["code"] == -32601
    assert not cli.has("out.txt")


def test_an_agent_that_ends_by_itself_ends_the_relay(cli: Cli) -> None:
    done = cli("acp", "--workspace", cli.workspace, "--", "sh", "-c", "exit 3")
    assert done.returncode == 3, done.stderr
