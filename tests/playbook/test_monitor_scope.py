"""A scope from the first word to the seal, told as events in and commands out."""

from __future__ import annotations

from hashlib import sha256

import pytest
from tests.playbook.playbook import Playbook, Wrote

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.nodes import NodeKind
from interlock.model.phases import Phase
from interlock.model.places import Place, Root
from interlock.model.verdicts import Decision
from interlock.monitor import ProtocolError, State, step
from interlock.policy import load_policy

POLICY = load_policy(None, filename="coding")
TASK = ev.TaskGiven(run_id="r1", task="fix the sum", argv=("agent",), started_at_ns="1")
EXITED = ev.CommandExited(code=0, signal=0, ended_at_ns="2")


def stood(oracle: str = "strict", text: str | None = None) -> ev.BoundaryStood:
    policy_text = POLICY.text if text is None else text
    return ev.BoundaryStood(
        roots=(Root(name="workspace", path="/w"),),
        standing=ev.Standing.ROOT,
        staging=ev.Staging.OVERLAY,
        oracle=oracle,
        policy_name="coding",
        policy_digest=sha256(policy_text.encode()).hexdigest(),
        policy_text=policy_text,
        receipt=(("seccomp", "00"),),
        degraded=(),
        file_events="fanotify",
    )


def created(path: str, text: str | None = None) -> FileChange:
    return FileChange(
        kind=ChangeKind.CREATE,
        place=Place(root="workspace", path=path),
        after=FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa"),
        after_text=text,
    )


def running(oracle: str = "strict", text: str | None = None) -> Playbook:
    book = Playbook()
    book >> TASK << Wrote(NodeKind.PROMPT)
    book >> stood(oracle, text) << Wrote(NodeKind.APM)
    return book


def listing(oracle: str = "strict", text: str | None = None) -> Playbook:
    return running(oracle, text) >> EXITED << Wrote(NodeKind.TOOL_OUTPUT) << cmd.ListChanges()


def plain_write() -> Playbook:
    book = listing()
    book >> ev.ChangesListed(changes=(created("src/a.py"),), last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "release")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e1",))
    return book


def deferred_hook(oracle: str = "strict") -> Playbook:
    book = listing(oracle)
    book >> ev.ChangesListed(changes=(created("src/a.py"), created(".git/hooks/pre-commit")), last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK)
    book << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    return book


