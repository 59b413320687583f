"""What a commit made inside holds is judged with its branch: a refused file does not come back from Git."""

import subprocess

import pytest
from tests.integration.conftest import Cli

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "safe.directory=*")
COMMIT = "git -c user.name=a -c user.email=a@b commit -qm x"
CI = ".github/workflows/ci.yml"
STRICT = ("--oracle", "strict")


def git(cli: Cli, *words: str) -> str:
    done = subprocess.run(
        ["git", *WHO, *words],
        cwd=cli.workspace,
        check=True,
        env=cli.environment(),
        capture_output=True,
        **cli.identity(),
    )
    return str(done.stdout.decode())


@pytest.fixture
def repository(cli: Cli) -> Cli:
    cli.put("app.py", "old\n")
    git(cli, "init", "-q", "-b", "main")
    git(cli, "add", "-A")
    git(cli, "commit", "-qm", "start")
    return cli


def test_a_refused_workflow_is_in_no_branch_either(repository: Cli) -> None:
    cli = repository
    before = git(cli, "rev-parse", "HEAD")
    done = cli.sh(
        f"mkdir -p .github/workflows; echo evil > {CI}; echo new > app.py; git add -A; {COMMIT}",
        *STRICT,
        "--task",
        "Make app.py new.",
    )
    assert done.returncode == 6, done.stderr
    assert b"a commit that it brings changes" in cli("show", "last").stdout
    assert cli.get("app.py") == "new\n"
    assert not cli.has(CI)
    assert git(cli, "rev-parse", "HEAD") == before
    assert CI not in git(cli, "log", "--all", "--name-only", "--format=")
    git(cli, "fsck", "--strict")
    # What Git would commit next is what was there: the index fell with its branch.
    assert git(cli, "status", "--porcelain") == " M app.py\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_a_refused_file_is_not_staged_for_the_next_commit_either(repository: Cli) -> None:
    cli = repository
    cli.put("docs.md", "old\n")
    git(cli, "add", "-A")
    git(cli, "commit", "-qm", "docs")
    done = cli.sh(
        f"mkdir -p .github/workflows; echo evil > {CI}; echo new > app.py; git rm -q docs.md; git add -A",
        *STRICT,
        "--task",
        "Make app.py new.",
    )
    assert done.returncode == 6, done.stderr
    assert git(cli, "status", "--porcelain") == " M app.py\n D docs.md\n"
    git(cli, "commit", "-qam", "next")
    assert CI not in git(cli, "log", "--all", "--name-only", "--format=")
    assert cli.verdict("last", "--replay") == "complete"


def test_what_was_only_staged_is_staged_afterwards(repository: Cli) -> None:
    cli = repository
    done = cli.sh("echo new > app.py; echo more > more.txt; git add -A; echo later > later.txt", *STRICT)
    assert done.returncode == 0, done.stderr
    assert git(cli, "status", "--porcelain") == "M  app.py\nA  more.txt\n?? later.txt\n"


@pytest.mark.slow
def test_a_commit_whose_file_never_stood_in_the_worktree_waits(repository: Cli) -> None:
    cli = repository
    before = git(cli, "rev-parse", "HEAD")
    script = (
        "b=$(echo evil | git hash-object -w --stdin); "
        f"export GIT_INDEX_FILE=$PWD/i; git read-tree HEAD; git update-index --add --cacheinfo 100644,$b,{CI}; "
        "t=$(git write-tree); rm i; c=$(echo x | git -c user.name=a -c user.email=a@b commit-tree $t -p HEAD); "
        "git update-ref refs/heads/main $c"
    )
    done = cli.sh(script, *STRICT, "--task", "Look at app.py.")
    assert done.returncode == 6, done.stderr
    assert git(cli, "rev-parse", "HEAD") == before
    assert "evil" not in git(cli, "log", "-p", "--all")


def test_an_ordinary_commit_asks_nothing(repository: Cli) -> None:
    cli = repository
    done = cli.sh(f"echo new > app.py; git add -A; {COMMIT}; git checkout -qb topic", *STRICT)
    assert done.returncode == 0, done.stderr
    assert git(cli, "rev-list", "--count", "topic").strip() == "2"
    assert git(cli, "status", "--porcelain") == ""


def test_a_workflow_that_the_task_names_is_released_with_its_branch(repository: Cli) -> None:
    cli = repository
    done = cli.sh(
        f"mkdir -p .github/workflows; echo 'on: push' > {CI}; git add -A; {COMMIT}",
        *STRICT,
        "--task",
        f"Add a workflow {CI} and commit it.",
    )
    assert done.returncode == 0, done.stderr
    assert git(cli, "show", f"HEAD:{CI}") == "on: push\n"
    assert git(cli, "status", "--porcelain") == ""
    assert cli.verdict("last", "--replay") == "complete"
