"""A desk elsewhere: what it is told, which answers count, and that every other one refuses."""

import base64
import json
import os
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey
from tests.fakes.deferred import deferred
from tests.fakes.desk import ANSWER, QUESTION, Deciding, Desk, envelope, releasing, signed_text
from tests.fakes.http_service import Service, nothing_listens
from tests.fakes.parted import asked as asked_in_parts
from tests.fakes.parted import conflicting

from interlock.model.errors import InputError
from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Question, ask
from interlock.oracle.asking import Way, way_of
from interlock.oracle.exchanging import ServiceError, address_of
from interlock.oracle.webhook import Webhook, open_webhook
from interlock.oracle.webhook.asking import Put, put, read_answer
from interlock.oracle.webhook.envelope import ANSWER_TYPE, OwnKey, opened, pre_authenticated
from interlock.oracle.webhook.webhook import EFFECTS

OWN = OwnKey(b"\x07" * 32)
ASKED = Question(
    task="mend it",
    deferred=tuple(deferred(n, f"f{n}") for n in (1, 2)),
    diff=lambda effect: f"+{effect.id}\n",
)


def webhook(desk: Desk, *, expires_s: int = 20, clock: Any = time.time) -> Webhook:
    address = address_of(desk.service.url("/questions"), what="it")
    key = base64.b64decode(desk.public)
    return Webhook("webhook:desk", address, own=OWN, desk=key, expires_s=expires_s, pause_s=0.01, clock=clock)


def released(answered: OracleAnswered) -> list[str]:
    return [one.effect_id for one in answered.answers if one.decision is Decision.RELEASE]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_signed_answer_counts(at_once: bool) -> None:
    with Desk(OWN.public, releasing("e1", by="ann"), at_once=at_once) as desk:
        answered = ask(webhook(desk), ASKED)
        assert released(answered) == ["e1"]
        assert not answered.fault
        assert answered.answers[0].reason.startswith("seen (by ann) (signed answer ")
        assert answered.answers[1].decision is Decision.REFUSE


def test_the_desk_is_told_what_it_needs_and_when_it_expires() -> None:
    with Desk(OWN.public, releasing()) as desk:
        ask(webhook(desk, expires_s=30), ASKED)
        ((_payload, told),) = desk.questions.values()
    assert told["version"] == 1
    assert told["expires_at"] - told["issued_at"] == 30
    assert told["task"] == "mend it"
    assert [one["effect"]["id"] for one in told["effects"]] == ["e1", "e2"]
    assert told["effects"][0]["shown"] == "+e1\n"
    assert told["effects"][0]["waits"]["reason"]


def test_a_desk_that_takes_its_time_is_waited_for() -> None:
    looks: list[int] = []

    def slowly(question: dict[str, Any]) -> dict[str, Any] | None:
        looks.append(1)
        return releasing("e1", "e2")(question) if len(looks) > 3 else None

    with Desk(OWN.public, slowly) as desk:
        assert released(ask(webhook(desk), ASKED)) == ["e1", "e2"]
        assert desk.looked == 4


def test_a_question_that_nobody_answers_expires_and_refuses() -> None:
    began = time.monotonic()
    with Desk(OWN.public, lambda _question: None) as desk:
        answered = ask(replaced(webhook(desk), 0.3), ASKED)
    assert "nobody answered within" in answered.fault
    assert released(answered) == []
    assert time.monotonic() - began < 8


def replaced(hook: Webhook, expires_s: float) -> Webhook:
    hook._expires_s = expires_s  # type: ignore[assignment]  # shorter than a user may set
    return hook


@pytest.mark.parametrize(
    ("decide", "says"),
    [
        (releasing("e1", mark="0" * 32), "another question"),
        (releasing("e1", question="0" * 64), "another question"),
        (releasing("e1", expires_at=int(time.time()) - 1), "has expired"),
        (releasing("e1", expires_at=0), "has expired"),
        (releasing("e1", expires_at=True), "wrong type"),
        (releasing("e1", expires_at="9999999999"), "wrong type"),
        (releasing("e1", version=2), "no version"),
        (releasing("e1", more=1), "one too many"),
        (releasing("e1", answers={}), "wrong type"),
        (releasing("e1", answers=["e1"]), "holds what is no answer"),
        (releasing("e1", answers=[{"effect": "e1"}]), "holds what is no answer"),
        (releasing("e1", answers=[{"effect": "e9", "decision": "release"}]), "not asked about"),
        (releasing("e1", answers=[{"effect": "e1", "decision": "yes"}]), "is none of"),
        (releasing("e1", answers=[{"effect": "e1", "decision": "release", "x": 1}]), "no answer"),
        (releasing("e1", answers=[{"effect": "e1", "decision": "release", "reason": 1}]), "is none of"),
        (releasing("e1", by=7), "wrong type"),
    ],
)
def test_an_answer_that_is_not_exactly_one_refuses_all(decide: Deciding, says: str) -> None:
    with Desk(OWN.public, decide) as desk:
        answered = ask(webhook(desk), ASKED)
    assert says in answered.fault
    assert released(answered) == []


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], []),
        ([{"effect": "e1", "decision": "release"}], ["e1"]),
        ([{"effect": "e1", "decision": "release"}, {"effect": "e1", "decision": "refuse"}], []),
        ([{"effect": "e1", "decision": "merge"}, {"effect": "e2", "decision": "release"}], ["e2"]),
    ],
)
def test_silence_contradiction_and_what_cannot_be_refuse(answers: list[Any], expected: list[str]) -> None:
    with Desk(OWN.public, lambda _question: {"answers": answers}) as desk:
        assert released(ask(webhook(desk), ASKED)) == expected


