"""The exit report of real runs: what was blocked and why, what is not disclosed, and what does not hold."""

import html
import json
import os
import re

from tests.integration.conftest import Cli

EVIL = '<script>alert("x")</script>'


def ran(cli: Cli, task: str = "write a.txt") -> None:
    done = cli(
        *("run", "--oracle", "strict", "--task", task, "--"),
        *("sh", "-c", "echo hi > a.txt; mkdir -p .git/hooks; echo x > .git/hooks/pre-push"),
    )
    assert done.returncode in (0, 6), done.stderr


def test_a_page_needs_nothing_but_itself_and_shows_what_was_blocked(cli: Cli) -> None:
    ran(cli, f"write a.txt {EVIL}")
    done = cli("report", "last", "--out", "report.html", "--threshold", "90%")
    assert done.returncode == 0, done.stderr
    page = cli.get("report.html")
    assert "<script" not in page
    assert html.escape(EVIL) in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert "workspace:.git/hooks/pre-push" in page
    assert "<svg" in page
    assert "complete" in page


def test_the_same_is_told_as_json_and_markdown(cli: Cli) -> None:
    ran(cli)
    assert cli("report", "last", "--out", "report.json").returncode == 0
    told = json.loads(cli.get("report.json"))
    (run,) = told["runs"]
    assert run["verified"]["verdict"] == "complete"
    (kept,) = run["kept"]
    assert (kept["object"], kept["fate"]) == ("workspace:.git/hooks/pre-push", "refused")
    assert kept["by"].startswith("oracle:strict")
    whole = told["rates"][-1]
    assert (whole["guard"], whole["blocked"]) == ("all actions", 1)
    done = cli("report", "last", "--threshold", "0.01")
    assert done.returncode == 1
    assert b"above it: all actions" in done.stdout
    assert b"| workspace:.git/hooks/pre-push | refused |" in done.stdout


def test_a_report_of_a_bundle_shows_what_was_disclosed_and_no_more(cli: Cli) -> None:
    ran(cli, "write a.txt canary-55ab")
    assert cli("disclose", "last", "--nodes", "blocked,check", "--out", "part.tar").returncode == 0
    done = cli("report", "part.tar", "--out", "report.json")
    assert done.returncode == 0, done.stderr
    text = cli.get("report.json")
    assert "canary-55ab" not in text
    (run,) = json.loads(text)["runs"]
    assert run["hidden"] > 0
    assert run["kept"][0]["object"] == "workspace:.git/hooks/pre-push"
    assert cli("report", "part.tar", "--out", "report.html").returncode == 0
    assert "not disclosed" in cli.get("report.html")


def test_what_does_not_hold_is_said_first_and_several_runs_are_counted_together(cli: Cli) -> None:
    ran(cli)
    assert cli("disclose", "last", "--out", "good.tar").returncode == 0
    with open(os.path.join(cli.workspace, "good.tar"), "rb") as file:
        data = bytearray(file.read())
    data[data.index(b'"verdict":"refuse"') + 12] ^= 1
    cli.put("bad.tar", bytes(data))
    done = cli("report", "good.tar", "bad.tar", "--out", "both.html")
    assert done.returncode == 4
    page = cli.get("both.html")
    assert "tampered" in page
    assert "Over 2 runs" in page
    assert "Broken: " in page


def test_bad_words_write_nothing(cli: Cli) -> None:
    ran(cli)
    for words in (("--threshold", "much"), ("--out", "report.pdf"), ("--threshold", "200%")):
        assert cli("report", "last", *words).returncode == 2, words
    cli.put("report.md", "mine")
    assert cli("report", "last", "--out", "report.md").returncode == 2
    assert cli.get("report.md") == "mine"
    assert cli("report", "no-such-run", "--out", "x.md").returncode == 2
