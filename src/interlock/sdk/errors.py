"""What a guarded call may say instead of an answer: refused as a value or raised, and the errors of its use."""

from __future__ import annotations

import json

from interlock.model.errors import InputError, InterlockError, StuckError
from interlock.model.records import dataclass
from interlock.model.verdicts import SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A call that was not made, and why (AgentVisor, semantic exception).

    Takes: `tool` and `effect_id`, as the ledger names the call; `answers`, of a call that held placeholders: token and
    what came back in its place, as text.
    """

    tool: str
    effect_id: str
    exception: SemanticException
    answers: tuple[tuple[str, str], ...] = ()

    @property
    def type(self) -> str:
        """Return which check failed: `S`, `T`, `I`, `provenance`, `rule` …"""
        return self.exception.type.value

    @property
    def violated_rule(self) -> str:
        """Return the rule that refused it."""
        return self.exception.violated_rule

    @property
    def rationale(self) -> str:
        """Return why, in a sentence."""
        return self.exception.rationale

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return what another attempt must keep."""
        return self.exception.constraints

    @property
    def allowed_objective(self) -> str:
        """Return what the agent may go on with."""
        return self.exception.allowed_objective

    def as_json(self) -> dict[str, object]:
        """Return it as JSON values, as an agent reads it."""
        found: dict[str, object] = {
            "interlock": "refused",
            "type": self.type,
            "violated_rule": self.violated_rule,
            "rationale": self.rationale,
            "constraints": list(self.constraints),
            "allowed_objective": self.allowed_objective,
        }
        if self.answers:
            found["answers"] = dict(self.answers)
        return found

    def __str__(self) -> str:
        return json.dumps(self.as_json(), ensure_ascii=False)


class Refused(InterlockError):
    """A guarded call was not made. Takes: `refusal`, whose five fields are here too."""

    code = "refused"
    exit_status = 6

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(
            f"`{refusal.tool}` was not called: {refusal.rationale}", hint=refusal.allowed_objective
        )
        self.refusal = refusal
        self.effect_id = refusal.effect_id
        self.type = refusal.type
        self.violated_rule = refusal.violated_rule
        self.rationale = refusal.rationale
        self.constraints = refusal.constraints
        self.allowed_objective = refusal.allowed_objective


class Stopped(InterlockError):
    """A stop condition is reached: the agent's loop ends here."""

    code = "stopped"
    exit_status = 6


class ArgumentError(InputError):
    """An argument or answer of a guarded function cannot be put on record, so nothing was called."""

    code = "argument"


class NoScope(InputError):
    """A guarded function was called where no scope of its monitor is open."""

    code = "no-scope"


class NotMadeYet(InputError):
    """A placeholder was used as if it were the answer."""

    code = "placeholder"


class NoAttributeYet(NotMadeYet, AttributeError):
    """The same, of an attribute: so that `hasattr` says no."""


class TimedOut(InterlockError, TimeoutError):
    """A guarded function did not come back in time; whether it did its work is not known."""

    code = "deadline"
    exit_status = 1


class ParkedFailed(StuckError):
    """A call that waited was released at the scope's end and failed then."""

    code = "parked-failed"
