"""The tool lens on the runtime's side: what the core's commands come to, kept until the step that gave them is over."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from interlock.model.records import dataclass
from interlock.model.redactions import Redaction
from interlock.model.verdicts import ExceptionType, SemanticException

if TYPE_CHECKING:
    from interlock.oracle import Question

OVER = SemanticException(
    type=ExceptionType.STOP,
    violated_rule="run-over",
    rationale="the scope is no longer open",
    constraints=("nothing is called any more",),
    allowed_objective="end",
)
_UNREDACTED = SemanticException(
    type=ExceptionType.STOP,
    violated_rule="redaction",
    rationale="a call of a function cannot be made with a part of its arguments cut out",
    constraints=("it was not called",),
    allowed_objective="make the call again without the data that it may not carry",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The call may be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """The call is not made."""

    exception: SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The call waits. Takes: `token`, by which its placeholder is known again."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question to the monitor itself has its answer."""


Passage = Passed | TurnedAway | Parked | Answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A question to put. Takes: `asked`, which effects its answer settles; empty for the scope at its end."""

    question: Question
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A parked call to make."""

    effect_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """A call that was let through when nobody waited for it any more."""

    effect_id: str


Work = Open | Released | Unwanted


class Holding:
    """Keeps what a step came to: `passages`, by effect id, and `work` that somebody has to do."""

    def __init__(self) -> None:
        self.passages: dict[str, Passage] = {}
        self.work: list[Work] = []

    def let_pass(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Let a held call be made."""
        self.passages[effect_id] = Passed() if redaction is None else TurnedAway(exception=_UNREDACTED)

    def turn_away(self, effect_id: str, exception: SemanticException) -> None:
        """Have a call not made."""
        self.passages[effect_id] = TurnedAway(exception=exception)

    def park(self, effect_id: str) -> None:
        """Have a call wait."""
        token = f"interlock-placeholder-{effect_id}-{secrets.token_hex(8)}"
        self.passages[effect_id] = Parked(token=token)

    def answer_inside(self, effect_id: str, subject: str) -> None:
        """Say that a parked call is settled."""
        self.passages[effect_id] = Answered()

    def send(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Have a parked call made."""
        self.work.append(Released(effect_id=effect_id))

    def take(self) -> tuple[Work, ...]:
        """Return the work, and keep it no longer."""
        taken, self.work = tuple(self.work), []
        return taken
