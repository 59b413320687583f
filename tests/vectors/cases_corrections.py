"""Vectors of refusals that say which check failed, and of a correction too many, which nobody was asked about."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.model import events as ev
from interlock.model.choices import Staging, Standing
from interlock.model.places import Root
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision, ExceptionType, SemanticException

_POLICY = """\
version: 1
preset: none
corrections: 1
operator: {instruction: "You send mail to the team.", tools: [send_email]}
tools:
  send_email: {effect: send, steers: {to: email}, carries: [body]}
cedar: |
  permit(principal, action, resource);
"""
_TOLD = SemanticException(
    type=ExceptionType.INTEGRITY,
    violated_rule="value differs from the task's",
    rationale="one of its values is not the one that the task gives",
    constraints=("use the task's own values, letter by letter",),
    allowed_objective="mail the team",
)


def story() -> list[Item]:
    """Two proposals are refused by an oracle, the third is not asked about, another tool is outside of the role."""
    events: list[ev.Event] = [
        ev.TaskGiven(run_id="run-1", task="mail the team", argv=("agent",), started_at_ns="1"),
        ev.BoundaryStood(
            roots=(Root(name="workspace", path="/w"),),
            standing=Standing.ROOT,
            staging=Staging.OVERLAY,
            oracle="visor:judge",
            policy_name="corrected",
            policy_digest=sha256(_POLICY.encode()).hexdigest(),
            policy_text=_POLICY,
            receipt=(("seccomp", "00"),),
            degraded=(),
            file_events="fanotify",
        ),
    ]
    for number in (1, 2):
        answer = ev.Answer(
            effect_id=f"e{number}", decision=Decision.REFUSE, reason="differs", exception=_TOLD
        )
        events += [
            _mail(f"eve{number}@m.test"),
            ev.OracleAnswered(oracle="visor:judge", answers=(answer,), asked=(f"e{number}",)),
        ]
    events += [
        _mail("eve3@m.test"),
        ev.ToolCalled(call=ToolCall(call="d", tool="delete_all", arguments="{}")),
        ev.CommandExited(code=0, signal=0, ended_at_ns="2"),
        ev.ChangesListed(changes=(), last=True),
        ev.ScopeDiscarded(),
    ]
    return folded(events)


def _mail(to: str) -> ev.ToolCalled:
    return ev.ToolCalled(call=ToolCall(call="c", tool="send_email", arguments=f'{{"body":"hi","to":"{to}"}}'))


def _blocked(items: list[Item], effect_id: str) -> int:
    return next(
        at for at, item in enumerate(items) if item.kind == "blocked" and item.payload["effect"] == effect_id
    )


def corrected() -> Iterator[Vector]:
    """As it was; a correction too many asked about and released; an exception softened; the role left out."""
    items = story()
    third, outside = _blocked(items, "e3"), _blocked(items, "e4")
    yield Vector(
        name="corrections",
        why="two proposals refused by integrity, a third one not asked about, a tool outside of the role",
        content=tar(honest(items=items, outcome="nothing-committed").files()),
        verdict="complete",
        reason="ok",
        options={"replay": "yes"},
    )
    answered = next(item for item in items if item.payload.get("event") == "oracle-answered")
    release = {"effect_id": "e3", "decision": "release", "reason": "fine"}
    asked = replace(answered, payload={**answered.payload, "answers": [release], "asked": ["e3"]})
    first = _blocked(items, "e1")
    soft = {**items[first].payload, "exception": {**items[first].payload["exception"], "constraints": []}}  # type: ignore[dict-item]
    for name, told, node, why in (
        ("corrections-asked", [*items[:third], asked], third, "a correction too many was asked about"),
        ("corrections-soft", _with(items, first, soft), first, "the agent is told less than the oracle said"),
        (
            "corrections-role",
            [*items[: outside - 1], replace(items[outside - 1], verdict="release")],
            outside - 1,
            "a tool outside of the role is released",
        ),
    ):
        files = honest(items=told, outcome="nothing-committed").files()
        yield tampered(name, "replay-mismatch", files, node, f"signed, but {why}", replay="yes")


def _with(items: list[Item], seq: int, payload: dict[str, object]) -> list[Item]:
    return [replace(item, payload=payload) if at == seq else item for at, item in enumerate(items)]
