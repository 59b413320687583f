"""Policy: what an operator declares, what is known of values, and the decision. Pure.

What a run needs only at its end (deciding, explaining) is imported at its first use, so that a start stays
quick: write `policy.decide(…)` there, not `from interlock.policy import decide`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from interlock.policy.declaration import (
    Environment,
    FileGlob,
    Limits,
    Party,
    Policy,
    SandboxChoices,
    SensitivePlace,
)
from interlock.policy.grants import Grant, GrantError
from interlock.policy.loading import load_policy
from interlock.policy.network import HostPort, HostRule, Network, NetworkLimits, Opaque, Publish, Secret
from interlock.policy.provenance import Knowledge
from interlock.policy.sources import Source

if TYPE_CHECKING:
    from interlock.policy.characterising import characterise
    from interlock.policy.decision import decide
    from interlock.policy.executable import judges_content
    from interlock.policy.explaining import explain, template
    from interlock.policy.grants import asked_once, question_of, with_twins
    from interlock.policy.net_effects import characterise_message, characterise_request
    from interlock.policy.redacting import CannotRedact, redact
    from interlock.policy.telling import exception_for
    from interlock.policy.tools.calling import characterise_call

__all__ = [
    "CannotRedact",
    "Environment",
    "FileGlob",
    "Grant",
    "GrantError",
    "HostPort",
    "HostRule",
    "Knowledge",
    "Limits",
    "Network",
    "NetworkLimits",
    "Opaque",
    "Party",
    "Policy",
    "Publish",
    "SandboxChoices",
    "Secret",
    "SensitivePlace",
    "Source",
    "asked_once",
    "characterise",
    "characterise_call",
    "characterise_message",
    "characterise_request",
    "decide",
    "exception_for",
    "explain",
    "judges_content",
    "load_policy",
    "question_of",
    "redact",
    "template",
    "with_twins",
]

_LATER = {
    "CannotRedact": "redacting",
    "asked_once": "grants",
    "characterise": "characterising",
    "characterise_call": "tools.calling",
    "characterise_message": "net_effects",
    "characterise_request": "net_effects",
    "decide": "decision",
    "exception_for": "telling",
    "explain": "explaining",
    "judges_content": "executable",
    "question_of": "grants",
    "redact": "redacting",
    "template": "explaining",
    "with_twins": "grants",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    value: object = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
