"""Engines outside: what they are told, what of their answers counts, and that anything else refuses."""

import json
from dataclasses import replace
from typing import Any

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.deferred import deferred
from tests.fakes.http_service import RawService, Service, nothing_listens

from interlock.model.effects import Channel, Effect, Reach, Value
from interlock.model.errors import InputError
from interlock.model.events import OracleAnswered
from interlock.model.labels import Confidentiality
from interlock.model.requests import Credential, NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.oracle import Question, ask
from interlock.oracle.asking import Way, way_of
from interlock.oracle.choose import choose
from interlock.oracle.engine.cedar import context, entity
from interlock.oracle.engine.document import VERSION, document
from interlock.oracle.engine.engine import EFFECTS, Engine
from interlock.oracle.engine.opa import Opa
from interlock.oracle.exchanging import Address
from interlock.oracle.panel import Panel
from interlock.policy import Knowledge, load_policy
from interlock.policy.decision import _request
from interlock.policy.sources import Sources
from interlock.policy.vocabulary import CONTEXT

QUESTION = Question(
    task="mend it", deferred=tuple(deferred(n, f"f{n}") for n in (1, 2)), diff=lambda _effect: ""
)
RULE = "/v1/data/interlock/decision"


def opa(service: Service | RawService) -> str:
    return f"engine:{service.url(RULE)}"


def asked(word: str, question: Question = QUESTION) -> OracleAnswered:
    return ask(choose(word, terminal=False), question)


def decisions(answered: OracleAnswered) -> list[tuple[Decision, str]]:
    return [(one.decision, one.reason) for one in answered.answers]


def request_effect() -> Effect:
    request = NetRequest(
        method="POST", scheme="https", host="api.example", port=443, path="/v1/x", query="q=1",
        body_size_bytes=7, body_digest="ab" * 32, body_text="secret content", credential=Credential.BOUND,
        headers=(("x", "y"),), views=("seen in it",),
    )  # fmt: skip
    return Effect(
        id="e7", channel=Channel.NET, operation="net.write", object=request.url, reach=Reach.BLOCKING,
        steering=(Value(role="url", text=request.url),), carried=Confidentiality.INTERNAL,
        clearance=Confidentiality.PUBLIC, request=request,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": True}, (Decision.RELEASE, "allowed")),
        ({"result": False}, (Decision.REFUSE, "not allowed")),
        ({"result": {"allow": True, "reason": "fine", "more": 1}}, (Decision.RELEASE, "fine")),
        ({"result": {"allow": False, "reason": "no"}}, (Decision.REFUSE, "no")),
        (
            {"result": {"allow": False}, "decision_id": "4ca6-1"},
            (Decision.REFUSE, "not allowed (decision 4ca6-1)"),
        ),
        ({"result": True, "decision_id": "x\x1b y"}, (Decision.RELEASE, "allowed")),
        ({}, (Decision.REFUSE, "the oracle did not decide")),
    ],
)
def test_what_an_opa_answer_means(answer: object, expected: tuple[Decision, str]) -> None:
    with Service(lambda *_request: (200, answer)) as service:
        told = decisions(asked(opa(service)))
        assert told[0][0] is expected[0]
        assert told[0][1].startswith(expected[1])
        assert [path for _method, path, _body in service.requests] == [RULE, RULE]


@pytest.mark.parametrize(
    "answer",
    [
        {"result": None},
        {"result": 1},
        {"result": "true"},
        {"result": []},
        {"result": {}},
        {"result": {"allow": "yes"}},
        {"result": {"allow": 1}},
        {"result": {"allow": True, "reason": 7}},
        [],
        True,
        b"",
        b"true}",
        b'{"result": false, "result": true}',
        b'{"result": true} {}',
        b'{"result": NaN}',
        b"\xff\xfe",
        b'{"result": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"result": true, "pad": "' + b"x" * 70_000 + b'"}',
    ],
)
def test_what_is_no_opa_answer_refuses_all(answer: object) -> None:
    with Service(lambda *_request: (200, answer)) as service:
        answered = asked(opa(service))
    assert answered.fault
    assert all(decision is Decision.REFUSE for decision, _reason in decisions(answered))


@pytest.mark.parametrize("status", [201, 204, 301, 400, 404, 500])
def test_any_other_status_refuses_all(status: int) -> None:
    with Service(lambda *_request: (status, None if status == 204 else {"result": True})) as service:
        answered = asked(opa(service))
    assert f"status {status}" in answered.fault


def test_an_answer_of_another_type_refuses_all() -> None:
    with Service(lambda *_request: (200, {"result": True}), content_type="text/html") as service:
        assert asked(opa(service)).fault


