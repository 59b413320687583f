"""The law and the fold, over generated trajectories: whatever comes, in whatever order it may come."""

from __future__ import annotations

import os
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import signed_plans as planned

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.actions import AnnouncedCall
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.inferences import Inference
from interlock.model.manifest import Mode, StopCondition
from interlock.model.phases import ALLOWED, LIVING, Phase
from interlock.model.places import Place, Root
from interlock.model.records import changed
from interlock.model.requests import Credential, NetMessage, NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolDefinition, ToolResult
from interlock.model.verdicts import Decision
from interlock.monitor import State, event_from_payload, event_payload, step
from interlock.policy import load_policy
from interlock.policy.stopping import branch_of

POLICY = load_policy(
    """version: 1
preset: coding
network:
  hosts:
    - {host: api.test, methods: ["*"], park: [POST], clearance: critical}
    - {host: parked.test, park: [POST, PUT]}
  models: [llm.test]
tools:
  look: {effect: read, output: {trust: own}}
  send: {effect: send, steers: {to: email}}
  keep: {effect: write, parks: true}
""",
    filename="law",
)

PLANS = {
    task: [
        planned.signed(planned.in_mode(made, mode))
        for made in (
            planned.manifest(
                task, planned.step("s1", "look", {}), planned.step("s2", "keep", {"note": "KEY=1"})
            ),
            planned.manifest(
                task,
                planned.step("s1", "look", {}),
                planned.step("s2", "send", {"to": None}, [planned.hole("/to", kind="email")]),
                planned.step("s3", "file.modify", {"path": "workspace:a.py"}),
                planned.step(
                    "s4", "net.read", {"method": "GET", "host": "api.test", "port": 443, "path": "/a/b"}
                ),
            ),
        )
        for mode in Mode
    ]
    for task in ("edit Makefile",)
}

PATHS = st.sampled_from(
    ["a.py", "src/b.py", ".git/hooks/pre-commit", ".github/workflows/ci.yml", ".env", "x\\x0ay", "Makefile"]
)
STAMPS = st.builds(
    FileStamp,
    type=st.sampled_from(FileType),
    mode=st.integers(0, 0o7777),
    uid=st.just(0),
    gid=st.just(0),
    size_bytes=st.integers(0, 2**40),
    digest=st.sampled_from(["", "ab" * 32]),
)
PLACES = st.builds(Place, root=st.just("workspace"), path=PATHS)
CHANGES = st.builds(
    FileChange,
    kind=st.sampled_from([ChangeKind.CREATE, ChangeKind.MODIFY, ChangeKind.DELETE]),
    place=PLACES,
    after=STAMPS | st.none(),
    before=STAMPS | st.none(),
    after_text=st.none() | st.text(max_size=20).filter(str.isprintable),
    host_edit=st.none() | st.none() | st.sampled_from(HostEdit),
)
IDS = st.integers(1, 12).map(lambda n: f"e{n}")
ANSWERS = st.builds(
    ev.Answer,
    effect_id=IDS,
    decision=st.sampled_from(Decision),
    reason=st.sampled_from(["", "no"]),
    hunks=st.sampled_from([(), (), (1, 3)]),
    merge=st.booleans(),
    redact=st.booleans(),
)
SECRET = "API_TOKEN=tok-91f2c7d0a4b8"
CALLED = st.builds(
    Inference, oracle=st.sampled_from(["human", "seeing:é"]), provider=st.just("p"), model=st.just("m")
)
REQUESTS = st.builds(
    NetRequest,
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    scheme=st.sampled_from(["http", "https"]),
    host=st.sampled_from(
        ["api.test", "parked.test", "evil.test", "203.0.113.9", "interlock.internal", "llm.test"]
    ),
    port=st.sampled_from([443, 8443]),
    path=st.sampled_from(["/", "/a/b", "/v1/messages", "/requests/e1", "/requests/e2", "/notices"]),
    body_size_bytes=st.sampled_from([0, 5, -1]),
    body_text=st.none() | st.just("KEY=1"),
    credential=st.sampled_from(Credential),
    placeholders=st.sampled_from([(), (), ("e1",), ("e2", "e3")]),
)
CARRYING = st.builds(
    changed,
    REQUESTS.filter(lambda one: not one.placeholders),
    body_size_bytes=st.just(len(SECRET)),
    body_digest=st.just(sha256(SECRET.encode()).hexdigest()),
    body_text=st.just(SECRET),
)
CALLS = st.builds(
    ToolCall,
    call=st.sampled_from(["t1", "t2"]),
    tool=st.sampled_from(["look", "send", "keep", "undeclared"]),
    arguments=st.sampled_from(["{}", '{"note":"KEY=1"}', '{"to":"a@b.test"}', "[1]"]),
    placeholders=st.sampled_from([(), (), ("e1",), ("e2", "e3")]),
)


