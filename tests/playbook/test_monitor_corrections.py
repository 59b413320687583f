"""Refusals that say which check failed: what the agent is told, and how often it may mend its action."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import EXITED, created, running
from tests.playbook.test_monitor_traffic import proposed, request

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision, ExceptionType, SemanticException
from interlock.monitor import event_from_payload
from interlock.monitor.codec import event_payload

TOOLS = """version: 1
preset: none
{more}tools:
  send_email: {{effect: send, steers: {{to: email}}, carries: [body]}}
  note: {{effect: write, steers: {{title: name}}}}
  post: {{effect: send, steers: {{channel: name}}, parks: true}}
cedar: |
  permit(principal, action, resource);
"""
TOLD = SemanticException(
    type=ExceptionType.INTEGRITY,
    violated_rule="value differs from the task's",
    rationale="one of its values is not the one that the task gives",
    constraints=("use the task's own values, letter by letter",),
    allowed_objective="the task as it was given",
)


def book(more: str = "") -> Playbook:
    return running("visor:judge", TOOLS.format(more=more))


def call(tool: str, arguments: str) -> ev.ToolCalled:
    return ev.ToolCalled(call=ToolCall(call="c", tool=tool, arguments=arguments))


def mail(to: str, body: str = "hi") -> ev.ToolCalled:
    return call("send_email", f'{{"body":"{body}","to":"{to}"}}')


def asked(it: Playbook, event: ev.Event) -> str:
    """Give a proposal that has to be asked about; return its effect's id."""
    proposed(it, event)
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    return f"e{it.state.proposed}"


def said(effect_id: str, decision: Decision, exception: SemanticException | None) -> ev.OracleAnswered:
    answer = ev.Answer(effect_id=effect_id, decision=decision, reason="SECRET words", exception=exception)
    return ev.OracleAnswered(oracle="visor:judge", answers=(answer,), asked=(effect_id,))


def refused(it: Playbook, event: ev.Event, exception: SemanticException | None = TOLD) -> SemanticException:
    """Propose, refuse, and return what the agent is told."""
    effect_id = asked(it, event)
    it >> said(effect_id, Decision.REFUSE, exception) << Wrote(NodeKind.RESOLUTION)
    return told(it)


def told(it: Playbook) -> SemanticException:
    it << Wrote(NodeKind.BLOCKED, "refuse")
    away = it._given.popleft()
    assert isinstance(away, cmd.TurnAway)
    it.done()
    return away.exception


def refused_unasked(it: Playbook, event: ev.Event) -> SemanticException:
    proposed(it, event)
    it << Wrote(NodeKind.DEFERRED, "defer")
    return told(it)


def test_an_oracles_exception_is_what_the_agent_is_told_and_its_reason_is_not() -> None:
    assert refused(book(), mail("x@evil.test")) == TOLD


def test_a_release_with_an_exception_and_a_type_that_is_no_oracles_change_nothing() -> None:
    it = book()
    effect_id = asked(it, mail("x@evil.test"))
    it >> said(effect_id, Decision.RELEASE, TOLD) << Wrote(NodeKind.RESOLUTION) << cmd.LetPass
    assert it.done().objected == ()
    other = refused(it, mail("y@evil.test"), replace(TOLD, type=ExceptionType.RULE))
    assert other.type is ExceptionType.PROVENANCE
    assert "SECRET words" in other.rationale
    assert it.state.objected == ()


def test_one_correction_passes_the_whole_decision_and_the_next_one_is_not_asked_about() -> None:
    it = book()
    refused(it, mail("x@evil.test"))
    refused(it, mail("y@evil.test"))
    last = refused_unasked(it, mail("z@evil.test"))
    assert last.type is ExceptionType.INTEGRITY
    assert "one correction" in last.rationale
    assert TOLD.constraints[0] in last.constraints
    assert asked(it, call("note", '{"title":"other"}'))


def test_a_correction_that_is_released_leaves_the_next_one_open() -> None:
    it = book()
    refused(it, mail("x@evil.test"))
    for to in ("a@corp.test", "b@corp.test"):
        effect_id = asked(it, mail(to))
        it >> said(effect_id, Decision.RELEASE, None) << Wrote(NodeKind.RESOLUTION) << cmd.LetPass
    assert asked(it, mail("c@corp.test"))


def test_what_policy_vouches_for_is_never_counted() -> None:
    it = running("visor:judge", TOOLS.format(more="corrections: 0\ntrusted: [{task: true}]\n"))
    refused(it, mail("x@evil.test"))
    refused_unasked(it, mail("y@evil.test"))
    it = Playbook()
    it >> ev.TaskGiven(run_id="r", task="send an email to ann@corp.test", argv=("a",), started_at_ns="1")
    it << Wrote(NodeKind.PROMPT)
    text = TOOLS.format(more="corrections: 0\ntrusted: [{task: true}]\n").replace(
        "carries: [body]", "carries: [body], asks: [send, email]"
    )
    boundary = running("visor:judge", text).nodes[1].node.payload
    it >> event_from_payload(boundary) << Wrote(NodeKind.APM)
    refused(it, mail("x@evil.test"))
    proposed(it, mail("ann@corp.test"))
    it << cmd.LetPass
    refused_unasked(it, mail("y@evil.test"))


