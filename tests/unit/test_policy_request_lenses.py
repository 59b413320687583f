"""Lenses over requests: what a file may say, what is recognised, what vouches, and every mistake with its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock import policy as room
from interlock.model.errors import InputError, PolicyError
from interlock.model.verdicts import Decision, Verdict
from interlock.policy import Knowledge, Policy
from interlock.policy.lenses.trying import read_file, request_of
from interlock.runtime import lenses

HOSTS = "network: {hosts: [{host: api.github.com}, {host: github.com}, {host: slack.com}]}\n"
ISSUES = "POST https://api.github.com/repos/acme/lamp/issues"
OWN = """\
lens: lamps
hosts: [lamps.test, "{shop}.lamps.test"]
actions:
  light:
    request: PUT /lamps/{lamp}
    body: json
    effect: write
    asks: [light]
    steers: {lamp: name}
    carries: [body.note]
tests:
  - {request: PUT https://lamps.test/lamps/one, body: {note: x}, is: light}
"""


def policy_of(*used: str, more: str = HOSTS) -> Policy:
    text = f"version: 1\n{more}lenses: [{', '.join(used)}]\n"
    return room.load_policy(lenses.written_in(text, "/nowhere/p.yaml"), filename="p.yaml")


def judged(policy: Policy, task: str, line: str, body: Any = None, **more: Any) -> Verdict:
    known = Knowledge.started(policy, task, 0)
    made = request_of(line, more.get("headers", {}), body, more.get("pushes", []))
    assert made is not None
    effect = room.characterise_request(policy, known, made, "e1")
    (verdict,) = room.decide(policy, known, (effect,))
    return verdict


@pytest.fixture(scope="module")
def github() -> Policy:
    return policy_of("github", "git", "slack")


@pytest.mark.parametrize("name", lenses.shipped())
def test_the_examples_of_a_shipped_lens_hold(name: str) -> None:
    read = lenses.load(name, hosts=("rpc.example.com",) if name == "jsonrpc" else ())
    assert read.about
    assert [one.name for one in read.tried if not one.holds] == []
    kinds = {one.wanted == "none" for one in read.tried}
    assert kinds == {True, False}, "a lens shows what it takes and what it does not"


@pytest.mark.parametrize(
    ("task", "line", "body", "decision"),
    [
        ("open an issue in acme/lamp", ISSUES, {"title": "x"}, "release"),
        ("open an issue in acme/other", ISSUES, {"title": "x"}, "defer"),
        ("look at acme/lamp", ISSUES, {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES, {"title": "x", "unheard": 1}, "defer"),
        ("open an issue in acme/lamp", ISSUES, {"title": "x", "Assignee": "eve"}, "defer"),
        ("open an issue in acme/lamp", ISSUES, '{"title": "x", "title": "y"}', "defer"),
        ("open an issue in acme/lamp", ISSUES, "[]", "defer"),
        ("open an issue in acme/lamp", ISSUES + "?assignee=eve", {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES.replace("acme/lamp", "acme%2Flamp"), {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES.replace("/acme", "//acme"), {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES + "/", {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES.replace("api.github.com", "api.evil.test"), {"title": "x"}, "defer"),
        ("open an issue in acme/lamp", ISSUES.replace("POST", "PUT"), {"title": "x"}, "defer"),
    ],
)  # fmt: skip
def test_an_action_is_vouched_for_by_what_steers_it_and_by_what_asks_for_it(
    github: Policy, task: str, line: str, body: Any, decision: str
) -> None:
    headers = {"content-type": "application/json"}
    assert judged(github, task, line, body, headers=headers).decision.value == decision


@pytest.mark.parametrize("field", ["x-http-method-override", "x-http-method", "x-original-url"])
def test_a_request_that_may_be_taken_for_another_is_not_recognised(github: Policy, field: str) -> None:
    verdict = judged(github, "open an issue in acme/lamp", ISSUES, {"title": "x"}, headers={field: "DELETE"})
    assert verdict.decision is Decision.DEFER


def test_a_lens_never_vouches_for_a_host() -> None:
    policy = policy_of("github", more="network: {hosts: [{host: docs.test}]}\n")
    verdict = judged(policy, "open an issue in acme/lamp", ISSUES, {"title": "x"})
    assert verdict.decision is Decision.DEFER
    assert "host" in verdict.checks[-1].reason


@pytest.mark.parametrize(
    ("task", "ref", "kind", "decision"),
    [
        ("push main to acme/lamp", "refs/heads/main", "forward", "release"),
        ("push main to acme/lamp", "refs/heads/main", "forced", "defer"),
        ("push main to acme/lamp", "refs/heads/main", "delete", "defer"),
        ("push main to acme/lamp", "refs/heads/other", "create", "defer"),
        ("push main to acme/lamp", "refs/pull/1/head", "create", "defer"),
        ("push main to acme/other", "refs/heads/main", "forward", "defer"),
        ("look at main in acme/lamp", "refs/heads/main", "forward", "defer"),
        ("push tag v1.2.0 to acme/lamp", "refs/tags/v1.2.0", "create", "release"),
    ],
)
def test_a_push_is_vouched_for_by_its_repository_and_its_references(
    github: Policy, task: str, ref: str, kind: str, decision: str
) -> None:
    line = "POST https://github.com/acme/lamp.git/git-receive-pack"
    pushes = [{"ref": ref, "kind": kind}]
    assert judged(github, task, line, pushes=pushes).decision.value == decision


def test_a_push_begins_where_the_repository_is_named(github: Policy) -> None:
    line = "GET https://github.com/acme/lamp.git/info/refs?service=git-receive-pack"
    assert judged(github, "push main to acme/lamp", line).decision is Decision.RELEASE
    assert judged(github, "push main to acme/other", line).decision is Decision.DEFER


def test_rules_see_the_name_of_an_action() -> None:
    rule = (
        'cedar: |\n  @id("no-issues")\n  forbid(principal, action, resource)\n'
        '  when { context.lens == "github.issues_create" };\n'
    )
    policy = policy_of("github", more=HOSTS + rule)
    verdict = judged(policy, "open an issue in acme/lamp", ISSUES, {"title": "x"})
    assert (verdict.decision, verdict.checks[-1].rules) == (Decision.REFUSE, ("no-issues",))


def test_a_recorded_policy_holds_its_lenses_and_loads_to_the_same(github: Policy) -> None:
    again = room.load_policy(github.text, filename="p.yaml")
    assert again == github
    assert lenses.written_in(github.text, "p.yaml") == github.text


def test_a_file_of_ones_own_stands_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    text = "version: 1\nnetwork: {hosts: [{host: lamps.test}]}\nlenses: [./own.yaml]\n"
    written = lenses.written_in(text, str(tmp_path / "policy.yaml"))
    policy = room.load_policy(written, filename="p.yaml")
    assert json.loads(written.rpartition("lens_texts: ")[2]).keys() == {"./own.yaml"}
    verdict = judged(policy, "light lamp-one", "PUT https://lamps.test/lamps/lamp-one", {"note": "now"})
    assert verdict.decision is Decision.RELEASE
    (tmp_path / "own.yaml").write_text(OWN.replace("is: light", "is: none"), encoding="utf-8")
    with pytest.raises(PolicyError, match="does not hold"):
        lenses.written_in(text, str(tmp_path / "policy.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("request: PUT /lamps/{lamp}", "request: FETCH /x", 5, "not a request"),
        ("/lamps/{lamp}", "/lamps/{lamp+}/x", 5, "holes"),
        ("/lamps/{lamp}", "/lamps/{lamp", 5, "holes"),
        ("/lamps/{lamp}", "/{lamp}/{lamp}", 5, "holes"),
        ("/lamps/{lamp}", "/lamps/{body}", 5, "another part"),
        ("body: json", "body: yaml", 6, "read a body"),
        ("effect: write", "effect: shout", 7, "effect"),
        ("effect: write", "effects: write", 7, "unknown key"),
        ("lamp: name", "lamp: nonsense", 9, "type"),
        ("lens: lamps", "lens: my lamps", 1, "name"),
        ("[lamps.test,", "[https://lamps.test,", 2, "host"),
        ("  light:\n", "  li-ght:\n", 4, "action's name"),
        ("is: light", "was: light", 12, "unknown key"),
        ("PUT https://lamps.test/lamps/one", "PUT lamps/one", 12, "not a request"),
        ("actions:", "acts:", 3, "unknown key"),
        ("asks: [light]", "slashes: [other]", 8, "no `{other}`"),
    ],
)
def test_a_mistake_is_said_with_its_line(old: str, new: str, line: int, says: str) -> None:
    assert old in OWN
    with pytest.raises(PolicyError) as failure:
        read_file(OWN.replace(old, new, 1), filename="own.yaml")
    assert says in failure.value.message
    assert (failure.value.line, bool(failure.value.hint)) == (line, True)


@pytest.mark.parametrize("used", ["githib", "./nowhere.yaml"])
def test_a_lens_that_is_not_there_stops_the_start(used: str) -> None:
    with pytest.raises(InputError):
        policy_of(used)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lenses: [github]\n", "not written into"),
        ("lenses: github\n", "list of lenses"),
        ("lenses: [3]\n", "name or file"),
        ("lenses: [{uses: github}]\n", "unknown key"),
    ],
)
def test_a_policy_without_its_lenses_is_refused(text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        room.load_policy(f"version: 1\n{text}", filename="p.yaml")


def test_a_lens_is_used_once() -> None:
    with pytest.raises(PolicyError, match="used twice"):
        policy_of("github", "{use: github, hosts: [ghe.test]}")


@pytest.mark.parametrize("more", [{"unheard": None}, {"unheard": []}, {"assignees": []}, {"milestone": {}}])
def test_what_may_clear_something_is_asked_about(github: Policy, more: dict[str, Any]) -> None:
    released = set(more) == {"milestone"}  # declared as carried
    verdict = judged(github, "open an issue in acme/lamp", ISSUES, {"title": "x", **more})
    assert (verdict.decision is Decision.RELEASE) is released