def test_one_answer_that_fails_refuses_the_whole_question() -> None:
    calls: list[int] = []

    def answering(*_request: object) -> tuple[int, Any]:
        calls.append(1)
        return (200, {"result": True}) if len(calls) == 1 else (500, {})

    with Service(answering) as service:
        answered = asked(opa(service))
    assert [one.decision for one in answered.answers] == [Decision.REFUSE, Decision.REFUSE]


def test_nobody_there_refuses_and_a_panel_passes_on() -> None:
    word = f"engine:{nothing_listens()}{RULE}"
    assert "refused" in asked(word).fault
    panel = asked(f"first({word}, strict)")
    assert [reason for _decision, reason in decisions(panel)] == ["strict: nobody was asked"] * 2


def test_a_rule_that_is_undefined_is_passed_on_and_one_that_says_no_is_not() -> None:
    def answering(_method: str, _path: str, body: bytes) -> tuple[int, Any]:
        last = json.loads(body)["input"]["effect"]["object"].endswith("f1")
        return 200, ({} if last else {"result": False})

    with Service(answering) as service:
        answered = asked(f"first({opa(service)}, strict)")
    assert [reason.split(":")[0] for _decision, reason in decisions(answered)] == ["strict", "engine"]


def test_an_engine_is_asked_within_the_questions_deadline() -> None:
    with RawService(pause_s=0.05, again=b"x") as service:
        host, port = "127.0.0.1", int(service.url("").rsplit(":", 1)[1])
        address = Address(host=host, port=port, target=RULE, tls=False)
        engine = Engine("engine:x", address, Opa(), request_s=5, question_s=0.2)
        assert ask(engine, QUESTION).fault
        assert service.connections == 1


def test_too_many_effects_are_not_asked_about() -> None:
    many = replace(QUESTION, deferred=tuple(deferred(n, f"f{n}") for n in range(EFFECTS + 1)))
    with Service(lambda *_request: (200, {"result": True})) as service:
        assert "more than" in asked(opa(service), many).fault
        assert service.requests == []


def test_an_engine_may_take_a_while() -> None:
    assert way_of(choose(f"engine:{nothing_listens()}{RULE}", terminal=False)) is Way.AWAY


@pytest.mark.parametrize(
    "word",
    ["engine:http://localhost:8181/", "engine:http://localhost:8181/v1/data/", "engine:http://h/v1/data/a", "engine:",
     "cedar:", "cedar:ftp://localhost/x", "engine:https://u:p@h/v1/data/a"],
)  # fmt: skip
def test_a_word_that_names_no_engine_is_refused_at_the_start(word: str) -> None:
    with pytest.raises(InputError) as raised:
        choose(word, terminal=False)
    assert raised.value.hint
    assert "u:p" not in raised.value.message


# The input document -----------------------------------------------------------------------------------------------


def test_the_input_document_of_a_file() -> None:
    effect, verdict = deferred(1, "docs/a.md", "hook")
    told = document(QUESTION, effect, verdict)
    assert told["version"] == VERSION == 1
    assert json.loads(json.dumps(told))["effect"] == {
        "id": "e1",
        "channel": "file",
        "operation": "file.create",
        "object": "workspace:docs/a.md",
        "reach": "stageable",
        "steering": [{"role": "path", "text": "docs/a.md"}],
        "carried": "public",
        "clearance": "critical",
        "facets": ["hook"],
        "change": {
            "kind": "create",
            "place": {"root": "workspace", "path": "docs/a.md"},
            "source": None,
            "before": None,
            "after": {
                "type": "file", "mode": 0o644, "uid": 1000, "gid": 1000, "size_bytes": 12, "digest": "",
                "link_target": "",
            },
            "hazards": [],
            "host_edit": None,
            "base": None,
            "waits": False,
            "unsaved": False,
            "brings_unknown": False,
            "needs": [],
            "outside_names": 0,
        },
        "request": None,
        "message": None,
        "tool": None,
    }  # fmt: skip
    assert told["waits"] == {
        "reason": "the task names it not",
        "checks": [{"guard": "provenance", "outcome": "undecided", "rules": ["r1"]}],
    }


def test_the_input_document_holds_no_content() -> None:
    effect, (_, verdict) = request_effect(), deferred(7, "x")
    text = json.dumps(document(QUESTION, effect, verdict))
    assert "secret content" not in text
    assert "seen in it" not in text
    assert '"body_size_bytes": 7' in text
    file_effect, _ = deferred(1, "a")
    assert file_effect.change is not None
    held = replace(file_effect, change=replace(file_effect.change, after_text="secret content"))
    assert "secret content" not in json.dumps(document(QUESTION, held, verdict))


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
@settings(max_examples=30)
def test_any_text_can_be_told(task: str, name: str) -> None:
    effect, verdict = deferred(1, "x")
    tool = ToolCall(call="c", tool=name + "\ud800", arguments="{}")
    effect = replace(effect, tool=tool, object=f"tool:{name}")
    json.loads(Opa().written(replace(QUESTION, task=task), effect, verdict).decode("ascii"))


