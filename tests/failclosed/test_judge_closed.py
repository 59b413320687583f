"""A judge whose model fails, lies or talks nonsense: nothing is released that was not found compliant by what it saw."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.regulated import call, clinic, known, said
from tests.fakes.scripted_model import ScriptedModel

from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.judge import Judge
from interlock.oracle.judge.answering import read_answer
from interlock.oracle.models import Budget, ModelError
from interlock.oracle.models.budget import Limits
from interlock.oracle.question import Question
from interlock.policy import decide

SHOWN = ("hipaa:164.506", "hipaa:164.508")


def asked(
    model: ScriptedModel, *, budget: Budget | None = None, text: str = "it is diabetes"
) -> OracleAnswered:
    policy = clinic()
    knowledge = known(policy)
    effect = call(policy, knowledge, "send_mail", to="lab@lab.example", body=text)
    (verdict,) = decide(policy, knowledge, (effect,))
    question = Question(task="t", deferred=((effect, verdict),), diff=lambda _effect: "", now=True)
    return Judge(model, word="m", budget=budget).resolve(question)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "compliant",
        "{}",
        said("compliant"),
        said("compliant", "none"),
        said("compliant", "hipaa:999.1"),
        said("Compliant", "hipaa:164.506"),
        said("compliant; really", "hipaa:164.506"),
        json.dumps({"label": "compliant", "provision": "hipaa:164.506"}),
        json.dumps({"label": "compliant", "provision": "hipaa:164.506", "thought": "x", "more": 1}),
        json.dumps({"label": "compliant", "provision": ["hipaa:164.506"], "thought": "x"}),
        json.dumps({"label": "compliant", "provision": "hipaa:164.506", "thought": "x" * 1201}),
        '{"label": "non-compliant", "label": "compliant", "provision": "hipaa:164.506", "thought": "x"}',
        said("compliant", "hipaa:164.506") + " and more",
        "[" * 50_000,
        "x" * 70_000,
        said("not-applicable", "none"),
    ],
)
def test_what_is_no_answer_releases_nothing(answer: str) -> None:
    answered = asked(ScriptedModel([answer]))
    assert [one.decision for one in answered.answers] == [Decision.DEFER]


@pytest.mark.parametrize("kind", ["unavailable", "timeout", "garbage"])
def test_a_model_that_fails_leaves_it_open(kind: str) -> None:
    answered = asked(ScriptedModel([ModelError(kind, "no")]))  # type: ignore[arg-type]
    assert [one.decision for one in answered.answers] == [Decision.DEFER]
    assert answered.inferences[0].judged is not None


def test_a_spent_budget_leaves_it_open_and_asks_nobody() -> None:
    model = ScriptedModel(lambda request: said("compliant", "x"))
    answered = asked(model, budget=Budget(Limits(calls=0)))
    assert [one.decision for one in answered.answers] == [Decision.DEFER]
    assert model.requests == []


def test_a_prompt_that_has_no_room_for_a_provision_leaves_it_open() -> None:
    model = ScriptedModel(lambda request: said("compliant", "x"), context_tokens=900)
    answered = asked(model)
    assert [one.decision for one in answered.answers] == [Decision.DEFER]
    assert "no provision fits" in answered.answers[0].reason
    assert model.requests == []


def test_only_what_was_shown_and_found_compliant_is_released() -> None:
    def first_shown(request: object) -> str:
        schema = request.schema  # type: ignore[attr-defined]
        return said("compliant", schema["properties"]["provision"]["enum"][0])

    assert [one.decision for one in asked(ScriptedModel(first_shown)).answers] == [Decision.RELEASE]


def test_the_judge_says_nothing_of_what_no_regulation_holds() -> None:
    policy = clinic()
    knowledge = known(policy, None, task="nothing")
    effect = call(policy, knowledge, "undeclared", to="x")
    (verdict,) = decide(policy, knowledge, (effect,))
    assert verdict.decision is Decision.DEFER
    model = ScriptedModel(lambda request: said("compliant", "x"))
    answered = Judge(model, word="m").resolve(
        Question(task="t", deferred=((effect, verdict),), diff=lambda _effect: "", now=True)
    )
    assert [one.decision for one in answered.answers] == [Decision.DEFER]
    assert model.requests == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
FIELD = JSON | st.sampled_from(["compliant", "non-compliant", "not-applicable", "none", *SHOWN])


@given(
    st.text(max_size=200)
    | JSON.map(json.dumps)
    | st.fixed_dictionaries({"thought": FIELD, "label": FIELD, "provision": FIELD}).map(json.dumps)
)
def test_reading_is_total_and_a_label_counts_only_with_a_provision_that_was_shown(text: str) -> None:
    judged = read_answer(text, SHOWN)
    assert bool(judged.label) != bool(judged.nonsense)
    if judged.label in ("compliant", "non-compliant"):
        assert judged.provision in SHOWN
        assert json.loads(text)["label"] == judged.label
