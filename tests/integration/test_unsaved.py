"""Work of the user's that no commit holds is not taken away unseen."""

import subprocess

import pytest
from tests.integration.conftest import Cli

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "safe.directory=*")


@pytest.fixture
def repository(cli: Cli) -> Cli:
    """One with uncommitted changes in two files."""
    cli.put("a.py", "old\n")
    cli.put("b.py", "old\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run(["git", *WHO, *words], cwd=cli.workspace, check=True, env=cli.environment())
    cli.put("a.py", "a week of work\n")
    cli.put("b.py", "tried\n")
    return cli


def test_git_version_over_uncommitted_work_waits_unless_the_task_says_so(repository: Cli) -> None:
    cli = repository
    done = cli.sh("git checkout -q -- .", "--task", "Undo the change that you just made to b.py.")
    assert done.returncode == 6, done.stderr
    assert cli.get("a.py") == "a week of work\n"
    assert cli.get("b.py") == "old\n"
    assert b"no commit holds" in cli("show", "last").stdout


def test_a_name_without_a_word_for_the_loss_is_not_enough(repository: Cli) -> None:
    cli = repository
    done = cli.sh("git checkout -q -- a.py; echo 'x = 2' > b.py", "--task", "Fix the bug in a.py and b.py.")
    assert done.returncode == 6, done.stderr
    assert cli.get("a.py") == "a week of work\n"
    assert cli.get("b.py") == "x = 2\n"


def test_ordinary_edits_of_uncommitted_files_are_merged(repository: Cli) -> None:
    cli = repository
    done = cli.sh(
        "echo more >> a.py; git add -A; git -c user.name=a -c user.email=a@b commit -qm all; rm b.py"
    )
    assert done.returncode == 0, done.stderr
    assert cli.get("a.py") == "a week of work\nmore\n"


def test_the_verdicts_replay(repository: Cli) -> None:
    cli = repository
    cli.sh("rm a.py b.py", "--task", "Tidy up.")
    assert cli.has("a.py")
    assert cli.verdict("last", "--replay") == "complete"


def test_a_folder_that_is_emptied_waits(cli: Cli) -> None:
    for name in ("a", "b", "d/c"):
        cli.put(name, "x")
    done = cli.sh("rm -rf ./*", "--task", "Tidy up.")
    assert done.returncode == 6, done.stderr
    assert [cli.has(name) for name in ("a", "b", "d/c")] == [True] * 3
    assert cli.sh("rm -rf a d", "--task", "Tidy up.").returncode == 0
    assert [cli.has(name) for name in ("a", "b", "d/c")] == [False, True, False]