# Cedar, with the real engine behind a real service -----------------------------------------------------------------


def cedar_service(policies: str) -> Service:
    def answering(_method: str, _path: str, body: bytes) -> tuple[int, Any]:
        result = cedarpy.is_authorized(json.loads(body), policies, [])
        if result.decision is cedarpy.Decision.NoDecision:
            return 400, {"errors": result.diagnostics.errors}
        return 200, {
            "decision": result.decision.value,
            "diagnostics": {
                "reason": list(result.diagnostics.reasons),
                "errors": list(result.diagnostics.errors),
            },
        }

    return Service(answering)


def by_cedar(policies: str, question: Question = QUESTION) -> list[tuple[Decision, str]]:
    with cedar_service(policies) as service:
        return decisions(asked(f"cedar:{service.url('/v1/is_authorized')}", question))


def test_cedar_permits_forbids_and_says_nothing() -> None:
    permit = 'permit(principal, action == Action::"file.create", resource == Place::"workspace:f1");'
    assert [one for one, _reason in by_cedar(permit)] == [Decision.RELEASE, Decision.REFUSE]
    assert by_cedar(permit)[1][1].startswith("the oracle did not decide")
    forbid = permit + "forbid(principal, action, resource);"
    assert by_cedar(forbid)[0] == (Decision.REFUSE, "forbidden by policy1")


def test_a_rule_that_errs_refuses_though_another_permits() -> None:
    text = "permit(principal, action, resource); permit(principal, action, resource) when { context.nothing > 1 };"
    assert by_cedar(text)[0] == (Decision.REFUSE, "1 of the service's rules erred")


def test_an_own_rule_can_be_moved_to_the_service_as_it_is() -> None:
    text = 'permit(principal, action, resource) when { context.root == "workspace" && context.name == "f2" };'
    assert [one for one, _reason in by_cedar(text)] == [Decision.REFUSE, Decision.RELEASE]


@pytest.mark.parametrize("effect", [deferred(1, "a/b.sh", "hook")[0], request_effect()])
def test_the_context_is_that_of_interlocks_own_rules(effect: Effect) -> None:
    knowledge = Knowledge(task_node=0, sources=Sources())
    own = _request(load_policy("version: 1\n", filename="p"), knowledge, effect, derived=False).context
    told = context(QUESTION, effect)
    assert set(told) == {*CONTEXT, "task", "version"}
    same = set(CONTEXT) - {"tainted"}
    assert {name: told[name] for name in same} == {name: own[name] for name in same}


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
@settings(max_examples=60)
def test_no_name_of_an_effect_ends_the_entity_that_it_names(name: str) -> None:
    request = {
        "principal": 'Agent::"run"',
        "action": 'Action::"x"',
        "resource": entity("Place", name),
        "context": {},
    }
    said = cedarpy.is_authorized(request, "permit(principal, action, resource);", []).decision
    # What Cedar would write otherwise than we do it does not take: that refuses, and names nothing else.
    assert said in {cedarpy.Decision.Allow, cedarpy.Decision.NoDecision}
    if name.isascii():
        assert said is cedarpy.Decision.Allow
    other = {**request, "resource": entity("Place", name + "x")}
    text = f"permit(principal, action, resource == {entity('Place', name)});"
    assert cedarpy.is_authorized(other, text, []).decision is not cedarpy.Decision.Allow


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"decision": "allow"},
        {"decision": True},
        {"decision": "Allow", "diagnostics": []},
        {"decision": "Allow", "diagnostics": {"errors": "x"}},
        {"decision": "Allow", "diagnostics": {"reason": {}}},
        [],
        b"Allow",
    ],
)
def test_what_is_no_cedar_answer_refuses_all(answer: object) -> None:
    with Service(lambda *_request: (200, answer)) as service:
        assert asked(f"cedar:{service.url('/x')}").fault


def test_a_panel_of_engines() -> None:
    with Service(lambda *_request: (200, {"result": True})) as one, cedar_service("") as two:
        word = f"any({opa(one)}, cedar:{two.url('/v1/is_authorized')})"
        opened = choose(word, terminal=False)
        assert isinstance(opened, Panel)
        assert [one for one, _reason in decisions(ask(opened, QUESTION))] == [Decision.RELEASE] * 2
        assert two.requests == []
