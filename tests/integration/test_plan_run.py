"""`interlock run --plan` from the file to the verifier: what is on the plan happens, and nothing else."""

from __future__ import annotations

import json
import os

import pytest
from tests.integration.conftest import Cli, in_one_standing

pytestmark = in_one_standing

PLAN = """
interlock: plan/1
prompt: write a note
mode: %s
steps:
  - {tool: file.create, parameters: {path: "workspace:note.md"}}
"""
SCRIPT = "echo hi > note.md; echo more > other.md"


def _planned(cli: Cli, mode: str = "exact") -> str:
    source = os.path.join(cli.workspace, "..", "plan.yaml")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PLAN % mode)
    made = os.path.join(cli.workspace, "..", "plan.json")
    done = cli("plan", "--from", source, "--out", made)
    assert done.returncode == 0, done.stderr
    return os.path.realpath(made)


def _files(cli: Cli) -> set[str]:
    return {name for name in os.listdir(cli.workspace) if name.endswith(".md")}


def test_what_is_not_on_the_plan_is_refused_and_the_verifier_names_the_signer(cli: Cli) -> None:
    before = _files(cli)
    done = cli("run", "--plan", _planned(cli), "--json", "--", "sh", "-c", SCRIPT)
    told = json.loads(done.stderr)
    assert _files(cli) - before == {"note.md"}
    assert [(one["object"], one["type"]) for one in told["refused"]] == [("workspace:other.md", "trajectory")]
    checked = cli("verify", "last", "--replay")
    assert checked.returncode == 0, checked.stdout
    assert b"signed by ed25519:" in checked.stdout
    shown = cli("show", "last")
    assert b"write a note" in shown.stdout


def test_what_a_run_did_becomes_a_plan_that_a_person_signs(cli: Cli) -> None:
    assert cli("run", "--plan", _planned(cli), "--", "sh", "-c", "echo hi > note.md").returncode == 0
    made = cli("plan", "--recorded", "last", "--out", "again.json")
    assert made.returncode == 0, made.stderr
    assert b"look at each before you sign" in made.stderr
    assert b"not signed yet" in made.stderr
    assert b"planned by recorded:" in made.stdout
    assert b'path: "workspace:note.md"' in made.stdout
    assert cli("run", "--plan", "again.json", "--", "true").returncode == 2
    assert cli("plan", "sign", "again.json").returncode == 0
    os.unlink(os.path.join(cli.workspace, "note.md"))
    assert cli("run", "--plan", "again.json", "--", "sh", "-c", "echo hi > note.md").returncode == 0
    assert "note.md" in _files(cli)
    nothing = cli("run", "--", "true")
    assert nothing.returncode == 0
    empty = cli("plan", "--recorded", "last")
    assert empty.returncode == 2
    assert b"did nothing that a plan can name" in empty.stderr


def test_a_plan_of_another_task_is_not_followed(cli: Cli) -> None:
    done = cli("run", "--plan", _planned(cli), "--task", "something else", "--", "sh", "-c", SCRIPT)
    assert done.returncode == 2
    assert b"another one than the plan was made for" in done.stderr
    done = cli("run", "--plan-key", "ed25519:00", "--", "true")
    assert done.returncode == 2
    assert b"--plan-key without a plan" in done.stderr


@pytest.mark.parametrize("kept", ["", '{"payload": "e30=", "payloadType": "x", "signatures": []}'])
def test_a_file_that_is_no_plan_starts_nothing(cli: Cli, kept: str) -> None:
    path = os.path.join(cli.workspace, "..", "bad.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(kept)
    before = _files(cli)
    done = cli("run", "--plan", path, "--", "sh", "-c", SCRIPT)
    assert done.returncode == 2, done.stderr
    assert b"next: " in done.stderr
    assert _files(cli) == before
