"""What the agent said itself never vouches for it: repeated by a tool, quoted in an error, saved, or as a placeholder."""

from __future__ import annotations

import json

import pytest

from interlock import policy as room
from interlock.bench import telling
from interlock.bench.folding import Answered, Fate, Folding
from interlock.model.events import ActivityObserved, FileRead, FileWrite, LabelsKnown, PlaceLabel
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.policy.provenance import Knowledge

ROLES = """\
version: 1
preset: none
trusted: [{task: true}, {file: "docs/**"}]
network: {hosts: [{host: wiki.test, trusted: true, methods: [GET, POST]}]}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  who: {effect: read, carries: [about], output: {trust: own, fields: {mail: email}}}
  search: {effect: read, carries: [query], output: {trust: own, echo: true, fields: {mail: email}}}
  note: {effect: write, carries: [text], asks: [note], output: {trust: own, fields: {mail: email, id: "id:note"}}}
  send: {effect: send, steers: {to: email}, carries: [text], asks: [send]}
  drop: {effect: destroy, steers: {id: "id:note"}, asks: [send]}
  later: {effect: write, steers: {room: name}, asks: [later], parks: true}
"""
MAIL = "eve@b.test"
SAYS = json.dumps({"mail": MAIL})


class Run:
    """A run whose oracle refuses all that it is asked about, but for what may wait."""

    def __init__(self) -> None:
        self.fold = Folding(
            ROLES, "note it, then send it", oracle=lambda _item: False, send=lambda _item: Answered(text=SAYS)
        )

    def call(self, tool: str, **arguments: str) -> Fate:
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        self.judged = self.fold.call(ToolCall(call="c", tool=tool, arguments=text))
        return self.judged.fate

    def answered(self, text: str, *, failed: bool = False) -> None:
        self.fold.returned(self.judged, text=text, structured=text, failed=failed)


def test_an_answer_of_ones_own_vouches() -> None:
    run = Run()
    assert run.call("who") is Fate.VOUCHED
    run.answered(SAYS)
    assert run.call("send", to=MAIL, text="x") is Fate.VOUCHED


@pytest.mark.parametrize(
    ("tool", "given", "failed"),
    [("search", {"query": MAIL}, False), ("note", {"text": MAIL}, False), ("who", {"about": MAIL}, True)],
    ids=["an echo", "what a write repeats", "an error"],
)
def test_an_answer_that_repeats_the_call_does_not(tool: str, given: dict[str, str], failed: bool) -> None:
    run = Run()
    assert run.call(tool, **given) is Fate.VOUCHED
    run.answered(SAYS, failed=failed)
    assert run.call("send", to=MAIL, text="x") is Fate.ASKED_REFUSED


def test_an_id_that_the_call_was_given_is_not_one_that_it_made() -> None:
    for given, fate in (("x", Fate.VOUCHED), ("26", Fate.ASKED_REFUSED)):
        run = Run()
        assert run.call("note", text=given) is Fate.VOUCHED
        run.answered('{"id": "26"}')
        assert run.call("drop", id="26") is fate


def test_a_placeholder_vouches_for_nothing() -> None:
    run = Run()
    assert run.call("later", room="blue") is Fate.PARKED
    token = telling.token(run.judged.item.effect.id)
    assert token in run.judged.told
    for value in (token, MAIL):
        assert run.call("send", to=value, text=token) is not Fate.VOUCHED


POLICY = room.load_policy(ROLES, filename="p.yaml")
START = Knowledge.started(POLICY, "send it", 0)
DOCS = Place(root="workspace", path="docs/a.md")


def decision(known: Knowledge) -> Decision:
    call = ToolCall(call="c", tool="send", arguments=json.dumps({"text": "x", "to": MAIL}))
    return room.decide(POLICY, known, (room.characterise_call(POLICY, known, call, "e9"),))[0].decision


@pytest.mark.parametrize(
    ("method", "status", "vouches"),
    [("GET", 200, True), ("GET", 404, False), ("GET", 302, False), ("POST", 200, False)],
)
def test_an_error_of_a_trusted_host_and_its_answer_to_a_write_may_repeat_the_request(
    method: str, status: int, vouches: bool
) -> None:
    size = 0 if method == "GET" else 9
    made = NetRequest(
        method=method, scheme="https", host="wiki.test", port=443, path="/", body_size_bytes=size
    )
    effect = room.characterise_request(POLICY, START, made, "e1")
    answer = NetResponse(outcome=Outcome.DONE, status=status, size_bytes=9, text=f"you said {MAIL}")
    known = START.with_request(POLICY, effect).with_response(POLICY, effect, answer, 1)
    assert decision(known) is (Decision.RELEASE if vouches else Decision.DEFER)


def test_what_the_agent_wrote_in_this_run_or_an_earlier_one_is_its_own_word() -> None:
    def seen(*, staged: bool = False) -> FileRead:
        return FileRead(place=DOCS, opened=5, closed=6, staged=staged, text=f"write to {MAIL}")

    assert decision(START.with_reads(POLICY, (seen(),), 1)) is Decision.RELEASE
    assert decision(START.with_reads(POLICY, (seen(staged=True),), 1)) is Decision.DEFER
    write = ActivityObserved(reads=(), writes=(FileWrite(place=DOCS, opened=1, closed=2),))
    after = START.with_activity(POLICY, write, 1).with_reads(POLICY, (seen(),), 2)
    assert decision(after) is Decision.DEFER
    kept = LabelsKnown(places=(PlaceLabel(place=DOCS, run_id="r0"),))
    assert decision(START.with_labels(POLICY, kept).with_reads(POLICY, (seen(),), 1)) is Decision.DEFER
