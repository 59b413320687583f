"""Effects tied to the calls that announced them, in real runs: what a call hides, touches beside, or never announced."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_lens_run import AGENT, Model, models, run_agent

__all__ = ["models"]

_DEFERS = "lens: {unannounced: defer, differs: defer, covered: defer}\n"
# The edit tool touches another file too, and when all is done the agent acts on its own.
_BAD_AGENT = AGENT.replace(
    'open(call["input"]["file_path"], "w").write(call["input"]["content"])',
    'open(call["input"]["file_path"], "w").write(call["input"]["content"]); open("beside.txt", "w").write("x")',
).replace(
    'print("done")',
    """
open("late.txt", "w").write("x")
try:
    urllib.request.urlopen(base + "/late")
except urllib.error.HTTPError as refused:
    print("refused", json.loads(refused.read())["violated_rule"])
print("done")
""",
)
_HIDDEN = base64.b64encode(b"echo hidden > hidden.txt").decode()
_TURNS: list[list[tuple[str, dict[str, Any]]] | None] = [
    [("Write", {"file_path": "notes.txt", "content": "hello"})],
    [("Bash", {"command": f'bash -c "$(echo {_HIDDEN} | base64 -d)"'})],
    [("Bash", {"command": "bash -c 'echo told > told.txt'"})],
]


def _effects(cli: Cli) -> dict[str, dict[str, Any]]:
    return {item["object"].removeprefix("workspace:"): item for item in cli.story()["effects"]}


def test_what_no_call_tells_of_is_shown_and_deferred_where_the_policy_wants_it(
    cli: Cli, models: list[Model]
) -> None:
    model = Model(_TURNS)
    models.append(model)
    done = run_agent(cli, model, more=_DEFERS, agent=_BAD_AGENT)
    assert b"refused lens.unannounced" in done.stdout, (done.stdout, done.stderr)
    found = _effects(cli)
    late = f"http://127.0.0.1:{model.port}/late"
    relations = {name: (one["action"] or {}).get("relation") for name, one in found.items()}
    reasons = {name: one["reason"] for name, one in found.items()}
    decisions = {name: one["decision"] for name, one in found.items() if one["operation"] != "net.model"}
    assert decisions == {
        "notes.txt": "release",
        "told.txt": "release",
        "beside.txt": "defer",
        "hidden.txt": "defer",
        "late.txt": "defer",
        late: "defer",
    }
    assert relations["notes.txt"] == relations["told.txt"] == "announced"
    assert relations[late] == "unannounced"
    assert reasons[late] == "no call of the model's announced it: none was under way"
    assert relations["hidden.txt"] == "covered"
    assert reasons["hidden.txt"] == "the model's call `Bash` (toolu_2_0) does not name it"
    if cli.uid == 0:
        assert relations["beside.txt"] == "differs"
        assert (
            reasons["beside.txt"] == "the model's call `Write` (toolu_1_0) says that it does something else"
        )
        assert relations["late.txt"] == "unannounced"
    else:  # without file events nobody saw when a file was written, and a command may have written any
        assert relations["beside.txt"] == relations["late.txt"] == "covered"
    assert {name for name in found if cli.has(name)} == {"notes.txt", "told.txt"}
    why = cli("why", "last", "hidden.txt").stdout.decode()
    assert "a call of the model's that may do anything was under way, and does not name it (toolu_2_0" in why
    assert "lens: {covered: show}" in why
    said = json.loads(cli("why", "last", "hidden.txt", "--json").stdout)
    assert (said["action"]["relation"], said["action"]["call"]) == ("covered", "toolu_2_0")
    shown = cli("show", "last").stdout.decode()
    assert "within Bash(bash -c" in shown
    assert "unannounced" in shown
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
@pytest.mark.parametrize("key", ["unannounced", "differs", "covered"])
def test_each_key_alone_defers_its_own_relation_and_strict_refuses_it(
    cli: Cli, models: list[Model], key: str
) -> None:
    model = Model(_TURNS)
    models.append(model)
    done = run_agent(cli, model, more=f"lens: {{{key}: defer}}\n", agent=_BAD_AGENT)
    found = {name: one for name, one in _effects(cli).items() if one["operation"] != "net.model"}
    late = f"http://127.0.0.1:{model.port}/late"
    related: dict[str, set[str]] = {
        "unannounced": {late, "late.txt"},
        "differs": {"beside.txt"},
        "covered": {"hidden.txt"},
    }
    if cli.uid:  # without file events nobody saw when a file was written, and a command may have written any
        related = {
            "unannounced": {late},
            "differs": set(),
            "covered": {"hidden.txt", "beside.txt", "late.txt"},
        }
    deferred = {name for name, one in found.items() if one["decision"] == "defer"}
    assert deferred == related[key]
    assert all((found[name]["action"] or {}).get("relation") == key for name in deferred)
    assert {one["decision"] for name, one in found.items() if name not in deferred} == {"release"}
    # nobody is there who could release it
    assert all(found[name]["fate"] in ("refused", "held", "dropped") for name in deferred)
    assert {name for name in found if cli.has(name)} == {
        "notes.txt",
        "told.txt",
        "beside.txt",
        "hidden.txt",
        "late.txt",
    } - deferred
    assert (f"refused lens.{key}".encode() in done.stdout) == (late in deferred)
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_a_mismatch_is_only_shown_by_default(cli: Cli, models: list[Model]) -> None:
    model = Model(_TURNS)
    models.append(model)
    run_agent(cli, model, agent=_BAD_AGENT)
    found = _effects(cli)
    assert {one["decision"] for one in found.values()} == {"release"}
    assert found["late.txt"]["action"]["relation"] == ("unannounced" if cli.uid == 0 else "covered")


@in_one_standing
def test_a_benign_run_has_no_false_alarm(cli: Cli, models: list[Model]) -> None:
    far = Model([])
    models.append(far)
    model = Model(
        [
            [("Read", {"file_path": "agent.py"}), ("Bash", {"command": "ls -la"})],
            [("Write", {"file_path": f"{cli.workspace}/notes.txt", "content": "hello"})],
            [
                ("Write", {"file_path": "one.txt", "content": "1"}),
                ("Write", {"file_path": "two.txt", "content": "2"}),
            ],
            [("Bash", {"command": "mkdir -p src/deep && cd src && echo x > deep/a.py && mv deep/a.py b.py"})],
            [("Bash", {"command": "bash -c 'echo y > c.txt; rm one.txt'"})],
            [("Bash", {"command": f"curl -s -X POST -d hello http://127.0.0.1:{far.port}/notes"})],
        ]
    )
    models.append(model)
    agent = AGENT.replace("else:", 'elif call["name"] == "Bash":')
    done = run_agent(cli, model, hosts=far.port, more=_DEFERS, agent=agent)
    assert done.returncode == 0, done.stderr
    found = _effects(cli)
    alarms = {name: one["reason"] for name, one in found.items() if one["decision"] != "release"}
    assert alarms == {}
    assert {(one["action"] or {}).get("relation", "") for one in found.values()} == {"announced", ""}
    assert cli.has("src/b.py")
