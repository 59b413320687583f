"""Vectors of a model's traffic: tools that were pinned, calls that an answer announced, exchanges bound by digest."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.model import events as ev
from interlock.model.choices import Staging, Standing
from interlock.model.places import Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolDefinition, ToolResult
from interlock.model.verdicts import Decision

_POLICY = """\
version: 1
preset: none
trusted: [{task: true}]
network: {models: [llm.test]}
tools:
  find_mail: {effect: read, output: {trust: own}}
  send_email: {effect: send, steers: {to: email}, carries: [body]}
cedar: |
  permit(principal, action, resource);
"""
_FIRST, _LATER = "ab" * 32, "cd" * 32


def story() -> list[Item]:
    """A mail is sent as the task says; then its tool is described in another way, and the next call is refused."""
    events: list[ev.Event] = [
        ev.TaskGiven(run_id="run-1", task="mail mara@m.test", argv=("agent",), started_at_ns="1"),
        ev.BoundaryStood(
            roots=(Root(name="workspace", path="/w"),),
            standing=Standing.ROOT,
            staging=Staging.OVERLAY,
            oracle="human",
            policy_name="lens",
            policy_digest=sha256(_POLICY.encode()).hexdigest(),
            policy_text=_POLICY,
            receipt=(("seccomp", "00"),),
            degraded=(),
            file_events="fanotify",
        ),
        *_asked("e1", "11", _FIRST),
        _mail("c1", "e1"),
        *_ended("e1", "11"),
        ev.ToolReturned(
            effect_id="e2",
            result=ToolResult(outcome=Outcome.DONE, text="sent", size_bytes=4, digest="ef" * 32),
        ),
        *_asked("e3", "22", _LATER),
        _mail("c2", "e3"),
        ev.OracleAnswered(
            oracle="human",
            answers=(ev.Answer(effect_id="e4", decision=Decision.REFUSE, reason="who changed it?"),),
            asked=("e4",),
        ),
        *_ended("e3", "22"),
        ev.CommandExited(code=0, signal=0, ended_at_ns="2"),
        ev.ChangesListed(changes=(), last=True),
        ev.ScopeDiscarded(),
    ]
    return folded(events)


def _asked(effect_id: str, byte: str, digest: str) -> Iterator[ev.Event]:
    yield ev.RequestMade(
        request=NetRequest(
            method="POST",
            scheme="https",
            host="llm.test",
            port=443,
            path="/v1/messages",
            body_size_bytes=2,
            body_digest=byte * 32,
            body_text="{}",
        )
    )
    tools = (
        ToolDefinition(name="find_mail", digest=_FIRST),
        ToolDefinition(name="send_email", digest=digest),
    )
    yield ev.ToolsListed(server="", tools=tools, exchange=effect_id)


def _mail(call: str, exchange: str) -> ev.ToolCalled:
    arguments = '{"body":"hi","to":"mara@m.test"}'
    return ev.ToolCalled(call=ToolCall(call=call, tool="send_email", arguments=arguments, exchange=exchange))


def _ended(effect_id: str, byte: str) -> Iterator[ev.Event]:
    yield ev.ExchangeRecorded(
        effect_id=effect_id,
        provider="llm.test",
        model="m-1",
        answered_as="m-1-2026",
        request=byte * 32,
        answer=byte * 32,
        prompt_tokens=12,
        completion_tokens=3,
        streamed=True,
    )
    answer = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=9, digest=byte * 32)
    yield ev.ResponseReceived(effect_id=effect_id, response=answer)


def _at(items: list[Item], event: str, count: int = 0) -> int:
    return [at for at, item in enumerate(items) if item.payload.get("event") == event][count]


def _with(items: list[Item], seq: int, **fields: object) -> list[Item]:
    here = items[seq]
    return [*items[:seq], replace(here, payload={**here.payload, **fields}), *items[seq + 1 :]]


def lensed() -> Iterator[Vector]:
    """As it was; exchanges bound to other bodies, to none, to a count; a changed tool believed, a listing left out."""
    items = story()
    yield Vector(
        name="lens",
        why="calls that a model's answers announced, one of a tool whose description had changed",
        content=tar(honest(items=items, outcome="nothing-committed").files()),
        verdict="complete",
        reason="ok",
        options={"replay": "yes"},
    )
    first = _at(items, "exchange-recorded")
    nameless = dict(items[first].payload)
    del nameless["model"]
    for name, told, why in (
        ("exchange-request", _with(items, first, request="33" * 32), "it names another request's body"),
        ("exchange-answer", _with(items, first, answer="33" * 32), "it names another answer's body"),
        ("exchange-unanswered", _with(items, first, answer=""), "it has no answer and no fault"),
        ("exchange-count", _with(items, first, prompt_tokens=-1), "it counts fewer tokens than none"),
        (
            "exchange-model",
            [*items[:first], replace(items[first], payload=nameless), *items[first + 1 :]],
            "it says of no model that it was asked",
        ),
        (
            "exchange-actor",
            [*items[:first], replace(items[first], actor="monitor"), *items[first + 1 :]],
            "another one speaks than the agent",
        ),
    ):
        files = honest(items=told, outcome="nothing-committed").files()
        yield tampered(name, "inference", files, first, f"signed, but of an exchange with the model {why}")
    second = _at(items, "tool-called", 1)
    check = second + 2  # the rules' check comes before that of provenance
    believed = [*items[:check], replace(items[check], verdict="release")]
    again = _at(items, "tools-listed", 1)
    unlisted = _with(items, again, tools=items[_at(items, "tools-listed")].payload["tools"])
    call = dict(items[second].payload["call"], exchange="e1")  # type: ignore[call-overload]
    for name, told, node, why in (
        ("lens-believed", believed, check, "the call of a tool that was described anew is released"),
        ("lens-unlisted", unlisted, check, "the call of a tool that did not change is held"),
        (
            "lens-elsewhere",
            _with(items, second, call=call),
            second,
            "a call belongs to an answer that is over",
        ),
    ):
        files = honest(items=told, outcome="nothing-committed").files()
        yield tampered(name, "replay-mismatch", files, node, f"signed, but {why}", replay="yes")
