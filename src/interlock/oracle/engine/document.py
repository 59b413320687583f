"""What a policy engine outside is told of one deferred effect: the input document, version 1 (docs/panel.md).

Canonical effect data and nothing that a file or a body holds: names, values, sizes and digests. Whoever writes rules
against it can rely on every field of this version.
"""

from dataclasses import fields, is_dataclass
from enum import Enum

from interlock.model.effects import Effect
from interlock.model.labels import Confidentiality
from interlock.model.verdicts import Verdict
from interlock.oracle.question import Question

VERSION = 1
_CONTENTS = frozenset(
    {"after_text", "before_text", "body_text", "text", "views", "views_whole", "leads_out", "brings"}
)
"""Fields of a change, a request or a message that hold contents, or say how they were looked at."""


def document(question: Question, effect: Effect, verdict: Verdict) -> dict[str, object]:
    """Return the input document of one effect."""
    return {
        "version": VERSION,
        "task": _text(question.task),
        "now": question.now,
        "effect": {
            "id": effect.id,
            "channel": effect.channel.value,
            "operation": effect.operation,
            "object": _text(effect.object),
            "reach": effect.reach.value,
            "steering": [{"role": one.role, "text": _text(one.text)} for one in effect.steering],
            "carried": effect.carried.name.lower(),
            "clearance": effect.clearance.name.lower(),
            "facets": [one.kind for one in effect.facets],
            "change": None if effect.change is None else _bare(effect.change),
            "request": None if effect.request is None else _bare(effect.request),
            "message": None if effect.message is None else _bare(effect.message),
            "tool": None if effect.tool is None else _bare(effect.tool),
        },
        "waits": {
            "reason": _text(verdict.reason),
            "checks": [
                {"guard": one.guard.value, "outcome": one.outcome.value, "rules": list(one.rules)}
                for one in verdict.checks
            ],
        },
    }


def _bare(value: object) -> object:
    """Return a record of the model as JSON, every field of it but contents; a `Place` as its text."""
    if isinstance(value, Confidentiality):
        return value.name.lower()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_bare(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _bare(getattr(value, one.name)) for one in fields(value) if one.name not in _CONTENTS
        }
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """JSON takes no half characters; they become visible escapes, and never another text's."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
