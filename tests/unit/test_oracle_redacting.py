"""To release a request redacted: the review's key, the file of answers, the bounds, and the way to another terminal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.fakes.deferred import deferred

from interlock.model.effects import Channel, Effect, Reach
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.labels import Confidentiality
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import AnswersFile, Question, Strict, ask, sanity
from interlock.oracle.listing import arrange
from interlock.oracle.review import Review, Screen, Stage, State
from interlock.runtime.control_protocol import AnswerNow, read_request, write_line, write_request
from interlock.runtime.proposals import propose_answer, read_proposal


def carrying(
    number: int, host: str = "api.test", level: Confidentiality = Confidentiality.SECRET
) -> tuple[Effect, Verdict]:
    request = NetRequest(method="POST", scheme="https", host=host, port=443, path="/x", body_text="tok-1 b")
    file, verdict = deferred(number, "x")
    effect = replace(
        file,
        channel=Channel.NET,
        operation="net.write",
        object=request.url,
        reach=Reach.BLOCKING,
        steering=(),
        carried=level,
        clearance=Confidentiality.PUBLIC,
        change=None,
        request=request,
    )
    return effect, verdict


ONE, OTHER, FINE = carrying(1), carrying(2, "no.test"), carrying(3, level=Confidentiality.PUBLIC)


def redacted(effect: Effect) -> str:
    if effect.id != "e1":
        raise InputError("its field `digest` signs it", hint="")
    return "[-tok-1-] b\x1b[2J"


def asked(*pairs: tuple[Effect, Verdict], now: bool = False) -> Question:
    return Question(task="t", deferred=pairs, diff=lambda _effect: "tok-1 b", redacted=redacted, now=now)


def review(question: Question) -> Review:
    return Review(question=question, items=arrange(question.deferred), screen=Screen(width=80, height=40))


def play(of: Review, *lines: str) -> tuple[State, str]:
    state, said = State(), ""
    for line in lines:
        state, text = of.step(state, line)
        said += text
    return state, said


ALL = asked(ONE, OTHER, FINE, deferred(4, "Makefile"))


@pytest.mark.parametrize(
    ("lines", "released"),
    [
        (("x 1", "d", "y"), {"e1": True}),
        (("redact 1", "d", "y"), {"e1": True}),
        (("x 1", "a", "y"), {"e1": True, "e2": False, "e3": False, "e4": False}),
        (("x 1", "1", "d", "y"), {}),
        (("x 1", "1", "1", "d", "y"), {"e1": False}),
        (("1", "x 1", "d", "y"), {"e1": True}),
        (("x 2", "x 3", "x 4", "d", "y"), {}),
        (("x 1", "3", "d", "y"), {"e1": True, "e3": False}),
        (("x 1", "1,3", "d", "y"), {"e1": True, "e3": False}),
        (("x 1", "r", "y"), {}),
    ],
)
def test_what_is_marked_redacted_leaves_so(lines: tuple[str, ...], released: dict[str, bool]) -> None:
    of = review(ALL)
    numbers = {item.effect.id: str(item.number) for item in of.items}
    order = [numbers["e1"], numbers["e2"], numbers["e3"], numbers["e4"]]
    typed = tuple("".join(order[int(c) - 1] if c in "1234" else c for c in line) for line in lines)
    state, _said = play(of, *typed)
    assert state.stage is Stage.DECIDED
    answers = of.answers(state)
    assert {one.effect_id: one.redact for one in answers if one.decision is Decision.RELEASE} == released
    sane = sanity(OracleAnswered(oracle="human", answers=answers), ALL)
    given = {one.effect_id: one.redact for one in sane.answers if one.decision is Decision.RELEASE}
    assert given == released


def test_the_key_is_shown_only_where_something_can_be_redacted() -> None:
    able, other = review(asked(ONE, now=True)), review(asked(OTHER, now=True))
    assert "1 can leave without it: x N shows what is cut" in " ".join(able.opening().split())
    assert "x N" in play(able, "?")[1]
    assert "x N" not in other.opening() + play(other, "?")[1]


def test_what_would_be_cut_is_shown_safely_before_it_is_confirmed() -> None:
    of = review(asked(ONE, now=True))
    _state, said = play(of, "x 1", "d")
    assert "[-tok-1-] b\\x1b[2J" in said
    assert "marked to leave without what stands in [-…-]" in said
    assert "redacted: 1" in said
    assert "its field `digest` signs it" in play(review(asked(OTHER)), "x 1")[1]


@pytest.mark.parametrize(
    ("pair", "more", "decision"),
    [
        (ONE, {}, Decision.RELEASE),
        (OTHER, {}, Decision.REFUSE),
        (FINE, {}, Decision.REFUSE),
        (deferred(4, "x"), {}, Decision.REFUSE),
        (ONE, {"hunks": (1,)}, Decision.REFUSE),
        (ONE, {"merge": True}, Decision.REFUSE),
    ],
)
def test_a_redaction_that_cannot_be_is_a_refusal(
    pair: tuple[Effect, Verdict], more: dict[str, object], decision: Decision
) -> None:
    said = Answer(effect_id=pair[0].id, decision=Decision.RELEASE, reason="ok", redact=True)
    raw = OracleAnswered(oracle="x", answers=(replace(said, **more),))  # type: ignore[arg-type]
    (answer,) = sanity(raw, asked(pair)).answers
    assert answer.decision is decision
    again = OracleAnswered(oracle="x", answers=(answer,))
    assert sanity(again, asked(pair)).answers == (answer,)


def test_a_question_that_cannot_say_redacts_nothing() -> None:
    question = Question(task="t", deferred=(ONE,), diff=lambda _effect: "")
    raw = OracleAnswered(
        oracle="x",
        answers=(Answer(effect_id="e1", decision=Decision.RELEASE, reason="", redact=True),),
    )
    assert sanity(raw, question).answers[0].decision is Decision.REFUSE

    def broken(_effect: Effect) -> str:
        raise ValueError("tok-1")

    (answer,) = sanity(raw, replace(question, redacted=broken)).answers
    assert (answer.decision, "tok-1" in answer.reason) == (Decision.REFUSE, False)


def test_the_file_of_answers_redacts_what_carries_too_much_alone() -> None:
    text = '- {match: "net.write https://api.test/**", answer: redact}\n- {match: "**", answer: release}\n'
    found = AnswersFile.parse(text, filename="a.yaml").resolve(asked(ONE, FINE))
    assert [(one.decision, one.redact) for one in found.answers] == [
        (Decision.RELEASE, True),
        (Decision.RELEASE, False),
    ]
    every = AnswersFile.parse('- {match: "**", answer: redact}\n', filename="a.yaml").resolve(ALL)
    assert [one.decision.value for one in every.answers] == ["release", "refuse", "refuse", "refuse"]


@pytest.mark.parametrize(
    "text", ['- {match: "level:secret", answer: redact}', "- {match: a, answer: redact, hunks: [1]}"]
)
def test_a_level_says_nothing_of_where_it_goes_and_hunks_are_of_files(text: str) -> None:
    with pytest.raises(InputError):
        AnswersFile.parse(text, filename="a.yaml")


def test_another_terminal_is_shown_the_same_and_answers_the_same() -> None:
    line = json.dumps(propose_answer("m", ALL))
    proposal = read_proposal(json.loads(line))
    question = proposal.question()
    assert question.redacted(ONE[0]) == redacted(ONE[0])
    with pytest.raises(InputError, match="digest"):
        question.redacted(OTHER[0])
    with pytest.raises(InputError):
        question.redacted(FINE[0])
    given = Answer(effect_id="e1", decision=Decision.RELEASE, reason="ok", redact=True)
    sane = sanity(OracleAnswered(oracle="human", answers=(given,)), question)
    assert sane.answers[0] == given
    request = AnswerNow(question="q", oracle="human", answers=(given,))
    assert read_request(write_line(write_request(request))) == request


def test_the_strict_oracle_redacts_what_the_policy_says_and_refuses_all_else() -> None:
    question = replace(ALL, redacts=lambda effect: effect.id != "e4")
    said = Strict().resolve(question)
    assert [(one.decision.value, one.redact) for one in said.answers] == [
        ("release", True),
        ("refuse", False),  # it cannot be
        ("refuse", False),  # it carries nothing too much
        ("refuse", False),
    ]
    assert not any(one.redact for one in Strict().resolve(ALL).answers)

    def broken(_effect: Effect) -> bool:
        raise ValueError

    refused = ask(Strict(), replace(ALL, redacts=broken))
    assert {one.decision for one in refused.answers} == {Decision.REFUSE}
