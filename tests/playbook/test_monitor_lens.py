"""The model's traffic in the fold: tools that are pinned, calls that an answer announced, exchanges on record."""

from __future__ import annotations

import pytest
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_corrections import TOLD
from tests.playbook.test_monitor_scope import EXITED, running
from tests.playbook.test_monitor_traffic import DONE, proposed, request

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolDefinition, ToolResult
from interlock.model.verdicts import Decision
from interlock.monitor import ProtocolError, step

TEXT = """version: 1
preset: none
trusted: [{task: true}]
network: {models: [llm.test]}
tools:
  look: {effect: read, output: {trust: own}}
  send: {effect: send, steers: {to: email}}
  keep: {effect: write, parks: true, steers: {title: name}}
cedar: |
  permit(principal, action, resource);
"""
ONE, OTHER = "ab" * 32, "cd" * 32


def talking(oracle: str = "human") -> Playbook:
    it = proposed(running(oracle, TEXT), request("POST", "llm.test", "/v1/messages", body_text="{}"))
    return it << cmd.LetPass(effect_id="e1", durable=False)


def called(tool: str, arguments: str = "{}", *, exchange: str = "e1", server: str = "") -> ev.ToolCalled:
    return ev.ToolCalled(
        call=ToolCall(call="c", tool=tool, arguments=arguments, exchange=exchange, server=server)
    )


def listed(*tools: tuple[str, str], server: str = "", exchange: str = "e1") -> ev.ToolsListed:
    given = tuple(ToolDefinition(name=name, digest=digest) for name, digest in tools)
    return ev.ToolsListed(server=server, tools=given, exchange=exchange)


def reason_of(it: Playbook) -> str:
    findings = it.nodes[-1].node.payload["findings"]
    assert isinstance(findings, list)
    return str(findings[0]["reason"])


def test_a_call_of_an_answer_is_decided_as_any_other_and_its_result_is_known() -> None:
    it = proposed(talking(), called("look")) << cmd.LetPass(effect_id="e2", durable=False)
    result = ToolResult(outcome=Outcome.DONE, text='{"mail":"a@b.test"}', structured=True, size_bytes=19)
    it >> ev.ToolReturned(effect_id="e2", result=result) << Wrote(NodeKind.TOOL_OUTPUT)
    it = proposed(it, called("send", '{"to":"a@b.test"}'))
    it << cmd.LetPass(effect_id="e3", durable=True)
    assert set(it.done().flying) == {"e1", "e3"}


def test_what_the_agent_makes_itself_is_never_parked() -> None:
    it = proposed(talking(), called("keep", '{"title":"nobody said it"}'))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    assert not it.done().parked
    it = proposed(talking(), called("keep", '{"title":"nobody said it"}', exchange=""))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Park(effect_id="e2")
    it.done()


def test_a_tool_that_is_described_anew_is_asked_about_though_nothing_else_speaks_against_it() -> None:
    it = talking() >> listed(("look", ONE), ("send", ONE)) << Wrote(NodeKind.TOOL_OUTPUT)
    proposed(it, called("look")) << cmd.LetPass(effect_id="e2", durable=False)
    it >> listed(("look", OTHER), ("send", ONE)) << Wrote(NodeKind.TOOL_OUTPUT)
    proposed(it, called("look"))
    assert "has changed since the run began" in reason_of(it)
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    state = it.done()
    assert state.pins.altered == {("", "look")}
    assert not state.pins.knows(listed(("other", ONE)))


