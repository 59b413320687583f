"""Runs that a stop condition of their plan ends: what they did is held, and their record says why."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.guarded import Answers, quick_folder
from tests.fakes.signed_plans import KEY, manifest, signed, step
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_lens_run import AGENT, Model

from interlock import Monitor, Refused
from interlock.evidence.envelopes import key_name
from interlock.mcp.opening import Settings, open_session
from interlock.model.errors import InputError
from interlock.model.manifest import Mode, StopConditions
from interlock.runtime.story import tell
from interlock.sdk import Scope, Stopped
from interlock.verify import verify_path

KEYS = [key_name(KEY.public_bytes)]
PLAN = """
interlock: plan/1
prompt: write notes
mode: vouch
stop: %s
steps:
  - {tool: file.create, parameters: {path: "workspace:note.md"}}
"""


def planned(cli: Cli, stop: str) -> str:
    source, made = (os.path.join(cli.base, name) for name in ("plan.yaml", "plan.json"))
    Path(source).write_text(PLAN % stop, encoding="utf-8")
    done = cli("plan", "--from", source, "--out", made)
    assert done.returncode == 0, done.stderr
    return made


def run(cli: Cli, stop: str, *command: str) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    done = cli("run", "--plan", planned(cli, stop), "--json", "--", *command)
    return done, json.loads(done.stderr)


def interruptions(cli: Cli) -> list[str]:
    told: list[str] = json.loads(cli("show", "last", "--json").stdout)["interruptions"]
    return told


@in_one_standing
@pytest.mark.parametrize(
    ("stop", "script", "words"),
    [
        ("{wall: 700ms}", "echo hi > note.md; exec sleep 60", "stop:wall: it has run for"),
        # It may end by itself, too late.
        ("{wall: 1ms}", "true", "stop:wall: it has run for"),
        (
            "{memory: 80MiB}",
            "echo hi > note.md; exec python3 -c 'import time; x = bytearray(120 << 20); time.sleep(60)'",
            "stop:memory: its processes hold",
        ),
    ],
)
def test_a_command_that_uses_up_time_or_memory_is_ended_and_held(
    cli: Cli, stop: str, script: str, words: str
) -> None:
    began = time.monotonic()
    done, told = run(cli, stop, "sh", "-c", script)
    assert time.monotonic() - began < 30
    assert done.returncode == 3, done.stderr
    assert told["interruption"] == words.partition(": ")[0]
    assert not os.path.exists(os.path.join(cli.workspace, "note.md"))
    assert [line.startswith(words) for line in interruptions(cli)] == [True]
    assert b"stops after: at most" in cli("show", "last").stdout
    assert cli("apply", "last").returncode == 0
    assert os.path.exists(os.path.join(cli.workspace, "note.md")) is ("note.md" in script)
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
@pytest.mark.parametrize("script", ["kill -INT $$", "exit 130"])
def test_what_ctrl_c_ended_is_held_where_it_follows_a_plan(cli: Cli, script: str) -> None:
    script = f"echo hi > note.md; {script}"
    done, told = run(cli, "{wall: 1h}", "sh", "-c", script)
    assert (done.returncode, told["interruption"]) == (3, "stop:external")
    assert interruptions(cli) == ["stop:external: it was stopped from outside: Ctrl-C"]
    assert not os.path.exists(os.path.join(cli.workspace, "note.md"))
    assert cli("discard", "last").returncode == 0
    assert cli("run", "--", "sh", "-c", script).returncode == 130
    assert os.path.exists(os.path.join(cli.workspace, "note.md")), "as at any end"


@in_one_standing
def test_a_command_within_its_bounds_is_not_touched(cli: Cli) -> None:
    done, told = run(cli, "{wall: 60s, memory: 4GiB, turns: 9, failures: 9}", "sh", "-c", "echo hi > note.md")
    assert (done.returncode, told["interruption"]) == (0, "")
    assert os.path.exists(os.path.join(cli.workspace, "note.md"))
    assert interruptions(cli) == []


def model_policy(cli: Cli, port: int) -> str:
    path = os.path.join(cli.base, "policy.yaml")
    Path(path).write_text(
        f"version: 1\npreset: coding\nenvironment: {{pass: [PATH, HOME]}}\nnetwork:\n"
        f'  models: ["127.0.0.1:{port}"]\n  hosts: [{{host: "127.0.0.1", port: {port}, methods: ["*"]}}]\n'
        f'  publish:\n    - {{port: {port}, to: "127.0.0.1:{port}"}}\n',
        encoding="utf-8",
    )
    return path


@in_one_standing
@pytest.mark.parametrize(
    ("stop", "words", "asked"),
    [
        ("{turns: 2}", "stop:turns: the model has had the 2 turns that it may have", 2),
        ("{tokens: 1000}", "an answer of the model says nothing of its tokens", 1),
    ],
)
def test_the_agents_model_is_asked_no_more_than_the_plan_lets_it(
    cli: Cli, stop: str, words: str, asked: int
) -> None:
    writing = [[("Write", {"file_path": f"n{n}.txt", "content": "hi"})] for n in range(9)]
    model = Model([*writing])
    try:
        policy = model_policy(cli, model.port)
        cli.put("agent.py", AGENT)
        cli.own()
        address = f"http://127.0.0.1:{model.port}"
        plan = planned(cli, stop)
        done = cli("run", "--policy", policy, "--plan", plan, "--", "/usr/bin/python3", "agent.py", address)
        assert done.returncode == 3, done.stderr
        assert model.asked == asked
        (line,) = interruptions(cli)
        assert words in line
        assert not os.path.exists(os.path.join(cli.workspace, "n0.txt")), "it waits for the principal"
        assert cli("discard", "last").returncode == 0
        assert cli.verdict("last", "--replay") == "complete"
    finally:
        model.close()


@pytest.fixture
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


class Program:
    """A program of two agents that look and keep. Takes: `stop`, the conditions of its plan."""

    def __init__(self, **stop: Any) -> None:
        steps = {name: (step(f"{name}1", "look", {}),) for name in ("left", "right")}
        plan = manifest("look", mode=Mode.VOUCH, branches={"": (), **steps}, stop=StopConditions(**stop))
        self.monitor = Monitor(
            "version: 1\npreset: none\ntrusted: [{task: true}]\ncedar: |\n  permit(principal, action, resource);\n",
            plan=signed(plan),
            plan_keys=KEYS,
            oracle=Answers(),
        )
        self.kept: list[str] = []
        self.look: Any = self.monitor.guard(effect="read", name="look")(self._look)
        self.keep: Any = self.monitor.guard(effect="write", parks=True, name="keep")(self._keep)

    def _look(self) -> str:
        return "seen"

    def _keep(self, note: str) -> str:
        self.kept.append(note)
        return "kept"

    def said(self, scope: Scope) -> list[str]:
        report = verify_path(os.path.join(scope.path, "ledger"), replay=True)
        assert report.verdict == "complete", report.detail
        return tell(scope.path).interruptions


@pytest.mark.usefixtures("_state")
def test_a_programs_turns_are_bounded_branch_by_branch() -> None:
    program = Program(turns=2)
    with program.monitor.scope() as scope:
        with scope.branch("left"):
            scope.turn("gpt-4", prompt_tokens=9)
            scope.turn("gpt-4", prompt_tokens=9)
            program.look()
            with pytest.raises(Stopped, match="the branch `left` has had the 2 turns"):
                scope.turn("gpt-4", prompt_tokens=9)
            with pytest.raises(Refused) as caught:
                program.look()
            assert (caught.value.type, caught.value.violated_rule) == ("stop", "stop:turns")
        with scope.branch("right"):
            scope.turn("gpt-4", prompt_tokens=9)
            assert program.look() == "seen"
    assert program.said(scope) == [
        "stop:turns: the model of the branch `left` has had the 2 turns that it may have"
    ]


@pytest.mark.usefixtures("_state")
def test_a_call_that_waits_is_not_made_once_its_branch_is_stopped() -> None:
    program = Program()
    with program.monitor.scope() as scope:
        with scope.branch("left"):
            program.keep("left's")
        with scope.branch("right"):
            program.keep("right's")
        scope.stop("left", why="ann saw it go wrong")
    assert program.kept == ["right's"]
    assert program.said(scope) == [
        "stop:external: it was stopped from outside of the branch `left`: ann saw it go wrong"
    ]


@pytest.mark.usefixtures("_state")
@pytest.mark.parametrize("stop", [{"wall_ms": 80}, {"memory_bytes": 1 << 20}])
def test_time_and_memory_of_a_program_are_looked_at_before_each_call(stop: dict[str, Any]) -> None:
    program = Program(**stop)
    with program.monitor.scope() as scope:
        if "wall_ms" in stop:
            program.keep("in time")
        time.sleep(0.1)
        with pytest.raises(Refused) as caught:
            program.look()
        assert caught.value.type == "stop"
    assert program.kept == [], "what waited when time was over is not made"
    assert len(program.said(scope)) == 1


@pytest.mark.usefixtures("_state")
def test_what_cannot_be_counted_before_an_mcp_server_is_refused_at_its_start(tmp_path: Path) -> None:
    for stop in (StopConditions(turns=1), StopConditions(memory_bytes=9)):
        path = tmp_path / "plan.json"
        path.write_text(signed(manifest("look", step("a", "look", {}), stop=stop)), encoding="utf-8")
        settings = Settings(server="mail", note=print, plan=str(path), plan_keys=tuple(KEYS))
        with pytest.raises(InputError, match="of which nothing is seen before an MCP server"):
            open_session(settings)