def test_a_vouched_write_is_committed_after_its_intent() -> None:
    book = plain_write()
    book >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    book >> ev.ScopeCommitted(applied=("e1",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Discard()
    book >> ev.ScopeDiscarded() << Wrote(NodeKind.TOOL_OUTPUT) << Wrote(NodeKind.FINAL_OUTPUT)
    book << cmd.Seal(outcome="committed")
    assert book.done().phase is Phase.CLOSED


def test_nothing_staged_ends_without_a_commit() -> None:
    book = listing()
    book >> ev.ChangesListed(changes=(), last=True) << Wrote(NodeKind.TOOL_CALL) << cmd.Discard()
    book >> ev.ScopeDiscarded() << Wrote(NodeKind.TOOL_OUTPUT) << Wrote(NodeKind.FINAL_OUTPUT)
    book << cmd.Seal(outcome="nothing-committed")
    book.done()


def test_a_hook_waits_and_a_refusing_oracle_leaves_the_rest_to_commit() -> None:
    book = deferred_hook()
    book >> ev.OracleAnswered(
        oracle="strict", answers=(ev.Answer(effect_id="e2", decision=Decision.REFUSE, reason="strict"),)
    )
    book << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e1",))
    book >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    book >> ev.ScopeCommitted(applied=("e1",)) << Wrote(NodeKind.TOOL_OUTPUT)
    state = book.state
    assert [item.effect.object for item in state.refused] == ["workspace:.git/hooks/pre-commit"]


def test_an_oracle_releases_only_what_was_deferred() -> None:
    book = deferred_hook()
    answers = tuple(
        ev.Answer(effect_id=name, decision=Decision.RELEASE, reason="") for name in ("e2", "e9", "e2")
    )
    book >> ev.OracleAnswered(oracle="human", answers=answers) << Wrote(NodeKind.RESOLUTION)
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e1", "e2"))
    book.done()


@pytest.mark.parametrize(
    "answer",
    [
        ev.OracleAnswered(oracle="human", answers=()),
        ev.OracleAnswered(
            oracle="human",
            answers=(ev.Answer(effect_id="e2", decision=Decision.RELEASE, reason=""),),
            fault="it failed after all",
        ),
        ev.OracleAnswered(
            oracle="human", answers=(ev.Answer(effect_id="e2", decision=Decision.DEFER, reason=""),)
        ),
        ev.OracleAnswered(
            oracle="human",
            answers=(
                ev.Answer(effect_id="e2", decision=Decision.REFUSE, reason=""),
                ev.Answer(effect_id="e2", decision=Decision.RELEASE, reason=""),
            ),
        ),
    ],
    ids=["silence", "fault", "nonsense", "two answers"],
)
def test_anything_but_one_clear_release_refuses(answer: ev.OracleAnswered) -> None:
    book = deferred_hook() >> answer
    book << Wrote(NodeKind.RESOLUTION) << Wrote(NodeKind.BLOCKED, "refuse")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e1",))
    book.done()


def test_an_oracle_that_leaves_the_scope_open_loses_nothing() -> None:
    book = deferred_hook("human")
    book >> ev.OracleAnswered(oracle="human", answers=(), leave_open=True)
    book << Wrote(NodeKind.RESOLUTION) << cmd.Hold()
    assert book.done().phase is Phase.HELD


def test_hold_keeps_vouched_effects_too() -> None:
    book = listing("hold")
    book >> ev.ChangesListed(changes=(created("a"),), last=True)
    (
        book
        << Wrote(NodeKind.TOOL_CALL)
        << Wrote(NodeKind.CHECK)
        << Wrote(NodeKind.CHECK, "release")
        << cmd.Hold()
    )
    assert book.done().phase is Phase.HELD


def test_a_resumed_run_lists_again_and_resolves_only_the_selection() -> None:
    book = listing("hold")
    book >> ev.ChangesListed(changes=(created("a"), created("b/c")), last=True)
    (
        book
        << Wrote(NodeKind.TOOL_CALL)
        << Wrote(NodeKind.CHECK)
        << Wrote(NodeKind.CHECK, "release")
        << cmd.Hold()
    )
    book >> ev.Resumed(oracle="principal", selection=("workspace:b",), resumed_at_ns="3")
    book << Wrote(NodeKind.RESOLUTION) << cmd.ListChanges()
    book >> ev.ChangesListed(changes=(created("a"), created("b/c")), last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "release")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e4",))
    book >> ev.IntentRecorded(released=("e4",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e4",))
    book >> ev.ScopeCommitted(applied=("e4",)) << Wrote(NodeKind.TOOL_OUTPUT) << cmd.Hold()
    assert book.done().phase is Phase.HELD


def test_discard_commits_nothing() -> None:
    book = listing("hold")
    book >> ev.ChangesListed(changes=(created("a"),), last=True)
    (
        book
        << Wrote(NodeKind.TOOL_CALL)
        << Wrote(NodeKind.CHECK)
        << Wrote(NodeKind.CHECK, "release")
        << cmd.Hold()
    )
    book >> ev.DiscardRequested(requested_at_ns="3") << Wrote(NodeKind.RESOLUTION) << cmd.Discard()
    book >> ev.ScopeDiscarded() << Wrote(NodeKind.TOOL_OUTPUT) << Wrote(NodeKind.FINAL_OUTPUT)
    book << cmd.Seal(outcome="discarded")
    book.done()


def test_a_rule_refuses_and_no_oracle_is_asked() -> None:
    text = 'version: 1\npreset: coding\ncedar: |\n  @id("no-env")\n  forbid(principal, action, resource)\n'
    text += '  when { context.path like "*.env" };\n'
    policy = load_policy(text, filename="p.yaml")
    book = listing(text=policy.text)
    book >> ev.ChangesListed(changes=(created("prod.env"),), last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK, "refuse") << Wrote(NodeKind.BLOCKED, "refuse")
    book << cmd.Notify << cmd.Discard()
    book.done()


def test_a_fault_at_the_oracle_holds_everything() -> None:
    book = deferred_hook()
    book >> ev.Faulted(where="Ask", reason="boom") << Wrote(NodeKind.INTERRUPT) << cmd.Hold()
    assert book.done().phase is Phase.HELD


def test_a_failed_merge_that_was_rolled_back_is_held() -> None:
    book = plain_write()
    book >> ev.CommitFailed(reason="no space", rolled_back=True) << Wrote(NodeKind.INTERRUPT) << cmd.Hold()
    assert book.done().phase is Phase.HELD


def test_a_merge_that_is_neither_done_nor_undone_is_stuck_and_knows_what_it_was() -> None:
    book = plain_write()
    book >> ev.IntentRecorded(released=("e1",)) << Wrote(NodeKind.RESOLUTION) << cmd.Commit(released=("e1",))
    book >> ev.CommitFailed(reason="EIO", rolled_back=False) << Wrote(NodeKind.INTERRUPT) << cmd.Hold()
    state = book.done()
    assert (state.phase, state.released) == (Phase.STUCK, ("e1",))


def test_the_intent_must_be_the_one_that_was_asked_for() -> None:
    with pytest.raises(ProtocolError):
        step(plain_write().state, ev.IntentRecorded(released=("e1", "e2")))


def test_an_interrupted_command_commits_nothing_by_itself() -> None:
    book = running()
    book >> ev.Interrupted(trigger="monitor-killed", detail="") << Wrote(NodeKind.INTERRUPT) << cmd.Hold()
    assert book.done().phase is Phase.HELD


def test_a_swapped_policy_text_is_no_policy() -> None:
    state, _ = step(State(), TASK)
    event = stood()
    forged = ev.BoundaryStood(
        **{name: getattr(event, name) for name in event.__slots__} | {"policy_digest": "0" * 64}
    )
    with pytest.raises(ProtocolError):
        step(state, forged)


@pytest.mark.parametrize(
    "event", [EXITED, ev.ScopeCommitted(applied=()), ev.OracleAnswered(oracle="", answers=())]
)
def test_an_event_out_of_its_phase_is_a_fault_of_the_runtime(event: ev.Event) -> None:
    with pytest.raises(ProtocolError):
        step(State(), event)
