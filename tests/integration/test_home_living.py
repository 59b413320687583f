"""HOME beside the workspace, committed while the command lives, and a monitor that is killed in the middle of it."""

from __future__ import annotations

import glob
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from tests.fakes.failing_calls import CHANGING, CREATING, Ended, run_failing
from tests.fakes.forked_cli import a_cli, become
from tests.integration.conftest import Cli
from tests.integration.test_living import living, said

TASK = ("--task", "add an alias to ~/.bashrc and note it in a.txt")
STEPS = ("renameat2",)
"""The call of every visible step of a merge."""


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def cli(request: pytest.FixtureRequest) -> Iterator[Cli]:
    with a_cli(user=request.param == "user") as made:
        rc(made, "old\n")
        made.put("a.txt", "old\n")
        yield made


def rc(cli: Cli, text: str | None = None) -> str:
    path = os.path.join(cli.home, ".bashrc")
    if text is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        cli.own()
    with open(path, encoding="utf-8") as file:
        return file.read()


def both(cli: Cli) -> tuple[str, str]:
    return rc(cli), cli.get("a.txt")


STEP = "echo one >> ~/.bashrc; echo one >> a.txt; echo junk > ~/junk; echo ready; sleep {seconds}\n"


def test_each_living_commit_takes_home_and_workspace_together(cli: Cli) -> None:
    script = STEP.format(seconds=2) + "cat ~/.bashrc ~/junk; echo two >> ~/.bashrc; echo two >> a.txt\n"
    with living(cli, script, *TASK) as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("apply", "last", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["committed"] == 2
        assert both(cli) == ("old\none\n", "old\none\n")
        # What is not kept stays in the command's view, and nowhere else.
        assert list(lines) == ["old", "one", "junk"]
        assert running.wait(30) == 0
    assert both(cli) == ("old\none\ntwo\n", "old\none\ntwo\n")
    assert "junk" not in os.listdir(cli.home)
    assert cli.story()["thrown"] == ["junk"]
    assert cli.verdict("last", "--replay") == "complete"
    assert cli("undo", "last").returncode == 0
    assert both(cli) == ("old\n", "old\n")


def test_what_the_user_wrote_in_home_meanwhile_is_never_overwritten(cli: Cli) -> None:
    with living(cli, STEP.format(seconds=2), *TASK, "--on-conflict", "refuse") as running:
        assert next(said(running)) == "ready"
        rc(cli, "mine\n")
        done = cli("apply", "last", "--json")
        assert done.returncode != 0
        assert both(cli) == ("mine\n", "old\n")
        running.wait(30)
    assert both(cli) == ("mine\n", "old\n")


def killed_in_a_living_commit(cli: Cli, at: int, calls: Iterable[str] = STEPS) -> Ended:
    """Kill the monitor at its step number `at` of a commit that is asked for from another terminal."""
    cli.put("steps.sh", STEP.format(seconds=20))

    def ask() -> None:
        for _ in range(400):
            time.sleep(0.02)
            staged = glob.glob(f"{cli.state}/runs/*/stage/**/junk", recursive=True)
            if staged and os.path.getsize(staged[0]):
                time.sleep(0.1)
                cli("apply", "last")
                cli("stop", "last")
                return

    other = threading.Thread(target=ask)
    try:
        other.start()
        return run_failing(lambda: become(cli, "run", *TASK, "--", "sh", "steps.sh"), calls=calls, at=at)
    finally:
        other.join()


@pytest.mark.parametrize("at", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_monitor_killed_in_a_living_commit_leaves_all_of_it(cli: Cli, at: int) -> None:
    ended = killed_in_a_living_commit(cli, at)
    assert ended.killed, ended
    between = both(cli)
    (told,) = json.loads(cli("recover", "--json").stdout)
    assert (told["ending"], told["message"]) == (
        "finished",
        "what was released is merged; the rest is staged",
    )
    assert between != both(cli) == ("old\none\n", "old\none\n")
    assert "junk" not in os.listdir(cli.home)
    assert json.loads(cli("recover", "--json").stdout)[0]["ending"] == "held-work"
    assert cli("apply", "last").returncode == 0
    assert both(cli) == ("old\none\n", "old\none\n")
    assert cli.verdict("last", "--replay") == "complete"
    assert cli("undo", "last").returncode == 0
    assert both(cli) == ("old\n", "old\n")


CALLS = CHANGING | {CREATING}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_a_monitor_killed_anywhere_after_the_question_leaves_all_of_it_or_nothing(
    cli: Cli, part: int
) -> None:
    """Killed at one of its last changing calls: those of the commit, and of what comes after it."""
    counted = killed_in_a_living_commit(cli, 0, calls=CALLS)
    rc(cli, "old\n")
    cli.put("a.txt", "old\n")
    ended = killed_in_a_living_commit(cli, counted.calls * (part + 1) // 21, calls=CALLS)
    told = json.loads(cli("recover", "--json").stdout)
    assert both(cli) in (("old\n", "old\n"), ("old\none\n", "old\none\n")), (ended, told)
    if told and told[0]["choices"] and "apply" in told[0]["choices"][0]:
        assert cli("apply", "last").returncode == 0, (ended, told)
        assert both(cli) == ("old\none\n", "old\none\n"), (ended, told)
        assert cli.verdict("last", "--replay") == "complete"
    assert "junk" not in os.listdir(cli.home)
