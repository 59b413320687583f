"""What the model is told of calls that were not made, and the agent where nothing more is asked."""

import json

from interlock.boundary.lens.outcomes import Verdicts
from interlock.model.actions import HeldCall
from interlock.model.verdicts import ExceptionType, SemanticException

_NOT_MADE = (
    "not made: another call of the same answer was refused, so none of them was made; "
    "make this one again if it is still wanted"
)


def refusals(calls: tuple[HeldCall, ...], verdicts: Verdicts) -> Verdicts:
    """Return the verdicts as they hold: one a call, and a call that cannot be read is refused whatever was said."""
    given = (*verdicts, *(None for _ in calls))
    complete = len(verdicts) == len(calls)
    return tuple(
        verdict or (_unread(call) if call.fault else None if complete else _undecided())
        for call, verdict in zip(calls, given, strict=False)
    )


def as_result(verdict: SemanticException | None) -> str:
    """Return the text that stands as a call's result. Takes: `verdict`, None for a call that another one held back."""
    if verdict is None:
        return json.dumps({"error": _NOT_MADE})
    return json.dumps(
        {
            "error": "refused: this call was not made",
            "exception": verdict.type.value,
            "violated_rule": verdict.violated_rule,
            "rationale": verdict.rationale,
            "constraints": list(verdict.constraints),
            "allowed_objective": verdict.allowed_objective,
        },
        ensure_ascii=False,
    )


def as_ending(calls: tuple[HeldCall, ...], verdicts: Verdicts) -> str:
    """Return the text that ends the agent's answer."""
    lines = ["What the model asked for was refused, and nothing of it was done."]
    for call, verdict in zip(calls, verdicts, strict=True):
        name = f"`{call.tool}`" if call.tool else "a tool call"
        if verdict is None:
            lines.append(f"- {name}: not made, since another call of the same answer was refused")
            continue
        told = f"- {name} was refused: {verdict.rationale}"
        if verdict.constraints:
            told += f". What would be allowed: {'; '.join(verdict.constraints)}"
        if verdict.allowed_objective:
            told += f". You may still: {verdict.allowed_objective}"
        lines.append(told)
    return "\n".join(lines)


def _unread(call: HeldCall) -> SemanticException:
    return SemanticException(
        type=ExceptionType.RULE,
        violated_rule="unread-call",
        rationale=f"the call cannot be read: {call.fault}",
        constraints=("a call that cannot be read is never made",),
        allowed_objective="make the call again, with its arguments as one JSON object",
    )


def _undecided() -> SemanticException:
    return SemanticException(
        type=ExceptionType.RULE,
        violated_rule="undecided",
        rationale="nobody decided on the call",
        constraints=("a call that nobody decided on is never made",),
        allowed_objective="go on with the task without it, and say in your answer what you left out",
    )
