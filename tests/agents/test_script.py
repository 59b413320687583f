"""The scripted model takes each step with the tools that it is offered, and answers a repeated request alike."""

from __future__ import annotations

import json

import pytest
from tests.agents.script import SIDE, Asked, Called, Reply, Said, Script, Tool

STEPS = (
    {"read": "README.md"},
    {"write": "notes.txt", "text": "one\n"},
    {"shell": "true"},
    {"tool": "final_answer", "arguments": {"answer": "x"}},
    {"say": "Done."},
)


def _reply(tools: tuple[Tool, ...], results: int, **more: str) -> Reply:
    script = Script(STEPS, "/w", text=more.get("text", ""), mark=more.get("mark", ""))
    return script.reply(Asked(tools, results, more.get("last", ""), "m", False))


CLAUDE = (
    Tool("Read", {"file_path": {}}),
    Tool("Write", {"file_path": {}, "content": {}}),
    Tool("Bash", {"command": {"type": "string"}, "description": {}}),
)
CODEX = (Tool("exec_command", {"cmd": {}}), Tool("apply_patch", {}, "custom"))


@pytest.mark.parametrize(
    ("tools", "results", "name", "arguments"),
    [
        (CLAUDE, 0, "Read", {"file_path": "/w/README.md"}),
        (CLAUDE, 1, "Write", {"file_path": "/w/notes.txt", "content": "one\n"}),
        (CLAUDE, 2, "Bash", {"command": "true", "description": "scripted step"}),
        (CLAUDE, 3, "final_answer", {"answer": "x"}),
        (CODEX, 0, "exec_command", {"cmd": "cat README.md"}),
        (CODEX, 1, "apply_patch", "*** Begin Patch\n*** Add File: notes.txt\n+one\n*** End Patch\n"),
        ((Tool("bash", {"command": {"type": "array"}}),), 2, "bash", {"command": ["bash", "-lc", "true"]}),
        ((Tool("bash", {}),), 1, "bash", {"command": "cat > notes.txt <<'EOS'\none\nEOS"}),
        ((Tool("exec", {}, "custom"),), 2, "exec", 'text(await tools.exec_command({cmd: "true"}));'),
        ((Tool("read_file", {"path": {}}), Tool("shell", {})), 0, "read_file", {"path": "README.md"}),
    ],
)
def test_a_step_is_taken_with_the_tools_at_hand(
    tools: tuple[Tool, ...], results: int, name: str, arguments: object
) -> None:
    assert _reply(tools, results) == Called(name, arguments)  # type: ignore[arg-type]
    assert _reply(tools, results) == _reply(tools, results)


def test_the_last_step_is_said_however_often_it_is_asked_for() -> None:
    assert _reply(CLAUDE, 4) == _reply(CLAUDE, 9) == Said("Done.")


def test_a_side_request_gets_text() -> None:
    assert _reply((), 0) == Said(SIDE)


def test_an_agent_without_tools_gets_the_text_for_its_task_alone() -> None:
    assert _reply((), 0, text="t", mark="the task", last="the task") == Said("t")
    assert _reply((), 0, text="t", mark="the task", last="name the commit of the task") == Said(SIDE)


def test_a_request_for_a_shape_gets_one() -> None:
    shape = {"properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "INTEGER"}}}
    said = Script(STEPS).reply(Asked((), 0, "", "m", False, shape))
    assert isinstance(said, Said)
    assert json.loads(said.text) == {"a": "x", "b": 0}
