"""The stop guard in the fold and in `spec/stopping.py` say the same of every story."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from spec.stopping import is_stopped, reached
from tests.fakes.planned_fold import VOUCHED, PlannedRun
from tests.fakes.signed_plans import manifest, step

from interlock.model import events as ev
from interlock.model.manifest import Mode, Price, StopCondition, StopConditions
from interlock.model.requests import Outcome
from interlock.model.verdicts import Decision, ExceptionType

BRANCHES = st.sampled_from(["", "left", "right"])
TURNS = st.fixed_dictionaries(
    {
        "turn": BRANCHES,
        "prompt": st.sampled_from([0, 1, 3, 40]),
        "completion": st.sampled_from([0, 2, 7]),
        "model": st.sampled_from(["gpt-4", "gpt-5", "other"]),
    }
)
WHAT = st.one_of(
    TURNS,
    TURNS,
    st.fixed_dictionaries({"call": BRANCHES, "fails": st.booleans()}),
    st.fixed_dictionaries({"call": BRANCHES, "fails": st.booleans()}),
    st.fixed_dictionaries({"stop": BRANCHES}),
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "turns": st.integers(1, 4),
        "failures": st.integers(1, 3),
        "tokens": st.sampled_from([1, 10, 50, 90]),
        "money": st.sampled_from([1, 20, 400]),
    },
)
PRICES = (("gpt-4", 2_500_000, 10_000_000), ("gpt-*", 333_333, 1))


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "60")), deadline=None)
@given(st.lists(WHAT, max_size=16), LIMITS)
def test_the_fold_stops_what_the_spec_stops(happened: list[dict[str, Any]], limits: dict[str, Any]) -> None:
    prices = tuple(Price(model=name, prompt=prompt, completion=done) for name, prompt, done in PRICES)
    stop = StopConditions(prices=prices, **limits)
    look = step("a", "look", {})
    branches = {"": (look,), "left": (), "right": ()}
    run = PlannedRun(
        manifest("look", mode=Mode.VOUCH, branches=branches, stop=stop),
        policy=VOUCHED.replace("cedar:", "tools:\n  look: {effect: read}\ncedar:"),
    )
    plain = {**limits, "prices": PRICES}
    story: list[dict[str, Any]] = []
    for one in happened:
        if "turn" in one:
            run.give(
                ev.TurnTaken(
                    branch=one["turn"],
                    model=one["model"],
                    prompt_tokens=one["prompt"],
                    completion_tokens=one["completion"],
                )
            )
            story.append(one)
        elif "stop" in one:
            run.give(ev.StopReached(condition=StopCondition.EXTERNAL, branch=one["stop"]))
            story.append(one)
        else:
            verdict = run.call("look", branch=one["call"])
            stopped = verdict.exception is not None and verdict.exception.type is ExceptionType.STOP
            assert stopped == is_stopped(story, plain, one["call"])
            if verdict.decision is Decision.RELEASE:
                run.answer("so", outcome=Outcome.FAILED if one["fails"] else Outcome.DONE)
                if one["fails"]:
                    story.append({"failed": one["call"]})
            else:
                assert stopped
    assert run.state.knowledge is not None
    stops = run.state.knowledge.stops
    told = {
        (one.condition.value, "*" if one.whole else one.branch) for one in (stops.reached if stops else ())
    }
    assert told == reached(story, plain)
