"""Requests while the command runs: what passes, what is refused, what is asked, what is parked."""

from __future__ import annotations

import pytest
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import EXITED, created, running

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.requests import INTERNAL_HOST, NetMessage, NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision
from interlock.monitor import ProtocolError, step

TEXT = """version: 1
preset: coding
network:
  hosts:
    - {host: docs.test}
    - {host: api.test, methods: ["*"]}
    - {host: forge.test, park: [POST]}
cedar: |
  @id("no-deletes")
  @reason("nothing is deleted out there")
  forbid(principal, action, resource) when { context.method == "DELETE" };
"""
DONE = NetResponse(outcome=Outcome.DONE, status=200)


def request(method: str, host: str, path: str = "/", **more: object) -> ev.RequestMade:
    return ev.RequestMade(
        request=NetRequest(method=method, scheme="https", host=host, port=443, path=path, **more)  # type: ignore[arg-type]
    )


def book(oracle: str = "strict") -> Playbook:
    return running(oracle, TEXT)


def proposed(it: Playbook, event: ev.Event, checks: int = 2) -> Playbook:
    it >> event << Wrote(NodeKind.TOOL_CALL)
    for number in range(checks):
        last = number == checks - 1
        it._given.popleft() if not last else it.nodes.append(it._given.popleft())  # type: ignore[arg-type]
    return it


def parked(it: Playbook, path: str = "/issues") -> Playbook:
    proposed(it, request("POST", "forge.test", path, body_size_bytes=2, body_text="{}"))
    it << Wrote(NodeKind.DEFERRED, "defer")
    return it << cmd.Park(effect_id=f"e{it.state.proposed}")


def answers(it: Playbook, *pairs: tuple[str, Decision], **more: object) -> ev.OracleAnswered:
    asked = tuple(one for one, _decision in pairs)
    return ev.OracleAnswered(
        oracle="human",
        answers=tuple(ev.Answer(effect_id=one, decision=what, reason="so") for one, what in pairs),
        asked=asked,
        **more,  # type: ignore[arg-type]
    )


def test_a_read_of_a_named_host_passes_and_its_answer_is_recorded() -> None:
    it = proposed(book(), request("GET", "docs.test", "/page"))
    it << cmd.LetPass(effect_id="e1", durable=False)
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    assert it.done().flying == {}


def test_a_write_passes_only_once_its_intent_survives_a_loss_of_power() -> None:
    it = proposed(book(), request("PUT", "api.test", "/x", body_size_bytes=1, body_text="x"))
    it << cmd.LetPass(effect_id="e1", durable=True)
    it.done()


def test_what_a_rule_forbids_is_turned_away_and_nobody_is_asked() -> None:
    it = book("human") >> request("DELETE", "api.test", "/x") << Wrote(NodeKind.TOOL_CALL)
    it << Wrote(NodeKind.CHECK, "refuse") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    assert it.done().turned_away == 1


