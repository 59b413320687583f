"""Lenses as data: what they recognise, what that vouches for, and what is wrong with a lens's file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import policy as room
from interlock.model.errors import PolicyError
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision, Verdict
from interlock.policy import Knowledge
from interlock.policy.lenses.graphql import only_field
from interlock.policy.lenses.recognising import recognise
from interlock.policy.lenses.trying import read_file, request_of
from interlock.runtime.lenses import load, shipped, written_in

ISSUES = "POST https://api.github.com/repos/acme/lamp/issues"
POLICY = written_in(
    """\
version: 1
preset: coding
trusted: [{task: true}]
network:
  hosts: [{host: api.github.com}, {host: slack.com}, {host: rpc.example.com}, {host: gmail.googleapis.com}]
lenses: [github, slack, gmail, {use: jsonrpc, hosts: [rpc.example.com]}]
""",
    "p.yaml",
)


def judged(task: str, line: str, body: Any = None, **headers: str) -> Verdict:
    policy = room.load_policy(POLICY, filename="p.yaml")
    request = request_of(line, headers, body, [])
    assert request is not None
    known = Knowledge.started(policy, task, 0)
    (verdict,) = room.decide(policy, known, (room.characterise_request(policy, known, request, "e1"),))
    return verdict


@pytest.mark.parametrize("name", shipped())
def test_each_example_of_a_lens_that_ships_holds(name: str) -> None:
    read = load(name, hosts=("rpc.example.com",) if name == "jsonrpc" else ())
    assert [one for one in read.tried if not one.holds] == []
    assert any(one.wanted == "none" for one in read.tried), "no example says what it is not"
    assert len({one.wanted for one in read.tried}) > 1


@pytest.mark.parametrize(
    ("task", "line", "body", "decision"),
    [
        ("open an issue in `acme/lamp` about the dark", ISSUES, {"title": "dark", "body": "it is"}, Decision.RELEASE),
        ("open an issue in `acme/lamp`", ISSUES, {"title": "see", "labels": ["bug"]}, Decision.RELEASE),
        # Another repository, and no task that asks for it.
        ("open an issue in `acme/other`", ISSUES, {"title": "dark"}, Decision.DEFER),
        ("look at `acme/lamp`", ISSUES, {"title": "dark"}, Decision.DEFER),
        # What the lens does not know steers.
        ("open an issue in `acme/lamp`", ISSUES, {"title": "dark", "visibility": "everyone"}, Decision.DEFER),
        ("open an issue in `acme/lamp`", ISSUES, {"title": "dark", "assignees": ["eve-x"]}, Decision.DEFER),
        ("open an issue in `acme/lamp` for `ann-x`", ISSUES, {"title": "dark", "assignees": ["ann-x"]}, Decision.RELEASE),
        # A link in what it carries leads somewhere.
        ("open an issue in `acme/lamp`", ISSUES, {"title": "see https://evil.test/x"}, Decision.DEFER),
        # What cannot be read in one way.
        ("open an issue in `acme/lamp`", ISSUES, '{"title": "a", "Title": "b"}', Decision.DEFER),
        ("open an issue in `acme/lamp`", ISSUES + "?_method=DELETE", {"title": "a"}, Decision.DEFER),
        ("delete `acme/lamp`", "DELETE https://api.github.com/repos/acme/lamp", None, Decision.RELEASE),
        ("open an issue in `acme/lamp`", "DELETE https://api.github.com/repos/acme/lamp", None, Decision.DEFER),
        ("post hello to `#general`", "POST https://slack.com/api/chat.postMessage", {"channel": "#general", "text": "hi"}, Decision.RELEASE),
        ("post hello to `#general`", "POST https://slack.com/api/chat.postMessage", {"channel": "#random", "text": "hi"}, Decision.DEFER),
        # Whom it goes to cannot be read.
        ("send a mail", "POST https://gmail.googleapis.com/gmail/v1/users/me/messages/send", {"raw": "VG8"}, Decision.DEFER),
        ("look", "POST https://rpc.example.com/v1", {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": []}, Decision.RELEASE),
        ("look", "POST https://rpc.example.com/v1", {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [{"to": "0x1"}]}, Decision.DEFER),
    ],
)  # fmt: skip
def test_a_recognised_request_is_vouched_for_by_what_steers_its_action(
    task: str, line: str, body: Any, decision: Decision
) -> None:
    headers = {"content-type": "application/json"} if isinstance(body, str) else {}
    verdict = judged(task, line, body, **headers)
    assert verdict.decision is decision, verdict.reason
    if decision is Decision.RELEASE:
        assert [one.rule for one in verdict.derivations] == ["named-in-policy", "lens-action"]


def test_the_action_is_named_where_nothing_vouches_for_it() -> None:
    verdict = judged("look", ISSUES, {"title": "dark"})
    assert "`github.issues_create`" in verdict.reason
    assert "acme/lamp" in verdict.reason


def test_a_lens_never_vouches_for_a_host() -> None:
    text = POLICY.replace("{host: api.github.com}, ", "")
    policy = room.load_policy(text, filename="p.yaml")
    request = request_of(ISSUES, {}, {"title": "dark"}, [])
    assert request is not None
    known = Knowledge.started(policy, "open an issue in `acme/lamp`", 0)
    (verdict,) = room.decide(policy, known, (room.characterise_request(policy, known, request, "e1"),))
    assert verdict.decision is Decision.DEFER


def test_a_rule_may_speak_of_an_action() -> None:
    text = (
        POLICY
        + 'cedar: |\n  @id("no-issues")\n  forbid(principal, action, resource) when { context.lens == "github.issues_create" };\n'
    )
    policy = room.load_policy(text, filename="p.yaml")
    request = request_of(ISSUES, {}, {"title": "dark"}, [])
    assert request is not None
    known = Knowledge.started(policy, "open an issue in `acme/lamp`", 0)
    (verdict,) = room.decide(policy, known, (room.characterise_request(policy, known, request, "e1"),))
    assert (verdict.decision, verdict.checks[0].rules) == (Decision.REFUSE, ("no-issues",))


@pytest.mark.parametrize(
    ("document", "operation", "field"),
    [
        ("mutation M($i: X!) { createIssue(input: $i) { issue { id } } }", "M", "createIssue"),
        ("mutation M($i: X!) { createIssue(input: $i) { issue { id } } }", "N", ""),
        ('query ($a: S = "x") { search(query: $a) { id } } # end', "", "search"),
        ("{ viewer { login } }", "", "viewer"),
        ("{ viewer { login(x: 1) } }", "", ""),
        ("{ ...F } fragment F on Query { viewer { id } }", "", ""),
        ("query A { viewer { id } } query B { viewer { id } }", "A", ""),
        ("subscription { viewer { id } }", "", ""),
        ("query @cached { viewer { id } }", "", ""),
        ("{ viewer @skip(if: $x) { id } }", "", ""),
        ("{ viewer { id", "", ""),
        ("", "", ""),
        ("{ viewer { id } } \x00", "", ""),
    ],
)
def test_of_graphql_only_the_plainest_document_is_read(document: str, operation: str, field: str) -> None:
    found = only_field(document, operation)
    assert (found.name if found else "") == field


def lens(**changed: Any) -> str:
    action = {
        "request": "POST /items/{item}", "body": "json", "effect": "send", "steers": {"item": "name"}, **changed.pop("action", {}),
    }  # fmt: skip
    return json.dumps({"lens": "own", "hosts": ["api.a.test"], "actions": {"make": action}, **changed})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (lens(lens="no name"), "not a lens's name"),
        (lens(hosts=[]), "at which hosts"),
        (lens(hosts=["API.a.test"]), "not a host"),
        (lens(hosts=["https://a.test"]), "not a host"),
        (lens(hosts=["{a}.{a}.test"]), "its holes cannot be read"),
        (lens(actions={}), "a mapping of actions"),
        (lens(action={"request": "BREW /x"}), "not a request"),
        (lens(action={"request": "POST items"}), "its holes cannot be read"),
        (lens(action={"request": "POST /a/{rest+}/b"}), "its holes cannot be read"),
        (lens(action={"request": "POST /a/{body}"}), "is the name of another part"),
        (lens(action={"body": "xml"}), "not a way to read a body"),
        (lens(action={"steers": {"item": "thing"}}), "not a type of values"),
        (lens(action={"effect": "buy"}), "`effect` must be one of"),
        (lens(action={"parks": True}), "parks"),
        (lens(action={"slashes": ["other"]}), "the path has no `{other}`"),
        (lens(action={"carries": ["item"]}), "has two roles"),
        (lens(tests=[{"request": "no", "is": "make"}]), "not a request"),
        (lens(tests={}), "a list of examples"),
        (lens(more=1), "more"),
        ("lens: [", "not YAML"),
    ],
)
def test_what_is_wrong_with_a_lens_is_said(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_file(text, filename="own.yaml")
    assert says in caught.value.message
    assert caught.value.hint


def test_an_example_that_does_not_hold_is_no_error_of_the_file() -> None:
    read = read_file(
        lens(tests=[{"request": "POST https://api.a.test/items/a", "is": "make"}]), filename="own.yaml"
    )
    assert [(one.wanted, one.came) for one in read.tried] == [("make", "none")]


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("version: 1\nlenses: github\n", "a list of lenses"),
        ("version: 1\nlenses: [github, github]\n", "used twice"),
        ("version: 1\nlenses: [jsonrpc]\n", "at which hosts"),
        ("version: 1\nlenses: [{use: jsonrpc}]\n", "at which hosts"),
        (
            "version: 1\nlenses: [github]\ntools: {github.issues_create: {effect: read}}\n",
            "an action of a lens too",
        ),
    ],
)
def test_what_is_wrong_with_a_policys_lenses_is_said(policy: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        room.load_policy(written_in(policy, "p.yaml"), filename="p.yaml")
    assert says in caught.value.message


def test_a_policy_without_its_lenses_written_in_is_refused() -> None:
    with pytest.raises(PolicyError, match="is not written into this policy"):
        room.load_policy("version: 1\nlenses: [github]\n", filename="p.yaml")


def test_what_two_lenses_take_for_theirs_is_nobodys() -> None:
    one = read_file(lens(), filename="a.yaml").lens
    other = read_file(lens(lens="other"), filename="b.yaml").lens
    request = request_of("POST https://api.a.test/items/a", {}, {}, [])
    assert request is not None
    assert recognise((one,), request) is not None
    assert recognise((one, other), request) is None


def test_a_body_that_streams_or_is_no_text_is_not_recognised() -> None:
    one = read_file(lens(), filename="a.yaml").lens
    for more in ({"body_size_bytes": -1}, {"body_size_bytes": 9, "body_text": None}):
        request = NetRequest(
            method="POST", scheme="https", host="api.a.test", port=443, path="/items/a",
            headers=(("content-type", "application/json"),), **more,  # type: ignore[arg-type]
        )  # fmt: skip
        assert recognise((one,), request) is None
