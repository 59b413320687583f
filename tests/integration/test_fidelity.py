"""Run and accept: the workspace ends as if the same program had run bare, by rsync and by hash."""

import json
import os
import shutil
import subprocess
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fakes import wild_run
from tests.fakes.staged_edits import EDITS, Edit
from tests.fakes.staged_tree import in_child, snapshot
from tests.fakes.wild_edits import WILD, wild_fill
from tests.integration.conftest import ORDINARY, Cli

from interlock.staging import copy_tree

RSYNC = shutil.which("rsync")
PYTHON = "/usr/bin/python3"
edits = st.lists(
    st.builds(
        Edit,
        kind=st.sampled_from((*EDITS, *WILD)),
        first=st.integers(0, 60),
        second=st.integers(0, 60),
        third=st.integers(0, 60),
    ),
    min_size=8,
    max_size=24,
)


def rsync_says(source: str, target: str) -> str:
    """Return what rsync would still have to do to make the target as the source; nothing where they are equal.

    Folders get their times as entries come and go, so two runs differ there; these are compared with the view.
    """
    assert RSYNC is not None
    done = subprocess.run(
        [RSYNC, "-aAXHSn", "--checksum", "--itemize-changes", "--delete", "-O", f"{source}/", f"{target}/"],
        capture_output=True,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def fresh(cli: Cli) -> str:
    """Make the workspace anew, and a bare copy of it beside; returns the copy's path."""
    bare = f"{cli.base}/bare"
    for path in (cli.workspace, bare):
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        os.chown(path, cli.uid, cli.uid)
    # an ordinary user's overlay has no index: there hard links part on the first write
    in_child(lambda: wild_fill(cli.workspace, links=cli.uid == 0), user=cli.uid == ORDINARY)
    assert copy_tree(cli.workspace, bare) == ()
    return bare


def held_to_account(cli: Cli, wanted: list[Edit], *, hold: bool, staging: str) -> None:
    bare = fresh(cli)
    answers = f"{cli.base}/answers.yaml"
    with open(answers, "w", encoding="ascii") as file:
        file.write("- match: '**'\n  answer: release\n")
    program = [PYTHON, wild_run.__file__]
    words = json.dumps([asdict(one) for one in wanted])
    command = ["--staging", staging, "--", *program, cli.workspace, words]
    if hold:
        ran = cli("run", "--hold", *command)
        assert ran.returncode == 0, ran.stderr
        applied = cli("apply", "last")
    else:
        ran = applied = cli("run", "--oracle", f"answers:{answers}", *command)
    assert applied.returncode == 0, (applied.stderr.decode(errors="replace"), wanted)
    said = json.loads(ran.stdout)
    if len(said["done"]) < len(wanted):
        return  # an edit failed half-way, and would fail elsewhere when bare
    subprocess.run(
        [*program, bare, words, json.dumps(said["done"])],
        check=True,
        capture_output=True,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        **cli.identity(),
    )
    assert snapshot(cli.workspace) == snapshot(bare), wanted
    assert rsync_says(bare, cli.workspace) == "", wanted
    assert rsync_says(cli.workspace, bare) == "", wanted
    times = wild_run.folder_times(cli.workspace)
    assert {path: times.get(path) for path in said["times"]} == said["times"], wanted


def _check(cli: Cli, examples: int) -> None:
    if RSYNC is None or not os.path.exists(PYTHON):
        pytest.skip("not run: rsync and a system Python are needed")
    if os.geteuid() != 0:
        pytest.skip("not run: the trees need root to be made and read")

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize="INTERLOCK_EXAMPLES" not in os.environ,
        database=None,
        # a failing example is printed as it is: to shrink it would take minutes
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(wanted=edits, hold=st.booleans(), staging=st.sampled_from(["overlay", "copy"]))
    def check(wanted: list[Edit], hold: bool, staging: str) -> None:
        held_to_account(cli, wanted, hold=hold, staging=staging)

    check()


def test_run_and_accept_equals_the_bare_program(cli: Cli) -> None:
    _check(cli, 1)


@pytest.mark.slow
def test_run_and_accept_equals_the_bare_program_often(cli: Cli) -> None:
    _check(cli, int(os.environ.get("INTERLOCK_EXAMPLES", "60")))


def test_what_was_changed_through_a_name_that_then_went_shows_at_the_others(cli: Cli) -> None:
    if cli.uid != 0 or RSYNC is None:
        pytest.skip("not run: an ordinary user's overlay parts hard links, and rsync is needed")
    wanted = [
        Edit(kind="xattr", first=22, second=24, third=52),
        Edit(kind="folder-to-symlink", first=50, second=19, third=50),
        Edit(kind="exchange-folders", first=24, second=19, third=33),
    ]
    held_to_account(cli, wanted, hold=True, staging="overlay")


def test_what_the_command_itself_moved_away_is_no_edit_of_the_host(cli: Cli) -> None:
    cli.put("folder/x", "1\n")
    cli.put("file", "2\n")
    held = cli.sh(
        "cat folder/x file; mv folder f; echo new > folder; mv file g; mkdir file; echo 1 > file/x", "--hold"
    )
    assert held.returncode == 0, held.stderr
    done = cli("apply", "last")
    assert done.returncode == 0, done.stderr
    assert (cli.get("folder"), cli.get("f/x"), cli.get("g"), cli.get("file/x")) == (
        "new\n",
        "1\n",
        "2\n",
        "1\n",
    )