def events(allowed: frozenset[type], released: tuple[str, ...], state: State) -> st.SearchStrategy[ev.Event]:
    reads = st.builds(
        ev.FileRead,
        place=PLACES,
        opened=st.integers(0, 9),
        closed=st.integers(9, 20),
        staged=st.booleans(),
        text=st.none() | st.sampled_from(["KEY=1", SECRET]),
    )
    writes = st.builds(ev.FileWrite, place=PLACES, opened=st.integers(0, 9), closed=st.integers(9, 20))
    under_way = list(state.flying)
    answerable = under_way + list(state.sending[:1])
    asked = tuple(item.effect.id for item in state.opened) or state.resolving
    if not under_way:
        allowed -= {ev.MessageMade}
    talks = [one for one in under_way if state.flying[one].effect.operation == "net.model"]
    if not talks:
        allowed -= {ev.ActionsAnnounced, ev.ExchangeRecorded}
    effects = {item.effect.id: item.effect for item in (*state.flying.values(), *state.parked)}
    calls = [one for one in answerable if effects[one].tool is not None]
    requests = [one for one in answerable if effects[one].tool is None]
    if not requests:
        allowed -= {ev.ResponseReceived}
    if not calls:
        allowed -= {ev.ToolReturned}
    grants = state.knowledge.grants if state.knowledge is not None else ()
    standing = [f"g{at}" for at, grant in enumerate(grants, 1) if not grant.revoked]
    if not standing:
        allowed -= {ev.GrantChanged}
    of_scope = state.phase is not Phase.RUNNING or state.living is Phase.DEFERRED
    if not of_scope and not asked:
        allowed -= {ev.OracleAnswered}
    if state.living is not None or state.resolving or state.sending:
        allowed -= {ev.ResolutionAsked}
    if state.phase is Phase.STUCK and state.stuck_on:
        allowed -= {ev.ScopeCommitted, ev.CommitFailed}
    elif state.phase is Phase.STUCK:
        allowed -= {ev.StuckSettled, ev.DiscardRequested}
    elif state.phase in (Phase.INTENDED, Phase.COMMITTING):
        allowed -= {
            ev.DiscardRequested
        }  # only as a merge that is given up (tests/integration/test_recover.py)
    choices: list[tuple[str, ...]] = [()] if of_scope else []
    choices += [asked] if asked and state.phase is Phase.RUNNING else []
    by_type: dict[type, st.SearchStrategy[ev.Event]] = {
        ev.RequestMade: st.builds(ev.RequestMade, request=REQUESTS | CARRYING),
        ev.MessageMade: st.builds(
            ev.MessageMade,
            message=st.builds(
                NetMessage,
                stream=st.sampled_from(under_way or [""]),
                size_bytes=st.just(5),
                digest=st.just("ab" * 32),
                text=st.none() | st.just("KEY=1"),
                placeholders=st.sampled_from([(), ("e1",)]),
            ),
        ),
        ev.ActionsAnnounced: st.builds(
            ev.ActionsAnnounced,
            effect_id=st.sampled_from(talks or [""]),
            calls=st.just((AnnouncedCall(call_id="c1", tool="Bash", arguments='{"command":"rm a.py"}'),)),
            results=st.sampled_from([(), ("c1",)]),
        ),
        ev.ExchangeRecorded: st.builds(
            ev.ExchangeRecorded,
            effect_id=st.sampled_from(talks or [""]),
            provider=st.just("llm.test"),
            model=st.just("m"),
            request=st.just("ab" * 32),
            prompt_tokens=st.integers(0, 9),
            streamed=st.booleans(),
        ),
        ev.ToolsListed: st.builds(
            ev.ToolsListed,
            server=st.sampled_from(["", "a", "b"]),
            tools=st.lists(
                st.builds(
                    ToolDefinition,
                    name=st.sampled_from(["look", "send", "Send"]),
                    digest=st.sampled_from(["ab" * 32, "cd" * 32]),
                ),
                max_size=3,
            ).map(tuple),
            exchange=st.sampled_from(["", *talks]),
        ),
        ev.ResponseReceived: st.builds(
            ev.ResponseReceived,
            effect_id=st.sampled_from(requests or [""]),
            response=st.builds(NetResponse, outcome=st.sampled_from(Outcome), status=st.just(200)),
        ),
        ev.LabelsKnown: st.builds(
            ev.LabelsKnown,
            places=st.lists(st.builds(ev.PlaceLabel, place=PLACES), max_size=2).map(tuple),
            lost=st.sampled_from(["", "", "damaged"]),
        ),
        ev.GrantChanged: st.builds(
            ev.GrantChanged,
            grant=st.sampled_from(standing or [""]),
            action=st.just(ev.GrantAction.REVOKE),
            changed_at_ns=st.just("5"),
        ),
        ev.ToolCalled: st.builds(
            ev.ToolCalled,
            call=st.builds(
                changed,
                CALLS,
                server=st.sampled_from(["", "", "b"]),
                branch=st.sampled_from(["", "", "left"]),
                exchange=st.sampled_from(["", *talks]),
            ),
        ),
        ev.ToolReturned: st.builds(
            ev.ToolReturned,
            effect_id=st.sampled_from(calls or [""]),
            result=st.builds(
                ToolResult, outcome=st.sampled_from(Outcome), text=st.sampled_from([None, '{"id":"9"}', "no"])
            ),
        ),
        ev.CallDenied: st.builds(
            ev.CallDenied,
            name=st.sampled_from(["socket", "call 471"]),
            number=st.just(41),
            count=st.integers(1, 3),
            detail=st.sampled_from(["", "AF_INET"]),
            advice=st.sampled_from(["", "socket: why"]),
        ),
        ev.TurnTaken: st.builds(
            ev.TurnTaken, branch=st.sampled_from(["", "left"]), prompt_tokens=st.integers(0, 9)
        ),
        ev.StopReached: st.builds(
            ev.StopReached,
            condition=st.just(StopCondition.EXTERNAL),
            branch=st.sampled_from(["left", "right", ""]),
        ),
        ev.TrafficRefused: st.just(ev.TrafficRefused(host="x", port=1, reason="not http")),
        ev.TaskGiven: st.builds(
            ev.TaskGiven,
            run_id=st.just("r"),
            task=st.sampled_from(["", "edit Makefile"]),
            argv=st.just(("agent",)),
            started_at_ns=st.just("1"),
        ),
        ev.BoundaryStood: st.builds(
            ev.BoundaryStood,
            roots=st.just((Root(name="workspace", path="/w"),)),
            standing=st.sampled_from(ev.Standing),
            staging=st.sampled_from(ev.Staging),
            oracle=st.sampled_from(["strict", "human", "hold"]),
            policy_name=st.just("coding"),
            policy_digest=st.just(sha256(POLICY.text.encode()).hexdigest()),
            policy_text=st.just(POLICY.text),
            receipt=st.just((("seccomp", "00"),)),
            degraded=st.just(()),
            file_events=st.just("fanotify"),
            on_conflict=st.sampled_from(ev.OnConflict),
            manifest=st.sampled_from(["", *PLANS.get(state.task, ())]),
        ),
        ev.ActivityObserved: st.builds(
            ev.ActivityObserved,
            reads=st.lists(reads, max_size=2).map(tuple),
            writes=st.lists(writes, max_size=2).map(tuple),
        ),
        ev.ActivityLost: st.builds(ev.ActivityLost, reason=st.just("overflow")),
        ev.CommandExited: st.builds(
            ev.CommandExited, code=st.integers(0, 3), signal=st.just(0), ended_at_ns=st.just("2")
        ),
        ev.ChangesListed: st.builds(
            ev.ChangesListed, changes=st.lists(CHANGES, max_size=4).map(tuple), last=st.booleans()
        ),
        ev.ModelAsked: st.builds(ev.ModelAsked, inference=CALLED),
        ev.OracleAnswered: st.builds(
            ev.OracleAnswered,
            oracle=st.just("human"),
            answers=st.lists(ANSWERS, max_size=4).map(tuple),
            fault=st.sampled_from(["", "boom"]),
            leave_open=st.booleans(),
            asked=st.sampled_from(choices or [()]),
            inferences=st.lists(CALLED, max_size=2).map(tuple),
        ),
        ev.IntentRecorded: st.just(ev.IntentRecorded(released=released)),
        ev.ScopeCommitted: st.just(ev.ScopeCommitted(applied=_files(state))),
        ev.CommitFailed: st.builds(
            ev.CommitFailed,
            reason=st.just("EIO"),
            rolled_back=st.just(True) if Phase.INTENDED in (state.phase, state.living) else st.booleans(),
        ),
        ev.ScopeDiscarded: st.just(ev.ScopeDiscarded()),
        ev.Interrupted: st.just(ev.Interrupted(trigger="stopped", detail="")),
        ev.Resumed: st.builds(
            ev.Resumed,
            oracle=st.just("principal"),
            selection=st.sampled_from([(), ("workspace:src",)]),
            resumed_at_ns=st.just("3"),
            on_conflict=st.sampled_from(ev.OnConflict),
        ),
        ev.ResolutionAsked: st.builds(
            ev.ResolutionAsked,
            oracle=st.sampled_from(["principal", "hold"]),
            selection=st.sampled_from([(), ("workspace:src",)]),
            asked_at_ns=st.just("3"),
            on_conflict=st.sampled_from(ev.OnConflict),
            discard=st.booleans(),
        ),
        ev.ViewRestored: st.builds(ev.ViewRestored, left=st.sampled_from([(), ("workspace:a.py: busy",)])),
        ev.StuckSettled: st.builds(
            ev.StuckSettled,
            effect_id=st.just(state.stuck_on),
            choice=st.sampled_from(ev.StuckChoice),
            settled_at_ns=st.just("4"),
        ),
        ev.DiscardRequested: st.just(ev.DiscardRequested(requested_at_ns="3")),
        ev.Faulted: st.just(ev.Faulted(where="x", reason="y")),
    }
    return st.one_of([by_type[kind] for kind in sorted(allowed, key=lambda kind: kind.__name__)])