def test_a_conflict_is_released_as_its_merge() -> None:
    question = asked_in_parts(conflicting(1, "c"), counts={}, clean=["e1"])
    with Desk(OWN.public, lambda _question: {"answers": [{"effect": "e1", "decision": "merge"}]}) as desk:
        (answer,) = ask(webhook(desk), question).answers
    assert (answer.decision, answer.merge) == (Decision.RELEASE, True)


def test_a_request_is_released_without_what_is_sensitive() -> None:
    said = {"answers": [{"effect": "e1", "decision": "redact"}, {"effect": "e2", "decision": "redact"}]}
    with Desk(OWN.public, lambda _question: said) as desk:
        assert released(ask(webhook(desk), ASKED)) == []  # neither is a request
        answers = ask(webhook(desk), replace(ASKED, redacted=lambda _effect: "[-cut-]")).answers
    assert [(one.decision, one.redact) for one in answers] == [(Decision.RELEASE, True)] * 2


def test_only_the_desks_own_key_answers() -> None:
    for key in (SigningKey.generate(), SigningKey(b"\x07" * 32)):
        with Desk(OWN.public, releasing("e1"), signs=key) as desk:
            answered = ask(webhook(desk), ASKED)
        assert "not signed by the desk's key" in answered.fault
        assert released(answered) == []


def test_an_answer_cannot_be_replayed() -> None:
    said: list[dict[str, Any]] = []
    with Desk(OWN.public, releasing("e1", "e2")) as desk:
        ask(webhook(desk), ASKED)
        (mark,) = desk.questions
        answer = desk.answer(mark)
        assert answer is not None
        said.append(answer)
        with Service(lambda *_request: (200, said[0])) as thief:
            hook = webhook(desk)
            hook._address = address_of(thief.url("/questions"), what="it")
            answered = ask(hook, ASKED)
    assert "another question" in answered.fault
    assert released(answered) == []


def test_a_question_is_never_taken_for_an_answer() -> None:
    payload = b"{}"
    sealed = OWN.envelope("application/vnd.interlock.question+json", payload)
    with pytest.raises(ServiceError):
        opened(sealed, ANSWER_TYPE, OWN.public)
    record = json.loads(sealed)
    record["payloadType"] = ANSWER_TYPE
    with pytest.raises(ServiceError, match="not signed"):
        opened(json.dumps(record).encode(), ANSWER_TYPE, OWN.public)


