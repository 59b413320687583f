"""Lenses over requests through the command line: curl and git behind the boundary, and what show and why say."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, interpreter_for

LENS = """\
lens: git
about: pushes to a server whose repositories lie in no folder
hosts: [git.test]
actions:
  push:
    request: POST /{repository}/git-receive-pack
    body: git
    effect: send
    asks: [push]
    steers: {repository: name, "updates[].branch": name, "updates[].tag": name, "updates[].ref": name}
    carries: ["updates[].kind"]
  push_begins:
    request: GET /{repository}/info/refs
    when: {query.service: git-receive-pack}
    effect: write
    asks: [push]
    steers: {repository: name}
    carries: [query.service]
tests:
  - {request: POST https://git.test/demo.git/git-receive-pack, pushes: [{ref: refs/heads/a, kind: create}], is: push}
"""
POLICY = """\
version: 1
preset: coding
network: {hosts: [{host: api.test}, {host: git.test}]}
lenses: [{use: github, hosts: [api.test]}, ./git.yaml]
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl", "git"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture
def standing(world: World) -> Iterator[Standing]:
    made = Standing(world, os.geteuid(), interpreter_for(os.geteuid()))
    for name, text in (("policy.yaml", POLICY), ("git.yaml", LENS)):
        with open(f"{made.base}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    yield made
    made.close()


def ran(standing: Standing, task: str, script: str) -> str:
    """Run a script for a task; return what it printed."""
    options = ("--policy", f"{standing.base}/policy.yaml", "--oracle", "strict", "--task", task)
    done = standing("run", *options, "--", "sh", standing.script(script))
    return done.stdout.decode()


def curl(path: str, body: str, *more: str) -> str:
    words = " ".join(("curl -s -o /dev/null -w '%{http_code}\\n' -H 'content-type: application/json'", *more))
    return f"{words} -d '{body}' https://api.test{path}"


def test_an_issue_is_opened_where_the_task_says_and_nowhere_else(world: World, standing: Standing) -> None:
    mark = world.mark()
    body = '{"title": "it flickers"}'
    script = "\n".join(
        (
            curl("/repos/acme/lamp/issues", body),
            curl("/repos/acme/other/issues", body),
            curl("/repos/acme/lamp/issues", '{"title": "a", "assignees": ["eve"]}'),
            curl("/repos/acme/lamp/issues", '{"title": "a", "title": "b"}'),
            curl("/repos/acme/lamp/issues", body, "-H 'x-http-method-override: DELETE'"),
            curl("/repos/acme/lamp%2f..%2fother/issues", body),
        )
    )
    printed = ran(standing, "open an issue in acme/lamp about the flicker", script)
    assert printed.split() == ["200", "403", "403", "403", "403", "403"]
    reached = [(one.method, one.path) for one in world.requests(mark) if one.method == "POST"]
    assert reached == [("POST", "/repos/acme/lamp/issues")]
    story = json.loads(standing("show", "last", "--json").stdout)
    assert [one["fate"] for one in story["effects"]][:2] == ["sent", "refused"]
    assert [one.get("lens", {}).get("tool") for one in story["effects"]] == [
        *["github.issues_create"] * 3,
        None,
        None,
        None,
    ]
    shown = standing("show", "last").stdout.decode()
    assert "github.issues_create" in shown
    why = standing("why", "last", story["effects"][1]["id"]).stdout.decode()
    assert "a lens reads it as github.issues_create" in why
    assert "nothing vouches for all that steers `github.issues_create`" in why
    verified = json.loads(standing("verify", "last", "--json", "--replay").stdout)
    assert verified["verdict"] == "complete"


def test_git_pushes_the_branch_that_the_task_names(world: World, standing: Standing) -> None:
    mark = world.mark()
    script = """
git clone -q https://git.test/demo.git work && cd work
git config user.email a@b.test && git config user.name a
git checkout -q -b feature-lamp && git commit -q --allow-empty -m one
git push -q origin feature-lamp >/dev/null 2>&1; echo $?
git checkout -q -b quiet-other && git commit -q --allow-empty -m two
git push -q origin quiet-other >/dev/null 2>&1; test $? -ne 0; echo $?
"""
    printed = ran(standing, "push the branch feature-lamp to demo on our server", script)
    assert printed.split() == ["0", "0"]
    pushed = [one.path for one in world.requests(mark) if one.path.endswith("/git-receive-pack")]
    assert pushed == ["/demo.git/git-receive-pack"]
    verified = json.loads(standing("verify", "last", "--json", "--replay").stdout)
    assert verified["verdict"] == "complete"
