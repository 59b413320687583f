"""The stop guard in the fold: what is counted, what a stop refuses, where it holds, and what it writes down."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.planned_fold import VOUCHED, PlannedRun
from tests.fakes.signed_plans import manifest, step

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.manifest import Manifest, Mode, Price, StopCondition, StopConditions
from interlock.model.nodes import NodeKind
from interlock.model.requests import NetRequest, Outcome
from interlock.model.verdicts import Decision, ExceptionType, Guard
from interlock.monitor import ProtocolError

RELEASE, REFUSE, DEFER = Decision.RELEASE, Decision.REFUSE, Decision.DEFER
TOOLS = VOUCHED.replace(
    "cedar:",
    "tools:\n  look: {effect: read}\n  keep: {effect: write, parks: true, steers: {at: text}}\n"
    "  ask: {effect: write, steers: {at: text}}\ncedar:",
)
PRICES = (Price(model="gpt-*", prompt=2_500_000, completion=10_000_000),)


def plan(mode: Mode = Mode.VOUCH, **stop: Any) -> Manifest:
    return manifest(
        "look around",
        mode=mode,
        branches={"": (step("a", "look", {}),), "left": (step("l", "look", {}),), "right": ()},
        stop=StopConditions(prices=PRICES, **stop),
    )


def run_with(oracle: str = "human", **stop: Any) -> PlannedRun:
    return PlannedRun(plan(**stop), policy=TOOLS, oracle=oracle)


def turn(run: PlannedRun, branch: str = "", tokens: tuple[int, int] = (10, 5), model: str = "gpt-4") -> None:
    run.give(ev.TurnTaken(branch=branch, model=model, prompt_tokens=tokens[0], completion_tokens=tokens[1]))


def interrupts(run: PlannedRun) -> list[dict[str, object]]:
    return [dict(one.node.payload) for one in run.nodes if one.node.kind is NodeKind.INTERRUPT]


def ended(run: PlannedRun) -> list[StopCondition]:
    return [one.condition for one in run.commands if isinstance(one, cmd.EndCommand)]


def test_what_the_last_turn_asked_for_is_done_and_nothing_of_one_more() -> None:
    run = run_with(turns=2)
    turn(run)
    turn(run)
    assert run.call("look").decision is RELEASE
    assert not interrupts(run)
    turn(run)
    assert ended(run) == [StopCondition.TURNS]
    assert interrupts(run) == [
        {"stop": "turns", "value": 3, "limit": 2, "reason": "the model has had the 2 turns that it may have"}
    ]
    refused = run.call("look")
    assert refused.decision is REFUSE
    assert [(one.guard, one.rules) for one in refused.checks] == [(Guard.STOP, ("stop:turns",))]
    assert refused.exception is not None
    assert refused.exception.type is ExceptionType.STOP
    assert len(interrupts(run)) == 1, "a stop is reached once"


def test_a_request_that_would_begin_one_turn_too_many_is_not_sent() -> None:
    run = run_with(turns=1)
    asking = NetRequest(method="POST", scheme="https", host="llm.test", port=443, path="/v1/messages")
    run.give(ev.RequestMade(request=asking))
    assert run.state.latest is not None
    assert (run.state.latest.effect.operation, run.state.latest.verdict.decision) == ("net.model", RELEASE)
    run.give(
        ev.ExchangeRecorded(
            effect_id="e1", provider="llm.test", model="gpt-4", request="0" * 64, prompt_tokens=9
        )
    )
    assert not interrupts(run)
    run.give(ev.RequestMade(request=asking))
    assert run.state.latest is not None
    assert run.state.latest.verdict.decision is REFUSE
    assert ended(run) == [StopCondition.TURNS]
    assert interrupts(run)[0]["stop"] == "turns"


def test_an_exchange_that_failed_is_no_turn() -> None:
    run = run_with(turns=1, tokens=100)
    asking = NetRequest(method="POST", scheme="https", host="llm.test", port=443, path="/v1/messages")
    run.give(ev.RequestMade(request=asking))
    run.give(
        ev.ExchangeRecorded(
            effect_id="e1", provider="llm.test", model="gpt-4", request="0" * 64, fault="cut off"
        )
    )
    run.give(ev.RequestMade(request=asking))
    assert run.state.latest is not None
    assert run.state.latest.verdict.decision is RELEASE


@pytest.mark.parametrize(
    ("stop", "tokens", "model", "reason"),
    [
        ({"tokens": 30}, (20, 10), "gpt-4", "it has used 30 tokens, and may use 30"),
        ({"tokens": 31}, (20, 10), "gpt-4", ""),
        ({"tokens": 31}, (0, 0), "gpt-4", "an answer of the model says nothing of its tokens"),
        ({"money": 150}, (20, 10), "gpt-4", "it has spent 0.00015, and may spend 0.00015"),
        ({"money": 151}, (20, 10), "gpt-4", ""),
        ({"money": 151}, (20, 10), "other", "no price is known for the model `other`"),
        ({"money": 151}, (0, 0), "gpt-4", "an answer of the model says nothing of its tokens"),
    ],
)
def test_tokens_and_money_are_bounded_and_what_cannot_be_counted_stops(
    stop: dict[str, Any], tokens: tuple[int, int], model: str, reason: str
) -> None:
    run = run_with(**stop)
    turn(run, tokens=tokens, model=model)
    assert bool(interrupts(run)) == bool(reason)
    assert run.call("look").decision is (REFUSE if reason else RELEASE)
    if reason:
        assert reason in str(interrupts(run)[0]["reason"])
        assert run.call("look", branch="left").decision is REFUSE, "it is the whole run's"


def test_failures_and_refusals_count_together_and_each_branch_by_itself() -> None:
    run = run_with(failures=2)
    run.call("look", branch="left")
    run.answer("no", outcome=Outcome.FAILED)
    run.call("look", branch="right")
    run.answer("no", outcome=Outcome.FAILED)
    assert not interrupts(run)
    run.call("look", branch="left")
    run.answer("no", outcome=Outcome.UNKNOWN)
    assert interrupts(run)[0] == {
        "stop": "failures",
        "value": 2,
        "limit": 2,
        "branch": "left",
        "reason": "2 actions of the branch `left` failed or were refused, and 2 end it",
    }
    assert ended(run) == [], "the others go on"
    assert run.call("look", branch="left").decision is REFUSE
    assert run.call("look", branch="right").decision is RELEASE
    assert run.call("look").decision is RELEASE


def test_a_refusal_is_a_failure_and_one_by_the_stop_itself_is_none() -> None:
    policy = TOOLS + '  forbid(principal, action, resource) when { context.path == "ask" };\n'
    run = PlannedRun(plan(failures=2), policy=policy)
    assert run.call("ask", {"at": "x"}).decision is REFUSE
    assert not interrupts(run)
    assert run.call("ask", {"at": "x"}).decision is REFUSE
    assert [one["stop"] for one in interrupts(run)] == ["failures"]
    for _ in range(3):
        assert run.call("look").checks[0].guard is Guard.STOP
    assert len(interrupts(run)) == 1


@pytest.mark.parametrize(
    ("stop", "event"),
    [
        ({"wall_ms": 100}, ev.StopReached(condition=StopCondition.WALL, value=100)),
        ({"memory_bytes": 100}, ev.StopReached(condition=StopCondition.MEMORY, value=4096)),
        ({}, ev.StopReached(condition=StopCondition.EXTERNAL, detail="ann")),
    ],
)
def test_time_memory_and_a_persons_word_stop_all_of_it(stop: dict[str, Any], event: ev.StopReached) -> None:
    run = run_with(**stop)
    run.give(event)
    assert ended(run) == [event.condition]
    assert [one["event"] for one in interrupts(run)] == ["stop-reached"]
    for branch in ("", "left"):
        assert run.call("look", branch=branch).decision is REFUSE


def test_one_branch_is_stopped_and_the_others_go_on() -> None:
    run = run_with()
    run.give(ev.StopReached(condition=StopCondition.EXTERNAL, branch="left"))
    assert ended(run) == []
    assert run.call("look", branch="left").decision is REFUSE
    assert run.call("look", branch="right").decision is RELEASE


def test_a_run_without_a_plan_is_stopped_from_outside_too() -> None:
    run = PlannedRun(None, policy=TOOLS)
    assert run.state.knowledge is not None
    assert run.state.knowledge.stops is None
    run.give(ev.StopReached(condition=StopCondition.EXTERNAL))
    assert run.call("look").decision is REFUSE


@pytest.mark.parametrize(
    "event",
    [
        ev.StopReached(condition=StopCondition.WALL, value=99),
        ev.StopReached(condition=StopCondition.WALL, value=100, branch="left"),
        ev.StopReached(condition=StopCondition.MEMORY, value=10**9),
        ev.StopReached(condition=StopCondition.TURNS, value=10**9),
        ev.StopReached(condition=StopCondition.EXTERNAL, value=1),
    ],
)
def test_a_stop_that_is_none_is_a_fault(event: ev.StopReached) -> None:
    run = run_with(wall_ms=100)
    with pytest.raises(ProtocolError):
        run.give(event)


def test_what_is_pending_in_a_stopped_branch_is_not_done_whatever_is_answered_later() -> None:
    run = run_with(oracle="human")
    asked = run.call("ask", {"at": "nowhere"}, branch="left")
    kept = run.call("keep", {"at": "nowhere"}, branch="left")
    other = run.call("keep", {"at": "nowhere"}, branch="right")
    assert (asked.decision, kept.decision, other.decision) == (DEFER, DEFER, DEFER)
    run.give(ev.StopReached(condition=StopCondition.EXTERNAL, branch="left"))
    away = [one for one in run.commands if isinstance(one, cmd.TurnAway)]
    assert [one.effect_id for one in away] == [asked.effect_id, kept.effect_id]
    assert {one.exception.type for one in away} == {ExceptionType.STOP}
    yes = ev.Answer(effect_id=asked.effect_id, decision=RELEASE, reason="fine")
    run.give(ev.OracleAnswered(oracle="human", answers=(yes,), asked=(asked.effect_id,)))
    assert not [one for one in run.commands if isinstance(one, cmd.LetPass)]
    assert [item.effect.id for item in run.state.parked] == [other.effect_id]


def test_files_that_were_staged_before_wait_for_the_principal() -> None:
    from tests.playbook.test_monitor_scope import created

    run = run_with()
    run.give(ev.StopReached(condition=StopCondition.EXTERNAL))
    run.give(ev.Interrupted(trigger="stop:external", detail="ann"))
    assert isinstance(run.commands[-1], cmd.Hold)
    run.give(ev.Resumed(oracle="principal", selection=(), resumed_at_ns="3"))
    run.give(ev.ChangesListed(changes=(created("notes.txt"),), last=True))
    assert run.state.batches[0][0].verdict.decision is not REFUSE