def conflicts(state: State) -> set[str]:
    return {
        item.effect.id
        for item in state.decided()
        if item.effect.change is not None and item.effect.change.host_edit is not None
    }


def verdicts(state: State) -> list[tuple[object, ...]]:
    return [
        (item.effect.id, item.verdict.decision, item.verdict.checks, item.verdict.exception)
        for item in (*state.decided(), *state.refused, *state.parked, *state.flying.values())
    ]


RECORDS = (ev.CallDenied, ev.TurnTaken, ev.ActionsAnnounced, ev.ExchangeRecorded, ev.ModelAsked)
INBOUND = (ev.ActivityObserved, ev.LabelsKnown, ev.ResponseReceived, ev.ToolReturned)


def _knows_only_what_came_in(before: State, event: ev.Event, after: State) -> None:
    """Labels only rise; what vouches and what is sensitive grows from inbound events alone."""
    old, new = before.knowledge, after.knowledge
    if old is None or new is None:
        return
    assert new.label.integrity <= old.label.integrity
    assert new.read_level >= old.read_level
    assert new.sources[: len(old.sources)] == old.sources[:]
    assert new.returned[: len(old.returned)] == old.returned
    assert new.pins.seen >= old.pins.seen
    assert new.pins.altered >= old.pins.altered
    assert new.pins.shadowing.keys() >= old.pins.shadowing.keys()
    if not isinstance(event, ev.ToolsListed):
        assert new.pins is old.pins
    if not isinstance(event, INBOUND):
        assert len(new.sources) == len(old.sources)
        assert len(new.returned) == len(old.returned)
        assert new.sensitive.groups == old.sensitive.groups


