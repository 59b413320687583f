"""A run's evidence in part: what is left out is nowhere in the file, and all the rest verifies."""

import json
import os

from tests.integration.conftest import Cli

SECRET = "canary-7f3a91"


def ran(cli: Cli) -> None:
    words = ("run", "--oracle", "strict", "--task", f"write {SECRET}.txt", "--")
    done = cli(*words, "sh", "-c", f"echo {SECRET} > {SECRET}.txt")
    assert done.returncode in (0, 6), done.stderr


def bundle(cli: Cli, name: str) -> bytes:
    with open(os.path.join(cli.workspace, name), "rb") as file:
        return file.read()


def test_only_chosen_payloads_go_along(cli: Cli) -> None:
    ran(cli)
    assert cli("disclose", "last", "--out", "all.tar").returncode == 0
    assert SECRET.encode() in bundle(cli, "all.tar")
    assert cli.verdict("all.tar", "--replay") == "complete"
    done = cli("disclose", "last", "--nodes", "none", "--out", "none.tar", "--json")
    told = json.loads(done.stdout)
    assert (told["verdict"], told["disclosed"], told["left_out"]) == ("complete", 0, told["nodes"])
    # Not the task, not the command line, not a name of a file, in no writing.
    assert SECRET.encode() not in bundle(cli, "none.tar")
    assert SECRET.encode().hex().encode() not in bundle(cli, "none.tar")
    assert cli.verdict("none.tar") == "complete"
    done = cli("disclose", "last", "--nodes", "prompt,1", "--out", "two.tar", "--json")
    assert json.loads(done.stdout)["disclosed"] == 2
    assert SECRET.encode() in bundle(cli, "two.tar")
    assert cli.verdict("two.tar") == "complete"
    done = cli("disclose", "last", "--nodes", "prompt,1", "--out", "again.tar")
    assert bundle(cli, "again.tar") == bundle(cli, "two.tar")


def test_bad_words_write_nothing(cli: Cli) -> None:
    ran(cli)
    for words in ("nonsense", "9999", "7-3", ",", "prompt,-1"):
        done = cli("disclose", "last", "--nodes", words, "--out", "x.tar")
        assert done.returncode == 2, words
        assert not cli.has("x.tar")
    cli.put("there.tar", "mine")
    done = cli("disclose", "last", "--out", "there.tar")
    assert done.returncode == 2
    assert cli.get("there.tar") == "mine"


def test_shredded_payloads_are_gone_and_the_rest_verifies(cli: Cli) -> None:
    ran(cli)
    done = cli("shred", "last", "--nodes", "all")
    assert done.returncode == 2  # nobody can be asked
    assert cli.verdict("last", "--replay") == "complete"
    done = cli("shred", "last", "--nodes", "prompt", "--yes", "--json")
    assert json.loads(done.stdout)["removed"] == 1
    assert cli.verdict() == "complete"
    done = cli("shred", "last", "--nodes", "all", "--yes", "--json")
    assert json.loads(done.stdout)["removed"] == json.loads(done.stdout)["nodes"]
    assert cli.verdict() == "complete"
    for folder, _, files in os.walk(os.path.join(cli.state, "runs")):
        for name in files:
            if os.sep + "ledger" in folder:
                with open(os.path.join(folder, name), "rb") as file:
                    assert SECRET.encode() not in file.read(), name


def test_an_open_run_is_not_shredded(cli: Cli) -> None:
    cli.sh("echo y > a.txt", "--hold")
    assert cli.verdict() == "unfinished"
    done = cli("shred", "last", "--nodes", "prompt", "--yes")
    assert done.returncode == 2
    assert b"the run is open" in done.stderr
    assert cli("disclose", "last", "--nodes", "none", "--out", "part.tar").returncode == 0
    assert cli.verdict("part.tar") == "unfinished"
    assert cli("discard", "last").returncode == 0
