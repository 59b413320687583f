"""A run with a plan in the fold: its steps in their order, holes that answers fill, branches, files, and the lens."""

from __future__ import annotations

import pytest
from tests.fakes.planned_fold import VOUCHED, PlannedRun, findings
from tests.fakes.signed_plans import hole, in_mode, manifest, signed, step
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import created, stood

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.manifest import Mode
from interlock.model.nodes import NodeKind
from interlock.model.records import changed
from interlock.model.requests import NetRequest, Outcome
from interlock.model.tools import ToolResult
from interlock.model.verdicts import Decision, ExceptionType, Guard
from interlock.monitor import ProtocolError

RELEASE, REFUSE, DEFER = Decision.RELEASE, Decision.REFUSE, Decision.DEFER
ANSWERING = manifest(
    "answer ann's last mail",
    step("find", "search", {"query": "ann"}),
    step(
        "reply",
        "send",
        {"to": None, "body": None},
        [hole("/to", "find", "/*/from", kind="email"), hole("/body", longest=40)],
    ),
    step("note", "append", {"file": "notes", "text": "answered"}),
)
FOUND = [{"from": "ann@a.test", "id": 5}, {"from": "joe@a.test", "id": 6}]


def test_what_is_planned_is_done_in_its_order_and_needs_no_other_voucher() -> None:
    run = PlannedRun(ANSWERING)
    first = run.made("search", {"query": "ann"}, FOUND)
    assert first.decision is RELEASE
    assert findings(first) == [(Guard.RULES, "pass"), (Guard.TRAJECTORY, "pass")]
    assert first.checks[-1].rules == ("plan:find",)
    assert run.made("send", {"to": "joe@a.test", "body": "hello"}).decision is RELEASE
    assert run.made("append", {"file": "notes", "text": "answered"}).decision is RELEASE
    last = run.call("append", {"file": "notes", "text": "answered"})
    assert last.decision is REFUSE
    assert "all 3 steps of it are done" in last.reason


def test_tool_position_and_parameters_must_be_the_expected_ones() -> None:
    run = PlannedRun(ANSWERING)
    early = run.call("append", {"file": "notes", "text": "answered"})
    assert early.reason == "the plan expects `search` here (step `find`, 1 of 3), and not `append`"
    assert early.exception is not None
    assert early.exception.type is ExceptionType.TRAJECTORY
    assert early.exception.violated_rule == "plan:find"
    assert run.call("search", {"query": "bob"}).reason == (
        "the plan expects other parameters of `search` here (step `find`, 1 of 3)"
    )
    assert run.call("search", {"query": "ann", "more": True}).decision is REFUSE
    assert run.made("search", {"query": "ann"}, FOUND).decision is RELEASE, "a refusal moves nothing"


def test_a_hole_takes_what_its_source_answered_and_nothing_that_was_made_up() -> None:
    run = PlannedRun(ANSWERING)
    run.call("search", {"query": "ann"})
    waiting = run.call("send", {"to": "ann@a.test", "body": "hello"})
    assert waiting.decision is REFUSE
    assert "must come from the answer to `find`, which has not come" in waiting.reason
    run.answer(FOUND, "e1")
    assert run.call("send", {"to": "eve@a.test", "body": "hello"}).reason == (
        "the value of `send` at `/to` is not one that the plan lets stand there (step `reply`, 2 of 3)"
    )
    assert run.call("send", {"to": "ann@a.test", "body": "x" * 41}).decision is REFUSE, "longer than the hole"
    assert run.call("send", {"to": ["ann@a.test"], "body": "hello"}).decision is REFUSE
    assert run.call("send", {"to": "ann@a.test", "body": "hello", "copy": "eve@a.test"}).decision is REFUSE
    assert run.call("send", {"to": "ann@a.test", "body": "hello"}).decision is RELEASE


def test_a_source_that_failed_or_said_no_structure_fills_no_hole() -> None:
    run = PlannedRun(ANSWERING)
    run.call("search", {"query": "ann"})
    run.answer(FOUND, outcome=Outcome.FAILED)
    assert run.call("send", {"to": "ann@a.test", "body": "hello"}).decision is REFUSE
    run = PlannedRun(ANSWERING)
    run.call("search", {"query": "ann"})
    run.answer("the mail is from ann@a.test")
    assert run.call("send", {"to": "ann@a.test", "body": "hello"}).decision is REFUSE


