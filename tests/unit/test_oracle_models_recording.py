"""One call, one record, and the budget of a scope: past it nothing is asked."""

from hashlib import sha256

import pytest
from tests.fakes.scripted_model import ScriptedModel

from interlock.oracle.models import (
    Budget,
    Completion,
    Identity,
    Limits,
    Message,
    ModelError,
    Price,
    Request,
    ToolSpec,
    Usage,
    recorded,
)

REQUEST = Request(messages=(Message(role="user", text="may it leave?"),))
NO_LIMIT = Limits(calls=None, tokens=None, seconds=None, money_micros=None)


def said(text: str = "yes", prompt: int = 100, completion: int = 10, attempts: int = 1) -> Completion:
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
    return Completion(text=text, usage=usage, model="scripted-1", finish="stop", attempts=attempts)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.5
        return self.now


def test_an_answer_is_recorded_by_digest_and_never_by_text() -> None:
    outcome, inference = recorded(
        ScriptedModel([said("release")]),
        REQUEST,
        budget=Budget(clock=Clock()),
        deadline_s=9,
        oracle="seeing:judge",
        trimmed=("notes.md",),
    )
    assert isinstance(outcome, Completion)
    assert inference.oracle == "seeing:judge"
    assert (inference.provider, inference.model, inference.engine) == ("scripted", "scripted-1", "tests")
    assert inference.request == REQUEST.digest()
    assert inference.answer == sha256(b"release").hexdigest()
    assert (inference.prompt_tokens, inference.completion_tokens, inference.calls) == (100, 10, 1)
    assert (inference.elapsed_ms, inference.fault, inference.trimmed) == (1500, "", ("notes.md",))
    assert "release" not in repr(inference)
    assert "leave" not in repr(inference)


def test_a_failure_is_recorded_with_its_kind_and_what_it_cost() -> None:
    failure = ModelError("garbage", "it said nonsense", attempts=3, usage=Usage(prompt_tokens=40))
    budget = Budget()
    outcome, inference = recorded(ScriptedModel([failure]), REQUEST, budget=budget, deadline_s=9)
    assert outcome is failure
    assert (inference.fault, inference.answer, inference.calls) == ("garbage", "", 3)
    assert (budget.calls, budget.tokens) == (3, 40)


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        (Limits(calls=2), 2),
        (Limits(tokens=200), 2),
        (Limits(seconds=3.0), 2),
        (Limits(money_micros=900), 3),
        (Limits(calls=0), 0),
        (NO_LIMIT, 5),
    ],
)
def test_past_the_budget_nothing_is_asked(limits: Limits, fits: int) -> None:
    client = ScriptedModel([said() for _ in range(5)], price=Price(micros_in=3_000_000, micros_out=0))
    budget = Budget(limits, clock=Clock())
    faults = []
    for _ in range(5):
        outcome, inference = recorded(client, REQUEST, budget=budget, deadline_s=9)
        faults.append(inference.fault)
        if isinstance(outcome, ModelError):
            assert (outcome.kind, inference.calls, inference.answer) == ("budget", 0, "")
            assert outcome.hint
    assert faults == [""] * fits + ["budget"] * (5 - fits)
    assert len(client.requests) == fits


def test_a_prompt_that_is_more_than_what_is_left_is_not_sent() -> None:
    client = ScriptedModel([said()])
    long = Request(messages=(Message(role="user", text="word " * 9000),))
    outcome, _ = recorded(client, long, budget=Budget(Limits(tokens=1000)), deadline_s=9)
    assert isinstance(outcome, ModelError)
    assert client.requests == []


def test_a_call_has_no_more_time_than_the_budget_has_left() -> None:
    client = ScriptedModel([said(), said()])
    budget = Budget(Limits(seconds=2.0), clock=Clock())
    recorded(client, REQUEST, budget=budget, deadline_s=9)
    recorded(client, REQUEST, budget=budget, deadline_s=9)
    assert client.deadlines_s == [2.0, 0.5]


def test_the_next_scope_begins_with_the_same_limits_and_nothing_spent() -> None:
    budget = Budget(Limits(calls=1))
    budget.charge(usage=Usage(), price=Price(), seconds=1, calls=1)
    again = budget.renewed()
    assert (again.limits, again.calls, again.seconds) == (budget.limits, 0, 0.0)


def test_whom_nobody_can_name_is_recorded_as_unknown() -> None:
    class Nameless(ScriptedModel):
        @property  # type: ignore[override]
        def identity(self) -> Identity:
            raise ModelError("unavailable", "the file is gone")

        @identity.setter
        def identity(self, _value: Identity) -> None:
            pass

    outcome, inference = recorded(Nameless(["yes"]), REQUEST, budget=Budget(), deadline_s=9)
    assert isinstance(outcome, ModelError)
    assert (inference.provider, inference.model, inference.fault) == ("unknown", "unknown", "unavailable")


def test_requests_that_differ_in_anything_have_other_digests() -> None:
    tool = ToolSpec(name="t", parameters={"type": "object"})
    others = [
        REQUEST,
        Request(messages=(Message(role="system", text="may it leave?"),)),
        Request(messages=REQUEST.messages, schema={"type": "string"}),
        Request(messages=REQUEST.messages, seed=None),
        Request(messages=REQUEST.messages, max_tokens=5),
        Request(messages=REQUEST.messages, tools=(tool,)),
        Request(messages=(Message(role="user", text="\ud800"),)),
    ]
    assert len({one.digest() for one in others}) == len(others)
