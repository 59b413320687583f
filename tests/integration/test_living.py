"""A scope resolved from another terminal while the command lives: committed, reviewed, discarded; and conflicts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.conftest import Cli


@contextmanager
def living(cli: Cli, script: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run of a shell script that goes on while the test looks."""
    cli.put("steps.sh", script)
    with subprocess.Popen(
        cli.words("run", *more, "--", "sh", "steps.sh"), cwd=cli.workspace, env=cli.environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **cli.identity(),
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def edit(cli: Cli, path: str, text: str) -> None:
    """Edit one host file, and touch no other."""
    with open(os.path.join(cli.workspace, path), "w", encoding="utf-8") as file:
        file.write(text)


def said(running: subprocess.Popen[bytes]) -> Iterator[str]:
    assert running.stdout is not None
    for line in running.stdout:
        yield line.decode().strip()


WAIT = "echo ready; sleep 3\n"


def test_a_living_scope_is_committed_and_the_next_one_begins_clean(cli: Cli) -> None:
    cli.put("old.txt", "old\n")
    with living(
        cli, f"echo new > new.txt; echo changed > old.txt; {WAIT} echo later > later.txt\n"
    ) as running:
        assert next(said(running)) == "ready"
        done = cli("apply", "last", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["committed"] == 2
        assert (cli.get("new.txt"), cli.get("old.txt")) == ("new\n", "changed\n")
        assert not os.path.exists(os.path.join(cli.workspace, "later.txt"))
        running.wait(30)
    assert cli.get("later.txt") == "later\n"
    assert [one["fate"] for one in cli.story()["effects"]] == ["committed"] * 3
    assert cli.verdict("last", "--replay") == "complete"


def test_what_is_refused_in_a_living_scope_goes_from_the_commands_view(cli: Cli) -> None:
    os.makedirs(os.path.join(cli.workspace, ".git/hooks"))
    cli.own()
    script = f"echo x > .git/hooks/pre-commit; echo y > y.txt; {WAIT} ls -A .git/hooks; cat y.txt\n"
    with living(cli, script, "--oracle", "strict") as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("apply", "last", "--json")
        told = json.loads(done.stdout)
        # who says apply releases what is deferred
        assert (done.returncode, told["committed"]) == (0, 2), done.stderr
        assert list(lines) == ["pre-commit", "y"]
        running.wait(30)
    assert cli.verdict("last", "--replay") == "complete"


def test_a_discard_gives_the_living_command_the_hosts_files_back(cli: Cli) -> None:
    cli.put("old.txt", "old\n")
    script = f"exec 3>open.txt; echo kept >&3; echo new > new.txt; echo bad > old.txt; {WAIT} cat old.txt; ls; echo on >&3\n"
    with living(cli, script) as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("discard", "last")
        assert done.returncode == 0, done.stderr
        assert list(lines) == ["old", "old.txt", "steps.sh"]
        running.wait(30)
    assert cli.get("old.txt") == "old\n"
    assert sorted(os.listdir(cli.workspace)) == ["old.txt", "steps.sh"]
    assert cli.verdict("last", "--replay") == "complete"


def test_a_conflict_is_never_overwritten_and_holds_the_scope(cli: Cli) -> None:
    cli.put("both.txt", "one\ntwo\nthree\n")
    cli.put("free.txt", "free\n")
    with living(cli, f"sed -i s/one/ONE/ both.txt; echo more >> free.txt; {WAIT}") as running:
        assert next(said(running)) == "ready"
        edit(cli, "both.txt", "one\ntwo\nTHREE\n")
        running.wait(30)
        assert running.stderr is not None
        told = running.stderr.read().decode()
    assert running.returncode == 5, told
    assert cli.get("both.txt") == "one\ntwo\nTHREE\n"
    assert cli.get("free.txt") == "free\n"
    done = cli("apply", "last", "--on-conflict", "theirs")
    assert done.returncode == 6, done.stderr
    assert (cli.get("both.txt"), cli.get("free.txt")) == ("one\ntwo\nTHREE\n", "free\nmore\n")
    assert cli.verdict("last", "--replay") == "complete"


def test_a_conflict_is_merged_when_the_answers_say_so(cli: Cli) -> None:
    cli.put("both.txt", "one\ntwo\nthree\nfour\nfive\n")
    who = os.path.join(cli.base, "answers.yaml")
    with open(who, "w", encoding="utf-8") as file:
        file.write("- {match: 'file.* both.txt', answer: merge}\n")
    cli.own()
    with living(cli, f"sed -i s/one/ONE/ both.txt; {WAIT}", "--oracle", f"answers:{who}") as running:
        assert next(said(running)) == "ready"
        time.sleep(
            0.5
        )  # an edit in the very moment of the agent's own leaves nothing that surely was the base
        edit(cli, "both.txt", "one\ntwo\nthree\nfour\nFIVE\n")
        running.wait(30)
        assert running.stderr is not None
        told = running.stderr.read().decode()
    merged = cli.get("both.txt")
    if cli.uid:  # without file events no base is kept, so nothing can be merged: the host's version stays
        assert merged == "one\ntwo\nthree\nfour\nFIVE\n"
    else:
        assert (running.returncode, merged) == (0, "ONE\ntwo\nthree\nfour\nFIVE\n"), told
    assert cli.verdict("last", "--replay") == "complete"