def test_what_is_signed_is_what_the_public_specification_says() -> None:
    assert pre_authenticated("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert signed_text(QUESTION, b"x") == pre_authenticated(QUESTION, b"x")


@pytest.mark.parametrize("status", [301, 400, 401, 403, 410, 418])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_desk_that_turns_the_question_away_refuses(method: str, status: int) -> None:
    def answering(asked_with: str, _path: str, _body: bytes) -> tuple[int, Any]:
        return (status, {}) if asked_with == method else (202, {})

    with Service(answering) as service:
        hook = Webhook(
            "webhook:d",
            address_of(service.url("/q"), what="it"),
            own=OWN,
            desk=OWN.public,
            expires_s=20,
            pause_s=0.01,
        )
        answered = ask(hook, ASKED)
    assert str(status) in answered.fault or "will not answer" in answered.fault


def test_a_desk_that_is_busy_for_a_moment_is_asked_again() -> None:
    with Desk(OWN.public, releasing("e1")) as desk:
        calls: list[str] = []

        def flaky(method: str, path: str, body: bytes) -> tuple[int, Any]:
            calls.append(method)
            if len(calls) in (1, 3):
                return 503, {}
            return desk._served(method, path, body)

        with Service(flaky) as front:
            hook = webhook(desk)
            hook._address = address_of(front.url("/q"), what="it")
            assert released(ask(hook, ASKED)) == ["e1"]
        assert calls == ["POST", "POST", "GET", "GET"]
        assert len(desk.questions) == 1


def test_nobody_there_refuses_when_the_question_expires() -> None:
    address = address_of(nothing_listens() + "/q", what="it")
    hook = replaced(Webhook("webhook:d", address, own=OWN, desk=OWN.public, expires_s=20, pause_s=0.01), 0.2)
    answered = ask(hook, ASKED)
    assert "nobody answered within" in answered.fault
    assert "Connection refused" in answered.fault


def test_a_question_that_is_taken_back_is_given_up() -> None:
    withdrawn = os.eventfd(1)
    with Desk(OWN.public, lambda _question: None) as desk:
        assert webhook(desk).resolve_unless(ASKED, withdrawn).leave_open
    os.close(withdrawn)


def test_too_much_is_not_put_to_a_desk() -> None:
    many = replace(ASKED, deferred=tuple(deferred(n, f"f{n}") for n in range(EFFECTS + 1)))
    with Desk(OWN.public, releasing()) as desk:
        assert "more than" in ask(webhook(desk), many).fault
        assert not desk.questions


def test_a_long_difference_is_cut() -> None:
    one = put(
        replace(ASKED, diff=lambda _effect: "x" * 10**6), ASKED.deferred, mark="m", issued_at=0, expires_at=9
    )
    assert len(one.payload) < 100_000
    many = tuple(deferred(n, f"f{n}") for n in range(100))
    one = put(replace(ASKED, diff=lambda _effect: "x" * 10**6), many, mark="m", issued_at=0, expires_at=9)
    assert len(one.payload) < 800_000
    assert b"not shown" in one.payload


ONE = Put(mark="m", payload=b"q", effects=("e1",))
GOOD = json.dumps(
    {"version": 1, "mark": "m", "question": ONE.digest, "expires_at": 100, "answers": [{"effect": "e1", "decision": "release"}]}
).encode()  # fmt: skip
DESK = SigningKey(b"\x09" * 32)
SEALED = json.dumps(envelope(DESK, GOOD, ANSWER)).encode()


def test_the_good_one_counts_until_it_expires() -> None:
    payload = opened(SEALED, ANSWER_TYPE, bytes(DESK.verify_key))
    assert [one.decision for one in read_answer(payload, ONE, now=99)] == [Decision.RELEASE]
    with pytest.raises(ServiceError, match="expired"):
        read_answer(payload, ONE, now=100)


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
@settings(max_examples=200)
def test_a_changed_byte_never_makes_another_answer(at: int, by: int) -> None:
    changed = bytearray(SEALED)
    changed[at] ^= by
    try:
        payload = opened(bytes(changed), ANSWER_TYPE, bytes(DESK.verify_key))
    except ServiceError:
        return
    assert payload == GOOD


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_break_the_reading(data: bytes) -> None:
    with pytest.raises(ServiceError):
        opened(data, ANSWER_TYPE, bytes(DESK.verify_key))
    with pytest.raises(ServiceError):
        read_answer(data, ONE, now=0)


class Entry:
    """A webhook as models.yaml has it."""

    def __init__(
        self, url: str = "https://desk.example/q", key: bytes = b"", desk: str = "", expires_s: int = 900
    ):
        self.url, self.desk, self.expires_s = url, desk, expires_s
        self._key = key

    @property
    def key(self) -> "Entry":
        return self

    def read(self) -> bytes:
        return self._key


GOOD_KEY = base64.b64encode(b"\x01" * 32)


def test_a_webhook_is_opened() -> None:
    hook = open_webhook("desk", Entry(key=GOOD_KEY + b"\n", desk=GOOD_KEY.decode()))
    assert hook.name == "webhook:desk"
    assert way_of(hook) is Way.AWAY


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry(key=b"short", desk=GOOD_KEY.decode()), "`key` of the webhook `desk` is no Ed25519 key"),
        (Entry(key=GOOD_KEY, desk="c2VjcmV0"), "`desk` of the webhook `desk` is no Ed25519 key"),
        (Entry(url="http://desk.example/q", key=GOOD_KEY, desk=GOOD_KEY.decode()), "not on this machine"),
        (Entry(key=GOOD_KEY, desk=GOOD_KEY.decode(), expires_s=1), "expires after"),
        (Entry(key=GOOD_KEY, desk=GOOD_KEY.decode(), expires_s=10**6), "expires after"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_refused_at_the_start(entry: Entry, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        open_webhook("desk", entry)
    assert "c2VjcmV0" not in raised.value.message
    assert raised.value.hint
