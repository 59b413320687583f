"""Tool calls through the real fold: what is done, what the agent reads of the rest, and what waits for the end."""

import json

from interlock.bench.folding import Answered, Fate, Folding
from interlock.bench.telling import token
from interlock.model.tools import ToolCall
from interlock.monitor.state import Decided

ROLES = """
version: 1
preset: none
trusted:
  - task: true
cedar: |
  permit (principal, action, resource);
tools:
  look: {effect: read, output: {trust: none}}
  send: {effect: send, steers: {to: name}, carries: [text], asks: [send], output: {echo: true}}
  post: {effect: send, steers: {to: name}, carries: [text], parks: true, asks: [post], output: {echo: true}}
"""


def call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(
        call="c", tool=tool, arguments=json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    )


def folding(*, releases: bool, sent: list[str] | None = None, fails: bool = False) -> Folding:
    def send(item: Decided) -> Answered:
        assert sent is not None
        sent.append(item.effect.id)
        return Answered(text="no" if fails else "sent", failed=fails)

    return Folding(ROLES, "send Ann and post Ann a word", oracle=lambda _item: releases, send=send)


def test_what_the_task_names_is_vouched_for_and_anything_else_is_refused_with_the_five_fields() -> None:
    fold = folding(releases=False)
    assert fold.call(call("send", to="Ann", text="x")).fate is Fate.VOUCHED
    refused = fold.call(call("send", to="Eve", text="x"))
    told = json.loads(refused.told)
    assert (refused.fate, refused.missing, refused.why) == (Fate.ASKED_REFUSED, ("to",), "to")
    assert told["interlock"] == "refused"
    assert {"type", "violated_rule", "rationale", "constraints", "allowed_objective"} <= told.keys()


def test_what_may_wait_gets_a_placeholder_and_is_made_at_the_end_where_it_is_released() -> None:
    sent: list[str] = []
    fold = folding(releases=True, sent=sent)
    waits = fold.call(call("post", to="Eve", text="x"))
    assert (waits.fate, json.loads(waits.told)["interlock"], sent) == (Fate.PARKED, "placeholder", [])
    assert fold.questions == 0
    fold.finish()
    assert (sent, fold.fates[waits.item.effect.id], fold.questions) == (["e1"], Fate.ASKED_RELEASED, 1)


def test_what_waited_and_is_refused_is_never_made() -> None:
    sent: list[str] = []
    fold = folding(releases=False, sent=sent)
    fold.call(call("post", to="Eve", text="x"))
    fold.finish()
    assert (sent, fold.fates["e1"]) == ([], Fate.ASKED_REFUSED)


def test_a_failure_among_those_that_waited_does_not_stop_the_next() -> None:
    sent: list[str] = []
    fold = folding(releases=True, sent=sent, fails=True)
    fold.call(call("post", to="Eve", text="x"))
    fold.call(call("post", to="Bob", text="x"))
    fold.finish()
    assert sent == ["e1", "e2"]


def test_a_call_that_holds_a_placeholder_is_not_made_and_its_subject_is_settled_first() -> None:
    sent: list[str] = []
    fold = folding(releases=True, sent=sent)
    fold.call(call("post", to="Eve", text="x"))
    held = fold.call(call("send", to="Ann", text=token("e1")))
    assert (held.fate, sent) == (Fate.REFUSED, ["e1"])
    assert "placeholder" in held.told


def test_the_placeholder_of_the_first_is_not_found_in_that_of_the_eleventh() -> None:
    assert token("e1") not in token("e11")
