"""A transaction over files and requests as a user sees it: order, a discard in mid-run, a move between folders."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_living import WAIT, living, said
from tests.integration.test_net_run import PARK, READS_ALONE, Far, policy

pytestmark = in_one_standing


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("order", "merged"),
    [pytest.param("files-first", True, marks=pytest.mark.slow), ("requests-first", False)],
)
def test_a_request_that_fails_stops_what_the_policy_puts_after_it(
    cli: Cli, far: Far, order: str, merged: bool
) -> None:
    rules = policy(cli, far, PARK, rules=f"{READS_ALONE}commit: {{order: {order}}}\n", preset="none")
    script = f"curl -s -d x=1 {far.at}/one > answer.json; echo work > work.txt"
    held = cli.sh(script, "--policy", rules, "--hold")
    assert held.returncode == 0, held.stderr
    far.close()
    done = cli("apply", "last", "--json")
    assert done.returncode == 5, done.stderr
    assert json.loads(done.stdout)["sent"][0]["outcome"] == "failed"
    assert cli.has("work.txt") is merged
    assert cli("recover", "last", "--skip", "e1").returncode in (0, 6)
    assert cli.get("work.txt") == "work\n"
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.slow
def test_a_discard_in_mid_run_drops_what_is_parked_and_tells_the_agent_once(cli: Cli, far: Far) -> None:
    rules = policy(cli, far, PARK, rules=READS_ALONE, preset="none")
    told = "curl -s http://interlock.internal/notices\n"
    script = f"curl -s -d x=1 {far.at}/one > answer.json; echo work > work.txt\n{WAIT}ls\n{told}"
    with living(cli, script, "--policy", rules) as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("discard", "last")
        assert done.returncode == 0, done.stderr
        rest = list(lines)
        # something was refused to the command, and its exit status says so
        assert running.wait(30) == 6
    assert rest[0] == "steps.sh"
    notices = json.loads("".join(rest[1:]))["notices"]
    objects = [one["object"] for one in notices]
    assert objects.count(f"{far.at}/one") == 1
    assert len(objects) == len(set(objects))
    assert sorted(os.listdir(cli.workspace)) == ["steps.sh"]
    time.sleep(0.1)
    assert far.calls == []


@pytest.mark.slow
def test_a_move_between_two_staged_folders_reaches_both_and_can_be_undone(cli: Cli) -> None:
    """Two views are two mounts: `mv` copies and removes, as it does between two disks."""
    folder = os.path.join(cli.home, "other")
    cli.put("d/in/file", "moved\n", 0o640)
    os.symlink("in/file", f"{cli.workspace}/d/link")
    os.mkdir(folder)
    cli.own()
    done = cli.sh(f"mv d {folder}/d", "--add-dir", folder)
    assert done.returncode == 0, done.stderr
    assert os.listdir(cli.workspace) == []
    with open(f"{folder}/d/link", encoding="ascii") as file:
        assert file.read() == "moved\n"
    assert os.stat(f"{folder}/d/in/file").st_mode & 0o777 == 0o640
    assert cli("undo", "last").returncode == 0
    assert (cli.get("d/link"), os.listdir(folder)) == ("moved\n", [])


def test_a_file_that_was_moved_to_a_refused_place_stays_where_it_was(cli: Cli) -> None:
    cli.put("data.json", "{}\n")
    cli.put("steps.sh", "mkdir .vscode; mv data.json .vscode/tasks.json; echo x > other\n")
    done = cli("run", "--oracle", "strict", "--", "sh", "steps.sh")
    assert done.returncode == 6, done.stderr
    assert (cli.get("data.json"), cli.get("other")) == ("{}\n", "x\n")
    assert not cli.has(".vscode/tasks.json")
    fates = {one["object"]: one["fate"] for one in cli.story()["effects"]}
    assert fates["workspace:.vscode/tasks.json"] == fates["workspace:data.json"] == "refused"
    assert fates["workspace:other"] == "committed"
    assert cli.verdict("last", "--replay") == "complete"


def test_a_moved_file_is_told_as_moved_wherever_it_is_read(cli: Cli) -> None:
    cli.put("notes.txt", "one\ntwo\nthree\n")
    cli.put("Makefile", "all:\n\ttrue\n")
    cli.put("steps.sh", "mkdir doc; mv notes.txt doc/notes.txt; mv Makefile GNUmakefile; echo x > other\n")
    held = cli("run", "--hold", "--", "sh", "steps.sh")
    assert held.returncode == 0, held.stderr
    diff = cli("diff", "last").stdout.decode()
    assert "doc/notes.txt  moved from `workspace:notes.txt`" in diff
    assert "+two" not in diff
    assert "-two" not in diff
    plain = {one["place"]: one for one in json.loads(cli("diff", "last", "--json").stdout)}
    assert plain["workspace:doc/notes.txt"]["moved_from"] == "workspace:notes.txt"
    assert plain["workspace:doc/notes.txt"]["edited"] is False
    assert plain["workspace:notes.txt"]["moved_to"] == "workspace:doc/notes.txt"
    assert "moved_from" not in plain["workspace:other"]
    assert cli("apply", "last").returncode in (0, 6)
    told = {one["object"]: one for one in cli.story()["effects"]}
    assert told["workspace:GNUmakefile"]["moved_from"] == "workspace:Makefile"
    assert told["workspace:Makefile"]["moved_to"] == "workspace:GNUmakefile"
    assert "moved_to" not in told["workspace:other"]
    shown = cli("show", "last").stdout.decode()
    assert "workspace:GNUmakefile  moved from `workspace:Makefile`" in shown
    assert "moved to `workspace:GNUmakefile`" in cli("why", "last", "Makefile").stdout.decode()
    assert cli.verdict("last", "--replay") == "complete"
