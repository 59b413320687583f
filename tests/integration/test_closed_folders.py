"""A command that closes a folder to itself: committed, discarded and put back as if it had done so bare."""

from __future__ import annotations

import os
import stat

import pytest
from tests.integration.conftest import Cli
from tests.integration.test_living import WAIT, living, said

pytestmark = pytest.mark.parametrize(
    "cli", ["user", pytest.param("root", marks=pytest.mark.slow)], indirect=True
)
CLOSING = "echo new > d/new; rm d/old; mkdir -p d/in; echo deep > d/in/deep; chmod 0 d/in; chmod 0 d\n"


def mode_of(cli: Cli, path: str) -> int:
    return stat.S_IMODE(os.lstat(os.path.join(cli.workspace, path)).st_mode)


def closed_as_bare(cli: Cli) -> None:
    assert (mode_of(cli, "d"), mode_of(cli, "d/in")) == (0, 0)
    assert sorted(os.listdir(os.path.join(cli.workspace, "d"))) == ["in", "new"]
    assert (cli.get("d/new"), cli.get("d/in/deep")) == ("new\n", "deep\n")


def test_a_closed_folder_is_committed(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    done = cli.sh(CLOSING)
    assert done.returncode == 0, done.stderr
    closed_as_bare(cli)
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.slow
def test_a_closed_folder_is_held_shown_and_discarded(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    cli.sh(f"mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; {CLOSING}", "--oracle", "strict", "--hold")
    shown = cli("diff", "last", "d/new")
    assert shown.returncode == 1, shown.stderr
    assert b"new" in shown.stdout
    gone = cli("discard", "last")
    assert gone.returncode == 0, gone.stderr
    assert sorted(os.listdir(cli.workspace)) == ["d"]
    assert (os.listdir(os.path.join(cli.workspace, "d")), mode_of(cli, "d")) == (["old"], 0o755)


def test_a_closed_folder_is_committed_while_the_command_lives_which_sees_no_other_mode(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    with living(cli, f"{CLOSING}{WAIT}stat -c %a d; echo on > on\n") as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("apply", "last", "--json")
        assert done.returncode == 0, done.stderr
        closed_as_bare(cli)
        assert list(lines) == ["0"]
        assert running.wait(30) == (0 if cli.uid == 0 else 4)
    closed_as_bare(cli)
    if cli.uid:  # the host has it closed by now, and it is not opened for a comparison
        os.chmod(os.path.join(cli.workspace, "d"), 0o700)
        os.chmod(os.path.join(cli.workspace, "d/in"), 0o700)
        cli("apply", "last", "--on-conflict", "theirs")
    assert cli.get("on") == "on\n"


@pytest.mark.slow
def test_work_in_a_folder_that_the_host_has_closed_waits_until_it_can_be_told(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    folder = os.path.join(cli.workspace, "d")
    os.chmod(folder, 0)
    done = cli.sh("chmod 700 d && echo changed > d/old && echo other > other")
    assert cli.uid == 0 or done.returncode == 4, done.stderr
    if cli.uid:
        assert b"the host's folder `workspace:d` is closed to you" in done.stderr
        assert not cli.has("other")
        os.chmod(folder, 0o700)
        done = cli("apply", "last", "--on-conflict", "theirs")
        # to open it was an edit of the host: what the command made in it is for a person to see
        assert (done.returncode, cli.get("d/old")) == (6, "old\n"), done.stderr
    assert cli.uid or (done.returncode, cli.get("d/old")) == (0, "changed\n"), done.stderr
    assert (cli.get("other"), mode_of(cli, "d")) == ("other\n", 0o700)


@pytest.mark.slow
def test_a_closed_folder_goes_back_while_the_command_lives(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    with living(cli, f"{CLOSING}{WAIT}stat -c %a d; ls d\n") as running:
        lines = said(running)
        assert next(lines) == "ready"
        done = cli("discard", "last")
        assert done.returncode == 0, done.stderr
        assert list(lines) == ["755", "old"]
        running.wait(30)
    assert (os.listdir(os.path.join(cli.workspace, "d")), mode_of(cli, "d")) == (["old"], 0o755)


@pytest.mark.slow
def test_an_undo_of_what_is_closed_says_so_and_works_once_it_is_open(cli: Cli) -> None:
    cli.put("d/old", "old\n")
    assert cli.sh(CLOSING).returncode == 0
    done = cli("undo", "last")
    if cli.uid:
        assert (done.returncode, b"cannot be compared with what is there now" in done.stderr) == (4, True)
        closed_as_bare(cli)
        for path in ("d", "d/in"):
            os.chmod(os.path.join(cli.workspace, path), 0o700)
        done = cli("undo", "last", "--except-changed")
    assert done.returncode in {0, 6}, done.stderr
    assert "old" in os.listdir(os.path.join(cli.workspace, "d"))
