"""`network.compensations`: what is read, what is a mistake, and what request undoes another."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.test_policy_network import request

from interlock.model.errors import PolicyError
from interlock.model.requests import NetResponse, Outcome
from interlock.policy import load_policy
from interlock.policy.compensations import CannotUndo, Reverse, reverse_of
from interlock.policy.network import Network

ITEMS = '{host: api.test, path: "/v1/items", undo: {method: DELETE, path: "/v1/items/{id}"}}'
DONE = NetResponse(outcome=Outcome.DONE, status=201, text='{"id": 7, "data": {"key": "a b"}}')


def network(*entries: str, secrets: str = "[]") -> Network:
    lines = "".join(f"    - {entry}\n" for entry in entries)
    text = f"version: 1\npreset: coding\nnetwork:\n  secrets: {secrets}\n  compensations:\n{lines}"
    return load_policy(text, filename="p.yaml").network


def undone(entry: str, url: str, response: NetResponse | None = DONE) -> Reverse:
    policy = network(entry)
    sent = request(url, method="POST")
    found = policy.compensation_of(sent)
    assert found is not None
    return reverse_of(found, sent, response)


def test_a_leaf_of_the_answer_becomes_one_segment_of_the_path() -> None:
    reverse = undone(ITEMS, "https://api.test/v1/items")
    assert (reverse.method, reverse.path, reverse.body) == ("DELETE", "/v1/items/7", b"")
    deep = ITEMS.replace("{id}", "{data.key}/x")
    assert undone(deep, "https://api.test/v1/items").path == "/v1/items/a%20b/x"


@pytest.mark.parametrize("leaf", ["a?b=c", "x#y", "ä", "a;b", "%2e%2e", "a&b"])
def test_a_leaf_never_leaves_its_segment(leaf: str) -> None:
    answer = replace(DONE, text=json.dumps({"id": leaf}))
    path = undone(ITEMS, "https://api.test/v1/items", answer).path
    assert path.count("/") == 3
    assert not set(path) & set("?#;& ")
    assert "%2e" not in path


def test_a_segment_of_its_own_path_and_a_body() -> None:
    entry = (
        '{host: "*.corp.test", path: "/r/*/locks", undo: {method: POST, path: "/r/{1}/unlock", '
        'body: {lock: "{id}", force: false}}}'
    )
    reverse = undone(entry, "https://api.corp.test/r/a%20b/locks")
    assert reverse.path == "/r/a%20b/unlock"
    assert reverse.body == b'{"lock":7,"force":false}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "not kept"),
        ("", "not kept"),
        ("<html>", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[7]", "has no `id`"),
        ("{}", "has no `id`"),
        ('{"id": null}', "neither a plain text"),
        ('{"id": true}', "neither a plain text"),
        ('{"id": 1.5}', "neither a plain text"),
        ('{"id": ""}', "neither a plain text"),
        ('{"id": {"x": 1}}', "neither a plain text"),
        ('{"id": "a\\r\\nb"}', "neither a plain text"),
        ('{"id": "%s"}' % ("x" * 513), "neither a plain text"),
        ('{"id": ".."}', "no plain path segment"),
        ('{"id": "."}', "no plain path segment"),
        ('{"id": "a/b"}', "no plain path segment"),
        ('{"id": "..\\\\admin"}', "no plain path segment"),
    ],
)
def test_an_answer_that_does_not_fit_cannot_be_undone(text: str | None, why: str) -> None:
    with pytest.raises(CannotUndo, match=why):
        undone(ITEMS, "https://api.test/v1/items", replace(DONE, text=text))


@pytest.mark.parametrize(
    "response",
    [
        None,
        replace(DONE, outcome=Outcome.UNKNOWN),
        replace(DONE, outcome=Outcome.FAILED),
        replace(DONE, status=500),
        replace(DONE, status=302),
    ],
)
def test_what_did_not_surely_succeed_has_no_reverse(response: NetResponse | None) -> None:
    with pytest.raises(CannotUndo):
        undone(ITEMS, "https://api.test/v1/items", response)


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "https://api.test/v1/items"),
        ("PUT", "https://api.test/v1/items"),
        ("POST", "https://other.test/v1/items"),
        ("POST", "https://sub.api.test/v1/items"),
        ("POST", "https://api.test:8443/v1/items"),
        ("POST", "https://api.test/v1/itemset"),
        ("POST", "https://api.test/v1/items/%2e%2e/x"),
        ("POST", "wss://api.test/v1/items"),
    ],
)
def test_an_entry_is_read_narrowly(method: str, url: str) -> None:
    policy = network(ITEMS)
    assert policy.compensation_of(request(url, method=method)) is None
    assert not policy.keeps_text(request(url, method=method))


def test_the_answer_of_what_can_be_undone_is_kept() -> None:
    assert network(ITEMS).keeps_text(request("https://api.test/v1/items", method="POST"))


GITHUB = "[{name: github, hosts: [api.test], from: GITHUB_TOKEN}]"


def test_a_header_may_name_a_bound_secret() -> None:
    entry = ITEMS.replace('{id}"', '{id}", headers: {Authorization: "Bearer {secret.github}"}')
    (found,) = network(entry, secrets=GITHUB).compensations
    assert found.undo_headers == (("authorization", "Bearer {secret.github}"),)
    assert found.secrets == ("github",)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{host: api.test, path: /x}", "wants the key `undo`"),
        ('{path: /x, undo: {method: DELETE, path: "/x/{id}"}}', "wants the key `host`"),
        ("{host: api.test, path: /x, undo: {path: /x}}", "wants the key `method`"),
        ("{host: api.test, path: /x, undo: {method: DELETE}}", "wants the key `path`"),
        ("{host: api.test, path: /x, undo: DELETE}", "must be a mapping"),
        ("{host: api.test, path: /x, undo: {method: GET, path: /x}}", "`GET` changes nothing"),
        ("{host: api.test, method: GET, path: /x, undo: {method: DELETE, path: /x}}", "changes nothing"),
        ("{host: api.test, path: /x, undo: {method: delete, path: /x}}", "is no method"),
        ("{host: api.test, path: /x, undo: {method: DELETE, path: x}}", "not an absolute path"),
        ('{host: api.test, path: /x, undo: {method: DELETE, path: "/x?a={id}"}}', "not an absolute path"),
        ('{host: api.test, path: /x, undo: {method: DELETE, path: "/x/{id"}}', "not an absolute path"),
        ('{host: api.test, path: /x, undo: {method: DELETE, path: "/x/../{id}"}}', "normal form"),
        ('{host: api.test, path: /x, undo: {method: DELETE, path: "/x/{1}"}}', "names no segment"),
        ('{host: api.test, path: "/**/x", undo: {method: DELETE, path: "/x/{1}"}}', "cannot be counted"),
        ("{host: api.test, path: /x, undo: {method: DELETE, path: /x, body: 1}}", "must be a mapping"),
        ("{host: api.test, path: /x, undo: {method: DELETE, path: /x, body: {a: [1]}}}", "must be a text"),
        (
            '{host: api.test, path: /x, undo: {method: DELETE, path: /x, body: {a: "x{id}"}}}',
            "value of its own",
        ),
        ("{host: api.test, path: /x, undo: {method: DELETE, path: /x, headers: {host: a}}}", "no header"),
        (
            '{host: api.test, path: /x, undo: {method: DELETE, path: /x, headers: {a: "{secret.no}"}}}',
            "no secret `no` is bound",
        ),
        ('{host: api.test, path: /x, undo: {method: DELETE, path: /x, headers: {a: "{id}"}}}', "plain ASCII"),
        ("{host: api.test, path: /x, undo: {method: DELETE, path: /x}, what: 1}", "unknown key `what`"),
        ("{host: api.test, port: 0, path: /x, undo: {method: DELETE, path: /x}}", "must be a port"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_a_fix(entry: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message.replace("`", ".")) as caught:
        network(ITEMS, entry)
    assert caught.value.line == 7
    assert caught.value.hint
