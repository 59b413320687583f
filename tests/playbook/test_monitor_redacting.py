"""Released redacted: what is cut is on record before it leaves, and what cannot be cut never leaves."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import EXITED, running
from tests.playbook.test_monitor_traffic import DONE, proposed

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.places import Place
from interlock.model.redactions import Cut, Redaction, with_cuts
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision
from interlock.monitor import event_from_payload

SECRET = "tok-91f2c7d0a4b8"
BODY = f"the token is {SECRET} here"
LEFT = "the token is [redacted] here"
TEXT = """version: 1
preset: coding
network:
  hosts:
    - {host: api.test, methods: ["*"]}
    - {host: forge.test, methods: [POST], park: [POST]}
cedar: |
  @id("no-deletes")
  @reason("nothing is deleted out there")
  forbid(principal, action, resource) when { context.query like "*redacted*" };
"""
CUT = Cut(
    part="body",
    start=13,
    end=13 + len(SECRET),
    digest=sha256(SECRET.encode()).hexdigest(),
    put="[redacted]",
)
REDACTION = Redaction(cuts=(CUT,), body_digest=sha256(LEFT.encode()).hexdigest(), body_size_bytes=len(LEFT))


def asking(host: str = "api.test", body: str = BODY, **more: object) -> ev.RequestMade:
    request = NetRequest(
        method="POST",
        scheme="https",
        host=host,
        port=443,
        path="/x",
        body_size_bytes=len(body),
        body_digest=sha256(body.encode()).hexdigest(),
        body_text=body,
    )
    return ev.RequestMade(request=replace(request, **more))  # type: ignore[arg-type]


def book(oracle: str = "human") -> Playbook:
    """A run that has read a token."""
    it = running(oracle, TEXT)
    read = ev.FileRead(
        place=Place(root="workspace", path=".env"),
        opened=0,
        closed=1,
        staged=False,
        text=f"API_TOKEN={SECRET}\n",
    )
    return it >> ev.ActivityObserved(reads=(read,), writes=()) << Wrote(NodeKind.TOOL_OUTPUT)


def answer(effect_id: str, *, asked: bool = True, **more: object) -> ev.OracleAnswered:
    one = ev.Answer(effect_id=effect_id, decision=Decision.RELEASE, reason="so", redact=True)
    return ev.OracleAnswered(
        oracle="human",
        answers=(replace(one, **more),),  # type: ignore[arg-type]
        asked=(effect_id,) if asked else (),
    )


def parked(it: Playbook) -> Playbook:
    proposed(it, asking("forge.test"))
    return it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Park(effect_id=f"e{it.state.proposed}")


def test_a_request_that_waits_leaves_without_what_is_cut_and_the_agent_is_told() -> None:
    it = proposed(book(), asking())
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answer("e1") << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    payload = it.nodes[-1].node.payload
    assert payload["redacted"] == [
        {"part": "body", "start": 13, "end": 29, "digest": CUT.digest, "put": "[redacted]"}
    ]
    assert (payload["body_digest"], payload["body_size_bytes"]) == (REDACTION.body_digest, len(LEFT))
    assert with_cuts(BODY.encode(), REDACTION.cuts) == LEFT.encode()
    assert SECRET not in str(payload)
    it << cmd.Notify << cmd.LetPass(effect_id="e1", durable=True, redaction=REDACTION)
    knowledge = it.done().knowledge
    assert knowledge is not None
    assert knowledge.grants == (), "what was cut for one request is granted to none"
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    assert it.done().flying == {}


def test_the_next_one_of_the_kind_is_asked_about_again() -> None:
    it = proposed(book(), asking())
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask >> answer("e1")
    it << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release") << cmd.Notify << cmd.LetPass
    proposed(it, asking()) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it.done()


@pytest.mark.parametrize(
    "event",
    [
        asking(path=f"/{SECRET}"),
        asking(body_digest="ab" * 32),
        asking(headers=(("content-digest", "sha-256=:x:"),)),
    ],
)
def test_what_cannot_be_redacted_is_turned_away(event: ev.RequestMade) -> None:
    it = proposed(book(), event)
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answer("e1") << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    exception = it.nodes[-1].node.payload["exception"]
    assert isinstance(exception, dict)
    assert "it was to leave redacted, and cannot" in str(exception["rationale"])
    it.done()


def test_what_carries_nothing_too_much_is_no_matter_for_redaction() -> None:
    it = proposed(book(), asking("other.test", "fine"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answer("e1") << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it.done()


def test_a_rule_that_forbids_what_would_be_left_refuses() -> None:
    it = proposed(book(), asking(body="x", query=f"key={SECRET}"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answer("e1") << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    assert "nothing is deleted out there" in str(it.nodes[-1].node.payload["exception"])
    it.done()


def test_silence_beats_a_redaction() -> None:
    it = proposed(book(), asking())
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> replace(answer("e1"), fault="broke") << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it.done()


def listed(it: Playbook) -> Playbook:
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    return it >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask


def released(it: Playbook) -> Playbook:
    listed(it) >> answer("e1", asked=False)
    it << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent
    assert it.nodes[-1].node.payload["redacted"] == ["e1"]
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION)
    return it << cmd.Send(effect_id="e1", redaction=REDACTION)


def test_a_parked_request_is_cut_on_record_before_it_is_sent() -> None:
    it = released(parked(book()))
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it << cmd.Notify << cmd.Discard()
    assert it.done().committed == 1


def test_a_process_that_takes_the_run_up_sends_what_was_cut_and_never_the_whole() -> None:
    it = released(parked(book()))
    resumed = ev.Resumed(oracle="principal", selection=(), resumed_at_ns="3")
    it >> resumed << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1", redaction=REDACTION)
    unknown = NetResponse(outcome=Outcome.UNKNOWN, detail="cut off")
    it >> ev.ResponseReceived(effect_id="e1", response=unknown) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Hold
    assert it.done().phase is Phase.STUCK
    it >> ev.StuckSettled(effect_id="e1", choice=ev.StuckChoice.RETRY, settled_at_ns="9")
    it << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1", attempt=2, redaction=REDACTION)
    it.done()


def test_a_parked_request_that_cannot_be_cut_is_refused_and_never_sent() -> None:
    it = proposed(book(), asking("forge.test", headers=(("content-md5", "x"),)))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Park(effect_id="e1")
    listed(it) >> answer("e1", asked=False) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.Notify << cmd.Discard()
    assert it.done().committed == 0


@pytest.mark.parametrize("more", [{"hunks": (1,)}, {"merge": True}])
def test_no_part_and_no_merge_goes_with_a_redaction(more: dict[str, object]) -> None:
    it = listed(parked(book())) >> answer("e1", asked=False, **more) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.Notify << cmd.Discard()
    it.done()


def test_a_scope_that_is_held_again_asks_about_the_whole_request_again() -> None:
    it = listed(parked(book())) >> answer("e1", asked=False)
    it << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent
    it >> ev.CommitFailed(reason="EIO", rolled_back=True) << Wrote(NodeKind.INTERRUPT) << cmd.Hold()
    it >> ev.Resumed(oracle="human", selection=(), resumed_at_ns="3")
    it << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges()
    assert it.state.redactions == ()
    it >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    whole = ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason="so")
    it >> ev.OracleAnswered(oracle="human", answers=(whole,)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1")
    it.done()


def test_a_placeholder_has_its_subject_sent_redacted_in_mid_run() -> None:
    it = parked(book())
    proposed(it, asking("api.test", "see", placeholders=("e1",))) << cmd.Ask
    it >> answer("e1") << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    it << cmd.Notify << Wrote(NodeKind.RESOLUTION, "release")
    it << cmd.Send(effect_id="e1", redaction=REDACTION)
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it << Wrote(NodeKind.RESOLUTION, "refuse") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it.done()


def test_an_older_ledgers_answer_redacts_nothing() -> None:
    payload = {
        "event": "oracle-answered",
        "oracle": "human",
        "answers": [{"effect_id": "e1", "decision": "release", "reason": ""}],
    }
    event = event_from_payload(payload)
    assert isinstance(event, ev.OracleAnswered)
    assert not event.answers[0].redact
