"""Requests as effects: what they are, what vouches for them, what they carry, and what is learnt from them."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_policy_network import request

from interlock import policy as room
from interlock.model.effects import Channel, Effect, Reach
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place
from interlock.model.requests import Credential, NetMessage, NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision, Verdict
from interlock.policy import Knowledge, Policy
from interlock.policy.naming import span_names

POLICY = room.load_policy(
    """\
version: 1
parties: [{name: partner.test, clearance: internal}]
network:
  hosts:
    - {host: docs.test}
    - {host: api.test, methods: [GET, POST], paths: ["/v1/"], clearance: internal}
    - {host: wiki.test, trusted: true}
    - {host: hr.test, level: secret}
    - {host: live.test, methods: [GET, WS]}
    - {host: 10.1.2.3}
    - {host: hook.test, methods: [POST], park: [POST]}
    - {host: git.test, methods: ["*"]}
  models: [llm.test]
  opaque: [{host: github.com, port: 22}, {host: db.test, port: 5432, clearance: secret}]
  publish: [{port: 8911, to: "127.0.0.1:8911"}, {port: 5432, to: "127.0.0.1:5432", opaque: true}]
""",
    filename="p.yaml",
)
TEXT: dict[str, Any] = {"body_size_bytes": 5, "body_text": "hello", "body_digest": "aa"}


def started(task: str = "work", policy: Policy = POLICY) -> Knowledge:
    return Knowledge.started(policy, task, 0)


def opaque(host: str, port: int, **more: object) -> NetRequest:
    return NetRequest(
        method="CONNECT",
        scheme="tcp",
        host=host,
        port=port,
        path="",
        protocol="opaque",
        body_size_bytes=-1,
        **more,  # type: ignore[arg-type]
    )


def judged(
    made: NetRequest, knowledge: Knowledge | None = None, policy: Policy = POLICY
) -> tuple[Effect, Verdict]:
    known = knowledge or started(policy=policy)
    effect = room.characterise_request(policy, known, made, "e1")
    (verdict,) = room.decide(policy, known, (effect,))
    assert effect.channel is Channel.NET
    assert effect.object == made.url
    return effect, verdict


@pytest.mark.parametrize(
    ("made", "operation", "roles", "decision", "rules"),
    [
        (request("https://docs.test/a?b=c"), "net.read", "host", "release", "named-in-policy"),
        (request("https://docs.test/a", "HEAD"), "net.read", "host", "release", "named-in-policy"),
        (request("https://docs.test/a", "POST", **TEXT), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://docs.test/a", "DELETE"), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://docs.test/a", **TEXT), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://docs.test:8443/a"), "net.read", "host", "defer", ""),
        (request("https://other.test/a"), "net.read", "host", "defer", ""),
        (request("https://xdocs.test/a"), "net.read", "host", "defer", ""),
        (request("https://api.test/v1/x", "POST", **TEXT), "net.write", "host url", "release", "named-in-policy named-in-policy"),
        (request("https://api.test/v2/x", "POST", **TEXT), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://api.test/v1/x", "PUT", **TEXT), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://api.test/v1/../v2", "POST", **TEXT), "net.write", "host url", "defer", "named-in-policy"),
        (request("wss://live.test/x"), "net.stream", "host url", "release", "named-in-policy named-in-policy"),
        (request("wss://docs.test/x"), "net.stream", "host url", "defer", "named-in-policy"),
        (request("https://api.test/v1/x", "POST", body_size_bytes=-1), "net.stream", "host url", "release", "named-in-policy named-in-policy"),
        (request("https://llm.test/v1/messages", "POST", **TEXT), "net.model", "host", "release", "model-provider"),
        (request("https://api.openai.com/v1/responses", "POST", **TEXT), "net.model", "host", "release", "model-provider"),
        (request("https://api.openai.com/v1/files", "POST", **TEXT), "net.write", "host url", "defer", ""),
        (request("https://api.openai.com/v1/files"), "net.read", "host", "defer", ""),
        (request("http://127.0.0.1:8911/x", "POST", published=True, **TEXT), "net.write", "host url", "release", "published published"),
        (request("http://127.0.0.1:8912/x", "POST", published=True, **TEXT), "net.write", "host url", "defer", ""),
        (opaque("github.com", 22), "net.connect", "host", "release", "named-in-policy"),
        (opaque("github.com", 443), "net.connect", "host", "defer", ""),
        (opaque("127.0.0.1", 5432, published=True), "net.connect", "host", "release", "published"),
        (request("https://pypi.org/simple/x/"), "net.read", "host", "release", "named-in-policy"),
        (request("https://github.com/x/y"), "net.read", "host", "defer", ""),
        (request("https://git.test/r/info/refs?service=git-receive-pack"), "net.write", "host url", "release", "named-in-policy named-in-policy"),
        (request("https://docs.test/r/info/refs?service=git-receive-pack"), "net.write", "host url", "defer", "named-in-policy"),
        (request("https://docs.test/r/info/refs?service=git-upload-pack"), "net.read", "host", "release", "named-in-policy"),
    ],
)  # fmt: skip
def test_what_a_request_is_and_what_the_policy_vouches_for(
    made: NetRequest, operation: str, roles: str, decision: str, rules: str
) -> None:
    effect, verdict = judged(made)
    assert effect.operation == operation
    assert [value.role for value in effect.steering] == roles.split()
    assert verdict.decision.value == decision
    assert [derivation.rule for derivation in verdict.derivations] == rules.split()


def git_fetch(host: str, body: str = "0032want abc") -> NetRequest:
    return request(
        f"https://{host}/r.git/git-upload-pack",
        "POST",
        headers=(("content-type", "application/x-git-upload-pack-request"),),
        body_size_bytes=len(body),
        body_text=body,
    )


def test_git_reads_where_its_host_is_named_and_pushes_where_its_url_is() -> None:
    push = request("https://a.test/r.git/git-receive-pack", "POST", **TEXT)
    host, url = started("clone from a.test"), started("push to https://a.test/r.git")
    for knowledge, fetched, pushed in ((started(), False, False), (host, True, False), (url, True, True)):
        for made, released in ((git_fetch("a.test"), fetched), (push, pushed)):
            assert (judged(made, knowledge)[1].decision is Decision.RELEASE) is released
    assert judged(git_fetch("a.test"), host)[0].operation == "net.read"
    assert judged(git_fetch("a.test", "token=x"), host)[0].operation == "net.write"


def test_a_task_that_names_a_host_vouches_for_reading_there_and_a_url_for_writing() -> None:
    knowledge = started("Read a.test and send it to https://b.test/v1/in")
    for url, method, released in (
        ("https://a.test/any?x=1", "GET", True),
        ("https://a.test/any", "POST", False),
        ("https://b.test/other", "GET", True),
        ("https://b.test/v1/in", "POST", True),
        ("https://b.test/v1/in/7?x=1", "PUT", True),
        ("https://b.test/v1/in?x=1", "DELETE", True),
        ("https://b.test/v1/in/7", "DELETE", False),
        ("https://b.test/v1/in/", "DELETE", False),
        ("https://b.test/v1/in/7", "delete", False),
        ("https://b.test/v1/inside", "POST", False),
        ("http://b.test/v1/in", "POST", False),
        ("wss://b.test/v1/in", "GET", False),
    ):
        _, verdict = judged(request(url, method), knowledge)
        assert (verdict.decision is Decision.RELEASE) is released, (url, method)
        for derivation in verdict.derivations:
            assert derivation.rule == "named-in-task"
            text = knowledge.sources[0].text
            assert span_names(text, derivation.start, derivation.end, derivation.role, derivation.value)


def test_a_url_that_is_deleted_must_be_named_itself_wherever_it_stands() -> None:
    knowledge = started("List https://b.test/v1/in, then delete https://b.test/v1/in/7")
    for url, released in (("https://b.test/v1/in/7", True), ("https://b.test/v1/in/7/x", False)):
        # The same question for another method before: what was found for that is no answer to this one.
        assert judged(request(url, "PUT"), knowledge)[1].decision is Decision.RELEASE
        assert (judged(request(url, "DELETE"), knowledge)[1].decision is Decision.RELEASE) is released


def test_an_untrusted_task_names_nothing() -> None:
    policy = room.load_policy("version: 1\ntrusted: [{task: false}]\n", filename="p.yaml")
    assert judged(request("https://a.test/"), started("a.test", policy), policy)[1].decision is Decision.DEFER


def test_an_opaque_connection_is_for_the_policy_alone() -> None:
    effect, verdict = judged(opaque("a.test", 22), started("clone git@a.test:x/y, ssh://a.test"))
    assert effect.steering[0].text == "a.test:22"
    assert verdict.decision is Decision.DEFER
    assert "network.opaque" in verdict.reason


def test_without_a_network_key_and_a_preset_everything_defers() -> None:
    policy = room.load_policy(
        "version: 1\npreset: none\ncedar: |\n  permit(principal, action, resource);\n", filename="p.yaml"
    )
    for made in (
        request("https://pypi.org/simple/"),
        request("https://api.openai.com/v1/responses", "POST", **TEXT),
        opaque("github.com", 22),
        request("http://127.0.0.1:8911/", published=True),
    ):
        knowledge = started("use https://pypi.org/ and http://127.0.0.1:8911/", policy)
        effect, verdict = judged(made, knowledge, policy)
        assert verdict.decision is Decision.DEFER
        assert verdict.derivations == ()
        again = judged(made, knowledge.with_grant(effect, 4), policy)[1]
        assert (again.decision is Decision.RELEASE) is not bool(effect.facets)


def test_the_first_version_of_the_preset_permits_no_traffic() -> None:
    policy = room.load_policy(
        "version: 1\npreset: coding@1\nnetwork: {hosts: [{host: a.test}]}\n", filename="p"
    )
    verdict = judged(request("https://a.test/"), started(policy=policy), policy)[1]
    assert verdict.decision is Decision.DEFER
    assert verdict.reason == "no rule of the policy permits it"


def test_only_what_the_policy_parks_is_parkable() -> None:
    assert judged(request("https://hook.test/x", "POST", **TEXT))[0].reach is Reach.PARKABLE
    assert judged(request("https://hook.test/x"))[0].reach is Reach.BLOCKING
    assert judged(request("https://api.test/v1/x", "POST", **TEXT))[0].reach is Reach.BLOCKING


# --- what is odd about a request ---


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        (request("https://docs.test/", credential=Credential.BOUND), []),
        (request("https://docs.test/", credential=Credential.OWN), []),
        (request("https://docs.test/", credential=Credential.FOREIGN), ["foreign-credential"]),
        (request("http://docs.test/", credential=Credential.BOUND), ["plain-http-credential"]),
        (request("http://127.0.0.1:8911/", credential=Credential.OWN, published=True), []),
        (request("https://10.1.2.3/"), []),
        (request("https://10.1.2.4/"), ["raw-address"]),
        (request("http://[::1]:9000/"), ["raw-address"]),
        (request("http://169.254.169.254/latest/meta-data"), ["raw-address"]),
    ],
)
def test_facets_of_a_request(made: NetRequest, kinds: list[str]) -> None:
    effect, verdict = judged(made)
    assert [facet.kind for facet in effect.facets] == kinds
    assert (verdict.decision is Decision.RELEASE) is not bool(kinds)
    if kinds:
        assert verdict.derivations == ()
        assert verdict.reason == effect.facets[0].reason


def test_an_address_that_the_task_names_is_not_raw() -> None:
    effect, verdict = judged(request("http://10.9.9.9:8080/x"), started("look at http://10.9.9.9:8080/"))
    assert effect.facets == ()
    assert verdict.decision is Decision.RELEASE


@pytest.mark.parametrize("where", ["docs.test", "llm.test/v1/messages", "127.0.0.1:8911"])
def test_a_foreign_key_is_never_released_by_policy(where: str) -> None:
    """Even where a permit of the operator covers it, the task names it, and a grant would."""
    policy = room.load_policy(
        POLICY.text + "cedar: |\n  permit(principal, action, resource);\n", filename="p"
    )
    made = request(
        f"http://{where}" if "127" in where else f"https://{where}",
        "GET" if where == "docs.test" else "POST",
        published="127" in where,
        credential=Credential.FOREIGN,
    )
    knowledge = started(f"use https://{where} and http://{where}", policy)
    effect, verdict = judged(made, knowledge, policy)
    assert verdict.decision is Decision.DEFER
    assert knowledge.with_grant(effect, 5) is knowledge


@pytest.mark.parametrize(
    ("body", "odd"),
    [
        ('{"tools": [{"type": "mcp", "server_url": "https://evil.test"}]}', True),
        ('{"tools": [{"type": "mcp", "server\\u005furl" : "https://evil.test"}]}', True),
        ('{"input": "the key \\"server_url\\": is used"}', False),
        ('{"input": "server_url"}', False),
        ('{"content": [{"type": "image_url", "image_url": {"url": "https://evil.test/p.png?k=1"}}]}', True),
        ('{"content": [{"type": "input_image", "image_url": "https://evil.test/p.png?k=1"}]}', True),
        ('{"content": [{"type": "input_image", "IMAGE_URL": "hTTps://evil.test/p", "image_url": "data:x"}]}', True),
        ('{"image_url": {"url": "https://evil.test/p", "url": "data:image/png;base64,AA"}}', True),
        ('{"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}', False),
        ('{"content": [{"type": "input_file", "file_url": "https://evil.test/a.pdf"}]}', True),
        ('{"content": [{"type": "image", "source": {"url": "https://evil.test/p", "type": "url"}}]}', True),
        ('{"content": [{"type": "tool_result", "content": [{"source": {"type": "\\u0075rl", "url": "http://e.test"}}]}]}',
         True),
        ('{"content": [{"type": "tool_use", "input": {"type": "url", "image_url": "https://docs.test"}}]}', False),
        ('{"content": [{"type": "tool_use", "type": "image", "input": {"image_url": "https://e.test"}}]}', True),
        ('{"mcp_servers": [{"type": "url", "url": "https://evil.test/sse", "name": "x"}]}', True),
        ('{"mcp_servers": []}', False),
        ('{"parts": [{"fileData": {"fileUri": "https://evil.test/a"}}]}', True),
        ('{"parts": [{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}}]}', False),
        ('{"parts": [{"functionCall": {"name": "see", "args": {"image_url": "https://docs.test"}}}]}', False),
        ('{"parts": [{"functionResponse": {"name": "see", "response": {"file_uri": "https://docs.test"}}}]}', False),
        ('{"tools": [{"parameters": {"properties": {"image_url": {"type": "string"}, "server_url": {"type": "string"}}}}]}',
         False),
        ('{"image_url": "https://evil.test",}', True),  # it cannot be read
    ],
)  # fmt: skip
def test_a_model_call_that_makes_the_provider_connect_somewhere(body: str, odd: bool) -> None:
    made = request("https://llm.test/v1/responses", "POST", body_size_bytes=len(body), body_text=body)
    effect, verdict = judged(made)
    assert bool(effect.facets) is odd
    assert (verdict.decision is Decision.DEFER) is odd


def test_a_message_to_a_model_may_make_it_connect_somewhere_too() -> None:
    known = started()
    stream, _ = judged(request("wss://llm.test/v1/responses"), known)
    assert stream.operation == "net.model"
    for text, decision in (
        ('{"type": "response.create", "tools": [{"server_url": "https://evil.test"}]}', Decision.DEFER),
        ('{"type": "response.create", "input": "server_url"}', Decision.RELEASE),
    ):
        message = NetMessage(stream="e1", size_bytes=len(text), digest="aa", text=text)
        effect = room.characterise_message(POLICY, known, stream, message, "e2")
        (verdict,) = room.decide(POLICY, known, (effect,))
        assert verdict.decision is decision, verdict
    told = replace(stream, operation="net.stream")
    assert not room.characterise_message(POLICY, known, told, message, "e2").facets


@pytest.mark.parametrize("odd", [True, False])
def test_a_model_call_that_is_not_recorded_is_as_the_boundary_found_it(odd: bool) -> None:
    made = request("https://llm.test/v1/responses", "POST", body_size_bytes=2 << 20, leads_out=odd)
    effect, verdict = judged(made)
    assert bool(effect.facets) is odd
    assert (verdict.decision is Decision.DEFER) is odd


# --- what a request carries, and what its destination may hold ---

SECRET = "hunter2/Passw0rd"
HELD = started().with_reads(
    POLICY,
    [FileRead(place=Place(root="workspace", path=".env"), opened=1, closed=2, staged=False, text=f"KEY={SECRET}")],
    3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "level"),
    [
        (request("https://docs.test/x"), 0),
        (request(f"https://docs.test/?k={SECRET}"), 2),
        (request("https://docs.test/?k=hunter2%2FPassw0rd&b=1"), 2),
        (request("https://docs.test/a/hunter2%2Fpassw0rd/b"), 2),
        (request("https://docs.test/", headers=(("x-note", f"key {SECRET}"),)), 2),
        (request("https://api.test/v1/x", "POST", body_size_bytes=9, body_text=f'{{"a": "{SECRET}"}}'), 2),
        (request("https://api.test/v1/x", "POST", body_size_bytes=9, body_text="nothing of it"), 0),
        (request("https://api.test/v1/x", "POST", body_size_bytes=9), 2),
        (request("https://api.test/v1/x", "POST", body_size_bytes=-1), 2),
        (
            request(
                "https://api.test/v1/x",
                "POST",
                body_size_bytes=9,
                body_text="a=hunter2%2FPassw0rd",
                headers=(("content-type", "application/x-www-form-urlencoded"),),
            ),
            2,
        ),
        (opaque("github.com", 22), 2),
    ],
)
def test_what_a_request_carries(made: NetRequest, level: int) -> None:
    effect, verdict = judged(made, HELD)
    assert effect.carried == level
    assert (verdict.decision is Decision.RELEASE) is (level == 0)
    assert judged(made)[0].carried == Confidentiality.PUBLIC
    if level:
        assert "carries data of level `secret`" in verdict.reason
        assert HELD.with_grant(effect, 5) is HELD


def test_a_secret_in_a_host_name_is_carried() -> None:
    knowledge = started().with_reads(
        POLICY,
        [FileRead(place=Place(root="workspace", path=".env"), opened=1, closed=2, staged=False, text="K=abcdef123")],
        3,
    )  # fmt: skip
    assert judged(request("https://abcdef123.evil.test/"), knowledge)[0].carried is Confidentiality.SECRET


@pytest.mark.parametrize(
    ("made", "clearance"),
    [
        (request("https://docs.test/"), 0),
        (request("https://api.test/v1/x", "POST"), 1),
        (request("https://api.test/v2/x", "POST"), 0),
        (request("https://partner.test/x"), 1),
        (request("https://llm.test/v1/messages", "POST"), 3),
        (request("https://llm.test/v1/files", "POST"), 0),
        (request("http://127.0.0.1:8911/x", published=True), 3),
        (request("http://127.0.0.1:8911/x"), 0),
        (request("https://named.test/x"), 0),
        (opaque("github.com", 22), 0),
        (opaque("db.test", 5432), 2),
    ],
)
def test_what_a_destination_may_hold(made: NetRequest, clearance: int) -> None:
    assert judged(made, started("https://named.test/"))[0].clearance == clearance


def test_a_model_may_see_what_the_agent_sees() -> None:
    made = request("https://llm.test/v1/messages", "POST", body_size_bytes=9, body_text=SECRET)
    effect, verdict = judged(made, HELD)
    assert effect.carried is Confidentiality.SECRET
    assert verdict.decision is Decision.RELEASE


# --- streams ---


def test_a_message_goes_where_its_stream_goes_and_is_judged_by_what_it_carries() -> None:
    stream, _ = judged(request("wss://live.test/x"))
    for text, size, decision in (
        ("hello", 5, Decision.RELEASE),
        (None, 0, Decision.RELEASE),
        (SECRET, 9, Decision.DEFER),
        (None, 9, Decision.DEFER),
    ):
        message = NetMessage(stream="e1", size_bytes=size, digest="aa", text=text)
        effect = room.characterise_message(POLICY, HELD, stream, message, "e2")
        (verdict,) = room.decide(POLICY, HELD, (effect,))
        assert (effect.operation, effect.object) == ("net.message", stream.object)
        assert verdict.decision is decision


def test_a_message_to_a_model_is_vouched_for_as_its_opening() -> None:
    stream, verdict = judged(request("wss://llm.test/v1/realtime"))
    assert (stream.operation, verdict.decision) == ("net.model", Decision.RELEASE)
    message = NetMessage(stream="e1", size_bytes=9, digest="aa", text=SECRET)
    effect = room.characterise_message(POLICY, HELD, stream, message, "e2")
    (verdict,) = room.decide(POLICY, HELD, (effect,))
    assert verdict.decision is Decision.RELEASE
    assert [derivation.rule for derivation in verdict.derivations] == ["model-provider"]


# --- what is learnt ---


def test_a_grant_holds_for_the_same_operation_and_value() -> None:
    knowledge = started()
    read, _ = judged(request("https://a.test/x?y=1"), knowledge)
    write, _ = judged(request("https://a.test/x?y=1", "POST", **TEXT), knowledge)
    stream, _ = judged(request("wss://a.test/x"), knowledge)
    granted = knowledge.with_grant(read, 7)
    assert granted.with_grant(read, 8) is granted
    verdict = judged(request("https://a.test/other"), granted)[1]
    assert verdict.decision is Decision.RELEASE
    assert [(one.rule, one.node) for one in verdict.derivations] == [("granted", 7)]
    for made in (
        request("https://a.test/x", "POST", **TEXT),
        request("https://b.test/x"),
        request("https://a.test:8443/x"),
        request("https://b.a.test/x"),
        opaque("a.test", 443),
    ):
        assert judged(made, granted)[1].decision is Decision.DEFER
    written = granted.with_grant(write, 9)
    assert judged(request("https://a.test/x?z", "PATCH"), written)[1].decision is Decision.RELEASE
    assert judged(request("https://a.test/x/y", "POST"), written)[1].decision is Decision.DEFER
    message = NetMessage(stream="e1", size_bytes=2, digest="aa", text="hi")
    for known, decision in ((written, Decision.DEFER), (written.with_grant(stream, 10), Decision.RELEASE)):
        effect = room.characterise_message(POLICY, known, stream, message, "e2")
        assert room.decide(POLICY, known, (effect,))[0].decision is decision


def test_grants_are_bounded() -> None:
    knowledge = started()
    for number in range(1_100):
        effect = room.characterise_request(POLICY, knowledge, request(f"https://h{number}.test/"), "e1")
        knowledge = knowledge.with_grant(effect, number)
    assert len(knowledge.grants) == 1_000


def test_what_passed_joins_the_label() -> None:
    knowledge = started()
    assert knowledge.label.integrity is Integrity.TRUSTED
    for url, integrity, level in (
        ("https://wiki.test/x", Integrity.TRUSTED, 0),
        ("http://wiki.test/x", Integrity.UNTRUSTED, 0),
        ("https://docs.test/x", Integrity.UNTRUSTED, 0),
        ("https://hr.test/x", Integrity.UNTRUSTED, 2),
        ("https://llm.test/v1/models", Integrity.UNTRUSTED, 0),
    ):
        after = knowledge.with_request(POLICY, judged(request(url))[0])
        assert (after.label.integrity, after.label.confidentiality) == (integrity, level), url
        again = after.with_request(POLICY, judged(request(url))[0])
        # Of an exchange with a model it is known that it was asked once more.
        assert again is after if "llm" not in url else again.label == after.label
    written = judged(request("https://wiki.test/x", "POST", **TEXT))[0]
    assert knowledge.with_request(POLICY, written).label.integrity is Integrity.UNTRUSTED


def answer(text: str | None, **more: object) -> NetResponse:
    given: dict[str, object] = {"outcome": Outcome.DONE, "status": 200, "size_bytes": 9, "text": text}
    return NetResponse(**{**given, **more})  # type: ignore[arg-type]


def test_a_trusted_hosts_words_vouch_where_they_answer_a_read_with_success() -> None:
    page, knowledge = "go on at https://next.test/v1", started()
    read = judged(request("https://wiki.test/x"))[0]
    written = judged(request("https://wiki.test/x", "POST", **TEXT))[0]
    other = judged(request("https://docs.test/x"))[0]
    known = knowledge.with_response(POLICY, read, answer(page), 4)
    verdict = judged(request("https://next.test/v1/a", "POST", **TEXT), known)[1]
    assert verdict.decision is Decision.RELEASE
    assert {(one.rule, one.node) for one in verdict.derivations} == {("named-in-net", 4)}
    for one in verdict.derivations:
        assert span_names(page, one.start, one.end, one.role, one.value)
    assert known.with_response(POLICY, read, answer(page), 5).sources is known.sources
    for effect, response in (
        (read, answer(page, status=404)),
        (read, answer(page, outcome=Outcome.UNKNOWN)),
        (read, answer(None)),
        (read, answer(page, size_bytes=0)),
        (written, answer(page)),
        (other, answer(page)),
    ):
        assert knowledge.with_response(POLICY, effect, response, 4).sources is knowledge.sources


def test_a_sensitive_hosts_words_are_known_again() -> None:
    read = judged(request("https://hr.test/x"))[0]
    known = started().with_response(POLICY, read, answer("salary: 123456"), 4)
    made = request("https://docs.test/?a=123456")
    assert judged(made, known)[0].carried is Confidentiality.SECRET
    unread = started().with_response(POLICY, read, answer(None), 4)
    assert judged(request("https://docs.test/?a=1"), unread)[0].carried is Confidentiality.SECRET
    assert known.with_response(POLICY, read, answer("salary: 123456"), 5).sensitive == known.sensitive


def test_knowledge_is_replayed_to_an_equal_one() -> None:
    def told() -> Knowledge:
        knowledge = started("a.test")
        for url in ("https://hr.test/", "https://wiki.test/", "https://z.test/"):
            effect = room.characterise_request(POLICY, knowledge, request(url), "e1")
            knowledge = knowledge.with_grant(effect, 3).with_request(POLICY, effect)
            knowledge = knowledge.with_response(POLICY, effect, answer("some words here"), 4)
        return knowledge

    assert told() == told()


def test_untrusting_a_host_never_makes_more_leave() -> None:
    """The label, sources and grants only ever add; taking the trust out takes the derivation out."""
    text = POLICY.text.replace("trusted: true", "trusted: false")
    less = room.load_policy(text, filename="p.yaml")
    read = judged(request("https://wiki.test/x"))[0]
    known = started().with_response(less, read, answer("https://next.test/"), 4)
    assert judged(request("https://next.test/"), known, less)[1].decision is Decision.DEFER


# --- what the agent is told ---


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (request("https://a.test/x"), ("names the host `a.test`", "`docs.test`", "name `a.test` in the task", "network.hosts")),
        (request("https://docs.test/x", "POST", **TEXT), ("reading alone", "https://docs.test/x", "whole URL")),
        (opaque("a.test", 22), ("cannot be read", "{host: a.test, port: 22}", "network.opaque")),
        (request("https://docs.test/", credential=Credential.FOREIGN), ("another account's key",)),
        (request(f"https://docs.test/?k={SECRET}"), ("level `secret`", "may hold `public`", "without that data")),
    ],
)  # fmt: skip
def test_a_refusal_helps_the_agent(made: NetRequest, words: tuple[str, ...]) -> None:
    effect, verdict = judged(made, HELD if "k=" in made.query else None)
    told = room.exception_for(effect, verdict, "", POLICY)
    text = " ".join((told.rationale, *told.constraints, told.allowed_objective))
    for word in words:
        assert word in text, (word, text)
    assert "does not count" in text
    assert room.exception_for(effect, verdict, "the user said no").rationale == "the user said no"


def test_a_long_url_is_told_in_short() -> None:
    effect, verdict = judged(request("https://a.test/" + "x" * 100_000))
    told = room.exception_for(effect, verdict, "", POLICY)
    assert sum(map(len, (told.rationale, *told.constraints, told.allowed_objective))) < 3_000


def test_a_rule_sees_every_attribute_of_a_request() -> None:
    cedar = """\
cedar: |
  @id("seen")
  forbid(principal, action == Action::"net.write", resource)
  when { context.host == "api.test" && context.port == 443 && context.scheme == "https" && context.method == "POST"
    && context.path == "/v1/x" && context.name == "x" && context.query == "a=b" && context.credential == "own"
    && context.placeholder && !context.published && context.size == 5 && context.channel == "net" && context.root == ""
    && context.operation == "write" && context.derived && context.before == "none" };
"""
    policy = room.load_policy(POLICY.text + cedar, filename="p.yaml")
    made = request(
        "https://api.test/v1/x?a=b", "POST", credential=Credential.OWN, placeholders=("e4",), **TEXT
    )
    assert judged(made, started(policy=policy), policy)[1].decision is Decision.REFUSE
    other = replace(made, query="a=c")
    assert judged(other, started(policy=policy), policy)[1].decision is Decision.RELEASE
    # once more: what the rules said is remembered, and stays apart by what they look at
    assert judged(made, started(policy=policy), policy)[1].decision is Decision.REFUSE
