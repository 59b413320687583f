"""Answers of a visor's model, and questions with a context that a test writes down."""

import json
from collections.abc import Mapping, Sequence

from interlock.model.effects import Channel, Effect, Reach, Value
from interlock.model.labels import Confidentiality
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.oracle.context import Argument, Context, Step
from interlock.oracle.question import Question


def audit(effect_id: str = "e1", **said: object) -> dict[str, object]:
    """Return an entry in which every check passes, but for what is said otherwise."""
    passed = {"suitability": "pass", "taint": "pass", "integrity": "pass"}
    return {"id": effect_id, **passed, "why": "", "constraints": [], "objective": "", **said}


def audits(*entries: Mapping[str, object]) -> str:
    return json.dumps({"audits": list(entries)})


def call_step(
    effect_id: str, tool: str, arguments: Sequence[Argument] = (), status: str = "deferred"
) -> Step:
    return Step(
        seq=9,
        way="out",
        action=tool,
        object=f"tool:{tool}",
        status=status,
        effect_id=effect_id,
        arguments=tuple(arguments),
    )


def effect_of(step: Step) -> Effect:
    return Effect(
        id=step.effect_id,
        channel=Channel.TOOL,
        operation="tool.send",
        object=step.object,
        reach=Reach.BLOCKING,
        steering=tuple(Value(role=one.role, text=one.value) for one in step.arguments if one.steers),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        tool=ToolCall(call="c", tool=step.action, arguments="{}"),
    )


def deferral(effect: Effect) -> Verdict:
    check = Check(guard=Guard.PROVENANCE, outcome=CheckOutcome.UNDECIDED, rules=(), reason="not named")
    return Verdict(effect_id=effect.id, decision=Decision.DEFER, checks=(check,))


def visor_question(*steps: Step, now: bool = True, **more: object) -> Question:
    """Return the question about these proposed calls. Takes: `more`, fields of the context."""
    effects = [effect_of(step) for step in steps]
    fields: dict[str, object] = {"task": "pay the rent", "proposed": {step.effect_id: step for step in steps}}
    context = Context(**{**fields, **more})  # type: ignore[arg-type]
    return Question(
        task=context.task,
        deferred=tuple((effect, deferral(effect)) for effect in effects),
        diff=lambda _: "",
        now=now,
        context=lambda: context,
    )
