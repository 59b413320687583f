"""A host file edited while the command runs, through the command line: found, shown as three sides, left alone."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from tests.integration.conftest import Cli

SEEN_S = 0.06
"""Longer than the monitor leaves the kernel's events alone."""
GLANCED_S = 0.35
"""Longer than it lets a quiet queue be."""


def held(cli: Cli, script: str, *host: Callable[[], object], rest_s: float = 0) -> None:
    """Hold a run of a script that waits for a line at each `meet`, where the host makes its next edit."""
    with subprocess.Popen(
        cli.words("run", "--hold", "--", "sh", "-c", "meet() { echo here; read -r line; }; " + script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        assert running.stderr is not None
        for edit in host:
            assert running.stdout.readline() == b"here\n"
            time.sleep(SEEN_S)
            edit()
            time.sleep(rest_s)
            running.stdin.write(b"\n")
            running.stdin.flush()
        running.stdin.close()
        assert running.wait(60) == 0, running.stderr.read()


def conflicts(cli: Cli) -> dict[str, str | None]:
    listed = json.loads(cli("diff", "last", "--json").stdout)
    return {item["place"].removeprefix("workspace:"): item.get("host_edit") for item in listed}


def append(cli: Cli, path: str, text: str) -> None:
    with open(os.path.join(cli.workspace, path), "a", encoding="ascii") as file:
        file.write(text)


def touches(cli: Cli) -> str:
    (path,) = glob.glob(os.path.join(cli.state, "runs", "*", "touches"))
    return path


def rewrite(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    with open(path, "rb") as file:
        data = json.loads(file.read().partition(b"\n")[2])
    change(data)
    body = json.dumps(data).encode()
    with open(path, "wb") as file:
        file.write(sha256(body).hexdigest().encode() + b"\n" + body)


def test_an_edit_between_reading_and_writing_is_a_conflict_with_three_sides(cli: Cli) -> None:
    cli.put("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    cli.put("plain.txt", "as it was\n")
    script = (
        "cat a.txt > /dev/null; meet; sed -i s/seven/7/ plain.txt;"
        "echo 'ours' >> a.txt; echo more >> plain.txt; meet"
    )
    held(cli, script, lambda: None, lambda: append(cli, "a.txt", "theirs\n"))
    assert conflicts(cli) == {"a.txt": "edited", "plain.txt": None}
    shown = cli("diff", "last", "a.txt").stdout.decode()
    assert shown.startswith("conflicts: 1 place was changed by the host too")
    assert "conflict: the host changed it too" in shown
    assert "+ours" in shown
    if cli.uid == 0:
        theirs, ours = shown.split("base -> ours (staged):")
        assert "+theirs" in theirs
        assert "+ours" in ours
        assert "theirs" not in ours
    else:
        assert "base: not known" in shown
        assert "-theirs" in shown
    (told,) = json.loads(cli("diff", "last", "a.txt", "--json").stdout)
    assert told["host"]["size_bytes"] == len(cli.get("a.txt"))
    assert told["staged"]["digest"]
    assert (told["base"] is not None) == (cli.uid == 0)


def test_what_the_agent_only_read_before_the_edit_is_a_conflict_once_it_writes(cli: Cli) -> None:
    cli.put("a.txt", "base\n")
    script = "cat a.txt > /dev/null; meet; echo ours > a.txt; rm -f gone"
    held(cli, script, lambda: append(cli, "a.txt", "theirs\n"))
    assert conflicts(cli) == {"a.txt": "edited"}
    assert cli.get("a.txt") == "base\ntheirs\n"


def test_an_edit_before_the_agent_comes_is_a_conflict_only_where_nothing_tells(cli: Cli) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        cli.put(name, "base\n")

    def edit() -> None:
        append(cli, "a.txt", "theirs\n")
        append(cli, "b.txt", "theirs\n")
        os.unlink(os.path.join(cli.workspace, "c.txt"))

    script = "meet; cat a.txt > /dev/null; echo ours >> a.txt; rm b.txt; ls c.txt || echo ours > c.txt"
    held(cli, script, edit, rest_s=GLANCED_S)
    expected = None if cli.uid == 0 else "edited"
    assert conflicts(cli) == {"a.txt": expected, "b.txt": expected, "c.txt": None}


def test_files_that_appear_and_go_are_told_apart(cli: Cli) -> None:
    cli.put("old.txt", "base\n")
    cli.put("d/x", "base\n")
    cli.put("d/y", "base\n")

    def edit() -> None:
        os.unlink(os.path.join(cli.workspace, "old.txt"))
        cli.put("new.txt", "theirs\n")
        append(cli, "d/x", "theirs\n")

    held(cli, "echo ours >> old.txt; echo ours > new.txt; echo ours > kept.txt; rm -r d; meet", edit)
    found = conflicts(cli)
    assert found.pop("old.txt") == ("gone" if cli.uid == 0 else "uncertain")
    assert found == {"new.txt": "appeared", "kept.txt": None, "d": "edited"}
    shown = cli("diff", "last", "new.txt").stdout.decode()
    assert "the host made it too" in shown
    assert "+theirs" in shown
    assert "+ours" in shown


def test_both_making_the_same_edit_is_no_conflict(cli: Cli) -> None:
    cli.put("a.txt", "base\n")
    held(cli, "echo same >> a.txt; meet", lambda: append(cli, "a.txt", "same\n"))
    assert conflicts(cli) == {}


def test_what_a_terminal_would_obey_is_escaped(cli: Cli) -> None:
    cli.put("a.txt", "base\n")
    held(cli, "echo ours >> a.txt; meet", lambda: append(cli, "a.txt", "\x1b[2Jtheirs\n"))
    shown = cli("diff", "last", "a.txt").stdout
    assert b"\x1b" not in shown
    assert b"\\x1b[2Jtheirs" in shown


def test_a_missing_or_damaged_note_of_touches_makes_nothing_sure(cli: Cli) -> None:
    cli.put("a.txt", "base\n")
    held(cli, "meet; echo ours >> a.txt", lambda: append(cli, "a.txt", "theirs\n"))
    path = touches(cli)
    with open(path, "r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"xxxx")
    assert conflicts(cli) == {"a.txt": "edited"}
    os.unlink(path)
    assert conflicts(cli) == {"a.txt": "edited"}


def test_after_the_clock_was_set_back_nothing_is_sure(cli: Cli) -> None:
    cli.put("a.txt", "base\n")
    cli.put("b.txt", "base\n")
    held(cli, "echo ours >> a.txt; echo ours > new.txt; rm b.txt")
    assert conflicts(cli) == {"a.txt": None, "b.txt": None, "new.txt": None}

    def earlier(data: dict[str, Any]) -> None:
        data["offset_ns"] += 10 * 10**9

    rewrite(touches(cli), earlier)
    # what was surely seen and has not changed in any way is as sure as before
    sure = None if cli.uid == 0 else "uncertain"
    assert conflicts(cli) == {"a.txt": sure, "b.txt": sure, "new.txt": None}


def test_a_moved_folder_that_was_removed_meanwhile_costs_only_itself(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: an ordinary user's overlay copies a folder instead of moving it")
    cli.put("d/x", "x\n")
    done = cli.sh("mv d moved; echo more >> moved/x; echo fresh > fresh", "--hold")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(os.path.join(cli.workspace, "d"))
    refused = cli("apply", "last", "--on-conflict", "refuse")
    assert refused.returncode == 5
    assert not cli.has("fresh")
    done = cli("apply", "last", "--on-conflict", "theirs")
    assert done.returncode in (0, 6), done.stderr
    assert cli.get("fresh") == "fresh\n"
    assert not cli.has("d")
    assert not cli.has("moved")
    assert cli.verdict("last", "--replay") == "complete"