def test_the_same_again_is_no_correction_and_is_not_asked_about() -> None:
    it = book("corrections: 3\n")
    refused(it, mail("x@evil.test"))
    again = refused_unasked(it, mail("x@evil.test"))
    assert "the same was refused before" in again.rationale
    assert refused(it, mail("x@evil.test", "another body")) == TOLD


@pytest.mark.parametrize("corrections", [0, 1, 2, 3])
def test_the_policy_says_how_many_corrections_there_are(corrections: int) -> None:
    it = book(f"corrections: {corrections}\n")
    for number in range(1 + corrections):
        assert refused(it, mail(f"x{number}@evil.test")) == TOLD
    assert refused_unasked(it, mail("last@evil.test")).violated_rule == TOLD.violated_rule


def test_proposals_made_before_the_agent_was_told_are_no_corrections() -> None:
    it = book()
    first, second, third = (asked(it, mail(f"x{number}@evil.test")) for number in range(3))
    for effect_id in (first, second, third):
        it >> said(effect_id, Decision.REFUSE, TOLD) << Wrote(NodeKind.RESOLUTION)
        told(it)
    assert {one.attempt for one in it.state.objected} == {1}
    refused(it, mail("mended@evil.test"))
    refused_unasked(it, mail("again@evil.test"))


def test_a_refusal_without_an_exception_counts_nothing() -> None:
    it = book("corrections: 0\n")
    for number in range(3):
        assert refused(it, mail(f"x{number}@evil.test"), None).type is ExceptionType.PROVENANCE


def test_requests_are_of_one_kind_by_their_operation_whatever_the_host() -> None:
    it = running("visor:judge", "version: 1\npreset: coding\ncorrections: 0\n")
    refused(it, request("POST", "one.evil.test", body_size_bytes=1, body_text="x"))
    refused_unasked(it, request("POST", "two.evil.test", body_size_bytes=1, body_text="x"))
    assert asked(it, request("GET", "three.evil.test"))


def test_what_would_be_parked_is_refused_at_once_where_no_correction_is_left() -> None:
    it = book("corrections: 0\n")
    proposed(it, call("post", '{"channel":"a"}'))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Park(effect_id="e1")
    it.state = replace(
        it.state, objected=(_objected("tool.send tool:post"),)
    )  # as after one that had to be settled in mid-run
    refused_unasked(it, call("post", '{"channel":"b"}'))


def _objected(kind: str):  # type: ignore[no-untyped-def]
    from interlock.monitor.state import Objected

    return Objected(kind=kind, question=None, node=1, attempt=1, exception=TOLD)


def test_the_principal_who_has_a_scope_resolved_begins_the_count_anew() -> None:
    it = book("corrections: 0\n")
    refused(it, mail("x@evil.test"))
    assert it.state.objected
    it >> ev.ResolutionAsked(oracle="strict", selection=(), asked_at_ns="3")
    assert it.state.objected == ()


def test_a_scope_keeps_its_released_part_where_one_effect_is_refused() -> None:
    it = running("visor:judge") >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    changes = (created("Makefile"), created("AGENTS.md"), created("a.py"))
    it >> ev.ChangesListed(changes=changes, last=True)
    ask = it._given[-1]
    assert isinstance(ask, cmd.Ask)
    it._given.clear()
    ids = [effect.id for effect, _ in ask.deferred]
    assert len(ids) == 2
    answers = (
        ev.Answer(effect_id=ids[0], decision=Decision.RELEASE, reason="asked for"),
        ev.Answer(effect_id=ids[1], decision=Decision.REFUSE, reason="not", exception=TOLD),
    )
    it >> ev.OracleAnswered(oracle="visor:judge", answers=answers) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse")
    assert it.nodes[-1].node.payload["exception"]["type"] == "I"  # type: ignore[index]
    it << Wrote(NodeKind.RESOLUTION, "release")
    intent = it._given.popleft()
    assert isinstance(intent, cmd.RecordIntent)
    assert set(intent.released) == {ids[0], "e3"}


def test_an_answer_with_an_exception_is_read_back_as_it_was() -> None:
    event = said("e1", Decision.REFUSE, TOLD)
    assert event_from_payload(event_payload(event)) == event
    bare = event_payload(said("e1", Decision.REFUSE, None))
    assert "exception" not in bare["answers"][0]  # type: ignore[index]


def test_of_a_mixed_request_what_is_in_the_role_goes_on_and_the_rest_is_refused_unasked() -> None:
    it = book('operator: {instruction: "You take notes.", tools: [note]}\n')
    it >> mail("x@evil.test") << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK, "refuse")
    outside = told(it)
    assert (outside.type, outside.violated_rule) == (ExceptionType.SUITABILITY, "operator.role")
    effect_id = asked(it, call("note", '{"title":"x"}'))
    it >> said(effect_id, Decision.RELEASE, None) << Wrote(NodeKind.RESOLUTION) << cmd.LetPass
    assert it.done().objected == ()
