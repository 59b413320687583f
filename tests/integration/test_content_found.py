"""A key in a file that no policy names does not leave, where the policy looks for keys."""

import os
import time
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, interpreter_for

KEY = "ghp_" + "Zk4v9TqLw2Xc7Rb1" + "Ny6Hs3Jd8Mf5Pg0AeUiO"
HOSTS = {"hosts": [{"host": "api.test", "methods": ["*"], "clearance": "internal"}]}
LOOKS = [{"content": "keys"}]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.mark.parametrize(("sensitive", "expected"), [(LOOKS, ["200", "403"]), ([], ["200", "200"])])
def test_a_key_wherever_it_lies_does_not_leave(
    world: World, sensitive: list[dict[str, str]], expected: list[str]
) -> None:
    interpreter = interpreter_for(0)
    assert interpreter
    standing = Standing(world, 0, interpreter)
    try:
        standing.put("notes/deploy.md", f"The key of the robot is {KEY}, keep it.\n")
        standing.put("notes/other.md", "Nothing of the kind.\n")
        script = (
            "cat notes/*.md > /dev/null\n"
            "curl -s -o /dev/null -w '%{http_code} ' -d @notes/other.md https://api.test/a\n"
            f"curl -s -o /dev/null -w '%{{http_code}} ' -d k=$(echo {KEY} | base64) https://api.test/b\n"
        )
        done = standing.sh(script, HOSTS, sensitive=sensitive)
        assert done.stdout.decode().split() == expected, done.stderr.decode()
    finally:
        standing.close()


TEXT = f"The key of the robot is {KEY}, keep it.\n"
FORMS = {
    "long": ("a line of some log, and nothing else\n" * 60_000 + TEXT).encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "no text": b"\x00\xff\x01" + TEXT.encode() + b"\x9f",
}


@pytest.mark.parametrize(
    "form", ["long", *(pytest.param(one, marks=pytest.mark.slow) for one in ("UTF-16", "no text"))]
)
def test_a_key_in_a_file_that_is_no_text_to_be_had_whole_lets_nothing_leave(world: World, form: str) -> None:
    interpreter = interpreter_for(0)
    assert interpreter
    standing = Standing(world, 0, interpreter)
    try:
        standing.put("notes/deploy.log", FORMS[form])
        send = "curl -s -o /dev/null -w '%{http_code} ' -d 'good morning' https://api.test/a\n"
        done = standing.sh(f"{send}head -c 10 notes/deploy.log > /dev/null\n{send}", HOSTS, sensitive=LOOKS)
        assert done.stdout.decode().split() == ["200", "403"], done.stderr.decode()
    finally:
        standing.close()


@pytest.mark.slow
def test_a_gigabyte_that_is_read_holds_what_is_looked_for_and_holds_nothing_up(world: World) -> None:
    interpreter = interpreter_for(0)
    assert interpreter
    standing = Standing(world, 0, interpreter)
    try:
        standing.put("notes/a.log", "a line of some log\n")
        os.truncate(f"{standing.project}/notes/a.log", 1 << 30)
        send = "curl -s -o /dev/null -w '%{http_code} ' -d 'good morning' https://api.test/a\n"
        began = time.monotonic()
        done = standing.sh(f"head -c 10 notes/a.log > /dev/null\n{send}", HOSTS, sensitive=LOOKS)
        assert done.stdout.decode().split() == ["403"], done.stderr.decode()
        assert time.monotonic() - began < 30
    finally:
        standing.close()