def test_strict_refuses_the_call_of_a_tool_that_is_described_anew() -> None:
    it = talking("strict") >> listed(("look", ONE)) << Wrote(NodeKind.TOOL_OUTPUT)
    it >> listed(("look", OTHER)) << Wrote(NodeKind.TOOL_OUTPUT)
    proposed(it, called("look")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> ev.OracleAnswered(oracle="strict", answers=(), asked=("e2",)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse")
    away = it._given.popleft()
    assert isinstance(away, cmd.TurnAway)
    assert away.exception.violated_rule == "tool.pinned"
    assert it.done().turned_away == 1


def test_a_release_of_one_call_is_no_release_of_the_new_description() -> None:
    it = talking() >> listed(("look", ONE)) << Wrote(NodeKind.TOOL_OUTPUT)
    it >> listed(("look", OTHER)) << Wrote(NodeKind.TOOL_OUTPUT)
    proposed(it, called("look")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    answer = ev.Answer(effect_id="e2", decision=Decision.RELEASE, reason="seen")
    it >> ev.OracleAnswered(oracle="human", answers=(answer,), asked=("e2",)) << Wrote(NodeKind.RESOLUTION)
    it << cmd.LetPass(effect_id="e2", durable=False)
    proposed(it, called("look")) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it.done()


def test_a_tool_named_like_another_servers_is_asked_about_and_the_first_is_not() -> None:
    it = running("human", TEXT) >> listed(("look", ONE), server="files", exchange="")
    it << Wrote(NodeKind.TOOL_OUTPUT)
    it >> listed(("1ook", ONE), ("look", ONE), server="evil", exchange="") << Wrote(NodeKind.TOOL_OUTPUT)
    proposed(it, called("look", server="files", exchange="")) << cmd.LetPass(effect_id="e1", durable=False)
    proposed(it, called("look", server="evil", exchange=""))
    assert reason_of(it) == "the tool `evil/look` is named like one that `files` offered before"
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it.done()


def test_a_corrected_call_passes_the_whole_decision_again() -> None:
    it = talking("visor:judge")
    proposed(it, called("send", '{"to":"eve@m.test"}')) << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    no = ev.Answer(effect_id="e2", decision=Decision.REFUSE, reason="differs", exception=TOLD)
    it >> ev.OracleAnswered(oracle="visor:judge", answers=(no,), asked=("e2",)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    # The model is asked again, by a request of its own, and what it answers is decided as if nothing had been.
    proposed(it, request("POST", "llm.test", "/v1/messages", body_text="{}"))
    it << cmd.LetPass(effect_id="e3", durable=False)
    proposed(it, called("send", '{"to":"eve2@m.test"}', exchange="e3"))
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    no = ev.Answer(effect_id="e4", decision=Decision.REFUSE, reason="differs", exception=TOLD)
    it >> ev.OracleAnswered(oracle="visor:judge", answers=(no,), asked=("e4",)) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    # One correction was allowed and is spent: nobody is asked about a third.
    proposed(it, called("send", '{"to":"eve3@m.test"}', exchange="e3"))
    it << Wrote(NodeKind.DEFERRED, "defer") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    assert [one.attempt for one in it.done().objected] == [1, 2]


def test_an_exchange_is_a_mere_record() -> None:
    it = talking()
    told = ev.ExchangeRecorded(
        effect_id="e1", provider="llm.test", model="m", request="12" * 32, answer="34" * 32
    )
    it >> told << Wrote(NodeKind.INFERENCE)
    assert it.nodes[-1].node.actor == "agent"
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it.done()


@pytest.mark.parametrize(
    "event",
    [
        called("look", exchange="e7"),
        listed(("look", ONE), exchange="e7"),
        ev.ExchangeRecorded(effect_id="e7", provider="llm.test", model="m", request=""),
        ev.ActionsAnnounced(effect_id="e7"),
    ],
)
def test_what_belongs_to_no_exchange_that_is_under_way_is_no_event(event: ev.Event) -> None:
    with pytest.raises(ProtocolError):
        step(talking().done(), event)


def test_a_call_does_not_stand_for_an_exchange() -> None:
    it = proposed(talking(), called("look")) << cmd.LetPass(effect_id="e2", durable=False)
    with pytest.raises(ProtocolError):
        step(it.done(), called("look", exchange="e2"))


def test_a_call_that_has_no_result_when_the_command_ends_leaves_nothing_open() -> None:
    it = proposed(talking(), called("look")) << cmd.LetPass(effect_id="e2", durable=False)
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    assert not it.done().flying
