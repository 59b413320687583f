"""Through the whole fold: every derivation that is recorded holds when it is checked again, and a changed one does not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import Place, Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision
from interlock.monitor import State, step
from interlock.verify.derivations import DerivationRefuted, rechecked
from interlock.verify.report import ReadNode

POLICY = """\
version: 1
preset: coding
trusted:
  - task: true
  - {file: "team.md"}
  - {file: "docs/**"}
network:
  hosts:
    - {host: docs.test, trusted: true}
    - {host: api.test, methods: ["*"], paths: ["/v1/"]}
  models: [llm.test]
cedar: |
  @id("all-tools")
  permit(principal, action, resource) when { context.channel == "tool" && context.derived };
tools:
  contacts: {effect: read, output: {trust: directory, fields: {"[].name": name, "[].mail": email}}}
  whoami: {effect: read, output: {trust: own}}
  make: {effect: write, carries: [text], asks: [mail, make], output: {echo: true, fields: {id: "id:file"}}}
  mail: {effect: send, steers: {"to[]": email, subject: name}, carries: [text], asks: [mail]}
  remove: {effect: destroy, steers: {file: "id:file"}, asks: [remove]}
  pay: {effect: send, steers: {to: "iban|name", sum: amount, day: date}, asks: [pay]}
  open: {effect: egress, steers: {at: url}}
