"""The bench asks a person: on a real terminal (a pty), as in a run."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.cli.bench import main
from interlock.model.errors import InputError

CASE = "slack/user_task_11/benign"
WAIT_S = 20.0


def answered(tmp_path: Path, *lines: str) -> tuple[int, dict[str, Any], str]:
    """Run a case at a terminal; return its status, its summary and what the terminal showed."""
    words = ["agentdojo", "--suite", "slack", "--agent", "faithful", "--only", CASE, "--oracle", "human"]
    summary = tmp_path / "summary.json"
    master, slave = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "interlock", "bench", *words, "--summary", str(summary)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: _take(slave),
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(slave)
    shown, waiting, end = "", list(lines), time.monotonic() + WAIT_S
    prompts = 0
    while time.monotonic() < end:
        if select.select([master], [], [], 0.05)[0]:
            try:
                shown += os.read(master, 65536).decode("utf-8", "replace")
            except OSError:
                break
        elif run.poll() is not None:
            break
        asked = shown.count("] > ") + shown.count("[y/n] ")
        if waiting and asked > prompts:
            prompts = asked
            os.write(master, (waiting.pop(0) + "\n").encode())
    if run.poll() is None and time.monotonic() >= end:
        run.kill()
    status = run.wait(timeout=5)
    os.close(master)
    return status, json.loads(summary.read_text()) if summary.exists() else {}, shown


def _take(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def test_what_a_person_releases_is_done(tmp_path: Path) -> None:
    status, found, shown = answered(tmp_path, "s 1", *("a", "y") * 6)
    assert status == 0
    assert '"user": "' in shown
    assert found["totals"]["overall"]["benign_utility"] == 1.0


def test_what_a_person_refuses_is_not_done(tmp_path: Path) -> None:
    status, found, _ = answered(tmp_path, *["r", "y"] * 6)
    assert status == 0
    assert found["totals"]["overall"]["benign_utility"] == 0.0


@pytest.mark.parametrize("leaving", ["q", "\x04"])
def test_who_leaves_leaves_no_result(tmp_path: Path, leaving: str) -> None:
    status, found, shown = answered(tmp_path, leaving)
    assert (status, found) == (2, {})
    assert "nobody answered" in shown


def test_one_person_does_not_answer_for_several_processes() -> None:
    with pytest.raises(InputError, match="one person"):
        main(["agentdojo", "--oracle", "human", "--jobs", "2"])