def test_a_plan_vouches_off_the_plan_others_must() -> None:
    run = PlannedRun(in_mode(ANSWERING, Mode.VOUCH))
    off = run.call("delete", {"id": 5})
    assert off.decision is DEFER
    assert findings(off) == [
        (Guard.RULES, "pass"),
        (Guard.TRAJECTORY, "undecided"),
        (Guard.PROVENANCE, "undecided"),
    ]
    assert run.made("append", {"file": "notes", "text": "answered"}).decision is RELEASE, "order free"
    assert run.call("append", {"file": "notes", "text": "answered"}).decision is DEFER, "each step once"
    assert run.made("search", {"query": "ann"}, FOUND).decision is RELEASE


def test_each_branch_has_its_own_place_in_the_plan() -> None:
    plan = manifest(
        "split the work",
        branches={
            "left": (step("l1", "look", {}), step("l2", "keep", {"at": 1})),
            "right": (step("r1", "look", {}), step("r2", "keep", {"at": 2})),
        },
    )
    run = PlannedRun(plan)
    assert run.made("look", branch="left").decision is RELEASE
    assert run.call("look", branch="left").decision is REFUSE
    assert run.call("keep", {"at": 2}, branch="right").decision is REFUSE, "its own branch is not so far"
    assert run.made("look", branch="right").decision is RELEASE
    assert run.call("keep", {"at": 1}, branch="right").decision is REFUSE, "that is the other's"
    assert run.made("keep", {"at": 2}, branch="right").decision is RELEASE
    assert run.made("keep", {"at": 1}, branch="left").decision is RELEASE
    assert run.call("look").reason == "the plan has no branch ``"


@pytest.mark.parametrize("mode", Mode)
def test_a_forbid_is_not_overturned_by_a_plan(mode: Mode) -> None:
    policy = (
        VOUCHED + '  @id("no-mail")\n  forbid(principal, action, resource) when { context.path == "send" };\n'
    )
    run = PlannedRun(in_mode(ANSWERING, mode), policy=policy)
    run.made("search", {"query": "ann"}, FOUND)
    refused = run.call("send", {"to": "ann@a.test", "body": "hello"})
    assert refused.decision is REFUSE
    assert findings(refused) == [(Guard.RULES, "block")]


@pytest.mark.parametrize("mode", Mode)
def test_what_carries_more_than_its_tool_may_hold_is_asked_about_though_it_is_planned(mode: Mode) -> None:
    policy = VOUCHED.replace(
        "cedar:", "tools:\n  search: {effect: read, output: {level: secret}}\n  send: {effect: send}\ncedar:"
    )
    run = PlannedRun(in_mode(ANSWERING, mode), policy=policy, oracle="human")
    run.made("search", {"query": "ann"}, [{"from": "ann@a.test", "key": "hunter2-of-ann"}])
    verdict = run.call("send", {"to": "ann@a.test", "body": "hunter2-of-ann"})
    assert verdict.decision is DEFER
    assert findings(verdict)[1:] == [(Guard.TRAJECTORY, "pass"), (Guard.PROVENANCE, "undecided")]
    assert "it carries data of level `secret`" in verdict.reason
    again = run.call("send", {"to": "ann@a.test", "body": "hunter2-of-ann"})
    assert ("plan:reply",) not in [check.rules for check in again.checks], "the step is taken while one asks"


def talking(run: PlannedRun) -> str:
    """Have the run ask its model. Returns: the exchange."""
    request = NetRequest(
        method="POST", scheme="https", host="llm.test", port=443, path="/v1/messages", body_text="{}"
    )
    run.give(ev.RequestMade(request=request))
    assert run.state.latest is not None
    assert run.state.latest.verdict.decision is RELEASE, "the agent's own model is no step"
    return run.state.latest.effect.id


def test_a_call_that_the_model_announced_takes_the_step_and_the_same_by_mcp_takes_no_second() -> None:
    run = PlannedRun(
        manifest("do it", step("s1", "files/read", {"at": 1}), step("s2", "files/read", {"at": 2}))
    )
    exchange = talking(run)
    assert run.call("mcp__files__read", {"at": 1}, exchange=exchange).decision is RELEASE
    assert run.made("read", {"at": 1}, server="files").decision is RELEASE, "the same, on its way"
    assert run.call("read", {"at": 1}, server="files").decision is REFUSE, "and once only"
    assert run.call("read", {"at": 2}, server="files").decision is RELEASE


def test_an_announced_call_that_the_agent_never_got_gives_its_step_back() -> None:
    run = PlannedRun(ANSWERING)
    exchange = talking(run)
    assert run.call("search", {"query": "ann"}, exchange=exchange).decision is RELEASE
    unmade = ToolResult(outcome=Outcome.FAILED, detail="another call of the same answer was refused")
    run.give(ev.ToolReturned(effect_id="e2", result=unmade))
    assert run.call("search", {"query": "ann"}, exchange=exchange).decision is RELEASE
    run.answer(FOUND)
    assert run.call("search", {"query": "ann"}, exchange=exchange).decision is REFUSE


