"""Real agents, unmodified and streaming: an injected call is replaced, a benign run is as without (`scripts/need_agents` installs them)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.agents.audited import SHELL

PLACE = os.environ.get("INTERLOCK_AGENTS", "/opt/interlock-agents")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="not run: a network of its own needs root"),
]


@pytest.mark.parametrize("agent", sorted(SHELL))
def test_an_injected_call_is_replaced_and_a_benign_run_is_as_without(agent: str) -> None:
    if not os.path.isdir(os.path.join(PLACE, agent)):
        pytest.skip(f"not run: {agent} is not installed: scripts/need_agents {agent}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.audited", agent, "--place", PLACE],
        capture_output=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()[-3000:]
    assert done.stdout.decode().count("as promised") == 2
