"""Questions to a model, as the monitor would put them: held tool calls with a context."""

from collections.abc import Callable, Iterable, Mapping

from interlock.model.effects import Channel, Effect, Reach, Value
from interlock.model.labels import Confidentiality
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.oracle.context import NOWHERE, Argument, Context, Excerpt, Origin, Step
from interlock.oracle.question import Question


def steering(role: str, value: str, *, kind: str = "email", origin: Origin = NOWHERE) -> Argument:
    return Argument(role=role, value=value, kind=kind, steers=True, origin=origin)


def held_call(effect_id: str, tool: str, values: Mapping[str, str]) -> tuple[Effect, Verdict]:
    """Return a deferred call of a tool whose values all steer."""
    effect = Effect(
        id=effect_id,
        channel=Channel.TOOL,
        operation="tool.send",
        object=f"tool:{tool}",
        reach=Reach.PARKABLE,
        steering=tuple(Value(role=role, text=text) for role, text in values.items()),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.CRITICAL,
        tool=ToolCall(call=effect_id, tool=tool, arguments="{}"),
    )
    check = Check(guard=Guard.PROVENANCE, outcome=CheckOutcome.UNDECIDED, rules=(), reason="no source")
    return effect, Verdict(effect_id=effect_id, decision=Decision.DEFER, checks=(check,))


def proposed(effect: Effect, origin: Origin = NOWHERE) -> Step:
    return Step(
        seq=90,
        way="out",
        action=effect.object.removeprefix("tool:"),
        object=effect.object,
        status="deferred",
        effect_id=effect.id,
        arguments=tuple(steering(value.role, value.text, origin=origin) for value in effect.steering),
    )


def question(
    pairs: Iterable[tuple[Effect, Verdict]],
    *,
    task: str = "Send the minutes to the people in notes.md.",
    evidence: tuple[Excerpt, ...] = (),
    steps: tuple[Step, ...] = (),
    diff: Callable[[Effect], str] = lambda _effect: "",
    now: bool = False,
    **more: object,
) -> Question:
    """Return a question with its context."""
    deferred = tuple(pairs)
    context = Context(
        task=task,
        policy=("mail goes to people of example.test",),
        steps=steps,
        evidence=evidence,
        proposed={effect.id: proposed(effect) for effect, _ in deferred},
        **more,  # type: ignore[arg-type]
    )
    return Question(task=task, deferred=deferred, diff=diff, now=now, context=lambda: context)
