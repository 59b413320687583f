"""A scope resolved while the command lives, and what the host changed under the agent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import EXITED, created, running
from tests.playbook.test_monitor_traffic import DONE, book, parked, proposed, request

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import FileChange, HostEdit
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.verdicts import Decision
from interlock.monitor import ProtocolError

HOOK = ".git/hooks/pre-commit"


def asked(oracle: str = "principal", *, discard: bool = False, **more: object) -> ev.ResolutionAsked:
    return ev.ResolutionAsked(oracle=oracle, selection=(), asked_at_ns="5", discard=discard, **more)  # type: ignore[arg-type]


def listed(it: Playbook, *changes: FileChange) -> Playbook:
    return it >> ev.ChangesListed(changes=changes, last=True)


def answer(it: Playbook, *answers: ev.Answer) -> Playbook:
    return it >> ev.OracleAnswered(oracle="principal", answers=answers)


def release(effect_id: str, **more: object) -> ev.Answer:
    return ev.Answer(effect_id=effect_id, decision=Decision.RELEASE, reason="", **more)  # type: ignore[arg-type]


def test_a_living_scope_is_committed_and_the_command_goes_on() -> None:
    it = running() >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    assert (it.state.phase, it.state.living) == (Phase.RUNNING, Phase.LISTING)
    (
        listed(it, created("a.py"))
        << Wrote(NodeKind.TOOL_CALL)
        << Wrote(NodeKind.CHECK)
        << Wrote(NodeKind.CHECK, "release")
    )
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e1",))
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    it >> ev.ScopeCommitted(applied=("e1",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.EndScope(held=False)
    assert (it.state.phase, it.state.living, it.state.committed) == (Phase.RUNNING, None, 1)
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    listed(it) << Wrote(NodeKind.TOOL_CALL) << cmd.Discard()
    it.done()


def test_what_a_living_scope_refuses_goes_from_the_view() -> None:
    it = running() >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    listed(it, created("a.py"), created(HOOK))
    it._given.clear()
    answer(it)
    it._given.clear()
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    it >> ev.ScopeCommitted(applied=("e1",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Notify
    it << cmd.PutBack(effects=("e2",))
    it >> ev.ViewRestored() << Wrote(NodeKind.TOOL_OUTPUT) << cmd.EndScope(held=False)
    assert it.done().living is None


def test_a_living_scope_left_open_stays_staged() -> None:
    it = running() >> asked("hold") << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    listed(it, created(HOOK))
    it._given.remove(cmd.EndScope(held=True))
    it._given.clear()
    assert (it.state.phase, it.state.living) == (Phase.RUNNING, None)
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()


def test_a_living_discard_drops_what_is_parked_and_takes_the_grants_back() -> None:
    it = parked(book("human"))
    proposed(it, request("POST", "api.test"))
    it._given.clear()
    it >> asked(discard=True) << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "refuse")
    it << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway << cmd.Notify << cmd.PutBack(effects=None)
    assert it.state.parked == ()
    it >> ev.ViewRestored() << Wrote(NodeKind.TOOL_OUTPUT) << cmd.EndScope(held=False)
    knowledge = it.done().knowledge
    assert knowledge is not None
    assert knowledge.grants == ()


def test_parked_requests_of_a_living_scope_leave_in_order_and_none_can_be_stuck() -> None:
    it = parked(parked(book("human"), "/one"), "/two")
    it >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    listed(it) << Wrote(NodeKind.TOOL_CALL) << cmd.Ask
    (
        answer(it, release("e1"), release("e2"))
        << Wrote(NodeKind.RESOLUTION)
        << Wrote(NodeKind.RESOLUTION, "release")
    )
    it << cmd.RecordIntent(released=("e1", "e2"))
    it >> ev.IntentRecorded(released=("e1", "e2")) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1")
    failed = replace(DONE, outcome=type(DONE.outcome).FAILED)
    it >> ev.ResponseReceived(effect_id="e1", response=failed) << Wrote(NodeKind.TOOL_OUTPUT)
    it << Wrote(NodeKind.RESOLUTION, "refuse") << Wrote(NodeKind.BLOCKED, "refuse") << cmd.TurnAway
    it << cmd.EndScope(held=False)
    assert (it.done().living, it.state.parked) == (None, ())


def test_only_one_scope_is_resolved_at_a_time() -> None:
    it = running() >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    with pytest.raises(ProtocolError):
        it >> asked()


def test_a_merge_of_a_living_scope_that_is_stuck_stops_the_run_at_its_end() -> None:
    it = running() >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    listed(it, created("a.py"))
    it._given.clear()
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit
    it >> ev.CommitFailed(reason="EIO", rolled_back=False) << Wrote(NodeKind.INTERRUPT) << cmd.EndScope
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Hold()
    assert it.done().phase is Phase.STUCK


def conflict(path: str = "a.py") -> FileChange:
    return replace(created(path), host_edit=HostEdit.EDITED, before=created(path).after)


def resolved(it: Playbook, *answers: ev.Answer) -> Playbook:
    it._given.clear()
    return answer(it, *answers)


def test_a_conflict_is_asked_about_though_policy_would_release_it() -> None:
    it = running("human") >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    (
        listed(it, conflict())
        << Wrote(NodeKind.TOOL_CALL)
        << Wrote(NodeKind.CHECK)
        << Wrote(NodeKind.CHECK, "defer")
    )
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it.done()


def test_a_conflict_is_released_as_the_merge_of_both_alone() -> None:
    it = running("human") >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    listed(it, conflict("a.py"), conflict("b.py"), created("c.py"))
    resolved(it, release("e1", merge=True), release("e2")) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.BLOCKED, "refuse") << Wrote(NodeKind.RESOLUTION, "release")
    blends = (cmd.Blend(effect_id="e1", merge=True),)
    it << cmd.RecordIntent(released=("e1", "e3"), blends=blends)
    (refused,) = it.done().refused
    assert refused.effect.id == "e2"
    assert refused.verdict.exception is not None
    assert refused.verdict.exception.violated_rule == "conflict"


def test_a_merge_with_nothing_is_refused() -> None:
    it = running("human") >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    listed(it, created(HOOK))
    resolved(it, release("e1", merge=True)) << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse")
    it << cmd.Notify << cmd.Discard()
    it.done()


def test_hunks_are_released_and_the_agent_is_told_of_the_rest() -> None:
    it = running("human") >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    listed(it, created(HOOK))
    (
        resolved(it, release("e1", hunks=(1, 3)))
        << Wrote(NodeKind.RESOLUTION)
        << Wrote(NodeKind.RESOLUTION, "release")
    )
    it << cmd.RecordIntent(released=("e1",), blends=(cmd.Blend(effect_id="e1", hunks=(1, 3)),))
    it >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    it >> ev.ScopeCommitted(applied=("e1",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Notify << cmd.Discard()
    it.done()


def test_with_refuse_one_conflict_holds_the_whole_scope() -> None:
    it = held_with(ev.OnConflict.REFUSE)
    assert it.state.phase is Phase.HELD
    assert it._given[-1] == cmd.Hold(conflicts=("workspace:a.py",))


def test_with_theirs_the_hosts_version_stays_and_the_rest_goes_on() -> None:
    it = held_with(ev.OnConflict.THEIRS)
    assert it._given[-1] == cmd.RecordIntent(released=("e2",))
    (refused,) = it.state.refused
    assert refused.effect.id == "e1"


def held_with(choice: ev.OnConflict) -> Playbook:
    it = running() >> EXITED
    it.state = replace(it.state, on_conflict=choice)
    it._given.clear()
    return listed(it, conflict(), created("c.py"))


def test_by_policy_requests_leave_before_the_files_are_merged() -> None:
    text = "version: 1\npreset: coding\ncommit: {order: requests-first}\nnetwork: {hosts: [{host: forge.test, park: [POST]}]}\n"
    it = parked(running("human", text))
    it >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()
    listed(it, created("a.py"))
    resolved(it, release("e1")) << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.RESOLUTION, "release")
    it << cmd.RecordIntent(released=("e1", "e2"), prepare=False)
    it >> ev.IntentRecorded(released=("e1", "e2")) << Wrote(NodeKind.RESOLUTION) << cmd.Send(effect_id="e1")
    it >> ev.ResponseReceived(effect_id="e1", response=DONE) << Wrote(NodeKind.TOOL_OUTPUT)
    it << cmd.Commit(released=("e2",), prepare=True)
    it >> ev.ScopeCommitted(applied=("e2",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Discard()
    it.done()


def test_the_command_goes_on_with_requests_while_its_scope_is_resolved() -> None:
    it = book("human")
    it >> asked() << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges(living=True)
    proposed(it, request("GET", "docs.test")) << cmd.LetPass(effect_id="e1", durable=False)
    listed(it, created(HOOK))
    it._given.clear()
    parked(it)
    # What is parked now belongs to the next scope.
    answer(it, release("e2"), release("e3")) << Wrote(NodeKind.RESOLUTION)
    it << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e2",))
    assert [item.effect.id for item in it.done().parked] == ["e3"]
