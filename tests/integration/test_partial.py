"""A change released in part, and one merged with the host's own edit, through the command line."""

import glob
import subprocess
import time

from tests.integration.conftest import Cli, answers

HOOK = "#!/bin/sh\n" + "".join(f"echo {number}\n" for number in range(30))
PLACE = ".githooks/pre-commit"


def test_hunks_that_were_answered_ahead_reach_the_host_alone(cli: Cli) -> None:
    cli.put(PLACE, HOOK)
    script = cli.put("agent.sh", f"sed -i 's/echo 3$/echo three/; s/echo 25$/echo last/' {PLACE}\n")
    oracle = answers(cli, "- {match: '**', answer: release, hunks: [2]}\n")
    done = cli("run", "--oracle", oracle, "--task", "go", "--", "sh", script)
    assert done.returncode == 6, done.stderr
    assert cli.get(PLACE) == HOOK.replace("echo 25\n", "echo last\n")
    assert cli("verify", "last").returncode == 0


def wait_for_base(cli: Cli) -> None:
    """Wait until what the agent began from is kept; as root alone, who sees the file events."""
    end = time.monotonic() + 10
    while cli.uid == 0 and not glob.glob(f"{cli.state}/**/base/*", recursive=True):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_host_edit_is_merged_where_that_was_said(cli: Cli) -> None:
    host = HOOK.replace("echo 20\n", "host\n")
    cli.put(PLACE, HOOK)
    script = cli.put("agent.sh", f"sed -i 's/echo 3$/echo three/' {PLACE}; echo ready; read line\n")
    oracle = answers(cli, "- {match: '**', answer: release}\n- {match: '**', answer: merge}\n")
    with subprocess.Popen(
        cli.words("run", "--oracle", oracle, "--task", "go", "--", "sh", script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        wait_for_base(cli)
        cli.put(PLACE, host)
        _, said = running.communicate("go on\n", timeout=60)
    # an ordinary user's agent is not watched, so what it began from is not kept
    merged = cli.uid == 0
    assert cli.get(PLACE) == (host.replace("echo 3\n", "echo three\n") if merged else host), said
    assert running.returncode == (0 if merged else 6), said
    assert cli("verify", "last").returncode == 0
