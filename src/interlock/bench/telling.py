"""What an agent reads in place of an answer: why a call was refused, or that it waits. Pure.

Source: AgentVisor, semantic exception (its five fields); KAIROS, placeholders.
"""

from __future__ import annotations

import json

from interlock.model.verdicts import SemanticException

_TOKEN = "interlock-placeholder-"  # noqa: S105 (a mark in a text, no secret)


def refusal(exception: SemanticException) -> str:
    """Return the tool error for a call that is not done."""
    return _text(
        {
            "interlock": "refused",
            "type": exception.type.value,
            "violated_rule": exception.violated_rule,
            "rationale": exception.rationale,
            "constraints": list(exception.constraints),
            "allowed_objective": exception.allowed_objective,
        }
    )


def token(effect_id: str) -> str:
    """Return the word by which a placeholder is known again. Holds: the same in every run, so that results are."""
    return f"{_TOKEN}{effect_id}."


def placeholder(effect_id: str) -> str:
    """Return the answer to a call that waits for the task's end."""
    return _text(
        {
            "interlock": "placeholder",
            "detail": "this call has not been made; it waits until the held actions are reviewed at the task's end, "
            "and is then made or dropped; go on without its answer",
            "effect_id": effect_id,
            "placeholder": token(effect_id),
        }
    )


def _text(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)
