"""Real agents that speak ACP, unmodified, behind the boundary (`scripts/need_agents gemini opencode` installs them)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PLACE = os.environ.get("INTERLOCK_AGENTS", "/opt/interlock-agents")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="not run: a network of its own needs root"),
]


@pytest.mark.parametrize("option", ["refuse", "release"])
@pytest.mark.parametrize("agent", ["gemini", "opencode"])
def test_an_agents_turn_is_reviewed_in_the_editor(agent: str, option: str) -> None:
    if not os.path.isdir(os.path.join(PLACE, agent)):
        pytest.skip(f"not run: {agent} is not installed: scripts/need_agents {agent}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.editor", agent, "--place", PLACE, "--option", option],
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout.splitlines()[-1])
    assert (came["stop"], came["notes"], came["verdict"]) == ("end_turn", "hello\n", "complete")
    assert came["hook"] is (option == "release")
    assert any("pre-commit" in one for one in came["asked"]), came
    assert came["of_the_editor"] == []
