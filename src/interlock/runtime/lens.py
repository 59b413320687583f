"""Who holds what an agent wants to leave, and is told what the core says of it: the network's gate, or a tool lens."""

from __future__ import annotations

from typing import Protocol

from interlock.model.redactions import Redaction
from interlock.model.verdicts import SemanticException


class Lens(Protocol):
    """What the performer asks of whoever holds requests or calls."""

    def let_pass(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Let a held one leave: its intent is on record."""

    def turn_away(self, effect_id: str, exception: SemanticException) -> None:
        """Tell the agent that one never leaves."""

    def park(self, effect_id: str) -> None:
        """Give the agent a placeholder for one that waits."""

    def answer_inside(self, effect_id: str, subject: str) -> None:
        """Answer a question to the monitor itself. Takes: `subject`, the parked one whose answer is wanted."""

    def send(self, effect_id: str, redaction: Redaction | None = None) -> None:
        """Make a parked one that was released; its outcome is fed when it is there."""