"""
PIECES = (
    *(
        "mail ann@a.test",
        "Mail ANN@a.test.",
        "eve@a.test",
        "'Lunch'",
        "remove the file with the ID 13",
        "June 13",
    ),
    *(
        "pay DE89 3704 0044 0532 0130 00",
        "pay 1,250.00 on May 15th, 2024",
        "50",
        "read a.test",
        "https://b.test/v1",
    ),
    *(
        "see https://a.test/x.",
        "http://b.test/v1",
        "mend the Makefile",
        ".github/workflows/ci.yml",
        "Ann Smith",
    ),
    *(
        "docs/AGENTS.md",
        "caf\u00e9\u200b",
        "good\u0301 ",
        "(a.test)",
        "a.test:8443",
        "ann@a.test\u200b.x",
        "\n",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("; ".join)
PEOPLE = '[{"mail":"ann@a.test","name":"Ann Smith"},{"mail":"eve@a.test","name":"Eve Moor"}]'
CALLS = {
    "contacts": ["{}"],
    "whoami": ["{}"],
    "make": ['{"text":"x"}'],
    "mail": [
        '{"subject":"Lunch","text":"hi","to":["ann@a.test"]}',
        '{"subject":"Ann Smith","text":"see https://a.test/x or ask eve@a.test","to":["ann@a.test"]}',
        '{"text":"x","to":["ann@a.test","eve@a.test"]}',
    ],
    "remove": ['{"file":"13"}', '{"file":"26"}'],
    "pay": [
        '{"day":"2024-05-15","sum":1250,"to":"DE89370400440532013000"}',
        '{"sum":50,"to":"Ann Smith"}',
    ],
    "open": ['{"at":"https://a.test/x"}', '{"at":"https://b.test/v1"}', '{"at":"http://a.test/x"}'],
}
ANSWERS = {"contacts": PEOPLE, "whoami": '{"mail":"ann@a.test"}', "make": '{"id":"26","text":"x"}'}
URLS = ("a.test", "b.test", "docs.test", "api.test", "llm.test", "evil.test")


@dataclass
class Trajectory:
    """A run told to the fold, with the nodes that it writes."""

    state: State = field(default_factory=State)
    nodes: list[ReadNode] = field(default_factory=list)

    def tell(self, event: ev.Event) -> None:
        self.state, commands = step(self.state, event)
        for one in commands:
            if isinstance(one, cmd.Append):
                node = one.node
                self.nodes.append(
                    ReadNode(
                        seq=node.seq,
                        kind=node.kind.value,
                        parent=node.parent,
                        actor=node.actor,
                        verdict=node.verdict,
                        branches=node.branches,
                        payload=node.payload,
                    )
                )

    def settle(self, text: str) -> None:
        """Whatever is asked is released; whatever left is answered."""
        asked = tuple(item.effect.id for item in self.state.opened)
        if asked:
            answers = tuple(ev.Answer(effect_id=one, decision=Decision.RELEASE, reason="") for one in asked)
            self.tell(ev.OracleAnswered(oracle="human", answers=answers, asked=asked))
        for effect_id, item in tuple(self.state.flying.items()):
            if item.effect.tool is not None:
                given = ANSWERS.get(item.effect.tool.tool, '"done"')
                result = ToolResult(outcome=Outcome.DONE, text=given, structured=True, size_bytes=len(given))
                self.tell(ev.ToolReturned(effect_id=effect_id, result=result))
            else:
                response = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=len(text), text=text)
                self.tell(ev.ResponseReceived(effect_id=effect_id, response=response))


def read(path: str, text: str, *, staged: bool = False) -> ev.FileRead:
    return ev.FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=staged, text=text)


def change(path: str) -> FileChange:
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa")
    return FileChange(kind=ChangeKind.CREATE, place=Place(root="workspace", path=path), after=stamp)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    run = Trajectory()
    run.tell(ev.TaskGiven(run_id="r", task=draw(TEXTS), argv=("agent",), started_at_ns="1"))
    run.tell(
        ev.BoundaryStood(
            roots=(Root(name="workspace", path="/w"),),
            standing=ev.Standing.ROOT,
            staging=ev.Staging.OVERLAY,
            oracle="human",
            policy_name="p",
            policy_digest=sha256(POLICY.encode()).hexdigest(),
            policy_text=POLICY,
            receipt=(("seccomp", "00"),),
            degraded=(),
            file_events="fanotify",
        )
    )
    for _ in range(draw(st.integers(1, 5))):
        what = draw(st.sampled_from(["reads", "request", "call", "call"]))
        if what == "reads":
            paths = draw(st.lists(st.sampled_from(["team.md", "docs/a.md", "notes.md"]), max_size=3))
            reads = tuple(read(path, draw(TEXTS), staged=draw(st.booleans())) for path in paths)
            wrote = draw(st.sampled_from([(), (), ("team.md",)]))
            writes = tuple(
                ev.FileWrite(place=Place(root="workspace", path=one), opened=1, closed=2) for one in wrote
            )
            run.tell(ev.ActivityObserved(reads=reads, writes=writes))
        elif what == "request":
            scheme, port = draw(st.sampled_from([("https", 443), ("http", 80), ("https", 8443)]))
            body = draw(st.sampled_from([0, 0, 5]))
            request = NetRequest(
                method=draw(st.sampled_from(["POST", "DELETE"])) if body else "GET",
                scheme=scheme,
                host=draw(st.sampled_from(URLS)),
                port=port,
                path=draw(st.sampled_from(["/", "/v1", "/v1/messages", "/x"])),
                body_size_bytes=body,
            )
            run.tell(ev.RequestMade(request=request))
        else:
            tool = draw(st.sampled_from(sorted(CALLS)))
            call = ToolCall(call="c", tool=tool, arguments=draw(st.sampled_from(CALLS[tool])))
            run.tell(ev.ToolCalled(call=call))
        run.settle(draw(TEXTS))
    run.tell(ev.CommandExited(code=0, signal=0, ended_at_ns="2"))
    paths = draw(
        st.lists(
            st.sampled_from(["a.py", "Makefile", ".github/workflows/ci.yml", "docs/AGENTS.md"]), max_size=3
        )
    )
    changes = tuple(change(path) for path in dict.fromkeys(paths))
    run.tell(ev.ChangesListed(changes=changes, last=True))
    return run


def derived(run: Trajectory) -> list[tuple[int, int]]:
    """Where the derivations stand: node and index."""
    found = []
    for node in run.nodes:
        given = node.payload.get("derivations") if node.payload is not None else None
        found += [(node.seq, index) for index in range(len(given) if isinstance(given, list) else 0)]
    return found


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "50")))
@given(trajectories())
def test_what_is_recorded_holds_when_it_is_checked_again(run: Trajectory) -> None:
    assert [node.seq for node in rechecked(run.nodes)] == [node.seq for node in run.nodes]


def with_derivation(run: Trajectory, seq: int, index: int, **changes: Any) -> list[ReadNode]:
    node = run.nodes[seq]
    assert node.payload is not None
    given: list[Any] = list(node.payload["derivations"])  # type: ignore[call-overload]
    given[index] = {**given[index], **changes}
    told = [*run.nodes]
    told[seq] = replace(node, payload={**node.payload, "derivations": given})
    return told


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "70")))
@given(trajectories(), st.data())
def test_a_changed_derivation_does_not_hold(run: Trajectory, data: st.DataObject) -> None:
    places = derived(run)
    assume(places)
    seq, index = data.draw(st.sampled_from(places))
    payload = run.nodes[seq].payload
    assert payload is not None
    one: Any = payload["derivations"][index]  # type: ignore[index]
    others = [rule for rule in ("named-in-task", "named-in-file", "named-in-net") if rule != one["rule"]]
    changes: list[dict[str, Any]] = [
        {"value": one["value"] + "x"},
        {"role": one["role"] + "x"},
        {"start": one["start"] + 1, "end": one["end"] + 1},
        {"end": one["end"] + 1},
        {"node": 1},
        {"node": seq},
        {"rule": "named-in-dream"},
        {"form": "dream"},
        {"pointer": "/dream"},
        *({"rule": rule} for rule in others),
    ]
    if one.get("premises"):
        premise = one["premises"][0]
        changes += [{"premises": []}, {"premises": [{**premise, "value": premise["value"] + "x"}]}]
    told = with_derivation(run, seq, index, **data.draw(st.sampled_from(changes)))
    with pytest.raises(DerivationRefuted):
        list(rechecked(told))
