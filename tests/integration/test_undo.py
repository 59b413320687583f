"""`interlock undo`, from the command line: what a run committed is taken back, and only that."""

from __future__ import annotations

import json
import os

from tests.fakes.staged_tree import snapshot
from tests.integration.conftest import Cli, in_one_standing

pytestmark = in_one_standing

WORK = """
echo changed > kept.txt
rm gone.txt
mkdir -p made/deep && echo new > made/deep/file
mv moved elsewhere
chmod 600 mode.txt
ln -s kept.txt link
"""


def prepare(cli: Cli) -> None:
    cli.put("kept.txt", "before\n")
    cli.put("gone.txt", "gone\n")
    cli.put("moved/inside.txt", "inside\n")
    cli.put("mode.txt", "mode\n")


def run_id(cli: Cli) -> str:
    return str(json.loads(cli("runs", "--json").stdout)[-1]["run"])


def test_an_undo_gives_the_workspace_before_and_leaves_the_evidence_alone(cli: Cli) -> None:
    prepare(cli)
    before = snapshot(cli.workspace, folder_times=True)
    assert cli.sh(WORK).returncode == 0
    after = snapshot(cli.workspace, folder_times=True)
    assert after != before
    dry = cli("undo", "last", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert b"removed  workspace:gone.txt" in dry.stdout
    assert snapshot(cli.workspace, folder_times=True) == after
    done = cli("undo", "last")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"undone: ")
    assert snapshot(cli.workspace, folder_times=True) == before
    assert cli.verdict("last", "--replay") == "complete"
    again = cli("undo", "last")
    assert again.returncode == 2
    assert b"is undone already, at " in again.stderr
    assert not [name for name in os.listdir(cli.home) if name.startswith(".interlock")]


def test_what_was_changed_since_stops_the_undo_and_is_named(cli: Cli) -> None:
    prepare(cli)
    cli.sh(WORK)
    cli.put("kept.txt", "mine\n")
    cli.put("made/mine.txt", "mine\n")
    after = snapshot(cli.workspace)
    done = cli("undo", "last")
    assert done.returncode == 5
    assert b"workspace:kept.txt: " in done.stdout
    assert b"workspace:made/mine.txt: it is new" in done.stdout
    assert b"--except-changed" in done.stderr
    assert snapshot(cli.workspace) == after
    done = cli("undo", "last", "--except-changed", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["done"] is True
    assert sorted(one["place"] for one in said["commits"][0]["changed"]) == [
        "workspace:kept.txt",
        "workspace:made/mine.txt",
    ]
    assert cli.get("kept.txt") == "mine\n"
    assert cli.get("made/mine.txt") == "mine\n"
    assert cli.get("gone.txt") == "gone\n"
    assert cli.get("moved/inside.txt") == "inside\n"
    assert not cli.has("made/deep")


def test_only_the_paths_that_are_named_go_back_and_the_rest_later(cli: Cli) -> None:
    prepare(cli)
    before = snapshot(cli.workspace, folder_times=True)
    cli.sh(WORK)
    done = cli("undo", "last", "gone.txt")
    assert done.returncode == 0, done.stderr
    assert cli.get("gone.txt") == "gone\n"
    assert cli.get("kept.txt") == "changed\n"
    assert cli("undo", "last", "nowhere.txt").returncode == 2
    done = cli("undo", "last")
    assert done.returncode == 0, done.stderr
    assert snapshot(cli.workspace, folder_times=True) == before


def test_a_run_that_committed_nothing_has_nothing_to_undo(cli: Cli) -> None:
    cli.put("a.txt", "a\n")
    cli.sh("cat a.txt")
    done = cli("undo", "last")
    assert done.returncode == 2
    assert b"committed nothing" in done.stderr
    cli.sh("echo x > a.txt", "--hold")
    if json.loads(cli("runs", "--json").stdout)[-1]["status"] == "held":
        assert b"is open still" in cli("undo", "last").stderr
        cli("discard", "last")
        done = cli("undo", "last")
        assert done.returncode == 2
        assert b"was discarded" in done.stderr


def test_two_commits_of_one_run_go_back_together(cli: Cli) -> None:
    prepare(cli)
    before = snapshot(cli.workspace, folder_times=True)
    held = cli.sh(WORK, "--hold")
    assert held.returncode in (0, 6), held.stderr
    assert cli("apply", "last", "gone.txt", "kept.txt").returncode == 0
    assert cli("apply", "last").returncode == 0
    assert not cli.has("gone.txt")
    assert cli.has("made")
    done = cli("undo", "last", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["commit"] for one in json.loads(done.stdout)["commits"]] == [2, 1]
    assert snapshot(cli.workspace, folder_times=True) == before


def test_a_damaged_record_is_told(cli: Cli) -> None:
    prepare(cli)
    cli.sh(WORK)
    assert cli("undo", "last", "gone.txt").returncode == 0
    record = os.path.join(cli.state, "runs", run_id(cli), "undo.json")
    with open(record, "r+", encoding="utf-8") as file:
        text = file.read().replace("gone.txt", "kept.txt")
        file.seek(0)
        file.write(text)
    done = cli("undo", "last")
    assert done.returncode == 4
    assert b"damaged" in done.stderr
