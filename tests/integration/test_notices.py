"""`interlock notices`: an agent without a channel reads what was refused, and so does whoever looks later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from tests.integration.conftest import Cli, in_one_standing

pytestmark = in_one_standing

FIELDS = {"effect", "object", "type", "violated_rule", "rationale", "constraints", "allowed_objective"}


def inside(cli: Cli, script: str, *options: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a script behind the boundary, in which `notices` is the verb of the command under test."""
    path, interpreter = (
        cli.environment()["PYTHONPATH"],
        f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}",
    )
    if not os.path.exists(interpreter):
        pytest.skip(f"not run: no {interpreter}, and what lies in a home is not to be seen inside")
    notices = f"notices() {{ PYTHONPATH='{path}' {interpreter} -m interlock notices \"$@\"; }}\n"
    return cli("run", *options, "--", "sh", "-c", notices + script, **more)


def get(url: str) -> str:
    return f"{{ curl -s -o /dev/null {url} || true; }}"


def test_an_agent_reads_inside_what_was_refused_so_far(cli: Cli) -> None:
    script = (
        "notices --json; " + get("http://one.example/x") + "; " + get("http://two.example/y") + "; "
        "notices --json; notices --since 1 --json; notices"
    )
    done = inside(cli, script, "--task", "look around")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    decoder, documents = json.JSONDecoder(), []
    while text.startswith("{"):
        document, end = decoder.raw_decode(text)
        documents.append(document["notices"])
        text = text[end:].lstrip()
    none, both, later = documents
    assert none == []
    assert [(one["number"], one["object"]) for one in both] == [
        (1, "http://one.example/x"),
        (2, "http://two.example/y"),
    ]
    assert later == both[1:]
    assert all(one.keys() == FIELDS | {"number"} and one["constraints"] for one in both)
    for word in ("violated rule", "rationale", "constraints", "allowed objective", "http://two.example/y"):
        assert word in text


def test_whoever_looks_later_reads_the_same_and_the_refused_files(cli: Cli) -> None:
    script = (
        get("http://one.example/x") + "; notices --json; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit"
    )
    done = inside(cli, script, "--task", "look around")
    assert done.returncode == 6, done.stderr
    (told,) = json.loads(done.stdout)["notices"]
    later = json.loads(cli("notices", "last", "--json").stdout)["notices"]
    assert later[0] == told
    assert "workspace:.git/hooks/pre-commit" in [one["object"] for one in later]
    assert [one["number"] for one in later] == list(range(1, len(later) + 1))
    assert all(one.keys() == FIELDS | {"number"} for one in later)
    since = json.loads(cli("notices", "last", "--since", "1", "--json").stdout)["notices"]
    assert since == later[1:]
    text = cli("notices", "last").stdout.decode()
    assert text.count("violated rule") == len(later)
    nothing = cli("notices", "last", "--since", "99")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (
        0,
        b"",
        b"nothing was refused since then\n",
    )


def test_a_run_that_is_under_way_is_read_from_outside(cli: Cli) -> None:
    script = get("http://one.example/x") + "; touch seen; sleep 30"
    with subprocess.Popen(
        cli.words("run", "--task", "look around", "--", "sh", "-c", script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **cli.identity(),
    ) as run:
        try:
            end = time.monotonic() + 20
            found: list[dict[str, object]] = []
            while not found and time.monotonic() < end:
                done = cli("notices", "last", "--json")
                found = json.loads(done.stdout)["notices"] if done.returncode == 0 else []
                time.sleep(0.05)
            assert [one["object"] for one in found] == ["http://one.example/x"], done.stderr
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait(20)


def test_what_an_agent_named_cannot_steer_the_terminal(cli: Cli) -> None:
    script = "mkdir -p .git/hooks; printf x >\".git/hooks/a$(printf '\\\\033]0;x\\\\007\\\\n')b\""
    done = cli.sh(script, "--oracle", "strict")
    assert done.returncode == 6, done.stderr
    shown = cli("notices", "last").stdout
    assert b"\x1b" not in shown
    assert b"\x07" not in shown
    assert shown.count(b"violated rule") == shown.count(b"refuse ")


def test_nothing_refused_is_said_on_stderr_alone(cli: Cli) -> None:
    assert cli.sh("true").returncode == 0
    done = cli("notices", "last")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"nothing was refused\n")
    assert json.loads(cli("notices", "last", "--json").stdout) == {"notices": []}


def test_outside_a_run_must_be_named(cli: Cli) -> None:
    done = cli("notices")
    assert done.returncode == 2
    assert b"name it: interlock notices last" in done.stderr
    assert cli("notices", "last", "--since", "-1").returncode == 2
    assert cli("notices", "nobody").returncode == 2


def test_a_variable_that_only_claims_to_be_inside_gets_a_clear_error(cli: Cli) -> None:
    done = cli("notices", environment={"INTERLOCK_NOTICES": "http://elsewhere/"})
    assert done.returncode == 5
    assert b"does not answer" in done.stderr
