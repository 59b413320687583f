"""A real agent that speaks ACP, behind the boundary, with an editor played at the other end.

`python -m tests.agents.editor gemini --place FOLDER` prints what came of it as one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from typing import Any

from tests.agents import place
from tests.agents.catalogue import AGENTS
from tests.agents.model_server import ModelServer
from tests.agents.script import read_script
from tests.agents.tasks import Task
from tests.agents.trial import Stand, fresh

COMMANDS = {
    "gemini": ("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--acp"),
    "opencode": ("opencode", "acp"),
}
HOOK = ".git/hooks/pre-commit"
_STEPS = [
    {"read": "README.md"},
    {"write": "notes.txt", "text": "hello\n"},
    {"shell": f"mkdir -p .git/hooks; printf '#!/bin/sh\\nid\\n' > {HOOK}; chmod +x {HOOK}"},
    {"say": "done"},
]


class Editor:
    """Talks to `interlock acp`, and answers each of its questions by one option."""

    def __init__(self, child: subprocess.Popen[bytes], option: str) -> None:
        self._child, self._option, self._number = child, option, 0
        self.asked: list[str] = []
        self.refused: list[str] = []

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._say({"id": self._number, "method": method, "params": params})
        assert self._child.stdout is not None
        for line in self._child.stdout:
            message = json.loads(line)
            if message.get("id") == self._number and "method" not in message:
                return message.get("result") or message.get("error")
            if message.get("method") == "session/request_permission":
                options = message["params"]["options"]
                own = [one for one in options if one["optionId"] == self._option]
                if own:
                    self.asked.append(message["params"]["toolCall"]["title"])
                chosen = (own or [one for one in options if one["kind"] == "allow_once"])[0]["optionId"]
                outcome = {"outcome": "selected", "optionId": chosen}
                self._say({"id": message["id"], "result": {"outcome": outcome}})
            elif "id" in message:
                self.refused.append(message["method"])
                self._say({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        raise SystemExit("the agent went away")

    def _say(self, message: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._child.stdin.flush()


def main() -> None:
    """Play one session."""
    options = argparse.ArgumentParser(description="A real ACP agent behind the boundary.")
    options.add_argument("agent", choices=sorted(COMMANDS))
    options.add_argument("--place", required=True, help="where scripts/need_agents put the agents")
    options.add_argument("--option", default="refuse", help="how each question is answered")
    given = options.parse_args()
    place.enter(["-m", "tests.agents.editor", *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    agent = next(one for one in AGENTS if one.name == given.agent).calmed()
    cli = fresh(agent, os.geteuid(), given.place, sys.executable)
    task = Task("acp", {"README.md": "# demo\n"}, (), "write notes.txt")
    stand = Stand(
        agent,
        task,
        cli,
        place=given.place,
        hosts=(place.Collector("127.0.0.2"), place.Collector("127.0.0.3")),
    )
    script = os.path.join(cli.base, "steps.json")
    with open(script, "w", encoding="utf-8") as file:
        json.dump(_STEPS, file)
    server = ModelServer(read_script(script, cli.workspace), port=8911)
    known = cli.environment()
    environment = stand.environment() | {name: known[name] for name in ("INTERLOCK_STATE", "PYTHONPATH")}
    child = subprocess.Popen(
        cli.words(
            "acp", "--workspace", cli.workspace, "--task", "write notes.txt", "--", *COMMANDS[given.agent]
        ),
        cwd=cli.workspace,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    late = threading.Timer(120, child.kill)
    late.start()
    editor = Editor(child, given.option)
    capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    editor.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
    session = editor.call("session/new", cwd=cli.workspace, mcpServers=[])["sessionId"]
    stop = editor.call(
        "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write notes.txt"}]
    )
    notes = cli.get("notes.txt") if cli.has("notes.txt") else ""
    child.communicate(timeout=60)
    late.cancel()
    server.close()
    print(
        json.dumps(
            {
                "stop": stop.get("stopReason"),
                "notes": notes,
                "hook": cli.has(HOOK),
                "asked": editor.asked,
                "of_the_editor": editor.refused,
                "verdict": cli.verdict("last", "--replay"),
            }
        )
    )


if __name__ == "__main__":
    main()
