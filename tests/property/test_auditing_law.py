"""No event is lost or doubled, however often an agent asks again, resumes, or sends its history in parts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import strategies as st
from tests.fakes.audited_core import Core, held, result
from tests.fakes.few_and_many import few_and_many

from interlock.model import events as ev
from interlock.monitor import State, event_from_payload, event_payload, step

Turn = tuple[int, int, bool, int, str]
TURNS = st.lists(
    st.tuples(
        st.integers(0, 3),  # calls in the answer
        st.integers(1, 3),  # how often it is asked for: the answer is lost, and asked for again
        st.booleans(),  # whether a call in it is refused
        st.integers(0, 4),  # of the history, how much is sent once more beside it
        st.sampled_from(["whole", "cut"]),  # whether the first answer came to its end
    ),
    max_size=6,
)


def played(turns: list[Turn], *, reused: bool) -> tuple[Core, list[str]]:
    """Play a session; return the core, and the texts of the results of all calls that the agent made, in order."""
    core = Core()
    history: list[dict[str, Any]] = []
    made: list[str] = []
    for number, (count, times, refused, back, ended) in enumerate(turns):
        ids = [f"call_{at}" if reused else f"call_{number}_{at}" for at in range(count)]
        calls = [held(one, "look", turn=number) for one in ids]
        if refused:
            calls.append(held("bad" if reused else f"bad_{number}", "send", to="eve@evil.test", turn=number))
        if ended == "cut":
            core.ends(core.asks(*history))
        verdicts: tuple[object, ...] = ()
        for _ in range(times):
            exchange = core.asks(*history)
            if calls:
                verdicts = core.judged(exchange, *calls)
            core.ends(exchange)
        if any(verdicts):
            continue
        if back:
            # A fork of the session, or one that is resumed: a part of the history, once more.
            core.ends(core.asks(*history[:back]))
        for at, one in enumerate(ids):
            made.append(f"{number}.{at}")
            history.append(result(one, made[-1]))
    for _ in range(2):
        core.ends(core.asks(*history))
    return core, made


@few_and_many(60, 1_000, TURNS, st.booleans())
def test_no_call_and_no_result_is_lost_or_counted_twice(turns: list[Turn], reused: bool) -> None:
    core, made = played(turns, reused=reused)
    back = [one for one in core.of(ev.ToolReturned) if one.result.text is not None]
    assert sorted(one.result.text for one in back) == sorted(made), "a result was lost, or counted twice"
    each = Counter(one.effect_id for one in core.of(ev.ToolReturned))
    assert set(each.values()) <= {1}
    known = Counter(
        (one.call.call, one.call.arguments) for one in core.of(ev.ToolCalled) if one.call.tool == "look"
    )
    for (_call, arguments), count in known.items():
        number = int(arguments.partition(":")[2].rstrip("}"))
        # What was refused together with another is put anew each time that it is asked for.
        assert count == (turns[number][1] if turns[number][2] else 1), "a call was put twice"


@few_and_many(40, 700, TURNS, st.booleans(), st.integers(0, 30))
def test_a_history_that_is_sent_again_says_nothing_whatever_part_of_it(
    turns: list[Turn], reused: bool, cut: int
) -> None:
    core, _made = played(turns, reused=reused)
    messages = [
        message
        for one in core.of(ev.RequestMade)
        for message in json.loads(one.request.body_text)["messages"]
    ]
    before = len(core.events)
    core.ends(core.asks(*messages[cut:], *messages[:cut]))
    later = [type(one) for one in core.events[before:]]
    assert later == [ev.RequestMade, ev.ExchangeRecorded, ev.ResponseReceived]


@few_and_many(20, 500, TURNS)
def test_what_was_fed_folds_again_from_its_payloads(turns: list[Turn]) -> None:
    core, _made = played(turns, reused=False)
    again = State()
    for event in core.events:
        again, _commands = step(again, event_from_payload(event_payload(event)))
    assert (again.next_seq, again.flying.keys()) == (core.state.next_seq, core.state.flying.keys())