def test_a_failed_call_keeps_its_step() -> None:
    run = PlannedRun(ANSWERING)
    run.call("search", {"query": "ann"})
    run.give(ev.ToolReturned(effect_id="e1", result=ToolResult(outcome=Outcome.FAILED, detail="no network")))
    assert run.call("search", {"query": "ann"}).decision is REFUSE


def test_requests_are_covered_where_the_plan_has_any() -> None:
    posting = {"method": "POST", "host": "api.test", "port": 443, "path": "/notes", "body_digest": "ab" * 32}

    def decided(run: PlannedRun, path: str) -> Decision:
        request = NetRequest(
            method="POST",
            scheme="https",
            host="api.test",
            port=443,
            path=path,
            body_size_bytes=2,
            body_digest="ab" * 32,
        )
        run.give(ev.RequestMade(request=request))
        assert run.state.latest is not None
        return run.state.latest.verdict.decision

    run = PlannedRun(
        manifest("do it", step("s1", "net.write", posting), step("s2", "look", {})), oracle="human"
    )
    assert decided(run, "/other") is REFUSE
    assert run.call("look").decision is REFUSE, "the request comes first"
    assert decided(run, "/notes") is RELEASE
    assert decided(run, "/notes") is REFUSE
    assert run.call("look").decision is RELEASE
    assert decided(PlannedRun(manifest("do it", step("s1", "look", {})), oracle="human"), "/other") is DEFER


def test_changes_of_files_are_one_set_at_the_gate_and_do_not_hold_the_calls_up() -> None:
    plan = manifest(
        "do it",
        step("s1", "file.create", {"path": "workspace:b.txt"}),
        step("s2", "look", {}),
        step("s3", "file.create", {"path": "workspace:a.txt"}),
    )
    run = PlannedRun(plan)
    assert run.made("look").decision is RELEASE
    run.give(ev.CommandExited(code=0, signal=0, ended_at_ns="2"))
    given = (created("a.txt"), created("b.txt"), created("c.txt"))
    run.give(ev.ChangesListed(changes=given, last=True))
    assert [item.verdict.decision for item in run.state.decided()] == [RELEASE, RELEASE, REFUSE]
    run.give(ev.IntentRecorded(released=run.state.released))
    knowledge = run.state.knowledge
    assert knowledge is not None
    assert knowledge.progress.taken == {"s2"}
    run.give(ev.ScopeCommitted(applied=run.state.released))
    assert run.state.knowledge is not None
    assert run.state.knowledge.progress.taken == {"s1", "s2", "s3"}


def test_files_are_left_to_provenance_where_the_plan_has_none() -> None:
    run = PlannedRun(manifest("do it", step("s1", "look", {})), policy="version: 1\npreset: coding\n")
    run.give(ev.CommandExited(code=0, signal=0, ended_at_ns="2"))
    run.give(ev.ChangesListed(changes=(created("a.txt"), created(".envrc", "x")), last=True))
    assert [item.verdict.decision for item in run.state.decided()] == [RELEASE, DEFER]


def test_a_plan_of_another_task_or_none_at_all_is_no_plan() -> None:
    book = Playbook() >> ev.TaskGiven(run_id="r", task="else", argv=("a",), started_at_ns="1")
    book << Wrote(NodeKind.PROMPT)
    with pytest.raises(ProtocolError, match="another task"):
        book >> changed(stood(), manifest=signed(ANSWERING))
    with pytest.raises(ProtocolError, match="no manifest"):
        book >> changed(stood(), manifest="{}")


def test_a_system_call_that_the_kernel_denied_is_an_action_that_a_guard_refused() -> None:
    run = PlannedRun(ANSWERING)
    before = len(run.nodes)
    told = ev.CallDenied(name="socket", number=41, detail="AF_INET", advice="socket: opens connections")
    run.give(told)
    assert [(one.node.kind, one.node.verdict) for one in run.nodes[before:]] == [
        (NodeKind.TOOL_CALL, ""),
        (NodeKind.CHECK, "refuse"),
        (NodeKind.BLOCKED, "refuse"),
    ]
    exception = run.nodes[-1].node.payload["exception"]
    assert isinstance(exception, dict)
    assert exception["type"] == "syscall"
    assert "socket: opens connections" in str(exception["allowed_objective"])
    assert all(isinstance(one, cmd.Append) for one in run.commands)
