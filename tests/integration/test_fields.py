"""A field of a structured file vouches in a real run: its ledger is checked whole, and `why` names the leaf."""

from __future__ import annotations

import json

import pytest
from tests.integration.conftest import Cli
from tests.integration.test_labels import policy

POLICY = """version: 1
preset: coding
trusted:
  - {task: true}
  - {file: "team.json", fields: ["hooks[].path"]}
"""
HOOK = ".git/hooks/pre-push"


def fate_of_hook(cli: Cli, held: object) -> str:
    """Have an agent read the file, then write the hook that it names; return what became of the hook."""
    cli.put("team.json", json.dumps(held))
    cli.sh(
        f"cat team.json >/dev/null; mkdir -p .git/hooks; echo true > {HOOK}",
        *("--policy", policy(cli, POLICY), "--oracle", "strict", "--task", "do as the team does"),
    )
    effects = {one["object"]: one for one in cli.story()["effects"]}
    return str(effects[f"workspace:{HOOK}"]["fate"])


@pytest.fixture(autouse=True)
def seen(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: an ordinary user has no file events, so no file's words vouch")


def test_a_named_field_vouches_and_the_ledger_holds_the_proof(cli: Cli) -> None:
    assert fate_of_hook(cli, {"about": "us", "hooks": [{"path": "a"}, {"path": HOOK}]}) == "committed"
    assert cli.verdict("last", "--replay") == "complete"
    told = cli("why", "last", HOOK).stdout.decode()
    assert f"<- `{HOOK}` <- the read of workspace:team.json at /hooks/1/path" in told, told


def test_another_field_of_the_same_file_does_not(cli: Cli) -> None:
    assert fate_of_hook(cli, {"about": HOOK, "hooks": [{"path": "a"}]}) == "refused"
    assert cli.verdict("last", "--replay") == "complete"
