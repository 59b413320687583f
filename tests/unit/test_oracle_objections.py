"""Objections: closed words, bounded texts, and the same five fields on every channel that an agent reads."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.fakes.deferred import deferred

from interlock.bench import telling
from interlock.boundary.net.refusal import grpc_problem, problem
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision, ExceptionType, SemanticException
from interlock.oracle.objections import (
    CHECKS,
    MAX_CONSTRAINTS,
    MAX_RULE,
    MAX_TEXT,
    WORDS,
    Objection,
    bounded,
    objection,
)
from interlock.oracle.question import Question, ask, sanity
from interlock.runtime.notices import Notice

FIELDS = ("type", "violated_rule", "rationale", "constraints", "allowed_objective")


def test_every_objection_has_words_of_one_of_the_three_checks() -> None:
    assert set(WORDS) == set(Objection)
    assert {words.check for words in WORDS.values()} == set(CHECKS)
    for code in Objection:
        made = objection(code, "pay the rent")
        assert bounded(made) == made
        assert "pay the rent" in made.allowed_objective


@pytest.mark.parametrize("code", list(Objection))
def test_the_agent_reads_the_same_five_fields_on_every_channel(code: Objection) -> None:
    made = objection(code, "pay the rent")
    head, body = problem(403, made, "e7")
    assert head.status == 403
    answer = json.loads(body)
    error = json.loads(telling.refusal(made))
    notice = Notice(effect="e7", subject="https://x.test/", exception=made).plain()
    for told in ({**answer, "type": answer["exception"]}, error, notice):
        assert [told[name] for name in FIELDS] == [
            made.type.value,
            made.violated_rule,
            made.rationale,
            list(made.constraints),
            made.allowed_objective,
        ]
    message = dict(grpc_problem(made, "e7").headers)[b"grpc-message"].decode()
    assert all(text in message for text in (made.violated_rule, made.rationale, *made.constraints))


def test_an_exception_is_bounded_and_holds_only_what_can_be_seen() -> None:
    wild = SemanticException(
        type=ExceptionType.TAINT,
        violated_rule="r\x1b[2J\n" * 500,
        rationale="a\u202eb\ud800c" * 9_000,
        constraints=("x" * 9_000,) * 50,
        allowed_objective="\x00",
    )
    tame = bounded(wild)
    assert tame is not None
    assert len(tame.violated_rule) <= MAX_RULE
    assert max(map(len, (tame.rationale, *tame.constraints))) <= MAX_TEXT
    assert len(tame.constraints) == MAX_CONSTRAINTS
    assert all(text.isprintable() for text in (tame.violated_rule, tame.rationale, *tame.constraints))
    assert tame.allowed_objective == ""
    assert bounded(tame) == tame


def test_an_oracle_cannot_speak_for_a_rule_or_another_guard() -> None:
    made = objection(Objection.NOT_ASKED, "t")
    for kind in set(ExceptionType) - set(CHECKS):
        assert bounded(replace(made, type=kind)) is None


class Says:
    name = "says"

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def resolve(self, question: Question) -> OracleAnswered:
        return OracleAnswered(oracle=self.name, answers=(self._answer,))


def _wild(made: SemanticException) -> SemanticException:
    return replace(made, rationale="a\n\x1b[2J" * 9_000, constraints=("x",) * 99)


@pytest.mark.parametrize("decision", list(Decision))
def test_only_a_refusal_keeps_its_exception(decision: Decision) -> None:
    effect, verdict = deferred(1, "a.py")
    question = Question(task="t", deferred=((effect, verdict),), diff=lambda _: "")
    made = objection(Objection.NOT_ASKED, "t")
    said = ask(Says(Answer(effect_id="e1", decision=decision, reason="r", exception=made)), question)
    assert said.answers[0].exception == (made if decision is Decision.REFUSE else None)
    assert sanity(said, question) == said
    wild = ask(Says(Answer(effect_id="e1", decision=decision, reason="r", exception=_wild(made))), question)
    assert wild.answers[0].exception == bounded(wild.answers[0].exception)
    faulty = sanity(replace(said, fault="broke"), question)
    assert faulty.answers[0].exception is None
