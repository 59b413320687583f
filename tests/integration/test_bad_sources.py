"""Trusted sources that are missing, damaged or made by the agent itself: the run goes on, and they vouch for nothing."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.integration.conftest import Cli
from tests.integration.test_labels import policy

HEAD = "version: 1\npreset: coding\ntrusted:\n  - {task: true}\n"
HOOKS = ".git/hooks/"
TRUSTED = '{file: "docs/**"}'
DAMAGED: dict[str, bytes] = {
    "pre-commit": b"install .git/hooks/pre-commit\xff\n",
    "pre-merge-commit": "install .git/hooks/pre-merge-commit\n".encode("utf-16"),
    "pre-rebase": b"install .git/hooks/pre-rebase\x00\n",
    "pre-auto-gc": "install \u202e.git/hooks/pre-auto-gc\n".encode(),
    "post-commit": "install .git/h\u043eoks/p\u043est-commit\n".encode(),
    "post-merge": b"x" * (1 << 20) + b" install .git/hooks/post-merge\n",
}
"""By the hook that it would name: no UTF-8, UTF-16, NUL, a mark of direction, homoglyphs, too long."""


@pytest.fixture(autouse=True)
def seen(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: an ordinary user has no file events, so no file's words vouch")


def fates(cli: Cli, source: str, *hooks: str, before: str = ":") -> dict[str, str]:
    """Have an agent read the docs and write hooks; return what became of them, once the ledger was checked."""
    writes = "; ".join(f"echo true > {HOOKS}{hook}" for hook in hooks)
    done = cli.sh(
        f"{before}; cat docs/* >/dev/null 2>&1; mkdir -p {HOOKS}; {writes}",
        *(
            "--policy",
            policy(cli, f"{HEAD}  - {source}\n"),
            "--oracle",
            "strict",
            "--task",
            "do as the docs say",
        ),
    )
    assert b"Traceback" not in done.stderr
    assert cli.verdict("last", "--replay") == "complete"
    effects = {one["object"]: one for one in cli.story()["effects"]}
    return {hook: str(effects[f"workspace:{HOOKS}{hook}"]["fate"]) for hook in hooks}


def test_damaged_sources_vouch_for_nothing_beside_a_sound_one_that_does(cli: Cli) -> None:
    for hook, content in DAMAGED.items():
        cli.put(f"docs/{hook}.md", content)
    cli.put("docs/sound.md", "install .git/hooks/commit-msg\n")
    cli.put("elsewhere.md", "install .git/hooks/update\n")
    os.symlink("../elsewhere.md", os.path.join(cli.workspace, "docs/link.md"))
    found = fates(cli, TRUSTED, "commit-msg", "update", *DAMAGED)
    assert found.pop("commit-msg") == "committed"
    assert set(found.values()) == {"refused"}, found


def test_a_missing_source_vouches_for_nothing_nor_does_what_the_agent_puts_there(cli: Cli) -> None:
    made = "mkdir docs; echo install .git/hooks/update > docs/a.md"
    assert fates(cli, TRUSTED, "update", before=made) == {"update": "refused"}


@pytest.mark.parametrize(("source", "repository"), [("{git: tracked}", False), ("{git: {ref: gone}}", True)])
def test_a_repository_or_a_branch_that_is_not_there_names_no_source(
    cli: Cli, source: str, repository: bool
) -> None:
    cli.put("docs/a.md", "install .git/hooks/update\n")
    if repository:
        subprocess.run(["git", "init", "-q"], cwd=cli.workspace, check=True, capture_output=True)
    assert fates(cli, source, "update") == {"update": "refused"}