def test_a_read_of_a_host_that_nobody_named_is_asked_about_at_once() -> None:
    it = proposed(book("human"), request("GET", "evil.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answers(it, ("e1", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it << cmd.LetPass(effect_id="e1", durable=False)
    it.done()


def test_a_grant_holds_for_the_same_host_until_the_task_ends() -> None:
    it = proposed(book("human"), request("GET", "evil.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answers(it, ("e1", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION) << cmd.LetPass
    proposed(it, request("GET", "evil.test", "/other")) << cmd.LetPass(effect_id="e2", durable=False)
    proposed(it, request("GET", "other.test")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it.done()


@pytest.mark.parametrize("silence", [{"fault": "broke"}, {"leave_open": True}])
def test_no_clear_release_in_mid_run_refuses(silence: dict[str, object]) -> None:
    it = proposed(book("human"), request("GET", "evil.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> answers(it, ("e1", Decision.RELEASE), **silence) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it.done()


def test_an_answer_on_what_was_not_asked_releases_nothing() -> None:
    it = proposed(book("human"), request("GET", "evil.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    event = ev.OracleAnswered(
        oracle="human",
        answers=(ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason=""),),
        asked=("e9",),
    )
    it >> event << Wrote(NodeKind.RESOLUTION)
    assert [item.effect.id for item in it.done().opened] == ["e1"]


def test_a_held_run_refuses_what_cannot_wait() -> None:
    it = proposed(book("hold"), request("GET", "evil.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it.done()


def test_a_parked_request_waits_for_the_end_and_leaves_after_the_files() -> None:
    it = parked(book("human"))
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    it >> ev.ChangesListed(changes=(created("a.py"),), last=True)
    it << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "release") << cmd.Ask
    it >> ev.OracleAnswered(
        oracle="human", answers=(ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason=""),)
    )
    it << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    it << cmd.RecordIntent(released=("e1", "e2"))
    (
        it
        >> ev.IntentRecorded(released=("e1", "e2"))
        << Wrote(NodeKind.RESOLUTION)
        << cmd.Commit(released=("e2",))
    )
    it >> ev.ScopeCommitted(applied=("e2",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Send(effect_id="e1")
    assert it.state.phase is Phase.SENDING
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Discard()
    assert it.done().committed == 2


def test_a_parked_request_that_is_refused_is_never_sent() -> None:
    it = parked(book("strict"))
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    it >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    it >> ev.OracleAnswered(oracle="strict", answers=()) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.Notify << cmd.Discard()
    it.done()


def stuck(second: str = "/two") -> Playbook:
    """Two released requests, of which nobody knows whether the first arrived."""
    it = parked(parked(book("human"), "/one"), second)
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    it >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    both = tuple(ev.Answer(effect_id=one, decision=Decision.RELEASE, reason="") for one in ("e1", "e2"))
    it >> ev.OracleAnswered(oracle="human", answers=both) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent
    it >> ev.IntentRecorded(released=("e1", "e2")) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1")
    unknown = NetResponse(outcome=Outcome.UNKNOWN, detail="cut off")
    it >> ev.ResponseReceived(effect_id="e1", response=unknown) << Wrote(NodeKind.TOOL_OUTPUT)
    it << cmd.Hold(stuck="e1")
    assert (it.state.phase, it.state.stuck_on) == (Phase.STUCK, "e1")
    return it


def settled(choice: ev.StuckChoice) -> ev.StuckSettled:
    return ev.StuckSettled(effect_id="e1", choice=choice, settled_at_ns="9")


def test_a_request_that_did_not_succeed_leaves_the_scope_stuck_and_what_follows_unsent() -> None:
    it = stuck()
    with pytest.raises(ProtocolError):
        it >> ev.ScopeCommitted(applied=())
    with pytest.raises(ProtocolError):
        it >> ev.StuckSettled(effect_id="e2", choice=ev.StuckChoice.SKIP, settled_at_ns="9")


def test_a_stuck_request_is_sent_once_more_only_by_choice() -> None:
    it = stuck() >> settled(ev.StuckChoice.RETRY) << Wrote(NodeKind.RESOLUTION)
    it << cmd.Send(effect_id="e1", attempt=2)
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it << cmd.Send(effect_id="e2")
    it >> ev.ResponseReceived(effect_id="e2", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Discard()
    assert it.done().committed == 2


def test_a_stuck_request_can_be_left_as_it_is() -> None:
    it = stuck() >> settled(ev.StuckChoice.SKIP) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e2")
    it >> ev.ResponseReceived(effect_id="e2", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Discard()
    assert it.done().committed == 1


def test_what_follows_a_stuck_request_can_be_dropped() -> None:
    it = stuck() >> settled(ev.StuckChoice.DROP) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.Notify << cmd.Discard()
    assert (it.done().committed, it.state.parked) == (0, ())


def test_a_placeholder_about_to_leave_resolves_what_it_stands_for_first() -> None:
    it = parked(book("human"))
    proposed(it, request("GET", "docs.test", "/see", placeholders=("e1",))) << cmd.Ask
    it >> answers(it, ("e1", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.Send(effect_id="e1")
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    # The placeholder itself is no value: the agent is told where the real one is.
    it << Wrote(NodeKind.RESOLUTION, "refuse") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    assert it.done().parked == ()


def test_the_answer_of_a_parked_request_can_be_read_inside() -> None:
    it = parked(book("human"))
    it >> request("GET", INTERNAL_HOST, "/requests/e1") << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    it >> answers(it, ("e1", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.Send(effect_id="e1")
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it << cmd.AnswerInside(effect_id="e2", subject="e1")
    it >> request("GET", INTERNAL_HOST, "/notices") << Wrote(NodeKind.TOOL_CALL)
    it << cmd.AnswerInside(effect_id="e3", subject="")
    it.done()


def test_the_model_may_be_told_of_a_placeholder() -> None:
    it = parked(book("human"))
    event = ev.RequestMade(
        request=NetRequest(
            method="POST", scheme="https", host="api.anthropic.com", port=443, path="/v1/messages",
            body_size_bytes=2, body_text="{}", placeholders=("e1",),
        )
    )  # fmt: skip
    proposed(it, event) << cmd.LetPass(effect_id="e2", durable=False)
    it.done()


def test_what_is_vouched_for_joins_the_open_scope_in_its_order() -> None:
    text = TEXT.replace('methods: ["*"]}', 'methods: ["*"], park: [POST]}')
    it = running("human", text)
    proposed(it, request("POST", "api.test", "/x", body_size_bytes=1, body_text="x")) << cmd.LetPass
    parked(it)
    proposed(it, request("POST", "api.test", "/x", body_size_bytes=1, body_text="x"))
    it << cmd.Park(effect_id="e3")
    it.done()


def test_messages_belong_to_a_stream_that_left() -> None:
    it = book()
    message = ev.MessageMade(message=NetMessage(stream="e1", size_bytes=1, digest="aa", text="x"))
    with pytest.raises(ProtocolError):
        step(it.state, message)
    proposed(it, request("GET", "api.test", "/socket", protocol="http/1.1"))
    it << cmd.LetPass
    proposed(it, message) << cmd.LetPass
    assert list(it.done().flying) == ["e1"]


def test_an_answer_to_nothing_is_a_fault() -> None:
    with pytest.raises(ProtocolError):
        step(book().state, ev.ResponseReceived(effect_id="e7", response=DONE))


def test_the_end_of_the_command_refuses_what_still_waits_and_keeps_what_is_parked() -> None:
    it = parked(book("human"))
    proposed(it, request("GET", "evil.test")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << Wrote(NodeKind.BLOCKED, "refuse") << cmd.ListChanges()
    state = it.done()
    assert state.opened == ()
    assert [item.effect.id for item in state.parked] == ["e1"]


def test_a_crash_among_the_parked_requests_goes_on_where_it_was() -> None:
    it = parked(book("human"))
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    it >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    yes = ev.OracleAnswered(
        oracle="human", answers=(ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason=""),)
    )
    it >> yes << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1")
    it >> ev.Resumed(oracle="principal", selection=(), resumed_at_ns="9") << Wrote(NodeKind.RESOLUTION)
    it << cmd.Send(effect_id="e1")
    it.done()


def test_unreadable_traffic_is_on_record() -> None:
    it = book() >> ev.TrafficRefused(host="evil.test", port=25, reason="neither TLS nor HTTP")
    it << Wrote(NodeKind.TOOL_CALL)
    it.done()


def test_questions_wait_side_by_side_while_other_requests_pass_and_are_answered_in_any_order() -> None:
    it = proposed(book("review"), request("GET", "first.test"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    proposed(it, request("GET", "second.test")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    proposed(it, request("GET", "docs.test", "/page")) << cmd.LetPass(effect_id="e3", durable=False)
    it >> answers(it, ("e2", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it << cmd.LetPass(effect_id="e2", durable=False)
    assert [item.effect.id for item in it.done().opened] == ["e1"]
    # An answer to what was answered already changes nothing.
    it >> answers(it, ("e2", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it.done()
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << Wrote(NodeKind.BLOCKED, "refuse") << cmd.ListChanges()
    assert it.done().turned_away == 1