def _files(state: State) -> tuple[str, ...]:
    changed = {item.effect.id for item in state.decided() if item.effect.change is not None}
    return tuple(one for one in state.released if one in changed)


def _first_answers(state: State, event: ev.OracleAnswered) -> dict[str, bool]:
    """Return of what was asked whether it may leave redacted alone."""
    open_ones = (
        *state.opened,
        *(item for item in state.decided() if item.verdict.decision is Decision.DEFER),
    )
    asked = set(event.asked) or {item.effect.id for item in open_ones}
    return {one.effect_id: one.redact for one in reversed(event.answers) if one.effect_id in asked}


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "40")), deadline=None)
@given(st.data())
def test_the_law_holds_on_every_trajectory(data: st.DataObject) -> None:
    state = State()
    intended: tuple[str, ...] | None = None
    refused_by_rule: set[str] = set()
    seqs: list[int] = []
    history: list[ev.Event] = []
    turned_away: set[str] = set()
    left: set[str] = set()
    answered: dict[str, int] = {}
    redact: dict[str, bool] = {}
    branches: dict[str, str] = {}
    for _ in range(data.draw(st.integers(4, 25))):
        allowed = ALLOWED[state.phase] | (LIVING[state.living] if state.living else frozenset())
        if not allowed:
            break
        event = data.draw(events(allowed, state.released, state))
        history.append(event)
        if isinstance(event, ev.IntentRecorded):
            intended = event.released
        before = state
        if isinstance(event, ev.OracleAnswered):
            redact |= _first_answers(before, event)
        state, commands = step(state, event)
        _knows_only_what_came_in(before, event, state)
        if state.latest is not None:
            branches[state.latest.effect.id] = branch_of(state.latest.effect)
        stops = before.knowledge.stops if before.knowledge is not None else None
        if isinstance(event, RECORDS):
            assert changed(state, next_seq=before.next_seq) == before, (
                "an announced action, or a call of a model, was no mere record"
            )
            whole = 3 if isinstance(event, ev.CallDenied) else 1
            assert [type(command) for command in commands] == [cmd.Append] * whole
        refused_by_rule |= {
            item.effect.id for item in state.decided() if item.verdict.decision is Decision.REFUSE
        }
        for command in commands:
            if isinstance(command, cmd.Append):
                seqs.append(command.node.seq)
                assert command.node.parent is None or command.node.parent < command.node.seq
            if isinstance(command, cmd.LetPass | cmd.Park) and stops is not None:
                assert not any(one.holds_in(branches[command.effect_id]) for one in stops.reached), (
                    "something of a stopped branch went on"
                )
            if isinstance(command, cmd.LetPass | cmd.Send):
                assert command.effect_id not in turned_away, "a refused request left"
                again_by_choice = isinstance(event, ev.Resumed | ev.StuckSettled)
                assert command.effect_id not in left or again_by_choice, "a request left twice"
                left.add(command.effect_id)
                if redact.get(command.effect_id):
                    assert command.redaction is not None, "what was to leave redacted left whole"
                    assert all(cut.end > cut.start for cut in command.redaction.cuts)
            if isinstance(command, cmd.Send) and Phase.SENDING in (state.phase, state.living):
                assert intended is not None
                assert command.effect_id in intended, "a parked request left without its recorded intent"
            if isinstance(command, cmd.TurnAway):
                assert command.effect_id not in left, "a request that left was called refused"
                turned_away.add(command.effect_id)
            if isinstance(command, cmd.LetPass | cmd.TurnAway | cmd.Park | cmd.AnswerInside):
                answered[command.effect_id] = answered.get(command.effect_id, 0) + 1
            if isinstance(command, cmd.Commit):
                assert intended is not None
                assert set(command.released) <= set(intended), "a commit without its recorded intent"
                assert not refused_by_rule & set(command.released), "a refusal was overturned"
                merged = {blend.effect_id for blend in state.blends if blend.merge}
                assert conflicts(state) & set(command.released) <= merged, "a host's edit was overwritten"
            if isinstance(command, cmd.RecordIntent):
                intended = None
    assert seqs == list(range(len(seqs)))
    # Each held request is answered once; a parked one again only when it is refused after all.
    assert all(count <= 2 for count in answered.values())
    silent = State()
    for event in history:
        if isinstance(event, ev.OracleAnswered):
            event = changed(event, inferences=())
        if not isinstance(event, RECORDS):
            silent, _ = step(silent, event)
    assert verdicts(silent) == verdicts(state), (
        "what a model announced, or that one was asked, changed a verdict"
    )
    again = State()
    for event in history:
        assert event_from_payload(event_payload(event)) == event
        again, _ = step(again, event_from_payload(event_payload(event)))
    assert again.phase is state.phase
    assert again.released == state.released
    assert again.next_seq == state.next_seq


def test_every_phase_but_the_last_can_be_left() -> None:
    assert [phase for phase in Phase if not ALLOWED[phase]] == [Phase.CLOSED]
